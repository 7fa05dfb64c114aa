"""The progress bar of commands that take long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich import progress
from rich.console import Console
from rich.markup import escape

from influx_wrap.compute.progress import Progress

RESUME = "Resume with the same command."


def progress_bar(console: Console) -> progress.Progress:
    """A bar with counts and times, shown on a terminal only and gone when it is done."""
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("elapsed"),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
    )
    return progress.Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    )


@contextmanager
def watch(step: str, console: Console | None = None, unit: float = 1) -> Iterator[Progress]:
    """A bar for one step; it counts in ``unit``."""
    with progress_bar(console or Console(stderr=True)) as bar:
        task = bar.add_task(escape(step), total=None)
        yield lambda done, total: bar.update(
            task, completed=done / unit, total=None if total is None else total / unit
        )
