"""What a run tells while it works: the command line shows it, a library's user may do without."""

from __future__ import annotations

from influx_wrap.run.cell import CellOutcome


class RunListener:
    """Hears how a run goes. Nothing is done with it here: override what is of interest."""

    def note(self, text: str) -> None:
        """A sentence about the whole run."""

    def warn(self, subject: str, text: str) -> None:
        """Something a person should know of a cell, or of a file that is not there."""

    def progress(self, what: str, done: int, total: int | None) -> None:
        """How far the work called ``what`` is; a ``total`` of None is not known yet. Works may go
        on side by side."""

    def finished(self, what: str) -> None:
        """The work called ``what`` is done, as it also is with as many as there are."""

    def outcome(self, outcome: CellOutcome) -> None:
        """What came of a cell."""
