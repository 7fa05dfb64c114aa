"""``influx-calib simulate``: experiments whose answer is known."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.progress import track

from influx_wrap.cli.options import (
    PATH,
    cells_option,
    lens_argument,
    number,
    offset,
    planned,
    seed_option,
)
from influx_wrap.cli.tables import answers
from influx_wrap.errors import InputError
from influx_wrap.model.truth import Noise
from influx_wrap.plan import select_cells
from influx_wrap.simulation import SETTINGS, claim_folder, simulations

NOISE = Noise()


@click.command("simulate")
@lens_argument
@click.option("--out", type=PATH, required=True, help="Folder, one sub-folder per cell.")
@cells_option
@click.option(
    "--noise-px",
    type=number(at_least=0),
    metavar="NUMBER",
    default=NOISE.corner_px,
    show_default=True,
    help="Standard deviation of each corner coordinate.",
)
@click.option(
    "--outliers",
    type=number(at_least=0),
    metavar="NUMBER",
    default=NOISE.outliers,
    show_default=True,
    help=f"Share of corners displaced by up to {NOISE.outlier_px:g} px.",
)
@click.option(
    "--missing-tags",
    type=number(at_least=0),
    metavar="NUMBER",
    default=NOISE.missing_tags,
    show_default=True,
    help="Share of the visible tags that are not found.",
)
@click.option(
    "--bow-mm",
    type=number(at_least=0),
    metavar="NUMBER",
    default=NOISE.bow_mm,
    show_default=True,
    help="Sag of the board's middle.",
)
@click.option(
    "--rtk-ball-m",
    type=number(at_least=0),
    metavar="NUMBER",
    default=NOISE.rtk_ball_m,
    show_default=True,
    help="Radius of the ball in which a drone's position is off.",
)
@click.option(
    "--breathing",
    type=number(),
    metavar="NUMBER",
    default=0.0,
    show_default=True,
    help="Largest relative departure of the focal length from a thin lens.",
)
@click.option(
    "--pp-offset-px",
    type=offset,
    default="0,0",
    show_default=True,
    metavar="X,Y",
    help="Principal point's distance from the image centre.",
)
@seed_option
@click.pass_obj
def command(
    catalogue: Path | None,
    lens: str,
    camera: str,
    out: Path,
    cells: str,
    noise_px: float,
    outliers: float,
    missing_tags: float,
    bow_mm: float,
    rtk_ball_m: float,
    breathing: float,
    pp_offset_px: tuple[float, float],
    seed: int,
) -> None:
    """Simulate experiments of LENS: what a real one would give, plus the truth.

    \b
    Example:
      influx-calib simulate canon17 --out sim --cells z3f2,z0f9 --outliers 0.02
    """
    plan = planned(catalogue, lens, camera)
    noise = Noise(
        corner_px=noise_px,
        outliers=outliers,
        missing_tags=missing_tags,
        bow_mm=bow_mm,
        rtk_ball_m=rtk_ball_m,
    )
    todo = simulations(
        plan,
        select_cells(plan, cells),
        noise,
        seed=seed,
        breathing=breathing,
        pp_offset_px=pp_offset_px,
    )
    settings = {"breathing": breathing, "pp_offset_px": list(pp_offset_px), "seed": seed}
    claim_folder(out, plan, noise, settings)
    errors = Console(stderr=True)
    for simulation in track(todo, "simulating", console=errors, transient=True):
        name = simulation.cell.name
        try:
            simulation.write(out / name)
        except InputError as error:
            raise InputError(f"cell {name}: {error}") from None
    cells_written = "1 cell" if len(todo) == 1 else f"{len(todo)} cells"
    answers().print(
        f"{cells_written} of {lens} simulated in {out}, beside the grid (plan.json) and all "
        f"settings ({SETTINGS}).\n"
        f"Calibrate with: influx-calib run {lens} --data {out}",
        soft_wrap=True,
    )
