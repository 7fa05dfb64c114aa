"""``influx-calib run``: all cells of a lens."""

from __future__ import annotations

import logging
import shutil
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from influx_wrap.calibrate.recipe import override, recipe_named
from influx_wrap.cli.campaign import (
    calibrate_with_progress,
    chosen_cluster,
    observe_with_progress,
)
from influx_wrap.cli.engine import chosen_engine, engine_options
from influx_wrap.cli.lut import draw_table, print_judgements
from influx_wrap.cli.options import (
    PATH,
    as_settings,
    cells_option,
    jobs_option,
    lens_argument,
    planned,
    recipe_options,
    scheduler_option,
    seed_option,
)
from influx_wrap.cli.report import report_with_progress
from influx_wrap.cli.tables import answers, print_written, run_table, run_totals
from influx_wrap.errors import InputError
from influx_wrap.evaluate.cells import CellResult, as_csv, as_row, totals
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.files import write_json, write_text
from influx_wrap.formats.lut import write_table
from influx_wrap.lut.judge import Judgement, judge_all
from influx_wrap.model.experiment import Plan
from influx_wrap.model.table import Table
from influx_wrap.model.truth import Noise
from influx_wrap.plan import select_cells
from influx_wrap.report.explorer import write_explorer
from influx_wrap.report.run_figure import draw_run
from influx_wrap.run.campaign import claim, recorded_jobs, simulated_jobs
from influx_wrap.run.table import NoTable, table_from_run
from influx_wrap.run.workspace import Workspace
from influx_wrap.synth.film.simulation import simulations

log = logging.getLogger(__name__)


@click.command("run")
@lens_argument
@click.option("--data", type=PATH, help="Folder with one experiment or recording per sub-folder.")
@click.option("--out", type=PATH, show_default="runs/LENS", help="Folder of the run.")
@cells_option
@recipe_options
@engine_options
@seed_option
@jobs_option
@scheduler_option
@click.pass_obj
def command(
    catalogue: Path | None,
    lens: str,
    camera: str,
    data: Path | None,
    out: Path | None,
    cells: str,
    recipe: str,
    settings: tuple[tuple[str, str], ...],
    rollouts: int | None,
    engine: str,
    image: str | None,
    timeout_s: float | None,
    seed: int,
    jobs: int,
    scheduler: str | None,
) -> None:
    """Calibrate all cells of LENS, and say how good each is.

    Without --data the experiments are simulated. Sub-folders of --data with a
    recording.yaml (footage of a board, or of the drone's flight) are turned into experiments
    first. A flight whose flashes and readings do not match fails until it is reviewed. A run
    that was stopped goes on where it stopped when the same command is given again. The exit
    code is 1 if a cell failed.

    \b
    Example:
      influx-calib run canon17
      influx-calib run canon17 --data sim --out runs/sim --recipe batch
      influx-calib run canon17 --scheduler tcp://10.0.0.1:8786
      influx-calib run canon17 --engine kalibr --image influx-kalibr
    """
    start = time.monotonic()
    plan = planned(catalogue, lens, camera)
    chosen = override(recipe_named(recipe), as_settings(settings, rollouts))
    workspace = Workspace(Path("runs") / lens if out is None else out)
    if engine != "native" and scheduler is not None:
        raise InputError(f"--engine {engine} works on this machine: leave --scheduler out.")
    # Cells are what is done at once with our own engine, Kalibr's runs with Kalibr.
    calibrator = chosen_engine(
        engine, image, timeout_s, folder=workspace.root / "kalibr",
        jobs=1 if engine == "native" else jobs,
    )  # fmt: skip
    calibrator.check(chosen)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if data is None:
        simulated = simulations(plan, select_cells(plan, cells), Noise(), seed=seed)
        todo = simulated_jobs(simulated, [chosen], workspace)
        console.print(
            f"No --data given: simulating {_experiments(len(todo))} of {escape(lens)} into "
            f"{escape(str(workspace.root / 'data'))}."
        )
    else:
        todo = recorded_jobs(data, lens, cells, [chosen], seed, workspace)
        n_footage = sum(job.recording is not None for job in todo)
        as_footage = f", {n_footage} of them as footage" if n_footage else ""
        console.print(escape(f"{_experiments(len(todo))} of {lens} from {data}{as_footage}."))
    todo = [replace(job, engine=calibrator) for job in todo]
    with chosen_cluster(scheduler) as cluster, workspace.open():
        claim(workspace, plan)
        todo = observe_with_progress(todo, plan, load_catalogue(catalogue).boards, jobs, console)
        stores = {chosen.name: workspace}
        records = calibrate_with_progress(todo, stores, jobs, console, cluster)[chosen.name]
        results = [CellResult.of(record) for record in records.values()]
        total = totals(results)
        rows = [as_row(result) for result in results]
        header = {"lens": lens, "camera": camera, "recipe": chosen.as_dict(), "seed": seed}
        simulation = {"simulated": data is None}
        write_json(workspace.summary_json, {**header, **simulation, "totals": total, "cells": rows})
        write_text(workspace.summary_csv, as_csv(rows))
        title = f"{lens} on {camera}, recipe {chosen.name}"
        draw_run(plan, results, title, workspace.errors_figure)
        reported = _report(workspace, data, jobs, console)
        judgements = _make_table(workspace, plan, console)
    answer = answers()
    answer.print(run_table(results, title))
    answer.print(run_totals(results, total, time.monotonic() - start), soft_wrap=True)
    if judgements is not None:
        print_judgements(*judgements)
    print_written(
        workspace.summary_json, workspace.summary_csv, workspace.errors_figure,
        workspace.root / "cells",
        *((workspace.table, workspace.explorer) if judgements else ()),
        *((workspace.report,) if reported else ()),
    )  # fmt: skip
    if total["failed"]:
        raise click.exceptions.Exit(1)


def _experiments(n: int) -> str:
    return "1 experiment" if n == 1 else f"{n} experiments"


def _report(workspace: Workspace, data: Path | None, jobs: int, console: Console) -> bool:
    """Whether there is a page; that there is none must not cost the run its results."""
    try:
        report_with_progress(workspace, data, jobs, console)
    except Exception as error:
        log.exception("no report")
        # The page of an earlier run would speak of other results.
        with suppress(OSError):
            workspace.report.unlink(missing_ok=True)
        reason = str(error) if isinstance(error, InputError) else repr(error)
        console.print(f"[yellow]no {workspace.report.name}:[/] {escape(reason)}")
        return False
    return True


def _make_table(
    workspace: Workspace, plan: Plan, console: Console
) -> tuple[Table, list[Judgement]] | None:
    """Write the lens's table, its pictures and its page; returns what leaving one out says.

    Without an experiment to make them from there are none, nor those of an earlier run.
    """
    try:
        built = table_from_run(workspace.root, plan.camera)
    except NoTable as error:
        workspace.table.unlink(missing_ok=True)
        workspace.explorer.unlink(missing_ok=True)
        shutil.rmtree(workspace.table_figures, ignore_errors=True)
        console.print(f"[yellow]no {workspace.table.name}:[/] {escape(str(error))}")
        return None
    for name, reason in built.left_out.items():
        if not workspace.failure(name).exists():
            console.print(f"not in {workspace.table.name}: {escape(f'{name}, {reason}')}")
    with console.status("the lens's table, its figures and its page"):
        write_table(workspace.table, built.table)
        judgements = judge_all(built.table)
        draw_table(built.table, judgements, workspace.table_figures)
        write_explorer(workspace.explorer, built.table, judgements)
    return built.table, judgements
