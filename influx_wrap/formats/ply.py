"""Point clouds in PLY files: the places of the vertices, a piece at a time.

A PLY file is a header in plain text that lists elements, each with a count and its
properties, then the rows of every element in that order: text, or binary of either byte
order. Laser scans have 1e7 to 1e8 vertices, so only ``CHUNK`` of them are in memory at once.
Of the vertices, x, y and z are taken, wherever they stand among the properties; other elements
are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.files import reading
from influx_wrap.model.arrays import FloatArray

CHUNK = 1 << 18
MOST_CHUNK_BYTES = 1 << 26
MOST_HEADER_BYTES = 1 << 20
MOST_LINE_BYTES = 1 << 20
MOST_NAMES = 1000
"""Of elements, and of the properties of an element."""
MOST_LISTS = 1_000_000
"""Rows with lists before the vertices: each has to be looked at, to find out where it ends."""
VERTEX = "vertex"
AXES = ("x", "y", "z")

_ASCII = "ascii"
_BYTE_ORDERS = {"binary_little_endian": "<", "binary_big_endian": ">"}
_TYPES = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1",
    "short": "i2", "int16": "i2", "ushort": "u2", "uint16": "u2",
    "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4",
    "float": "f4", "float32": "f4", "double": "f8", "float64": "f8",
}  # fmt: skip


@dataclass(frozen=True)
class _Property:
    """``kind`` is numpy's name of the type; ``count_kind`` that of a list's length, or None."""

    name: str
    kind: str
    count_kind: str | None = None


@dataclass(frozen=True)
class _Element:
    name: str
    count: int
    properties: tuple[_Property, ...]

    @property
    def has_lists(self) -> bool:
        return any(item.count_kind for item in self.properties)

    def row(self, byte_order: str) -> np.dtype[np.void]:
        """The type of one row, of an element without lists."""
        return np.dtype([(item.name, byte_order + item.kind) for item in self.properties])


@dataclass(frozen=True)
class PlyPoints:
    """The vertices of a PLY file whose header has been read.

    n      how many the header announces; those that are not finite count
    start  where the rows of the first element begin, in bytes; ``lines`` is how many lines
           the header has
    """

    path: Path
    n: int
    encoding: str
    before: tuple[_Element, ...]
    vertex: _Element
    start: int
    lines: int

    def chunks(self, size: int = CHUNK) -> Iterator[tuple[FloatArray, int]]:
        """Finite points (m, 3) in the order of the file, and how many others were dropped."""
        pieces = self._text(size) if self.encoding == _ASCII else self._binary(size)
        for points in pieces:
            finite = np.isfinite(points)
            if finite.all():
                yield points, 0
            else:
                rows = finite.all(axis=1)
                yield points[rows], len(points) - int(rows.sum())

    def _binary(self, size: int) -> Iterator[FloatArray]:
        byte_order = _BYTE_ORDERS[self.encoding]
        row = self.vertex.row(byte_order)
        size = min(size, max(1, MOST_CHUNK_BYTES // row.itemsize))
        with reading(self.path), self.path.open("rb") as file:
            file.seek(self.start)
            for element in self.before:
                self._skip(file, element, byte_order)
            for first in range(0, self.n, size):
                count = min(size, self.n - first)
                data = file.read(count * row.itemsize)
                if len(data) < count * row.itemsize:
                    raise self._cut_off(first + len(data) // row.itemsize)
                rows = np.frombuffer(data, row)
                yield np.column_stack([rows[axis].astype(float) for axis in AXES])

    def _skip(self, file: BinaryIO, element: _Element, byte_order: str) -> None:
        if not element.has_lists:
            self._forward(file, element.count * element.row(byte_order).itemsize, element)
            return
        for _ in range(element.count):
            for item in element.properties:
                length = 1
                if item.count_kind is not None:
                    kind = np.dtype(byte_order + item.count_kind)
                    data = file.read(kind.itemsize)
                    if len(data) < kind.itemsize:
                        raise self._ends_in(element)
                    length = int(np.frombuffer(data, kind)[0])
                    if length < 0:
                        raise InputError(
                            f"{self.path}: a list of element {element.name} has {length} items; "
                            "the file is damaged."
                        )
                self._forward(file, length * np.dtype(item.kind).itemsize, element)

    def _forward(self, file: BinaryIO, n_bytes: int, element: _Element) -> None:
        if file.tell() + n_bytes > self.path.stat().st_size:
            raise self._ends_in(element)
        file.seek(n_bytes, 1)

    def _text(self, size: int) -> Iterator[FloatArray]:
        columns = [[item.name for item in self.vertex.properties].index(axis) for axis in AXES]
        width = len(self.vertex.properties)
        with reading(self.path), self.path.open("rb") as file:
            file.seek(self.start)
            line = self.lines
            for element in self.before:
                skipped = sum(1 for _ in islice(_lines(file), element.count))
                if skipped < element.count:
                    raise self._ends_in(element)
                line += skipped
            for first in range(0, self.n, size):
                count = min(size, self.n - first)
                points, n = np.empty((count, 3)), 0
                for n, text in enumerate(islice(_lines(file), count), start=1):
                    points[n - 1] = self._numbers(text, columns, width, line + n)
                if n < count:
                    raise self._cut_off(first + n)
                line += n
                yield points

    def _numbers(self, text: bytes, columns: list[int], width: int, line: int) -> list[float]:
        words = text.split()
        if len(words) != width:
            raise InputError(
                f"{self.path}, line {line}: a vertex has {width} properties, here are {len(words)}."
            )
        try:
            return [float(words[k]) for k in columns]
        except ValueError:
            raise InputError(f"{self.path}, line {line}: x, y and z must be numbers.") from None

    def _cut_off(self, n: int) -> InputError:
        return InputError(
            f"{self.path}: the file is cut off: its header announces {self.n} vertices, there are "
            f"{n}. Copy it again."
        )

    def _ends_in(self, element: _Element) -> InputError:
        return InputError(
            f"{self.path}: the file is cut off: it ends in element {element.name}, before its "
            "vertices. Copy it again."
        )


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines; one that is too long for a row comes in pieces, which are no rows either."""
    return iter(lambda: file.readline(MOST_LINE_BYTES), b"")


def open_ply(path: Path) -> PlyPoints:
    """Read the header of a PLY file, and make sure that its vertices are points."""
    with reading(path), path.open("rb") as file:
        lines, start = _header_lines(path, file)
    encoding, elements = _parse_header(path, lines)
    names = [element.name for element in elements]
    if VERTEX not in names:
        found = f"only {', '.join(names)}" if names else "none at all"
        raise InputError(f"{path}: there is no element {VERTEX!r}, {found}; it holds no points.")
    place = names.index(VERTEX)
    vertex = elements[place]
    if vertex.count == 0:
        raise InputError(f"{path}: it has no vertices; a scan with points is needed.")
    _check_vertex(path, vertex)
    for element in elements[:place]:
        if element.has_lists and element.count > MOST_LISTS and encoding != _ASCII:
            raise InputError(
                f"{path}: {element.count} rows of element {element.name} with lists stand before "
                f"the vertices, at most {MOST_LISTS} are skipped; save the points alone."
            )
    return PlyPoints(
        path, vertex.count, encoding, tuple(elements[:place]), vertex, start, len(lines)
    )


def _header_lines(path: Path, file: BinaryIO) -> tuple[list[str], int]:
    """The header's lines without ``end_header``'s own, and where the rows start."""
    lines: list[str] = []
    if file.readline(5).strip() != b"ply":
        raise InputError(f"{path}: this is not a PLY file: it does not begin with 'ply'.")
    lines.append("ply")
    while file.tell() < MOST_HEADER_BYTES:
        raw = file.readline(MOST_HEADER_BYTES)
        if not raw:
            raise InputError(f"{path}: the file is cut off: its header has no end_header.")
        try:
            lines.append(raw.decode("utf-8").strip())
        except UnicodeDecodeError:
            raise InputError(
                f"{path}, line {len(lines) + 1}: the header is not text; the file is damaged."
            ) from None
        if lines[-1] == "end_header":
            return lines, file.tell()
    raise InputError(f"{path}: the header has no end_header; this is not a PLY file.")


def _parse_header(path: Path, lines: list[str]) -> tuple[str, list[_Element]]:
    """The encoding and the elements, in order."""
    encoding: str | None = None
    elements: list[_Element] = []
    for number, line in enumerate(lines[1:-1], start=2):
        where = f"{path}, line {number}"
        match line.split():
            case [] | ["comment" | "obj_info", *_]:
                continue
            case ["format", name, version]:
                if name not in (_ASCII, *_BYTE_ORDERS) or version != "1.0":
                    raise InputError(
                        f"{where}: format {name} {version} is not known; there are "
                        f"{', '.join((_ASCII, *_BYTE_ORDERS))}, each 1.0."
                    )
                encoding = name
            case ["element", name, count]:
                if not (count.isascii() and count.isdigit() and len(count) < 16):
                    raise InputError(f"{where}: element {name} has no count, but {count!r}.")
                if len(elements) == MOST_NAMES:
                    raise InputError(f"{where}: there are more than {MOST_NAMES} elements.")
                if name in [element.name for element in elements]:
                    raise InputError(f"{where}: element {name} is there twice.")
                elements.append(_Element(name, int(count), ()))
            case ["property", *words]:
                if not elements:
                    raise InputError(f"{where}: a property stands before the first element.")
                last = elements[-1]
                item = _parse_property(where, words)
                if len(last.properties) == MOST_NAMES:
                    raise InputError(
                        f"{where}: element {last.name} has more than {MOST_NAMES} properties."
                    )
                if item.name in [other.name for other in last.properties]:
                    raise InputError(f"{where}: property {item.name} is there twice.")
                elements[-1] = _Element(last.name, last.count, (*last.properties, item))
            case _:
                raise InputError(f"{where}: {line[:40]!r} is not known in a PLY header.")
    if encoding is None:
        raise InputError(f"{path}: the header has no format; the file is damaged.")
    return encoding, elements


def _parse_property(where: str, words: list[str]) -> _Property:
    match words:
        case ["list", count_kind, kind, name] if (
            _TYPES.get(count_kind, "f")[0] != "f" and kind in _TYPES
        ):
            return _Property(name, _TYPES[kind], _TYPES[count_kind])
        case [kind, name] if kind in _TYPES:
            return _Property(name, _TYPES[kind])
    raise InputError(
        f"{where}: property {' '.join(words)[:40]!r} is not understood; the types are "
        f"{', '.join(_TYPES)}."
    )


def _check_vertex(path: Path, vertex: _Element) -> None:
    if vertex.has_lists:
        name = next(item.name for item in vertex.properties if item.count_kind)
        raise InputError(
            f"{path}: property {name} of the vertices is a list, which is not supported; save "
            "the points without it."
        )
    for axis in AXES:
        if axis not in [item.name for item in vertex.properties]:
            raise InputError(f"{path}: the vertices have no property {axis}.")
