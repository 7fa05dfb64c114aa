"""A JSON file read piece by piece, in memory that does not grow with the file.

The caller walks through objects by their keys (``members``) and takes small values as a whole
(``value``), which the standard library's parser reads from a window on the text. Nothing is
lost on the way: keys that come twice are seen twice, and what is not JSON is refused with the
line and the byte (both counted from 1).
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from influx_wrap.compute.progress import Progress, no_progress
from influx_wrap.errors import InputError
from influx_wrap.formats.files import reading

MIB = 2**20
LONGEST_VALUE = 2**16
"""Characters of a key, or of a value that is taken as a whole."""
_PIECE_BYTES = MIB
_SPACE = re.compile(r"[ \t\n\r]*")
_LONGEST_TOKEN = 32
"""Where a value is cut off, the parser complains at most so many characters before."""


@dataclass(frozen=True)
class BareConstant:
    """A bare NaN, Infinity or -Infinity, which Python writes and JSON does not have."""

    name: str


# An object becomes a tuple of pairs, so that it differs from a list and keeps what comes twice.
# Integers are read as floating-point numbers: of any length, and infinite if they are too large.
_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_int=float, parse_constant=BareConstant)


class JsonStream:
    """A place in a JSON text that moves towards its end."""

    def __init__(self, path: Path, file: BinaryIO, max_bytes: int, progress: Progress) -> None:
        self._path, self._file, self._max_bytes, self._progress = path, file, max_bytes, progress
        self._size = path.stat().st_size
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text, self._at = "", 0
        self._taken_at = 0
        self._lines, self._bytes, self._counted_to = 0, 0, 0
        self._bytes_read, self._is_whole = 0, False
        self._bad_byte: int | None = None

    def place(self) -> str:
        """Where the key or value that was taken last begins: ``sub.json, line 3, byte 78``."""
        self._count(self._taken_at)
        return f"{self._path}, line {self._lines + 1}, byte {self._bytes + 1}"

    def begins_object(self) -> bool:
        """Whether an object comes next."""
        return self._next() == "{"

    def members(self) -> Iterator[str]:
        """The keys of the object that comes next; the caller takes the value after each."""
        self._expect("{")
        if self._next() == "}":
            self._at += 1
            return
        while True:
            if self._next() != '"':
                raise self._not_json("a key in double quotes is expected")
            key = self.value()
            assert isinstance(key, str)
            self._expect(":")
            yield key
            following = self._next()
            if following not in (",", "}"):
                raise self._not_json("a comma or a closing brace is expected")
            self._at += 1
            if following == "}":
                return

    def value(self) -> object:
        """The value that comes next: text, float, bool, None, ``BareConstant``, a list, or for an
        object a tuple of (key, value)."""
        self._next()
        while len(self._text) - self._at < LONGEST_VALUE and self._more():
            pass
        self._taken_at = self._at
        try:
            value, end = _DECODER.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            raise self._refused(error) from None
        except RecursionError:
            raise self._not_json("it is nested too deeply") from None
        if end - self._at > LONGEST_VALUE:
            raise self._too_long()
        self._at = end
        return value

    def end(self) -> None:
        """Refuse anything that still comes."""
        if self._next():
            raise self._not_json("something follows after its end")

    def _next(self) -> str:
        """The character after white space; empty at the end of the file."""
        while True:
            space = _SPACE.match(self._text, self._at)
            assert space is not None
            self._at = space.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                if self._bad_byte is not None:
                    raise self._not_utf8(self._bad_byte)
                return ""

    def _expect(self, character: str) -> None:
        if self._next() != character:
            raise self._not_json(f"{character} is expected")
        self._at += 1

    def _more(self) -> bool:
        """Forget the text behind, read a piece; False at the end, or before what is no text."""
        if self._is_whole:
            return False
        with reading(self._path):
            piece = self._file.read(_PIECE_BYTES)
        if not self._bytes_read and not piece:
            raise InputError(f"{self._path} is empty.")
        if not self._bytes_read and piece.startswith(codecs.BOM_UTF8):
            raise InputError(
                f"{self._path} begins with a byte order mark, which JSON must not: save it as "
                "UTF-8 without one."
            )
        self._bytes_read += len(piece)
        if self._bytes_read > self._max_bytes:
            raise too_large(self._path, self._bytes_read, self._max_bytes)
        self._is_whole = not piece
        try:
            text = self._decoder.decode(piece, final=self._is_whole)
        except UnicodeDecodeError as error:
            # What comes before it is looked at first: it may have a fault of its own.
            text = error.object[: error.start].decode()
            self._bad_byte = self._bytes_read - len(error.object) + error.start + 1
            self._is_whole = True
        self._count(self._at)
        self._text = self._text[self._at :] + text
        self._at = self._taken_at = self._counted_to = 0
        self._progress(self._bytes_read, self._size)
        return not self._is_whole or bool(text)

    def _count(self, to: int) -> None:
        """Lines and bytes before a place in the window, from where they were counted last."""
        passed = self._text[self._counted_to : to]
        self._lines += passed.count("\n")
        self._bytes += len(passed) if passed.isascii() else len(passed.encode())
        self._counted_to = to

    def _refused(self, error: json.JSONDecodeError) -> InputError:
        near_end = error.pos >= len(self._text) - _LONGEST_TOKEN
        if near_end or error.msg.startswith("Unterminated string"):
            if self._bad_byte is not None:
                return self._not_utf8(self._bad_byte)
            if not self._is_whole:
                return self._too_long()
        self._at = error.pos
        return self._not_json(error.msg)

    def _too_long(self) -> InputError:
        return InputError(f"{self.place()}: this is longer than {LONGEST_VALUE} characters.")

    def _not_json(self, problem: str) -> InputError:
        if self._is_whole and self._at >= len(self._text):
            problem = "the file ends in the middle of it"
        self._taken_at = self._at
        return InputError(f"{self.place()}: this is not JSON: {problem}.")

    def _not_utf8(self, byte: int) -> InputError:
        return InputError(f"{self._path}, byte {byte}: this is not text in UTF-8.")


@contextmanager
def open_json(path: Path, max_bytes: int, progress: Progress = no_progress) -> Iterator[JsonStream]:
    """A JSON file from its beginning; one larger than ``max_bytes`` is refused unread.

    progress  hears of bytes
    """
    with reading(path):
        size = path.stat().st_size
        if size > max_bytes:
            raise too_large(path, size, max_bytes)
        file = path.open("rb")
    with file:
        yield JsonStream(path, file, max_bytes, progress)


def too_large(path: Path, size: int, max_bytes: int) -> InputError:
    """The error about a file of ``size`` bytes."""
    return InputError(
        f"{path} has {size} bytes; at most {max_bytes} ({max_bytes / MIB:g} MiB) are allowed."
    )
