"""The recipes side by side, on simulated cells whose answer is known or on recordings.

A real Kalibr can be put beside them, on the same corners; upstream's finds its own in the same
pictures.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from influx_wrap.calibrate.recipe import RECIPES, Recipe
from influx_wrap.engines.engine import Engine
from influx_wrap.engines.kalibr_engine import KalibrEngine
from influx_wrap.evaluate.cells import CellResult, as_csv, as_row, totals
from influx_wrap.evaluate.epe import cell_epe_px, share_below
from influx_wrap.evaluate.points import builtin
from influx_wrap.formats.files import write_json, write_text
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.experiment import Plan
from influx_wrap.model.hardware import Board
from influx_wrap.model.record import CellRecord
from influx_wrap.model.truth import Noise
from influx_wrap.plan import select_cells
from influx_wrap.report.compare_figure import draw_epe, draw_errors
from influx_wrap.run.cell import CellOutcome
from influx_wrap.run.jobs import recorded_jobs, simulated_jobs
from influx_wrap.run.listener import RunListener
from influx_wrap.run.observe import FootageSettings, observe_jobs
from influx_wrap.run.pipeline import calibrate_jobs, chosen_cluster
from influx_wrap.run.workspace import Workspace
from influx_wrap.synth.film.simulation import simulations

THRESHOLDS_PX = np.geomspace(0.01, 1000, 101)


@dataclass(frozen=True, eq=False)
class Comparison:
    """What the recipes gave for the same cells.

    results  of the cells, by recipe
    records  the same in full, by recipe and cell
    shares   by recipe, the share of points whose end-point error is below ``THRESHOLDS_PX``; none
             where no truth is known
    cell_seconds  how long the calibration took, by recipe and cell; without what was there already
    """

    workspace: Workspace
    title: str
    results: Mapping[str, list[CellResult]]
    records: Mapping[str, Mapping[str, CellRecord]]
    shares: Mapping[str, FloatArray]
    cell_seconds: Mapping[tuple[str, str], float]
    seconds: float

    def share_within(self, thresholds_px: tuple[float, ...]) -> dict[str, list[float]]:
        """By recipe, the share of points within some of ``THRESHOLDS_PX``."""
        at = [int(np.abs(np.log(THRESHOLDS_PX / px)).argmin()) for px in thresholds_px]
        return {name: share[at].tolist() for name, share in self.shares.items()}

    @property
    def written(self) -> tuple[Path, ...]:
        """The files that there are now."""
        place = self.workspace
        summary = place.summary_json, place.summary_csv
        if not self.shares:
            return summary
        return (*summary, place.errors_figure, place.epe_csv, place.epe_figure)


class _Timed(RunListener):
    """Passes on what it hears, and keeps how long cells took."""

    def __init__(self, listener: RunListener) -> None:
        self._listener = listener
        self.seconds: dict[tuple[str, str], float] = {}

    def note(self, text: str) -> None:
        self._listener.note(text)

    def warn(self, subject: str, text: str) -> None:
        self._listener.warn(subject, text)

    def progress(self, what: str, done: int, total: int | None) -> None:
        self._listener.progress(what, done, total)

    def finished(self, what: str) -> None:
        self._listener.finished(what)

    def outcome(self, outcome: CellOutcome) -> None:
        if not outcome.resumed:
            self.seconds[outcome.recipe, outcome.cell] = outcome.seconds
        self._listener.outcome(outcome)


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
    data: Path | None = None,
    boards: Mapping[str, Board] | None = None,
    beside: tuple[Recipe, Engine] | None = None,
) -> Comparison:
    """Calibrate the cells of a lens with each of the recipes; arguments as ``run_lens``.

    boards  by name, for the recordings in ``data``
    beside  an engine to put beside our own, and the recipe that it follows, by whose name it goes

    A recipe that fails in a cell is part of the answer.
    """
    start = time.monotonic()
    timed = _Timed(RunListener() if listener is None else listener)
    listener = timed
    lens, workspace = plan.lens.name, Workspace(out)
    ours = list(recipes.values())
    if data is None:
        simulated = simulations(plan, select_cells(plan, cells), Noise(), seed=seed)
        todo = simulated_jobs(simulated, ours, workspace)
    else:
        todo = recorded_jobs(data, lens, cells, ours, seed, workspace)
    names = [*recipes, *(() if beside is None else (beside[0].name,))]
    source = f"Simulating {len(todo)} experiments" if data is None else f"{len(todo)} experiments"
    listener.note(
        f"{source} of {lens} into {workspace.root / 'data'}, each calibrated with "
        f"{', '.join(names)}."
    )
    with chosen_cluster(scheduler) as cluster, workspace.open():
        workspace.claim(plan)
        processes = jobs or os.cpu_count() or 1
        todo = observe_jobs(todo, FootageSettings(plan, boards or {}), processes, listener)
        stores = {name: workspace.part(name) for name in recipes}
        records = calibrate_jobs(todo, stores, processes, listener, cluster)
        if beside is not None:
            recipe, engine = beside
            theirs = [replace(job, recipes=(recipe,), engine=engine) for job in todo]
            store = {recipe.name: workspace.part(recipe.name)}
            records |= calibrate_jobs(theirs, store, processes, listener, None)
        results = {
            name: [CellResult.of(record) for record in by_cell.values()]
            for name, by_cell in records.items()
        }
        listener.progress("projecting points", 0, None)
        points, size = builtin().points, plan.camera.image_size
        has_truth = any(cell.truth is not None for cells in results.values() for cell in cells)
        shares = {
            name: share_below(cell_epe_px(by_recipe, points, size), THRESHOLDS_PX)
            for name, by_recipe in results.items()
            if has_truth
        }
        listener.finished("projecting points")
        title = f"{lens}: {len(todo)} {'simulated' if data is None else 'recorded'} cells"
        _write(workspace, plan, seed, title, results, shares)
    return Comparison(
        workspace, title, results, records, shares, timed.seconds, time.monotonic() - start
    )


def kalibr_beside(engine: KalibrEngine, rollouts: int | None) -> tuple[Recipe, KalibrEngine]:
    """A real Kalibr and what it is asked for: the paper's procedure, of upstream's its own."""
    name = "paper" if engine.takes_corners else "stock"
    recipe = replace(RECIPES[name], name="kalibr", focal="thin-lens")
    if rollouts is not None and name == "paper":
        recipe = replace(recipe, rollouts=rollouts)
    return engine.accept(recipe), engine


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
    if not shares:
        return
    curve = [
        {"epe_px": threshold, **{name: float(share[i]) for name, share in shares.items()}}
        for i, threshold in enumerate(THRESHOLDS_PX.tolist())
    ]
    write_text(workspace.epe_csv, as_csv(curve))
    draw_errors(plan, results, workspace.errors_figure)
    draw_epe(title, THRESHOLDS_PX, shares, workspace.epe_figure)
