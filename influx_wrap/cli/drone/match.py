"""``influx-calib drone match``: flashes and positions become an experiment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from influx_wrap.cli.options import PATH, number
from influx_wrap.cli.progress import progress_bar
from influx_wrap.cli.tables import answers, print_written
from influx_wrap.errors import InputError
from influx_wrap.flight.match import (
    MATCH,
    MIN_PAIRS,
    MatchedFlight,
    check_enough,
    forget_experiment,
    write_flight_experiment,
    write_match,
)
from influx_wrap.flight.review import REVIEW_PAGE, settle_flight, write_review_files
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.flight import FLASH_RTK, FLASHES, read_flash_rtk, read_flashes
from influx_wrap.formats.pairs import PAIRS, REVIEW
from influx_wrap.formats.recording import (
    DRONE,
    FlightTruth,
    is_flight,
    read_flight_recording,
    read_flight_truth,
)
from influx_wrap.model.hardware import Camera
from influx_wrap.model.optics import thin_lens_focal_px
from influx_wrap.run.recordings import Setting, extracted_metadata

CAMERA = "arri-alexa-mini"


@click.command("match")
@click.argument("folder", metavar="FLIGHT", type=PATH)
@click.option("--review", is_flag=True, help=f"Write {REVIEW_PAGE}, to decide with.")
@click.option(
    "--accept",
    is_flag=True,
    help="Take what is proposed, unless it is ambiguous; leave out what a review has undecided.",
)
@click.option("--lens", help="Lens, if recording.yaml does not say so.")
@click.option("--camera", show_default=CAMERA, help="Camera body.")
@click.option("--lfl-mm", type=number(above=0), help="Lens focal length.")
@click.option("--fd-m", type=number(above=0, infinite=True), help="Focus distance, inf allowed.")
@click.option(
    "--clock-offset-s",
    type=number(),
    help="What the positions' clock shows at the video's first frame, to half a second.",
)
@click.option(
    "--min-pairs",
    type=click.IntRange(min=8),
    default=MIN_PAIRS,
    show_default=True,
    help="Fewer are not calibrated with.",
)
@click.option("--footage", type=PATH, metavar="PATH", help="The video, if it is not where it was.")
@click.option(
    "--out",
    type=PATH,
    show_default="FLIGHT; FLIGHT/experiment if it has a recording.yaml",
    help="Folder of the experiment.",
)
@click.pass_obj
def command(
    catalogue: Path | None,
    folder: Path,
    review: bool,
    accept: bool,
    lens: str | None,
    camera: str | None,
    lfl_mm: float | None,
    fd_m: float | None,
    clock_offset_s: float | None,
    min_pairs: int,
    footage: Path | None,
    out: Path | None,
) -> None:
    """Match the flashes of a flight with the drone's positions, and make an experiment.

    FLIGHT has flashes.json (influx-calib drone detect) and flash_rtk.json (drone trigger).
    Where flashes and positions do not all belong together, or a light is not where the
    camera should see it, the exit code is 2: pairs.csv has the proposal, and a person decides,
    with --accept, or with --review and then the same command again, which takes review.csv.

    \b
    Example:
      influx-calib drone match flight --lens canon17 --lfl-mm 17 --fd-m 13.5
      influx-calib drone match flight --review
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; a flight is a folder of files.")
    described = is_flight(folder)
    out = out or (folder / "experiment" if described else folder)
    rig = _rig(catalogue, folder, out, described, lens, camera, lfl_mm, fd_m)
    stored = read_flashes(folder / FLASHES)
    readings = read_flash_rtk(rig.rtk)
    if rig.camera is not None and rig.camera.image_size != stored.flashes.image_size:
        sizes = [
            "{} x {}".format(*size) for size in (stored.flashes.image_size, rig.camera.image_size)
        ]
        raise InputError(
            f"{folder / FLASHES} is of {sizes[0]} pixels, camera {rig.camera.name} has {sizes[1]}. "
            "Name the camera that filmed it with --camera."
        )
    decided = folder / REVIEW if (folder / REVIEW).exists() else None
    matched = settle_flight(
        stored.flashes, readings, decided, focal_px=rig.focal_px, clock_offset_s=clock_offset_s
    )
    write_match(folder, matched)
    if review:
        with progress_bar(Console(stderr=True)) as progress:
            task = progress.add_task("pictures", total=None)
            write_review_files(
                folder,
                matched,
                footage or stored.footage,
                title=folder.resolve().name,
                progress=lambda done, total: progress.update(task, completed=done, total=total),
            )
    written = [folder / PAIRS, folder / MATCH, *([folder / REVIEW_PAGE] if review else [])]
    answer = answers()
    answer.print(_report(matched, stored.truncated), soft_wrap=True)
    try:
        check_enough(matched, min_pairs)
        if matched.questions and not (accept and matched.verdict != "ambiguous"):
            raise InputError(f"{matched.refusal()} {_advice(matched, review)}")
    except InputError:
        # What is there of an earlier match is not what the flight says now.
        forget_experiment(out)
        print_written(*written)
        raise
    if rig.setting is not None and rig.camera is not None and rig.lens is not None:
        write_flight_experiment(out, matched, rig.setting, rig.camera, rig.lens, rig.truth)
        written.append(out)
    else:
        answer.print(
            "No experiment was written: the lens's setting is not known. Give --lens, --lfl-mm "
            "and --fd-m.",
            soft_wrap=True,
        )
    print_written(*written)


@dataclass(frozen=True, eq=False)
class _Rig:
    """What the flight was filmed with; None where that is not known."""

    rtk: Path
    lens: str | None
    camera: Camera | None
    setting: Setting | None
    truth: FlightTruth | None

    @property
    def focal_px(self) -> float | None:
        if self.camera is None or self.setting is None:
            return None
        return thin_lens_focal_px(self.setting.lfl_mm, self.setting.fd_m, self.camera.pixel_um)


def _rig(
    catalogue: Path | None,
    folder: Path,
    out: Path,
    described: bool,
    lens: str | None,
    camera: str | None,
    lfl_mm: float | None,
    fd_m: float | None,
) -> _Rig:
    rtk, cell, truth = folder / FLASH_RTK, folder.resolve().name, None
    if described:
        recording = read_flight_recording(folder, extracted_metadata(folder, out))
        rtk, cell, truth = recording.rtk, recording.cell or cell, read_flight_truth(folder)
        lens, camera = lens or recording.lens, camera or recording.camera
        lfl_mm, fd_m = lfl_mm or recording.lfl_mm, fd_m or recording.fd_m
    known = load_catalogue(catalogue)
    setting = None
    if lfl_mm is not None and fd_m is not None:
        setting = Setting(cell, DRONE, lfl_mm, fd_m)
    elif lfl_mm is not None or fd_m is not None:
        missing = "--fd-m" if fd_m is None else "--lfl-mm"
        raise InputError(f"a lens's setting is --lfl-mm and --fd-m: {missing} is missing.")
    if lens is not None:
        lens = known.lens(lens).name
    body = None if setting is None and camera is None else known.camera(camera or CAMERA)
    return _Rig(rtk, lens, body, setting, truth)


def _report(matched: MatchedFlight, truncated: str | None) -> str:
    counts = f"{len(matched.flashes.frames)} flashes, {len(matched.readings.ids)} readings"
    lines = [f"match    {counts}: {len(matched.usable)} pairs, {matched.verdict}"]
    if matched.clock is not None:
        lines.append(
            f"clock    {matched.clock.offset_s:.3f} s at the first frame, drift "
            f"{1e6 * matched.clock.drift:+.0f} ppm, pairs agree to "
            f"{1e3 * matched.time_rms_s:.0f} ms rms"
        )
    if matched.rms_px is not None:
        lines.append(f"camera   a first fit sees them within {matched.rms_px:.2f} px rms")
    for offset_s, n, rms_px in matched.rivals:
        rms = "no camera fits" if rms_px is None else f"{rms_px:.2f} px rms"
        lines.append(f"or       {n} pairs with a clock offset of {offset_s:.2f} s, {rms}")
    if truncated is not None:
        lines.append(f"[yellow]warning:[/] the video was not readable to its end: {truncated}")
    lines += [f"[yellow]doubt:[/] {escape(text)}" for text in matched.doubts]
    return "\n".join(lines)


def _advice(matched: MatchedFlight, review: bool) -> str:
    if review:
        return f"Open {REVIEW_PAGE}, save {REVIEW} beside it, and give this command again."
    if matched.verdict == "reviewed":
        return f"Write use or leave in {REVIEW}, by hand or with --review, or give --accept."
    if matched.verdict == "ambiguous":
        return "Choose with --clock-offset-s, or decide with --review."
    return f"Decide with --review, or take the {len(matched.usable)} pairs with --accept."
