"""``influx-calib compare``: the recipes side by side."""

from __future__ import annotations

import time
from pathlib import Path

import click
import numpy as np
from rich.console import Console

from influx_wrap.calibrate.recipe import RECIPES, Recipe, override
from influx_wrap.cli.campaign import calibrate_with_progress, chosen_cluster
from influx_wrap.cli.options import (
    PATH,
    cells_option,
    jobs_option,
    lens_argument,
    planned,
    rollouts_option,
    scheduler_option,
    seed_option,
)
from influx_wrap.cli.tables import answers, compare_table, epe_table, print_written
from influx_wrap.evaluate.cells import CellResult, as_csv, as_row, totals
from influx_wrap.evaluate.epe import cell_epe_px, share_below
from influx_wrap.evaluate.points import builtin
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.files import write_json, write_text
from influx_wrap.model.experiment import Plan
from influx_wrap.model.truth import Noise
from influx_wrap.plan import select_cells
from influx_wrap.report.compare_figure import draw_epe, draw_errors
from influx_wrap.run.campaign import claim, simulated_jobs
from influx_wrap.run.workspace import Workspace
from influx_wrap.synth.film.simulation import simulations

THRESHOLDS_PX = np.geomspace(0.01, 1000, 101)
PRINTED_PX = (0.1, 1.0, 10.0, 100.0)


@click.command("compare")
@lens_argument
@click.option(
    "--out",
    type=PATH,
    help="Folder of the comparison, with one per lens in it for all.  [default: runs/compare-LENS]",
)
@cells_option
@rollouts_option
@seed_option
@jobs_option
@scheduler_option
@click.pass_obj
def command(
    catalogue: Path | None,
    lens: str,
    camera: str,
    out: Path | None,
    cells: str,
    rollouts: int | None,
    seed: int,
    jobs: int,
    scheduler: str | None,
) -> None:
    """Calibrate simulated cells of LENS (or of all lenses) with stock, influx and batch.

    Writes maps of the errors of every cell and cumulative curves of the end-point error.
    --rollouts is for the recipe influx. A recipe that fails in a cell is part of the
    answer: the exit code is 0 all the same.

    \b
    Example:
      influx-calib compare canon17
      influx-calib compare all --rollouts 20
    """
    names = list(load_catalogue(catalogue).lenses) if lens == "all" else [lens]
    recipes = dict(RECIPES)
    if rollouts is not None:
        recipes["influx"] = override(recipes["influx"], {"rollouts": str(rollouts)})
    for name in names:
        plan = planned(catalogue, name, camera)
        if out is None:
            root = Path("runs") / f"compare-{name}"
        else:
            root = out / name if lens == "all" else out
        _compare(plan, Workspace(root), cells, recipes, seed, jobs, scheduler)


def _compare(
    plan: Plan,
    workspace: Workspace,
    cells: str,
    recipes: dict[str, Recipe],
    seed: int,
    jobs: int,
    scheduler: str | None,
) -> None:
    start = time.monotonic()
    lens = plan.lens.name
    simulated = simulations(plan, select_cells(plan, cells), Noise(), seed=seed)
    todo = simulated_jobs(simulated, list(recipes.values()), workspace)
    stores = {name: workspace.part(name) for name in recipes}
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(
        f"Simulating {len(todo)} experiments of {lens} into {workspace.root / 'data'}, each "
        f"calibrated with {', '.join(recipes)}."
    )
    with chosen_cluster(scheduler) as cluster, workspace.open():
        claim(workspace, plan)
        records = calibrate_with_progress(todo, stores, jobs, console, cluster, failures=False)
        results = {
            name: [CellResult.of(record) for record in by_cell.values()]
            for name, by_cell in records.items()
        }
        total = {name: totals(by_recipe) for name, by_recipe in results.items()}
        with console.status("projecting points"):
            points = builtin().points
            shares = {
                name: share_below(
                    cell_epe_px(by_recipe, points, plan.camera.image_size), THRESHOLDS_PX
                )
                for name, by_recipe in results.items()
            }
        write_json(workspace.summary_json, {"lens": lens, "seed": seed, "recipes": total})
        rows = [{"recipe": name, **as_row(result)} for name in results for result in results[name]]
        write_text(workspace.summary_csv, as_csv(rows))
        curve = [
            {"epe_px": threshold, **{name: float(share[i]) for name, share in shares.items()}}
            for i, threshold in enumerate(THRESHOLDS_PX.tolist())
        ]
        write_text(workspace.epe_csv, as_csv(curve))
        draw_errors(plan, results, workspace.errors_figure)
        title = f"{lens}: {len(todo)} simulated cells"
        draw_epe(title, THRESHOLDS_PX, shares, workspace.epe_figure)
    answer = answers()
    answer.print(compare_table(f"{title}, {time.monotonic() - start:.0f} s", results))
    at = [int(np.abs(np.log(THRESHOLDS_PX / px)).argmin()) for px in PRINTED_PX]
    answer.print(
        epe_table(PRINTED_PX, {name: share[at].tolist() for name, share in shares.items()})
    )
    print_written(
        workspace.summary_json, workspace.summary_csv, workspace.errors_figure, workspace.epe_csv,
        workspace.epe_figure,
    )  # fmt: skip
