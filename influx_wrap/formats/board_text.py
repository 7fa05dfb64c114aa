"""Boards in a few characters, for a command line.

    9x6@25mm                              checkerboard: inner corners, columns x rows; squares
    charuco:8x6@30mm,22.5mm,5X5_100       squares, columns x rows; squares, markers, dictionary;
                                          and ``,legacy`` for the pattern of OpenCV before 4.6
    circles:8x6@30mm                      circles, columns x rows; distance
    circles:4x11@20mm,asymmetric          as OpenCV counts them: of a row, two distances apart
    aprilgrid:6x6@88mm,0.3                tags, columns x rows; tags, gap in tag widths (0.3 if
                                          it is left out); and ``,border1``

Lengths are in mm, cm, m or in. The size behind the @ may be left out: the intrinsics do not
depend on it, only distances do.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from influx_wrap.errors import InputError
from influx_wrap.formats.charuco import charuco_board
from influx_wrap.model.target import AprilGrid, BoardTarget, Checkerboard, CircleGrid

SYNTAX = (
    "9x6@25mm (inner corners, columns x rows, and the squares' width), "
    "charuco:8x6@30mm,22.5mm,5X5_100, circles:8x6@30mm, circles:4x11@20mm,asymmetric or "
    "aprilgrid:6x6@88mm,0.3"
)
SMALLEST_M, LARGEST_M = 1e-4, 3.0
"""A square, tag or distance beyond is written in the wrong unit."""
SPACING, MARKER_OF_SQUARE = 0.3, 0.75
UNIT_M = {"mm": 1e-3, "cm": 1e-2, "m": 1.0, "in": 0.0254}
_BOARD = re.compile(
    r"(?:(?P<kind>[a-z]+):)?(?P<cols>\d{1,4})x(?P<rows>\d{1,4})(?:@(?P<size>[^,]+))?"
    r"(?P<more>(?:,[^,]+)*)",
    re.IGNORECASE,
)
_LENGTH = re.compile(r"(?P<number>\d+\.?\d*|\.\d+)\s*(?P<unit>mm|cm|m|in)", re.IGNORECASE)


@dataclass(frozen=True)
class BoardText:
    """A board that was described in a few characters.

    has_size  whether they say how large it is; else squares, tags or distances are 1 m
    """

    target: BoardTarget
    has_size: bool


def parse_board(text: str) -> BoardText:
    """The board that ``text`` describes, in the syntax above."""
    match = _BOARD.fullmatch(text.replace(" ", ""))
    if match is None:
        raise InputError(f"{text!r} describes no board: write {SYNTAX}.")
    kind = (match["kind"] or "checkerboard").lower()
    cols, rows = int(match["cols"]), int(match["rows"])
    size_m = 1.0 if match["size"] is None else _length_m(text, match["size"])
    more = [word for word in match["more"].split(",") if word]
    makers = {
        "checkerboard": _checkerboard,
        "charuco": _charuco,
        "circles": _circles,
        "aprilgrid": _aprilgrid,
    }
    if kind not in makers:
        raise InputError(f"{text!r}: {kind} is no kind of board; there are {', '.join(makers)}.")
    try:
        target = makers[kind](cols, rows, size_m, more)
    except InputError as error:
        raise InputError(f"{text!r}: {error}", instead=error.instead) from None
    if more:
        raise InputError(f"{text!r}: {', '.join(more)} is not understood; write {SYNTAX}.")
    return BoardText(target, match["size"] is not None)


def _checkerboard(cols: int, rows: int, size_m: float, more: list[str]) -> BoardTarget:
    return Checkerboard(cols, rows, size_m, size_m)


def _circles(cols: int, rows: int, size_m: float, more: list[str]) -> BoardTarget:
    return CircleGrid(cols, rows, size_m, _take(more, "asymmetric"))


def _aprilgrid(cols: int, rows: int, size_m: float, more: list[str]) -> BoardTarget:
    border_cells = 1 if _take(more, "border1") else 2
    spacing = SPACING
    if more and re.fullmatch(r"\d*\.?\d+", more[0]):
        spacing = float(more.pop(0))
    return AprilGrid(cols, rows, size_m, spacing, border_cells)


def _charuco(cols: int, rows: int, size_m: float, more: list[str]) -> BoardTarget:
    legacy = _take(more, "legacy")
    marker_m = MARKER_OF_SQUARE * size_m
    if more and _LENGTH.fullmatch(more[0]):
        marker_m = _length_m(more[0], more.pop(0))
    if not more:
        raise InputError("a ChArUco board needs the dictionary of its markers, such as 5X5_100.")
    return charuco_board(cols, rows, size_m, marker_m, more.pop(0), legacy=legacy)


def _take(words: list[str], wanted: str) -> bool:
    """Whether a word is there; it is removed."""
    found = [word for word in words if word.lower() == wanted]
    for word in found:
        words.remove(word)
    return bool(found)


def _length_m(text: str, length: str) -> float:
    match = _LENGTH.fullmatch(length)
    metres = float(match["number"]) * UNIT_M[match["unit"].lower()] if match else math.nan
    if not 0 < metres < math.inf:
        raise InputError(f"{text!r}: {length!r} is no length; write 25mm, 2.5cm or 1in.")
    assert match is not None
    if not SMALLEST_M <= metres <= LARGEST_M:
        meant = text.replace(length, f"{match['number']}mm")
        raise InputError(
            f"{text!r}: {length} is no width of a square or tag, which is from "
            f"{1e3 * SMALLEST_M:g} mm to {LARGEST_M:g} m. Mind the unit.",
            instead=(text, meant),
        )
    # 25mm are 0.025 m, not what 25 times 0.001 is in binary.
    return round(metres, 12)
