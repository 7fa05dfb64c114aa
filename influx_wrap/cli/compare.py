"""``influx-calib compare``: the recipes side by side."""

from __future__ import annotations

from pathlib import Path

import click

from influx_wrap.calibrate.recipe import RECIPES, override
from influx_wrap.cli.engine import chosen_engine, engine_options
from influx_wrap.cli.listener import ConsoleListener
from influx_wrap.cli.options import (
    PATH,
    catalogue_option,
    cells_option,
    jobs_option,
    lens_argument,
    rollouts_option,
    scheduler_option,
    seed_option,
)
from influx_wrap.cli.tables import (
    answers,
    beside_table,
    compare_table,
    epe_table,
    print_written,
)
from influx_wrap.engines.kalibr_engine import KalibrEngine
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.run.compare import compare_recipes, kalibr_beside
from influx_wrap.run.plan import plan_by_name

PRINTED_PX = (0.1, 1.0, 10.0, 100.0)


@click.command("compare")
@lens_argument
@click.option(
    "--out",
    type=PATH,
    help="Folder of the comparison, with one per lens in it for all.  [default: runs/compare-LENS]",
)
@click.option("--data", type=PATH, help="Folder with one experiment or recording per sub-folder.")
@cells_option
@rollouts_option
@engine_options
@seed_option
@jobs_option
@scheduler_option
@catalogue_option
def command(
    catalogue: Path | None,
    lens: str,
    camera: str,
    out: Path | None,
    data: Path | None,
    cells: str,
    rollouts: int | None,
    engine: str,
    image: str | None,
    timeout_s: float | None,
    seed: int,
    jobs: int,
    scheduler: str | None,
) -> None:
    """Calibrate simulated cells of LENS (or of all lenses) with all recipes.

    Writes maps of the errors of every cell and cumulative curves of the end-point error.
    --rollouts is for the recipes influx and paper. A recipe that fails in a cell is part of the
    answer: the exit code is 0 all the same. With --engine kalibr a real Kalibr stands beside
    them, on the same corners, with intrinsics, views and time of each; upstream's finds its own
    corners in the pictures of --data.

    \b
    Example:
      influx-calib compare canon17
      influx-calib compare all --rollouts 20
      influx-calib compare canon17 --cells z3f4 --rollouts 8 --engine kalibr
    """
    known = load_catalogue(catalogue)
    names = list(known.lenses) if lens == "all" else [lens]
    if lens == "all" and data is not None:
        raise InputError("--data is of one lens: name it in place of all.")
    if engine != "native" and scheduler is not None:
        raise InputError(f"--engine {engine} works on this machine: leave --scheduler out.")
    recipes = dict(RECIPES)
    if rollouts is not None:
        for name in ("influx", "paper"):
            recipes[name] = override(recipes[name], {"rollouts": str(rollouts)})
    for name in names:
        plan = plan_by_name(name, camera, catalogue)
        if out is None:
            root = Path("runs") / f"compare-{name}"
        else:
            root = out / name if lens == "all" else out
        calibrator = chosen_engine(
            engine, image, timeout_s, folder=root / "kalibr-runs", jobs=jobs, recordings=data
        )
        beside = None
        if isinstance(calibrator, KalibrEngine):
            beside = kalibr_beside(calibrator, rollouts)
        with ConsoleListener(shows_failures=False) as listener:
            compared = compare_recipes(
                plan,
                root,
                recipes,
                cells=cells,
                seed=seed,
                jobs=jobs,
                scheduler=scheduler,
                listener=listener,
                data=data,
                boards=known.boards,
                beside=beside,
            )
        answer = answers()
        title = f"{compared.title}, {compared.seconds:.0f} s"
        if beside is not None:
            answer.print(beside_table(title, compared.records, compared.cell_seconds))
        if compared.shares:
            answer.print(compare_table(title, compared.results))
            answer.print(epe_table(PRINTED_PX, compared.share_within(PRINTED_PX)))
        print_written(*compared.written)
