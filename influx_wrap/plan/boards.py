"""Boards to print: the pattern that goes on a sheet, or the sheet that a pattern needs."""

from __future__ import annotations

import math
import re

from influx_wrap.errors import InputError
from influx_wrap.model.hardware import Board
from influx_wrap.model.pattern import cell_pattern
from influx_wrap.model.target import AprilGrid, Charuco, Checkerboard

ROWS, COLS, SPACING = 8, 11, 0.3
TAG_OF_LONG_SIDE = 0.06
MIN_MARGIN_MM = 10.0

PAPERS_MM = {
    "A0": (1189.0, 841.0),
    "A1": (841.0, 594.0),
    "A2": (594.0, 420.0),
    "A3": (420.0, 297.0),
    "A4": (297.0, 210.0),
    "A5": (210.0, 148.0),
    "Letter": (279.4, 215.9),
    "Legal": (355.6, 215.9),
    "Tabloid": (431.8, 279.4),
}
"""(width, height) of sheets by name, lying on the long side as boards do."""

MIN_PRINTED_MM = 1.0
"""Of a cell: printers move edges by about a tenth of a millimetre."""
MIN_SEEN_PX = 2.0
"""Of a tag's or marker's cell: seen straight on and sharply, 1.5 can be read and 1 cannot."""
MIN_SEEN_SQUARE_PX = 6.0
"""Of a checkerboard's square: seen straight on and sharply, 5 are found and 4 are not."""
MIN_WHITE_MM = 5.0
"""That printers for paper leave at its edges."""


def tags_on_sheet(
    size_mm: tuple[float, float],
    board: Board | None = None,
    *,
    rows: int | None = None,
    cols: int | None = None,
    tag_size_mm: float | None = None,
    spacing: float | None = None,
    border_cells: int | None = None,
) -> AprilGrid:
    """The board's grid or, without one, the usual, with what was asked for in its place."""
    usual = (
        board.grid
        if board
        else AprilGrid(COLS, ROWS, TAG_OF_LONG_SIDE * max(size_mm) / 1e3, SPACING)
    )
    return AprilGrid(
        tag_cols=cols or usual.tag_cols,
        tag_rows=rows or usual.tag_rows,
        tag_size_m=tag_size_mm / 1e3 if tag_size_mm else usual.tag_size_m,
        tag_spacing=spacing or usual.tag_spacing,
        border_cells=border_cells or usual.border_cells,
    )


def squares_on_sheet(
    size_mm: tuple[float, float],
    *,
    rows: int | None = None,
    cols: int | None = None,
    square_mm: float | None = None,
) -> Checkerboard:
    """A checkerboard of squares; Kalibr counts the corners between them."""
    rows, cols = rows or ROWS, cols or COLS
    square_m = (square_mm or square_that_fits_mm(size_mm, rows, cols)) / 1e3
    return Checkerboard(cols - 1, rows - 1, square_m, square_m)


def square_that_fits_mm(size_mm: tuple[float, float], rows: int, cols: int) -> float:
    """Width of the squares of ``rows`` x ``cols``, with a margin of one square around them."""
    # Detectors want white around the outer squares. Down to a tenth of a millimetre.
    largest_mm = min(size_mm[0] / (cols + 2), size_mm[1] / (rows + 2))
    return math.floor(10 * largest_mm) / 10 if largest_mm >= 0.1 else largest_mm


def looks_the_same_upside_down(board: Checkerboard) -> bool:
    """Whether a half turn takes the corners, and black to black, to each other."""
    return (board.rows + board.cols) % 2 == 0


def sheet_around_mm(target: AprilGrid | Checkerboard | Charuco) -> tuple[float, float]:
    """(width, height) with white around the pattern: a square or half a tag, which detectors
    want."""
    pattern = cell_pattern(target)
    if isinstance(target, AprilGrid):
        margin_mm = 1e3 * target.tag_size_m / 2
    elif isinstance(target, Charuco):
        margin_mm = 1e3 * target.square_size_m
    else:
        margin_mm = 1e3 * max(target.col_spacing_m, target.row_spacing_m)
    around_mm = 2 * max(margin_mm, MIN_MARGIN_MM)
    width_mm, height_mm = (1e3 * float(side[-1] - side[0]) for side in (pattern.x_m, pattern.y_m))
    return width_mm + around_mm, height_mm + around_mm


def paper_mm(text: str) -> tuple[float, float]:
    """(width, height) of a sheet by its name, such as ``A3``, or as ``420x297``, in mm."""
    named = {name.lower(): size for name, size in PAPERS_MM.items()}
    if text.lower() in named:
        return named[text.lower()]
    match = re.fullmatch(r"(\d+(?:\.\d+)?)[xX](\d+(?:\.\d+)?)(?:mm)?", text)
    size = (float(match[1]), float(match[2])) if match else (0.0, 0.0)
    if not min(size) > 0 or math.isinf(max(size)):
        raise InputError(
            f"{text!r} is no size of paper: give {', '.join(PAPERS_MM)} or millimetres, such as "
            "420x297."
        )
    return size


def cell_mm(target: AprilGrid | Checkerboard | Charuco) -> float:
    """Width of the smallest thing that has to be printed and seen: the cell of a tag or of a
    marker, or a square of a checkerboard."""
    if isinstance(target, AprilGrid):
        return 1e3 * target.tag_size_m / target.tag_cells_across
    if isinstance(target, Charuco):
        return 1e3 * target.marker_size_m / (target.code_cells + 2)
    return 1e3 * min(target.col_spacing_m, target.row_spacing_m)


def too_small(
    target: AprilGrid | Checkerboard | Charuco, seen: tuple[float, float] | None = None
) -> list[str]:
    """Sentences about what is too small to be printed, or to be seen.

    seen  the distance in metres and the focal length in pixels, if they are known
    """
    size_mm = cell_mm(target)
    squares = isinstance(target, Checkerboard)
    what = "a square" if squares else "a marker's cell" if isinstance(target, Charuco) else (
        "a tag's cell"
    )  # fmt: skip
    faults = []
    if size_mm < MIN_PRINTED_MM:
        faults.append(
            f"{what} is {size_mm:.2g} mm wide, and below {MIN_PRINTED_MM:g} mm an office printer "
            "is not exact enough: take a larger sheet, or fewer rows and columns of larger ones"
        )
    if seen is not None:
        distance_m, focal_px = seen
        size_px, least_px = focal_px * size_mm / 1e3 / distance_m, (
            MIN_SEEN_SQUARE_PX if squares else MIN_SEEN_PX
        )  # fmt: skip
        if size_px < least_px:
            nearest_m = focal_px * size_mm / 1e3 / least_px
            faults.append(
                f"at {distance_m:g} m, {what} is {size_px:.2g} px wide and cannot be read, as it "
                f"has to be {least_px:g} px: go nearer than {nearest_m:.2g} m, or take a board "
                f"{least_px / size_px:.2g} times as large"
            )
    return faults
