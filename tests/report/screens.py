"""Every page of ours as people meet it, to be looked at: ``python -m tests.report.screens DIR``.

Each is shown light and dark, on a desktop and on a phone, whole and from its top; and as a browser
prints it, on A4 and on Letter. The tests assert what can be asserted; whether a page is clear has
to be seen. The pages are made by commands of ours in ``DIR/made``, which is kept; other files
may be named instead: ``python -m tests.report.screens DIR runs/canon17/report.html#z3f2``.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from influx_wrap.model.target import Checkerboard
from tests.cameras import pinhole_pictures, write_photographs
from tests.report.browser import open_page, settled

WIDTHS_PX = {"desktop": 1280, "phone": 390}
COLUMN_PX = 1500
"""A page that is higher than this is laid in columns beside each other."""
MOST_COLUMNS = {"desktop": 2, "phone": 5}
PAPERS = ("A4", "Letter")
SHEETS = 6
"""So many sheets of paper are in one picture."""


@dataclass(frozen=True)
class Shot:
    """A page as it is looked at: its file and what follows the # of its address."""

    name: str
    path: Path
    fragment: str = ""


def pages(folder: Path) -> list[Shot]:
    """Pages of all kinds, made in ``folder`` unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = {
        "canon17": ("run", "canon17", "--cells", ",".join(
            f"z{z}f{f}" for z in (0, 2, 4, 6, 7) for f in (0, 3, 6, 9))),
        "premista80": ("run", "premista80", "--recipe", "batch"),
        "one": ("run", "canon17", "--cells", "z3f2", "--recipe", "batch"),
    }  # fmt: skip
    for name, words in runs.items():
        if not (folder / name / "report.html").exists():
            calib(folder, *words, "--out", name)
    if not (folder / "own" / "report.html").exists():
        recordings(folder / "footage")
        calib(folder, "run", "canon17", "--data", "footage", "--out", "own", code=1)
    if not (folder / "camera" / "camera.html").exists():
        board = Checkerboard(9, 6, 0.03, 0.03)
        write_photographs(folder / "photos", pinhole_pictures(board, 12), "view")
        calib(folder, "camera", "photos", "--out", "camera")
    if not (folder / "scores" / "report.html").exists():
        scores(folder)
    if not (folder / "flight" / "review.html").exists():
        review(folder)
    reports = [Shot(f"report-{name}", folder / name / "report.html") for name in (*runs, "own")]
    tables = [Shot(f"explorer-{name}", folder / name / "explorer.html") for name in (*runs, "own")]
    of_report = (("canon17", "z2f3"), ("canon17", "z0f9"), ("own", "z3f4"), ("own", "z7f2"))
    return [
        *reports,
        *(Shot(f"report-{run}-{cell}", folder / run / "report.html", cell)
          for run, cell in of_report),
        *(table for table in tables if table.path.exists()),
        Shot("camera", folder / "camera" / "camera.html"),
        Shot("scores", folder / "scores" / "report.html"),
        Shot("review", folder / "flight" / "review.html"),
    ]  # fmt: skip


def recordings(folder: Path) -> None:
    """Experiments as a user has them, without truth; one was typed wrong, one has too little."""
    cells = "z0f0,z0f4,z3f0,z3f4,z5f2,z6f0,z6f4,z7f2,z0f9,z6f9"
    calib(folder.parent, "simulate", "canon17", "--cells", cells, "--out", folder.name)
    for truth in folder.glob("*/truth.json"):
        truth.unlink()
    typed = folder / "z3f4" / "experiment.yaml"
    typed.write_text(typed.read_text().replace("lfl_mm: 24.0", "lfl_mm: 60"))
    corners = folder / "z7f2" / "coords_2d.csv"
    corners.write_text("".join(corners.read_text().splitlines(keepends=True)[:40]))


def scores(folder: Path) -> None:
    """Of two methods, one of which knows the metadata, on a short clip."""
    calib(
        folder, "simulate", "canon17", "--clip", "--motion", "zoom", "--frames", 24,
        "--size", "428x276", "--out", "clip",
    )  # fmt: skip
    for method, more in (("metadata", ("--metadata", "clip/metadata.csv")), ("constant", ())):
        out = ("--out", f"{method}.json")
        calib(folder, "predict", "clip/clip.mp4", "--method", method, *more, *out)
    of = ("metadata.json", "constant.json", "--truth", "clip/gt_validation.json")
    calib(folder, "evaluate", *of, "--size", "428x276", "--out", "scores")


def review(folder: Path) -> None:
    """Of a flight at night with a flash too few."""
    setting = ("--lens", "canon17", "--lfl-mm", 17, "--fd-m", 13.5)
    calib(
        folder, "simulate", "canon17", "--cells", "z0f9", "--video", "--hover-s", 0.5, "--miss", 1,
        "--out", "night",
    )  # fmt: skip
    calib(folder, "drone", "detect", "night/z0f9/clip.mp4", "--out", "flight")
    shutil.copy(folder / "night" / "z0f9" / "flash_rtk.json", folder / "flight")
    calib(folder, "drone", "match", "flight", *setting, "--review", code=2)


def calib(folder: Path, *arguments: object, code: int = 0) -> None:
    """One of our commands, in ``folder``; another exit code than ``code`` ends it all."""
    words = [str(argument) for argument in arguments]
    print("influx-calib", *words, flush=True)
    command = Path(sys.executable).with_name("influx-calib")
    ended = subprocess.run([command, *words], cwd=folder, check=False)
    if ended.returncode != code:
        sys.exit(f"influx-calib ended with code {ended.returncode}.")


def shoot(shot: Shot, out: Path) -> None:
    """Write all pictures of a page, as ``out/NAME-dark-phone.png``."""
    for device, width in WIDTHS_PX.items():
        for dark in (False, True):
            with open_page(
                shot.path.resolve(), width=width, dark=dark, fragment=shot.fragment
            ) as tab:
                settled(tab)
                top = opened(tab.screenshot())
                whole = opened(tab.screenshot(full_page=True))
            name = f"{shot.name}-{'dark' if dark else 'light'}-{device}"
            top.save(out / f"{name}.png")
            for number, part in enumerate(columns(whole, MOST_COLUMNS[device]), start=1):
                part.save(out / f"{name}-whole-{number}.png")
    for paper in PAPERS:
        # From a dark screen, which paper must not show.
        with open_page(shot.path.resolve(), dark=True, fragment=shot.fragment) as tab:
            settled(tab)
            pdf = tab.pdf(format=paper)
        for number, part in enumerate(sheets(pdf), start=1):
            part.save(out / f"{shot.name}-{paper}-{number}.png")


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data)).convert("RGB")


def columns(whole: Image.Image, most: int) -> Iterable[Image.Image]:
    """A high picture as columns, ``most`` of them beside each other in each picture."""
    strips = [
        whole.crop((0, top, whole.width, min(top + COLUMN_PX, whole.height)))
        for top in range(0, whole.height, COLUMN_PX)
    ]
    for first in range(0, len(strips), most):
        yield beside(strips[first : first + most])


def sheets(pdf: bytes) -> Iterable[Image.Image]:
    """The sheets of a document, ``SHEETS`` of them in each picture."""
    import pypdfium2

    drawn = [page.render(scale=1.3).to_pil() for page in pypdfium2.PdfDocument(pdf)]
    for first in range(0, len(drawn), SHEETS):
        yield beside(drawn[first : first + SHEETS])


def beside(pictures: list[Image.Image], gap: int = 12) -> Image.Image:
    width = sum(picture.width for picture in pictures) + gap * (len(pictures) - 1)
    whole = Image.new("RGB", (width, max(picture.height for picture in pictures)), "#c020c0")
    left = 0
    for picture in pictures:
        whole.paste(picture, (left, 0))
        left += picture.width + gap
    return whole


def named(words: list[str]) -> list[Shot]:
    """Pages by their files, with a # and a fragment or without."""
    shots = []
    for word in words:
        path, _, fragment = word.partition("#")
        name = "-".join(
            part for part in (Path(path).parent.name, Path(path).stem, fragment) if part
        )
        shots.append(Shot(name, Path(path), fragment))
    return shots


def main(words: list[str]) -> None:
    if not words:
        sys.exit("usage: python -m tests.report.screens DIR [PAGE ...]")
    out = Path(words[0])
    out.mkdir(parents=True, exist_ok=True)
    for shot in named(words[1:]) or pages(out / "made"):
        shoot(shot, out)
        print(f"written: {out / shot.name}-*.png", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
