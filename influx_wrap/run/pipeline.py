"""A whole lens: every experiment calibrated, then its summary, its page and its lookup table.

``run_lens`` walks the road of the package once: the plan (or the recordings) says which
experiments there are, footage becomes observations, these become records, and the records become
what people look at and what ``annotate`` reads. A run that was stopped goes on where it stopped.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from influx_wrap.calibrate.recipe import Recipe, recipe_named
from influx_wrap.compute.cluster import Cluster, connected
from influx_wrap.engines.engine import Engine, replaced_recipe
from influx_wrap.engines.native import NativeEngine
from influx_wrap.errors import InputError
from influx_wrap.evaluate.cells import CellResult, as_csv, as_row, totals
from influx_wrap.formats.catalogue import CAMERA, Catalogue, load_catalogue
from influx_wrap.formats.files import write_json, write_text
from influx_wrap.formats.lut import write_table
from influx_wrap.lut.judge import Judgement, judge_all
from influx_wrap.lut.lens_table import LensTable
from influx_wrap.model.experiment import Plan
from influx_wrap.model.hardware import Rig
from influx_wrap.model.record import CellRecord
from influx_wrap.model.table import Table
from influx_wrap.model.truth import Noise
from influx_wrap.observe.video import SOFTWARE
from influx_wrap.plan import select_cells
from influx_wrap.report.explorer import write_explorer
from influx_wrap.run.campaign import run_campaign
from influx_wrap.run.jobs import Job, recorded_jobs, simulated_jobs
from influx_wrap.run.listener import RunListener
from influx_wrap.run.observe import FootageSettings, FootageWork, observe_jobs, warn_of_unused
from influx_wrap.run.page import PageParts, write_report
from influx_wrap.run.plan import plan_by_name, proposed
from influx_wrap.run.table import Built, NoTable, table_from_run
from influx_wrap.run.workspace import Workspace
from influx_wrap.synth.film.simulation import simulations

if TYPE_CHECKING:
    from influx_wrap.plan.next_experiments import Proposal

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Run:
    """What a run gave.

    records     of all its cells, by name, in the order of the work
    table       the lens's lookup table; None if no experiment gave an answer
    judgements  what leaving experiments out says of the table, by scheme
    has_page    whether ``report.html`` could be written
    has_figures whether figures were asked for
    """

    workspace: Workspace
    plan: Plan
    recipe: Recipe
    records: dict[str, CellRecord]
    table: LensTable | None
    judgements: tuple[Judgement, ...]
    has_page: bool
    has_figures: bool
    seconds: float

    @cached_property
    def results(self) -> tuple[CellResult, ...]:
        """The records in short."""
        return tuple(CellResult.of(record) for record in self.records.values())

    @cached_property
    def totals(self) -> dict[str, Any]:
        """How many cells have an answer, and how good the answers are."""
        return totals(self.results)

    @property
    def title(self) -> str:
        """In words, which lens was calibrated how."""
        return run_title(self.plan, self.recipe)

    @property
    def written(self) -> tuple[Path, ...]:
        """The files that there are now."""
        place = self.workspace
        table = () if self.table is None else (place.table, place.explorer)
        page = (place.report,) if self.has_page else ()
        figures: tuple[Path, ...] = ()
        if self.has_figures:
            figures = place.errors_figure, *(() if self.table is None else (place.table_figures,))
        summary = place.summary_json, place.summary_csv, place.root / "cells"
        return (*summary, *table, *page, *figures)


def run_title(plan: Plan, recipe: Recipe) -> str:
    """In words, which lens is calibrated how."""
    return f"{plan.lens.name} on {plan.camera.name}, recipe {recipe.name}"


def run_lens(
    lens: str,
    *,
    camera: str = CAMERA,
    data: str | Path | None = None,
    out: str | Path | None = None,
    plan_file: Path | None = None,
    cells: str = "all",
    recipe: str | Recipe = "influx",
    engine: Engine | None = None,
    seed: int = 0,
    jobs: int | None = None,
    scheduler: str | None = None,
    catalogue: Path | None = None,
    keep_suspects: bool = False,
    every_frame: bool = False,
    decoder: str = SOFTWARE,
    figures: bool = False,
    listener: RunListener | None = None,
) -> Run:
    """Calibrate all cells of a lens, and make its summary, its page and its table.

    data       folder with an experiment or a recording per sub-folder; None: simulated
    out        folder of the run; ``runs/LENS`` unless given
    plan_file  lens settings that say which cells there are; the paper's plan unless given
    cells      some of them (``z3f2,z0f9``), or ``all``
    engine     who calibrates; our own calibrator unless given
    jobs       how many processes work at once; all cores unless given
    scheduler  address of a Dask cluster that calibrates in their place
    catalogue  folder with lenses, cameras and boards of one's own
    keep_suspects  the table also has experiments that are not to be trusted
    every_frame  find corners in all frames of videos, not only in those that can become views
    decoder    what decodes videos: software, hardware by FFmpeg's name for it, or auto
    figures    as PNG files, too, what the pages show

    A cell that fails does not stop the others: its record says why. To be called from the
    main thread of a program whose ``__main__`` can be imported, as processes are started.

    Example:
        run = iw.run_lens("canon17", data="recordings", out="runs/canon17")
        print(run.totals["ok"], run.table.query(lfl_mm=35, fd_m=2.4).camera)
    """
    start = time.monotonic()
    listener = RunListener() if listener is None else listener
    processes = jobs or os.cpu_count() or 1
    plan = plan_by_name(lens, camera, catalogue, plan_file)
    chosen = recipe if isinstance(recipe, Recipe) else recipe_named(recipe)
    workspace = Workspace(Path("runs") / lens if out is None else Path(out))
    calibrator = NativeEngine() if engine is None else engine
    if calibrator.drives_processes and scheduler is not None:
        raise InputError("this engine works on this machine only: leave the scheduler out.")
    asked, chosen = chosen, calibrator.accept(chosen)
    instead = replaced_recipe(asked, chosen)
    if instead is not None:
        listener.note(instead)
    folder = None if data is None else Path(data)
    todo = _jobs(plan, folder, cells, chosen, seed, workspace, listener)
    known = load_catalogue(catalogue)
    boards = known.boards
    rig = Rig(plan.camera, plan.lens, tuple(boards.values()))
    todo = [replace(job, engine=calibrator, rig=rig) for job in todo]
    with chosen_cluster(scheduler) as cluster, workspace.open():
        workspace.claim(plan)
        warn_of_unused(folder, listener)
        stores = {chosen.name: workspace}
        parts = PageParts(workspace, folder)
        footage = FootageSettings(plan, boards, every_frame, decoder)
        records = calibrate_jobs(todo, stores, processes, listener, cluster, parts, footage)[
            chosen.name
        ]
        built = _build_table(workspace, plan, listener, keep_suspects)
        if built is not None:
            odd = built.contradicted
            records = {name: record.doubted(odd.get(name)) for name, record in records.items()}
        _write_summary(workspace, plan, chosen, seed, records, simulated=folder is None)
        judgements: tuple[Judgement, ...] = ()
        missing: list[Proposal] = []
        if built is not None:
            judgements, missing = _write_table(workspace, built, known, listener)
        # After the page of the table, to which it links.
        has_page = _write_page(workspace, parts, missing, processes, listener)
        table = None if built is None else built.table
        _draw(workspace, plan, chosen, records, table, judgements, listener, wanted=figures)
    seconds = time.monotonic() - start
    return Run(workspace, plan, chosen, records, table, judgements, has_page, figures, seconds)


def chosen_cluster(scheduler: str | None) -> AbstractContextManager[Cluster | None]:
    """The cluster of a scheduler; None is for this machine."""
    return nullcontext() if scheduler is None else connected(scheduler)


def calibrate_jobs(
    jobs: list[Job],
    stores: dict[str, Workspace],
    processes: int,
    listener: RunListener,
    cluster: Cluster | None,
    page: PageParts | None = None,
    footage: FootageSettings | None = None,
) -> dict[str, dict[str, CellRecord]]:
    """``run_campaign``, heard by ``listener``, of experiments and of ``footage``."""
    done, resumed, total = 0, 0, sum(len(job.recipes) for job in jobs)
    listener.progress("calibrating", 0, total)

    def report(outcome: Any) -> None:
        nonlocal done, resumed
        done, resumed = done + 1, resumed + outcome.resumed
        listener.progress("calibrating", done, total)
        listener.outcome(outcome)

    with ExitStack() as stack:
        work = None
        if footage is not None:
            recorded = [job for job in jobs if job.recording is not None]
            if not any(job.engine.drives_processes for job in recorded):
                work = stack.enter_context(FootageWork(recorded, footage, listener))
            divided = set() if work is None else work.cells
            # What cannot be divided has all processes for itself, one after the other.
            others = [job for job in jobs if job.cell not in divided]
            observed = {job.cell: job for job in observe_jobs(others, footage, processes, listener)}
            jobs = [observed.get(job.cell, job) for job in jobs]
        records = run_campaign(
            jobs, stores,
            processes=processes, report=report, cluster=cluster, page=page, footage=work,
        )  # fmt: skip
    if resumed:
        listener.note(f"{resumed} results were there already.")
    return records


def _jobs(
    plan: Plan,
    data: Path | None,
    cells: str,
    recipe: Recipe,
    seed: int,
    workspace: Workspace,
    listener: RunListener,
) -> list[Job]:
    lens = plan.lens.name
    if data is None:
        simulated = simulations(plan, select_cells(plan, cells), Noise(), seed=seed)
        jobs = simulated_jobs(simulated, [recipe], workspace)
        listener.note(
            f"No --data given: simulating {_experiments(len(jobs))} of {lens} into "
            f"{workspace.root / 'data'}."
        )
        return jobs
    jobs = recorded_jobs(data, lens, cells, [recipe], seed, workspace)
    n_footage = sum(job.recording is not None for job in jobs)
    as_footage = f", {n_footage} of them as footage" if n_footage else ""
    listener.note(f"{_experiments(len(jobs))} of {lens} from {data}{as_footage}.")
    return jobs


def _experiments(n: int) -> str:
    return "1 experiment" if n == 1 else f"{n} experiments"


def _write_summary(
    workspace: Workspace,
    plan: Plan,
    recipe: Recipe,
    seed: int,
    records: dict[str, CellRecord],
    *,
    simulated: bool,
) -> None:
    results = [CellResult.of(record) for record in records.values()]
    rows = [as_row(result) for result in results]
    summary = {
        "lens": plan.lens.name,
        "camera": plan.camera.name,
        "recipe": recipe.as_dict(),
        "seed": seed,
        "simulated": simulated,
        "totals": totals(results),
        "cells": rows,
    }
    write_json(workspace.summary_json, summary)
    write_text(workspace.summary_csv, as_csv(rows))


def _write_page(
    workspace: Workspace,
    parts: PageParts,
    missing: Sequence[Proposal],
    processes: int,
    listener: RunListener,
) -> bool:
    """Whether there is a page; that there is none must not cost the run its results."""

    def progress(done: int, total: int | None) -> None:
        listener.progress("report", done, total)

    listener.progress("report", 0, None)
    try:
        write_report(
            workspace,
            parts.data,
            processes=processes,
            progress=progress,
            made=parts.made,
            missing=missing,
        )
    except Exception as error:
        log.exception("no report")
        # The page of an earlier run would speak of other results.
        with suppress(OSError):
            workspace.report.unlink(missing_ok=True)
        reason = str(error) if isinstance(error, InputError) else repr(error)
        listener.warn(f"no {workspace.report.name}", reason)
        return False
    finally:
        listener.finished("report")
    return True


def _build_table(
    workspace: Workspace, plan: Plan, listener: RunListener, keep_suspects: bool
) -> Built | None:
    """The lens's table; None, and none of an earlier run either, without an experiment for it."""
    try:
        return table_from_run(workspace.root, plan.camera, keep_suspects=keep_suspects)
    except NoTable as error:
        workspace.table.unlink(missing_ok=True)
        workspace.explorer.unlink(missing_ok=True)
        listener.warn(f"no {workspace.table.name}", str(error))
        return None


def _write_table(
    workspace: Workspace, built: Built, known: Catalogue, listener: RunListener
) -> tuple[tuple[Judgement, ...], list[Proposal]]:
    """Write the lens's table and its page; returns what leaving one out says, and the experiments
    that the table lacks most."""
    for name, reason in built.left_out.items():
        if not workspace.failure(name).exists():
            listener.warn(f"not in {workspace.table.name}", f"{name}, {reason}.")
    for note in built.notes:
        listener.warn(workspace.table.name, note)
    for name, remark in built.remarks.items():
        listener.warn(f"in {workspace.table.name} all the same", f"{name}, {remark}.")
    listener.progress("the lens's table and its page", 0, None)
    write_table(workspace.table, built.table)
    judgements = judge_all(built.table)
    missing = proposed(built.table, known)
    write_explorer(workspace.explorer, built.table, judgements, missing)
    listener.finished("the lens's table and its page")
    return tuple(judgements), missing


def _draw(
    workspace: Workspace,
    plan: Plan,
    recipe: Recipe,
    records: dict[str, CellRecord],
    table: Table | None,
    judgements: tuple[Judgement, ...],
    listener: RunListener,
    *,
    wanted: bool,
) -> None:
    """Draw what the pages show, if that is ``wanted``; figures of earlier results do not stay."""
    workspace.errors_figure.unlink(missing_ok=True)
    shutil.rmtree(workspace.table_figures, ignore_errors=True)
    if not wanted:
        return
    # matplotlib is slow to load
    from influx_wrap.report.run_figure import draw_run
    from influx_wrap.report.table_figure import draw_table

    listener.progress("figures", 0, None)
    results = [CellResult.of(record) for record in records.values()]
    draw_run(plan, results, run_title(plan, recipe), workspace.errors_figure)
    if table is not None:
        draw_table(table, judgements, workspace.table_figures)
    listener.finished("figures")
