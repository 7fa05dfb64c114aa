"""The pictures of README and docs, made by ``make pictures``: none but ``DRAWN`` is made by hand.

Each is what a command of ours has drawn, a page of ours as Chromium shows it, or a figure of
``docs/calibrations.py``, from the same footage as the page of the docs that has it. What they are
made from lies in ``runs/``; footage and what is found in it is not made again if it is there. To
begin anew, remove it.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL.Image import Image

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "img"
MOST_BYTES = 300_000
MOST_WIDTH_PX = 1200

RUN = Path("runs/canon17")
WORK = Path("runs/pictures")

# The lens as its explorer shows it: between four experiments.
SETTING = "lfl=35&fd=2.4&scheme=paper&show=fx&axis=inverse"
CELL = "z5f3"
PREVIEW_FRAME = 30


def run_errors() -> Image:
    return opened(finished_run() / "errors.png")


def contact_sheet() -> Image:
    """Of the tutorial's board."""
    film, run = WORK / "recordings", WORK / "boards"
    if not (run / "data" / "z6f5" / "contact.png").exists():
        calib("simulate", "canon17", "--cells", "z6f5", "--video", "--views", 10, "--out", film)
        calib("run", "canon17", "--data", film, "--out", run)
    return opened(run / "data" / "z6f5" / "contact.png")


def mission() -> Image:
    plan = WORK / "mission.plan"
    calib(
        "drone", "plan", "canon17", "--lfl-mm", 17, "--fd-m", 13.5, "--lat", 40.3430,
        "--lon", -74.6550, "--height-m", 1.44, "--heading-deg", 30, "--tilt-deg", 58,
        "--out", plan,
    )  # fmt: skip
    return opened(plan.with_suffix(".png"))


def explorer() -> Image:
    return page_shown(finished_run() / "explorer.html", fragment=SETTING, height_px=920)


def explorer_clip() -> Image:
    """Of a zoom and a focus pull beyond the table, with a gap in the metadata."""
    metadata = WORK / "pull.csv"
    frames = range(240)
    rows = [
        f"{k},," if 100 <= k < 116 else f"{k},{20 * 4 ** (k / 239)},{1.1 * 30 ** (k / 239)}"
        for k in frames
    ]
    metadata.write_text("\n".join(["frame,lfl_mm,fd_m", *rows]) + "\n")

    def drop(tab: Any) -> None:
        tab.set_input_files("#file", metadata)
        tab.locator("#clip-shown").wait_for()
        tab.locator("#frame").fill("150")
        tab.locator("#frame").blur()

    page = finished_run() / "explorer.html"
    return page_shown(page, fragment=SETTING, then=drop, only=("main > .columns", "#clip"))


def report() -> Image:
    return page_shown(finished_run() / "report.html", height_px=910)


def report_cell() -> Image:
    return page_shown(finished_run() / "report.html", fragment=CELL, height_px=1100)


def scores() -> Image:
    """Of the zoom that evaluation.md begins with."""
    clip, size = WORK / "zoom", ("--size", "856x550")
    footage, answers = clip / "zoom.mp4", []
    if not (clip / "gt_validation.json").exists():
        calib(
            "simulate", "canon17", "--clip", "--motion", "zoom", "--frames", 60, *size,
            "--out", clip,
        )  # fmt: skip
    of_metadata = ("--metadata", clip / "metadata.csv")
    for method, more in (("colmap", ()), ("metadata", of_metadata), ("constant", ())):
        answers.append(WORK / f"{method}.json")
        if not answers[-1].exists():
            calib("predict", footage, "--method", method, *more, "--out", answers[-1])
    out = WORK / "scores"
    calib("evaluate", *answers, "--truth", clip / "gt_validation.json", *size, "--out", out)
    return page_shown(out / "report.html", height_px=895)


def led_review() -> Image:
    night, flight = WORK / "night", WORK / "flight"
    if not (flight / "flash_rtk.json").exists():
        calib(
            "simulate", "canon17", "--cells", "z0f9", "--video", "--hover-s", 0.5, "--miss", 1,
            "--out", night,
        )  # fmt: skip
        calib("drone", "detect", night / "z0f9" / "clip.mp4", "--out", flight)
        shutil.copy(night / "z0f9" / "flash_rtk.json", flight)
    setting = ("--lens", "canon17", "--lfl-mm", 17, "--fd-m", 13.5)
    # A flash is missing: the command leaves that to a person, and says so by its code.
    calib("drone", "match", flight, *setting, "--review", code=2)

    def show(tab: Any) -> None:
        for key in ("u", "p"):
            tab.keyboard.press(key)

    return page_shown(flight / "review.html", height_px=1000, then=show)


def preview() -> Image:
    """A frame of the tutorial's clip, in which the lens zooms and focuses."""
    import av

    clip, film = WORK / "clip", WORK / "preview.mp4"
    if not (clip / "gt_validation.json").exists():
        calib(
            "simulate", "canon17", "--clip", "--motion", "both", "--frames", 48,
            "--size", "1284x826", "--out", clip,
        )  # fmt: skip
    calib(
        "annotate", clip / "metadata.csv", "--lut", finished_run() / "lut.json",
        "--out", WORK / "gt.json", "--video", clip / "clip.mp4", "--preview", film,
    )  # fmt: skip
    with av.open(str(film)) as container:
        frames = container.decode(video=0)
        for _ in range(PREVIEW_FRAME):
            next(frames)
        picture: Image = next(frames).to_image()
    return picture


def calibration(kind: str, board: str | None = None) -> Image:
    """Of the photographs of is-it-good.md."""
    from PIL import Image

    from docs.calibrations import figure, write

    photos = WORK / "photos"
    if not (photos / kind).exists():
        write(photos)
    data = io.BytesIO()
    figure(photos / kind, board).savefig(data, dpi=100, facecolor="white")
    return Image.open(data)


MAKERS: dict[str, Callable[[], Image]] = {
    "canon17-run.png": run_errors,
    "contact.png": contact_sheet,
    "mission.png": mission,
    "explorer.png": explorer,
    "explorer-clip.png": explorer_clip,
    "report.png": report,
    "report-cell.png": report_cell,
    "scores.png": scores,
    "led-review.png": led_review,
    "preview.png": preview,
    **{
        f"calibration-{kind}.png": partial(calibration, kind)
        for kind in ("good", "middle", "flat", "same", "fisheye", "bent", "moved", "zoomed")
    },
    "calibration-spacing.png": partial(calibration, "good", "aprilgrid:7x5@40mm,0.25"),
}

DRAWN = {"pipeline.svg"}
"""Written by hand."""


@cache
def finished_run() -> Path:
    """README's run of all cells; of one that is there, tables, figures and pages are made anew."""
    calib("run", "canon17", "--figures", "--out", RUN)
    return RUN


def calib(*arguments: object, code: int = 0) -> None:
    """One of our commands; another exit code than ``code`` ends it all."""
    words = [str(argument) for argument in arguments]
    print("influx-calib", *words, flush=True)
    ended = subprocess.run([Path(sys.executable).with_name("influx-calib"), *words], check=False)
    if ended.returncode != code:
        sys.exit(f"influx-calib ended with code {ended.returncode}.")


def opened(path: Path) -> Image:
    from PIL import Image

    with Image.open(path) as picture:
        picture.load()
    return picture


def page_shown(
    path: Path,
    *,
    fragment: str = "",
    height_px: int = 900,
    then: Callable[[Any], object] = lambda tab: None,
    only: tuple[str, ...] = (),
) -> Image:
    """A page in the light scheme, once all its figures are drawn.

    then  what is done with it before, ``only`` the elements that are shown, one above the other
    """
    from PIL import Image

    from tests.report.browser import open_page

    address = path.resolve()
    with open_page(address, width=MOST_WIDTH_PX, height=height_px, fragment=fragment) as tab:
        then(tab)
        parts = [tab.locator(element).first for element in only] or [tab]
        shots = []
        for part in parts:
            if only:
                part.scroll_into_view_if_needed()
            # Figures are made when they come into view, a frame or two later.
            tab.wait_for_timeout(500)
            tab.wait_for_function(
                "() => typeof Bokeh === 'undefined' || Bokeh.documents.every((one) => one.is_idle)"
            )
            tab.wait_for_timeout(500)
            shots.append(Image.open(io.BytesIO(part.screenshot())))
    whole = Image.new("RGB", (shots[0].width, sum(shot.height for shot in shots)), "white")
    for k, shot in enumerate(shots):
        whole.paste(shot, (0, sum(above.height for above in shots[:k])))
    return whole


def as_png(picture: Image) -> bytes:
    """Not wider than a page; too large a file has fewer colours, then fewer pixels."""
    from PIL import Image

    whole = picture.convert("RGB")
    for width_px, colours in ((1200, None), (1200, 256), (1200, 64), (1000, 64), (800, 64)):
        scale = min(1.0, width_px / whole.width)
        size = (round(scale * whole.width), round(scale * whole.height))
        smaller = whole.resize(size, Image.Resampling.LANCZOS)
        if colours is not None:
            smaller = smaller.quantize(colours, kmeans=1, dither=Image.Dither.NONE)
        data = io.BytesIO()
        smaller.save(data, "PNG", optimize=True)
        if len(data.getvalue()) <= MOST_BYTES:
            return data.getvalue()
    sys.exit(f"A picture takes {len(data.getvalue()) // 1000} kB.")


def main(names: list[str]) -> None:
    unknown = set(names) - set(MAKERS)
    if unknown:
        sys.exit(f"{', '.join(sorted(unknown))}: known pictures are {', '.join(MAKERS)}.")
    WORK.mkdir(parents=True, exist_ok=True)
    for name in names or MAKERS:
        data = as_png(MAKERS[name]())
        (PICTURES / name).write_bytes(data)
        print(f"written: docs/img/{name}, {len(data) / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
