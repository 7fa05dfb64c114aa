"""A run as a terminal shows it: a progress bar, notes, and failures as they happen."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import TaskID

from influx_wrap.cli.progress import RESUME, progress_bar
from influx_wrap.run.cell import CellOutcome
from influx_wrap.run.listener import RunListener


class ConsoleListener(RunListener):
    """Prints to stderr what a run tells; a context in which its bar is shown.

    A run that is interrupted there goes on with the same command, which the message says.
    """

    def __init__(self, *, shows_failures: bool = True) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._bar = progress_bar(self._console)
        self._shows_failures = shows_failures
        self._works: dict[str, TaskID] = {}

    def __enter__(self) -> ConsoleListener:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(RESUME) from None

    def note(self, text: str) -> None:
        self._console.print(escape(text))

    def warn(self, subject: str, text: str) -> None:
        self._console.print(f"[yellow]{escape(subject)}:[/] {escape(text)}")

    def progress(self, what: str, done: int, total: int | None) -> None:
        if done == total:
            self.finished(what)
            return
        if what not in self._works:
            # What was done before says nothing of how fast it goes on.
            self._works[what] = self._bar.add_task(escape(what), total=total, completed=done)
        self._bar.update(self._works[what], completed=done, total=total)

    def finished(self, what: str) -> None:
        if what in self._works:
            self._bar.remove_task(self._works.pop(what))

    def outcome(self, outcome: CellOutcome) -> None:
        failure = outcome.record.failure
        if failure is not None and self._shows_failures:
            reason = f"{failure.stage}: {failure.reason}. {failure.advice}"
            self._console.print(f"[red]{escape(outcome.cell)} failed:[/] {escape(reason)}")
        for suspicion in outcome.record.suspicions:
            self.warn(f"{outcome.cell} is suspect", f"{suspicion.sentence}.")
