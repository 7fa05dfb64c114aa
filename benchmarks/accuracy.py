"""How accurate, next to the best that is physically possible: Monte-Carlo over both lenses.

Cells of both lenses are simulated and calibrated under every condition. The figure of
merit is the root mean square of the errors of fx, fy, cx and cy, each divided by its
Cramér-Rao bound: 1 is as good as it can be.

A hundred rollouts take a hundred times as long as one adjustment of all views. Recipes that run
them get every fourth cell for a seed, others for the next one: ``--seeds 4`` goes over all.
"""

from __future__ import annotations

import os

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from benchmarks.montecarlo import (
    CONDITIONS,
    COVERAGE,
    Condition,
    Score,
    Trial,
    by_condition,
    run_trial,
    summarise,
    trials,
)
from benchmarks.report import verdict
from influx_wrap.calibrate.recipe import RECIPES
from influx_wrap.compute.processes import WorkerDied, parallel

# There are few drone cells and they take no time: more seeds make their figure as firm.
DRONE_SEEDS = 6
EVERY = 4


def all_trials(seeds: int) -> list[Trial]:
    """Everything that is run, the longest first so that both processes end together."""
    tasks = [
        trial
        for condition in CONDITIONS
        for trial in trials(
            condition,
            range(seeds * (DRONE_SEEDS if condition.drone else 1)),
            EVERY if _runs_rollouts(condition) else 1,
        )
    ]
    return sorted(tasks, key=lambda trial: not _runs_rollouts(trial.condition))


def _runs_rollouts(condition: Condition) -> bool:
    return RECIPES[condition.recipe].joint == "incremental"


def run_all(tasks: list[Trial], console: Console) -> list[Score]:
    """Scores in the order of the tasks, on all cores."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    scores: dict[Trial, Score] = {}
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        bar = progress.add_task("calibrating", total=len(tasks))
        for trial, score in parallel(run_trial, tasks, os.cpu_count() or 1):
            if isinstance(score, WorkerDied):
                raise RuntimeError(f"the process that ran {trial} died ({score.exitcode})")
            scores[trial] = score
            progress.advance(bar)
    return [scores[trial] for trial in tasks]


def run(console: Console, seeds: int = 1) -> bool:
    """Print the table; returns whether all limits are kept."""
    scores = by_condition(run_all(all_trials(seeds), console))
    table = Table(title="RMS of error / bound, cells of both lenses")
    for column in ("condition", "recipe", "n", "failed", "fx", "fy", "cx", "cy", "all"):
        table.add_column(column, justify="left" if column in ("condition", "recipe") else "right")
    for column in ("limit", "", "within 1 sigma", "", "seconds"):
        table.add_column(column, justify="right")
    passed = []
    for condition in CONDITIONS:
        summary = summarise(condition, scores[condition])
        passed += [summary.accurate, summary.honest]
        table.add_row(
            condition.name,
            condition.recipe,
            str(summary.n),
            str(len(summary.failures)),
            *(f"{value:.2f}" for value in summary.rms),
            f"{summary.rms_all:.3f}",
            "converges" if condition.limit is None else f"{condition.limit:g}",
            verdict(summary.accurate),
            f"{100 * summary.coverage:.0f} %",
            verdict(summary.honest),
            f"{summary.seconds:.2f}",
        )
        for failure in summary.failures:
            console.print(f"[red]failed[/]: {failure}")
    console.print(table)
    low, high = (100 * share for share in COVERAGE)
    console.print(
        f"Stated sigmas are true when {low:.0f} to {high:.0f} % of errors are within one."
    )
    return all(passed)
