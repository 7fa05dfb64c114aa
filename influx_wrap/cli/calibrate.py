"""``influx-calib calibrate``: one experiment."""

from __future__ import annotations

from pathlib import Path

import click

from influx_wrap.calibrate.recipe import override, recipe_named
from influx_wrap.calibrate.result import CalibrationError
from influx_wrap.calibrate.sanity import TypedSetting
from influx_wrap.cli.engine import chosen_engine, engine_options
from influx_wrap.cli.options import (
    PATH,
    as_settings,
    image_size,
    jobs_option,
    number_option,
    recipe_options,
    seed_option,
)
from influx_wrap.cli.progress import SHOWN_AFTER_S, watch
from influx_wrap.cli.tables import answers, calibration_summary, print_written
from influx_wrap.engines.engine import replaced_recipe
from influx_wrap.errors import InputError
from influx_wrap.model.optics import thin_lens_focal_px
from influx_wrap.run.experiment import calibrate_files


@click.command("calibrate")
@click.option("--target", type=PATH, required=True, help="Kalibr's target.yaml.")
@click.option("--coords", type=PATH, required=True, help="CSV: observation_id,x,y.")
@click.option("--successes", type=PATH, required=True, help="CSV: observation_id,0|1.")
@click.option(
    "--size",
    type=image_size,
    required=True,
    metavar="WxH",
    help="Width and height of the pictures, in pixels, such as 3424x2202.",
)
@number_option("--lfl-mm", None, "Lens focal length, in mm.", above=0, metavar="X")
@number_option(
    "--fd-m", None, "Focus distance, in metres, or inf.", above=0, infinite=True, metavar="X"
)
@number_option(
    "--pixel-um",
    None,
    "Distance between pixels on the sensor, in micrometres.",
    above=0,
    metavar="X",
)
@number_option(
    "--focal-px",
    None,
    "Focal length, in pixels, in place of the three above.",
    above=0,
    metavar="X",
)
@recipe_options
@click.option(
    "--no-shuffle",
    is_flag=True,
    help="Take the views in the order of the file, not in random ones.",
)
@engine_options
@click.option("--bag", type=PATH, help="Pictures, for a Kalibr that takes no corners (ROS 1).")
@seed_option
@jobs_option
@click.option("--out", type=PATH, required=True, help="Where the result goes, as JSON.")
def command(
    target: Path,
    coords: Path,
    successes: Path,
    size: tuple[int, int],
    lfl_mm: float | None,
    fd_m: float | None,
    pixel_um: float | None,
    focal_px: float | None,
    recipe: str,
    settings: tuple[tuple[str, str], ...],
    rollouts: int | None,
    no_shuffle: bool,
    engine: str,
    image: str | None,
    timeout_s: float | None,
    bag: Path | None,
    seed: int,
    jobs: int,
    out: Path,
) -> None:
    """Intrinsics of one experiment, with their uncertainty.

    A first focal length is taken from the lens (--lfl-mm, --fd-m and --pixel-um), from
    --focal-px, or without either from the views themselves. With --engine kalibr every rollout
    is one of a real Kalibr, and recipe influx becomes paper; its files and logs are kept in the
    folder OUT-kalibr.

    \b
    Example:
      influx-calib calibrate --target target.yaml --coords coords_2d.csv \\
          --successes successes.csv --size 3424x2202 \\
          --lfl-mm 50 --fd-m 2 --pixel-um 8.25 --out result.json
      influx-calib calibrate ... --engine kalibr --image influx-kalibr
    """
    if no_shuffle:
        settings = (*settings, ("shuffle", "false"))
    chosen = override(recipe_named(recipe), as_settings(settings, rollouts))
    start_px = _starting_focal_px(lfl_mm, fd_m, pixel_um, focal_px)
    calibrator = chosen_engine(engine, image, timeout_s, folder=out.parent, jobs=jobs, bag=bag)
    asked, chosen = chosen, calibrator.accept(chosen)
    instead = replaced_recipe(asked, chosen)
    if instead is not None:
        click.echo(instead, err=True)
    try:
        with watch("rollouts", after_s=SHOWN_AFTER_S) as progress:
            result = calibrate_files(
                target,
                coords,
                successes,
                out,
                image_size=size,
                recipe=chosen,
                engine=calibrator,
                name=f"{out.stem}-{engine}",
                focal_px=start_px,
                seed=seed,
                progress=progress,
                typed=_typed(lfl_mm, fd_m, pixel_um),
            )
    except CalibrationError as error:
        click.echo(f"Failed: {error}", err=True)
        raise click.exceptions.Exit(1) from None
    answers().print(calibration_summary(result))
    print_written(out)


def _starting_focal_px(
    lfl_mm: float | None,
    fd_m: float | None,
    pixel_um: float | None,
    focal_px: float | None,
) -> float | None:
    lens = {"--lfl-mm": lfl_mm, "--fd-m": fd_m, "--pixel-um": pixel_um}
    given = [name for name, value in lens.items() if value is not None]
    if focal_px is not None:
        if given:
            raise InputError(f"--focal-px and {given[0]} exclude each other: give one of them.")
        return focal_px
    if lfl_mm is not None and fd_m is not None and pixel_um is not None:
        return thin_lens_focal_px(lfl_mm, fd_m, pixel_um)
    if given:
        missing = " and ".join(name for name in lens if name not in given)
        raise InputError(f"{' and '.join(given)} given without {missing}: all three are needed.")
    return None


def _typed(lfl_mm: float | None, fd_m: float | None, pixel_um: float | None) -> TypedSetting | None:
    if lfl_mm is None or fd_m is None or pixel_um is None:
        return None
    return TypedSetting(lfl_mm, fd_m, pixel_um, "the command")
