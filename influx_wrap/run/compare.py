"""The recipes side by side, on simulated cells whose answer is known."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from influx_wrap.calibrate.recipe import Recipe
from influx_wrap.evaluate.cells import CellResult, as_csv, as_row, totals
from influx_wrap.evaluate.epe import cell_epe_px, share_below
from influx_wrap.evaluate.points import builtin
from influx_wrap.formats.files import write_json, write_text
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.experiment import Plan
from influx_wrap.model.truth import Noise
from influx_wrap.plan import select_cells
from influx_wrap.report.compare_figure import draw_epe, draw_errors
from influx_wrap.run.jobs import simulated_jobs
from influx_wrap.run.listener import RunListener
from influx_wrap.run.pipeline import calibrate_jobs, chosen_cluster
from influx_wrap.run.workspace import Workspace
from influx_wrap.synth.film.simulation import simulations

THRESHOLDS_PX = np.geomspace(0.01, 1000, 101)


@dataclass(frozen=True, eq=False)
class Comparison:
    """What the recipes gave for the same cells.

    results  of the cells, by recipe
    shares   by recipe, the share of points whose end-point error is below ``THRESHOLDS_PX``
    """

    workspace: Workspace
    title: str
    results: Mapping[str, list[CellResult]]
    shares: Mapping[str, FloatArray]
    seconds: float

    def share_within(self, thresholds_px: tuple[float, ...]) -> dict[str, list[float]]:
        """By recipe, the share of points within some of ``THRESHOLDS_PX``."""
        at = [int(np.abs(np.log(THRESHOLDS_PX / px)).argmin()) for px in thresholds_px]
        return {name: share[at].tolist() for name, share in self.shares.items()}

    @property
    def written(self) -> tuple[Path, ...]:
        """The files that there are now."""
        place = self.workspace
        summary = place.summary_json, place.summary_csv, place.errors_figure
        return (*summary, place.epe_csv, place.epe_figure)


def compare_recipes(
    plan: Plan,
    out: Path,
    recipes: Mapping[str, Recipe],
    *,
    cells: str = "all",
    seed: int = 0,
    jobs: int | None = None,
    scheduler: str | None = None,
    listener: RunListener | None = None,
) -> Comparison:
    """Calibrate the simulated cells of a lens with each of the recipes; arguments as ``run_lens``.

    A recipe that fails in a cell is part of the answer.
    """
    start = time.monotonic()
    listener = RunListener() if listener is None else listener
    lens, workspace = plan.lens.name, Workspace(out)
    simulated = simulations(plan, select_cells(plan, cells), Noise(), seed=seed)
    todo = simulated_jobs(simulated, list(recipes.values()), workspace)
    stores = {name: workspace.part(name) for name in recipes}
    listener.note(
        f"Simulating {len(todo)} experiments of {lens} into {workspace.root / 'data'}, each "
        f"calibrated with {', '.join(recipes)}."
    )
    with chosen_cluster(scheduler) as cluster, workspace.open():
        workspace.claim(plan)
        processes = jobs or os.cpu_count() or 1
        records = calibrate_jobs(todo, stores, processes, listener, cluster)
        results = {
            name: [CellResult.of(record) for record in by_cell.values()]
            for name, by_cell in records.items()
        }
        listener.progress("projecting points", 0, None)
        points, size = builtin().points, plan.camera.image_size
        shares = {
            name: share_below(cell_epe_px(by_recipe, points, size), THRESHOLDS_PX)
            for name, by_recipe in results.items()
        }
        title = f"{lens}: {len(todo)} simulated cells"
        _write(workspace, plan, seed, title, results, shares)
    return Comparison(workspace, title, results, shares, time.monotonic() - start)


def _write(
    workspace: Workspace,
    plan: Plan,
    seed: int,
    title: str,
    results: Mapping[str, list[CellResult]],
    shares: Mapping[str, FloatArray],
) -> None:
    total = {name: totals(by_recipe) for name, by_recipe in results.items()}
    write_json(workspace.summary_json, {"lens": plan.lens.name, "seed": seed, "recipes": total})
    rows = [{"recipe": name, **as_row(result)} for name in results for result in results[name]]
    write_text(workspace.summary_csv, as_csv(rows))
    curve = [
        {"epe_px": threshold, **{name: float(share[i]) for name, share in shares.items()}}
        for i, threshold in enumerate(THRESHOLDS_PX.tolist())
    ]
    write_text(workspace.epe_csv, as_csv(curve))
    draw_errors(plan, results, workspace.errors_figure)
    draw_epe(title, THRESHOLDS_PX, shares, workspace.epe_figure)
