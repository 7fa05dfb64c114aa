"""A file of JSON lines that only grows, and holds what it was told when ``append`` returns.

A line begins with the version of the format and a checksum (CRC-32) of all that follows:

    {"v":2,"crc":"89abcdef","kind":"reading", ...}

A line that is damaged is named and left out, and the others are kept; where a line's end is
damaged, the line after it is found by its beginning. Lines without a version, of journals that
were begun by earlier releases, have no checksum and are read as they are.

A line that was being written when the power went is incomplete: it is cut off when the
journal is opened again, as nobody was told that it was there.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from zlib import crc32

from influx_drone.errors import DroneError
from influx_drone.files import opened

Entry = dict[str, Any]

MOST_NAMED = 10
"""Damaged lines that are named one by one."""

_LINE = re.compile(rb'\{"v":2,"crc":"([0-9a-f]{8})",(.*)\}')
_BEGINNING = re.compile(rb'(?=\{"v":2,"crc":")')

log = logging.getLogger(__name__)


def encode_line(entry: Mapping[str, Any]) -> bytes:
    """An entry as a line, with its end."""
    body = json.dumps(entry, separators=(",", ":"), allow_nan=False).encode()[1:-1]
    return b'{"v":2,"crc":"%08x",%b}\n' % (crc32(body), body)


def decode_line(line: bytes) -> Entry | None:
    """The entry in a line without its end; None if it is damaged."""
    checked = _LINE.fullmatch(line)
    if checked is not None:
        if crc32(checked[2]) != int(checked[1], 16):
            return None
        line = b"{" + checked[2] + b"}"
    try:
        entry = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict):
        return None
    is_old = checked is None and not {"v", "crc"} & entry.keys()
    return entry if checked is not None or is_old else None


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def read_lines(
    data: bytes, is_entry: Callable[[Entry], bool] = lambda entry: True
) -> tuple[list[Entry], list[int]]:
    """The entries of lines that are whole, and the numbers of those that are damaged.

    ``is_entry`` tells what can be an entry.
    """

    def read(line: bytes) -> Entry | None:
        entry = decode_line(line)
        return entry if entry is not None and is_entry(entry) else None

    entries, damaged = [], []
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        found = [read(line)]
        if found == [None]:
            damaged.append(number)
            # It may be two lines, with a damaged byte where the first one ended.
            found = [read(piece) or read(piece[:-1]) for piece in _BEGINNING.split(line)]
        entries += [entry for entry in found if entry is not None]
    return entries, damaged


def append_line(descriptor: int, line: bytes, *, sync: bool) -> None:
    """Write a line whole, and to the disk if ``sync``; raises OSError and leaves no part of it."""
    found = os.fstat(descriptor)
    if found.st_nlink == 0:
        raise OSError(errno.ENOENT, "it was deleted")
    try:
        if os.write(descriptor, line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if sync:
            os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, found.st_size)
        raise


class Journal:
    """The entries of a file, and a way to add one."""

    def __init__(self, path: Path, is_entry: Callable[[Entry], bool] = lambda entry: True) -> None:
        """``is_entry`` tells what can be one; other lines count as damaged."""
        self.path = path
        self._file = opened(path, os.O_RDWR | os.O_APPEND)
        try:
            data = self._whole_lines()
            _sync_folder(path.parent)
        except OSError as error:
            os.close(self._file)
            raise DroneError(f"{path} cannot be opened: {error.strerror}.") from None
        self.entries, damaged = read_lines(data, is_entry)
        self.n_damaged = len(damaged)
        if damaged:
            lines = ", ".join(map(str, damaged[:MOST_NAMED]))
            more = f" and {len(damaged) - MOST_NAMED} more" if len(damaged) > MOST_NAMED else ""
            log.warning(
                "%s, line %s%s: damaged and left out; the other lines are good", path, lines, more
            )

    def _whole_lines(self) -> bytes:
        """What is in the file, which ends with a line's end afterwards."""
        with open(self._file, "rb", closefd=False) as file:
            data = file.read()
        size = data.rfind(b"\n") + 1
        if size < len(data) and decode_line(data[size:-1]) is not None:
            # All of a line and one byte more: its end is damaged.
            append_line(self._file, b"\n", sync=True)
            return data + b"\n"
        os.ftruncate(self._file, size)
        return data[:size]

    def append(self, entry: Mapping[str, Any]) -> None:
        """Add an entry; it is on the disk when this returns.

        Raises ``DroneError`` if it is not, and leaves the journal as it was.
        """
        line = encode_line(entry)
        try:
            append_line(self._file, line, sync=True)
        except OSError as error:
            raise DroneError(f"{self.path} cannot be written: {error.strerror}.") from None
        self.entries.append(dict(entry))

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


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
    with os.fdopen(opened(path, os.O_RDWR)) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DroneError(f"{path.parent} is in use by {owner}. End that one first.") from None
        yield
