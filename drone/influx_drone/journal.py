"""A file of JSON lines that only grows, and holds what it was told when ``append`` returns.

A line that was being written when the power went is incomplete: it is cut off when the
journal is opened again, as nobody was told that it was there.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from influx_drone.errors import DroneError

Entry = dict[str, Any]


class Journal:
    """The entries of a file, and a way to add one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[Entry] = []
        try:
            data = path.read_bytes() if path.exists() else b""
            whole = data[: data.rfind(b"\n") + 1]
            for number, line in enumerate(whole.splitlines(), start=1):
                self.entries.append(self._parse(number, line))
            self._file = open(path, "ab", buffering=0)  # noqa: SIM115
            if len(whole) < len(data):
                self._file.truncate(len(whole))
            if not data:
                _sync_folder(path.parent)
        except OSError as error:
            raise DroneError(f"{path} cannot be opened: {error.strerror}.") from None

    def _parse(self, number: int, line: bytes) -> Entry:
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if not isinstance(entry, dict):
            raise DroneError(
                f"{self.path}, line {number}: damaged. Move the file away to start a new one; "
                "its other lines are good."
            )
        return entry

    def append(self, entry: Mapping[str, Any]) -> None:
        """Add an entry; it is on the disk when this returns.

        Raises ``DroneError`` if it is not, and leaves the journal as it was.
        """
        line = json.dumps(entry, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        try:
            end = os.fstat(self._file.fileno()).st_size
            try:
                if os.write(self._file.fileno(), line) != len(line):
                    raise OSError(28, os.strerror(28))
                os.fsync(self._file.fileno())
            except OSError:
                self._file.truncate(end)
                raise
        except OSError as error:
            raise DroneError(f"{self.path} cannot be written: {error.strerror}.") from None
        self.entries.append(dict(entry))

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _sync_folder(folder: Path) -> None:
    """Make a new file's name as safe as its content."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path, owner: str) -> Iterator[None]:
    """Hold a file's lock, which goes with the process; ``owner`` says who has it otherwise."""
    try:
        file = open(path, "w")  # noqa: SIM115
    except OSError as error:
        raise DroneError(f"{path} cannot be written: {error.strerror}.") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DroneError(f"{path.parent} is in use by {owner}. End that one first.") from None
        yield
