"""Tables of lens metadata with a line per frame, whoever wrote them: tabs, commas or semicolons.

Columns are found by their names, whatever their order: ``Focus Distance (ft)``, ``fd_m`` and
``Lens Focus Distance`` beside ``Lens Distance Unit`` are all a focus distance with its unit. Lines
before the one that names the columns, quotation marks and empty columns at the end do not matter.
A line that ends in a number which is needed, and too early, is refused: the number may be cut.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from influx_wrap.errors import InputError
from influx_wrap.formats.lens_text import MORE_UNITS_M

SEPARATORS = "\t;,|"
_LONGEST_NAME = 80
_LINES_BEFORE = 20
"""Lines that may stand before the names of the columns."""
_UNIT_IN_BRACKETS = re.compile(r"(.*?)[\s_]*[(\[]\s*([^()\[\]]*?)\s*[)\]]")
_UNIT_AT_END = re.compile(r"(.*?)[\s_]+(?:in[\s_]+)?([^\s_]+)")


@dataclass(frozen=True)
class Column:
    """A column of a table.

    place  from 0
    name   as the file has it
    key    its letters and digits in small letters, without the unit
    unit   that the name states, known or not; None if it states none
    """

    place: int
    name: str
    key: str
    unit: str | None


@dataclass(frozen=True)
class MetadataTable:
    """A table of lens metadata.

    where    the file, for messages
    header   number of the line that names the columns, from 1
    rows     the cells of each row
    numbers  of the lines with the rows
    """

    where: str
    separator: str
    header: int
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...]

    def find(self, *keys: str) -> Column | None:
        """The first column with one of the keys, the earlier keys first."""
        return next(iter(self.every(*keys)), None)

    def every(self, *keys: str) -> list[Column]:
        """All columns with one of the keys, the earlier keys first."""
        return [column for key in keys for column in self.columns if column.key == key]

    def cells(self, column: Column | None) -> list[str]:
        """(n,) what stands in a column; nothing if there is no such column."""
        if column is None:
            return [""] * len(self.rows)
        return [row[column.place].strip() if column.place < len(row) else "" for row in self.rows]

    def line(self, row: int) -> str:
        """What to call a row in a message."""
        return f"{self.where}, line {self.numbers[row]}"

    def check_rows(self, needed: Sequence[Column | None]) -> None:
        """Refuse a table without rows, with rows that are too long, or that end too early."""
        if not self.rows:
            raise InputError(
                f"{self.where} has no frame: only the line with the names of the columns."
            )
        n, last = len(self.columns), max(column.place for column in needed if column is not None)
        for k, row in enumerate(self.rows):
            if len(row) <= last or (len(row) == last + 1 and n > len(row)):
                raise InputError(
                    f"{self.line(k)}: {len(row)} columns instead of {n}. Is the file complete?"
                )
            if any(cell.strip() for cell in row[n:]):
                raise InputError(
                    f"{self.line(k)}: {len(row)} columns instead of {n}. Has a number a decimal "
                    "comma, or a text a mark that separates columns?"
                )


def read_metadata_table(
    where: str, text: str, is_it: Callable[[Sequence[Column]], bool]
) -> MetadataTable | None:
    """The table in a text whose columns ``is_it`` recognises; None if there is none."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for k, line in enumerate(lines[:_LINES_BEFORE]):
        for separator in SEPARATORS:
            columns = _columns(line, separator) if separator in line else ()
            if is_it(columns):
                numbered = list(_cut(where, lines[k + 1 :], separator, k + 2))
                kept = [(n, row) for n, row in numbered if any(cell.strip() for cell in row)]
                rows, numbers = tuple(row for _, row in kept), tuple(n for n, _ in kept)
                return MetadataTable(where, separator, k + 1, columns, rows, numbers)
    return None


def key_of(name: str) -> str:
    """The letters and digits of a name, by which columns are compared."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _columns(line: str, separator: str) -> tuple[Column, ...]:
    """The columns that a line names, without the empty ones at its end."""
    try:
        cells = next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error:
        return ()
    last = max((k for k, cell in enumerate(cells) if cell.strip()), default=-1)
    return tuple(_column(k, cell.strip()) for k, cell in enumerate(cells[: last + 1]))


def _column(place: int, name: str) -> Column:
    name = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
    if found := _UNIT_IN_BRACKETS.fullmatch(name):
        return Column(place, name, key_of(found[1]), found[2].casefold() or None)
    found = _UNIT_AT_END.fullmatch(name)
    if found and found[2].casefold() in MORE_UNITS_M:
        return Column(place, name, key_of(found[1]), found[2].casefold())
    return Column(place, name, key_of(name), None)


def _cut(
    where: str, lines: Sequence[str], separator: str, first: int
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The cells of each row, with the number of its last line.

    Quotation marks that do not fit are ordinary ones in files with tabs, which need none.
    """
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=True)
    rows = []
    try:
        for row in reader:
            rows.append((first + reader.line_num - 1, tuple(row)))
    except csv.Error as error:
        if separator != "\t":
            raise InputError(
                f"{where}, line {first + max(reader.line_num, 1) - 1}: quotation marks that do not "
                f"fit ({error}). Is the file complete?"
            ) from None
        rows = [(first + k, tuple(line.split("\t"))) for k, line in enumerate(lines)]
    yield from rows
