"""``influx-calib camera``: one camera from photographs or videos of a board."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
from rich.console import Group, RenderableType
from rich.markup import escape

from influx_wrap.calibrate.recipe import override, recipe_named
from influx_wrap.calibrate.result import CalibrationError
from influx_wrap.cli.options import (
    PATH,
    as_settings,
    every_frame_option,
    jobs_option,
    recipe_options,
    seed_option,
)
from influx_wrap.cli.progress import SHOWN_AFTER_S, watch
from influx_wrap.cli.tables import answers, calibration_summary, print_written
from influx_wrap.errors import InputError
from influx_wrap.formats.files import PICTURES
from influx_wrap.formats.kalibr import read_target
from influx_wrap.run.camera import CameraCalibration, calibrate_camera, forget


@click.command("camera")
@click.argument("pictures", type=PATH, nargs=-1, required=True, metavar="PHOTOS_OR_VIDEO...")
@click.option(
    "--board",
    metavar="BOARD",
    show_default="recognised",
    help="The board: 9x6@25mm is a checkerboard of 9 x 6 inner corners with squares of 25 mm; "
    "charuco:8x6@30mm,22.5mm,5X5_100, aprilgrid:6x6@88mm,0.3 and circles:8x6@30mm. The size may "
    "be left out: the intrinsics do not depend on it.",
)
@click.option("--target", type=PATH, help="The board as Kalibr's target.yaml.")
@recipe_options
@every_frame_option
@seed_option
@jobs_option
@click.option("--out", type=PATH, show_default="camera-NAME", help="Folder of the results.")
def command(
    pictures: tuple[Path, ...],
    board: str | None,
    target: Path | None,
    recipe: str,
    settings: tuple[tuple[str, str], ...],
    rollouts: int | None,
    every_frame: bool,
    seed: int,
    jobs: int,
    out: Path | None,
) -> None:
    """Intrinsics of a camera from a folder of photographs, photographs, videos, or all of these.

    Zoom, focus and picture size must be the same in all of them. Nothing else is asked for: the
    board is recognised, the focal length is found. Of a video, frames are chosen. Writes
    result.json, opencv.yaml, camchain.yaml and a page, camera.html.

    The exit code is 1 if the verdict is "do not use" or there is no answer, 2 if the pictures
    will not do.

    \b
    Example:
      influx-calib camera photos
      influx-calib camera photos/*.jpg --board 9x6@25mm --out camera-a
      influx-calib camera clip.mov --target target.yaml
    """
    if board is not None and target is not None:
        raise InputError("--board and --target exclude each other: give one of them.")
    given = board if target is None else read_target(target)
    chosen = override(recipe_named(recipe), as_settings(settings, rollouts))
    folder = _default_folder(pictures[0]) if out is None else out
    if folder.resolve() in [path.resolve() for path in pictures]:
        raise InputError(f"--out {folder} holds the pictures. Choose another folder.")
    forget(folder)
    step = partial(watch, after_s=SHOWN_AFTER_S)
    try:
        camera = calibrate_camera(
            pictures, given,
            recipe=chosen, seed=seed, jobs=jobs, watch=step, every_frame=every_frame,
        )  # fmt: skip
    except CalibrationError as error:
        click.echo(f"Failed: {error}", err=True)
        raise click.exceptions.Exit(1) from None
    with step("drawing") as progress:
        written = camera.write(folder, progress)
    answers().print(_summary(camera))
    print_written(*written)
    if camera.assessment.grade == "do not use":
        click.echo(f"Do not use: {'; '.join(camera.assessment.reasons)}.", err=True)
        raise click.exceptions.Exit(1)


def _default_folder(path: Path) -> Path:
    """camera- and the name of a folder or file; of a single photograph, of its folder."""
    named = path.parent if path.suffix.lower() in PICTURES else path
    name = named.resolve().name or "pictures"
    return Path(f"camera-{name if named.is_dir() else Path(name).stem}")


def _summary(camera: CameraCalibration) -> RenderableType:
    result = camera.calibration
    if not camera.board.has_size:
        # In units of a square, which is nothing to print as millimetres.
        result = replace(result, bow_m=None)
    return Group(*map(escape, _facts(camera)), calibration_summary(result))


def _facts(camera: CameraCalibration) -> Iterator[str]:
    how = " (recognised)" if camera.board.is_recognised else ""
    size = "" if camera.board.has_size else "; its size is not known, nor needed"
    yield f"board: {camera.board.sentence}{how}{size}"
    for one in camera.views.footage:
        yield one.sentence
    for note in camera.views.notes:
        yield f"  {note}"
    worst = ", ".join(f"{view.label} {view.rms_px:.2f} px" for view in camera.worst_views)
    yield f"largest residuals (RMS): {worst}"
