"""The progress bar of commands that take long."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich import progress
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from influx_wrap.compute.progress import Progress

RESUME = "Resume with the same command."
SHOWN_AFTER_S = 2.0
"""Of steps that are often done at once."""


COUNT_SHOWN_S = 10.0
"""After the last kernel that was compiled."""

_lock = threading.RLock()
_shown: list[StepBar] = []
_kernels, _counted_s = 0, 0.0


class StepBar(progress.Progress):
    """How far a step is, shown on a terminal only and gone when it is done.

    Of several, the one that was started last is shown: a terminal has room for one.
    """

    def __init__(self, console: Console, *columns: progress.ProgressColumn) -> None:
        super().__init__(
            *columns, _Kernels(), console=console, transient=True, disable=not console.is_terminal
        )

    def start(self) -> None:
        """Show it, in place of the one that is shown."""
        with _lock:
            if self.disable or self in _shown:
                return
            while _shown:
                _shown[-1].stop()
            _shown.append(self)
            super().start()

    def stop(self) -> None:
        """Take it off the terminal."""
        with _lock:
            if self in _shown:
                _shown.remove(self)
                super().stop()


def progress_bar(console: Console) -> StepBar:
    """A bar with counts and times."""
    return StepBar(
        console,
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("elapsed"),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
    )


def spinner(text: str, console: Console | None = None) -> StepBar:
    """For a step that does not know how far it is; a context in which it is shown."""
    bar = StepBar(
        console or Console(stderr=True),
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}"),
        progress.TimeElapsedColumn(),
    )
    bar.add_task(escape(text), total=None)
    return bar


def bar_shown() -> StepBar | None:
    """The bar that is on the terminal."""
    with _lock:
        return _shown[-1] if _shown else None


def count_kernels(done: int) -> None:
    """So many kernels were compiled by now, which the bars say as long as it grows."""
    global _kernels, _counted_s
    if done != _kernels:
        _kernels, _counted_s = done, time.monotonic()


class _Kernels(progress.ProgressColumn):
    def render(self, task: progress.Task) -> Text:
        is_new = _kernels > 0 and time.monotonic() - _counted_s < COUNT_SHOWN_S
        return Text(f"kernel {_kernels}" if is_new else "", no_wrap=True)


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
