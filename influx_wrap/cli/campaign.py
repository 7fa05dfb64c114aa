"""The progress bar of commands that calibrate many cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from influx_wrap.campaign import Job, Outcome, run_campaign
from influx_wrap.workspace import Workspace


def calibrate_with_progress(
    jobs: Sequence[Job],
    stores: Mapping[str, Workspace],
    processes: int,
    console: Console,
    *,
    failures: bool = True,
) -> dict[str, dict[str, dict[str, Any]]]:
    """``run_campaign`` with a bar, and ``failures`` shown as they happen."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("elapsed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    resumed = 0
    visible = console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not visible) as progress:
        task = progress.add_task("calibrating", total=sum(len(job.recipes) for job in jobs))

        def report(outcome: Outcome) -> None:
            nonlocal resumed
            resumed += outcome.resumed
            progress.advance(task)
            record = outcome.record
            if failures and record["status"] != "ok":
                reason = f"{record['stage']}: {record['reason']}. {record['advice']}"
                console.print(f"[red]{outcome.cell} failed:[/] {escape(reason)}")

        try:
            records = run_campaign(jobs, stores, processes=processes, report=report)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("Resume with the same command.") from None
    if resumed:
        console.print(f"{resumed} results were there already.")
    return records
