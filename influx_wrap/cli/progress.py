"""The progress bar of commands that take long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich import progress
from rich.console import Console
from rich.markup import escape

from influx_wrap.compute.progress import Progress

RESUME = "Resume with the same command."
SHOWN_AFTER_S = 2.0
"""Of steps that are often done at once."""


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
def watch(
    step: str, console: Console | None = None, unit: float = 1, after_s: float = 0
) -> Iterator[Progress]:
    """A bar for one step, shown if it takes longer than ``after_s``; it counts in ``unit``."""
    begun = time.monotonic()
    bar = progress_bar(console or Console(stderr=True))
    task = bar.add_task(escape(step), total=None)

    def heard(done: int, total: int | None) -> None:
        bar.update(task, completed=done / unit, total=None if total is None else total / unit)
        if time.monotonic() - begun >= after_s:
            bar.start()

    try:
        if after_s == 0:
            bar.start()
        yield heard
    finally:
        bar.stop()
