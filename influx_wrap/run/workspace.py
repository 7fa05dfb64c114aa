"""A run's folder: where each artefact lives, what made it, and whether it still holds.

Every artefact is written whole or not at all and names what it was made from: versions,
recipe, seed and the hashes of its inputs. A result whose provenance is that of the work
at hand needs no computing again, so a run that was killed goes on where it stopped. As
no artefact holds a time, a machine's name or an absolute path, it ends with the same
bytes as one that was not. Times are in ``run.log``, which is also the folder's lock.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from influx_wrap.calibrate.result import Calibration
from influx_wrap.errors import InputError
from influx_wrap.formats.files import (
    make_folder,
    read_json,
    remove_leftovers,
)
from influx_wrap.formats.influx import lens_settings, write_lens_settings
from influx_wrap.formats.poses import POSES, write_poses
from influx_wrap.formats.results import read_result, write_result
from influx_wrap.model.experiment import Plan
from influx_wrap.model.record import CellRecord

EDITED = (InputError, KeyError, TypeError, ValueError, AttributeError)
"""What reading a record may raise that somebody has edited, or another version wrote."""


class _Log(logging.StreamHandler[TextIO]):
    """A log whose disk may be full: that must not cost the results."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Say nothing."""


class _Artefact:
    """The path of what has this name in the folder of a run."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, workspace: Workspace, owner: type[Workspace]) -> Path:
        return workspace.root / self._name


@dataclass(frozen=True)
class Workspace:
    """The folder ``root`` of a run."""

    root: Path

    plan = _Artefact("plan.json")
    """The lens settings of the run."""
    log = _Artefact("run.log")
    """What happened when."""
    summary_json = _Artefact("summary.json")
    """All cells and the totals."""
    summary_csv = _Artefact("summary.csv")
    """All cells, as a table."""
    errors_figure = _Artefact("errors.png")
    """Maps of the errors over LFL and FD."""
    report = _Artefact("report.html")
    """The page to look at all of it."""
    epe_figure = _Artefact("epe.png")
    """Cumulative curves of the end-point error."""
    epe_csv = _Artefact("epe.csv")
    """The numbers behind ``epe_figure``."""
    table = _Artefact("lut.json")
    """The lens's lookup table."""
    explorer = _Artefact("explorer.html")
    """The page to look at the lens's table."""
    table_figures = _Artefact("lut")
    """Pictures of the table and of its cross-validation."""

    def data(self, cell: str) -> Path:
        """The folder of the simulated experiment of a cell."""
        return self.root / "data" / cell

    def result(self, cell: str) -> Path:
        """What a cell's calibration gave."""
        return self.root / "cells" / cell / "result.json"

    def failure(self, cell: str) -> Path:
        """Why a cell's calibration gave nothing."""
        return self.root / "cells" / cell / "failure.json"

    def poses(self, cell: str) -> Path:
        """Where the target is in each view of a cell."""
        return self.root / "cells" / cell / POSES

    def records(self) -> dict[str, Path]:
        """What each cell's calibration gave, by the cell's name: a result, or else a failure."""
        names = sorted({path.parent.name for path in self.root.glob("cells/*/*.json")})
        both = ((name, path) for name in names for path in (self.failure(name), self.result(name)))
        found = {name: path for name, path in both if path.exists()}
        if not found:
            raise InputError(
                f"{self.root} is no folder of a run: it has no cells with results in it."
            )
        return found

    def part(self, name: str) -> Workspace:
        """A workspace inside this one, under its lock."""
        return Workspace(self.root / name)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Have the folder to oneself, and messages of influx_wrap logged to ``run.log``."""
        make_folder(self.root)
        if not self.log.exists() and any(self.root.iterdir()):
            raise InputError(
                f"{self.root} is not empty and was not made by a run. Choose another --out."
            )
        try:
            file = self.log.open("a", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{self.log} cannot be written: {error.strerror}.") from None
        handler = _Log(file)
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        logger = logging.getLogger("influx_wrap")
        level = logger.level
        try:
            self._lock(file)
            self._check_links()
            remove_leftovers(self.root)
            logger.addHandler(handler)
            logger.setLevel(logging.INFO)
            yield
        finally:
            logger.setLevel(level)
            logger.removeHandler(handler)
            with suppress(OSError):
                file.close()

    def _lock(self, file: TextIO) -> None:
        # The kernel releases the lock when the process ends, however it ends.
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{self.root} is in use by another run. Wait for its end, or choose another --out."
            ) from None

    def _check_links(self) -> None:
        """Refuse folders of cells that are links, before anything is written or removed there."""
        for folder in ("cells", "data"):
            self._refuse_link(self.root / folder)
            for path in (self.root / folder).glob("*"):
                self._refuse_link(path)

    def _refuse_link(self, path: Path) -> None:
        if path.is_symlink():
            raise InputError(
                f"{path} is a link to {os.readlink(path)}, and a run writes into folders of its "
                "own only. Remove the link, or choose another --out."
            )

    def _stated_plan(self) -> Mapping[str, object]:
        try:
            return read_json(self.plan).values
        except InputError as error:
            raise InputError(
                f"{str(error).rstrip('.')}. If {self.root} is a run of this lens, remove "
                f"{self.plan.name} and give the same command again, which makes it anew; or choose "
                "another --out."
            ) from None

    def claim(self, plan: Plan) -> None:
        """Write the plan into the folder, unless the folder is another plan's."""
        if self.plan.exists() and self._stated_plan() != lens_settings(plan):
            raise InputError(
                f"{self.root} holds a run with another plan (another lens or catalogue). "
                "Choose another --out."
            )
        write_lens_settings(self.plan, plan)

    def finished(self, cell: str, provenance: Mapping[str, Any]) -> CellRecord | None:
        """The result of a cell if it was made from exactly this, else None."""
        try:
            data: Mapping[str, Any] = read_result(self.result(cell))
            if data.get("status") != "ok" or data.get("provenance") != provenance:
                return None
            record = CellRecord.from_dict(data)
        except EDITED:
            return None
        self.failure(cell).unlink(missing_ok=True)
        return record

    def save(self, record: CellRecord) -> None:
        """Keep what a cell's calibration gave, a result or a failure, in place of older ones."""
        cell = record.cell.name
        self._refuse_link(self.result(cell).parent)
        paths = self.result(cell), self.failure(cell)
        path, other = reversed(paths) if record.result is None else paths
        make_folder(path.parent)
        self.poses(cell).unlink(missing_ok=True)
        if isinstance(record.outcome, Calibration):
            views = [view.view for view in record.outcome.views]
            write_poses(self.poses(cell), views, record.outcome.poses)
        write_result(path, record.as_dict())
        other.unlink(missing_ok=True)
