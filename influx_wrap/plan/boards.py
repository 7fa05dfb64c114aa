"""Boards to print: the pattern that goes on a sheet, or the sheet that a pattern needs."""

from __future__ import annotations

import math

from influx_wrap.model.hardware import Board
from influx_wrap.model.pattern import cell_pattern
from influx_wrap.model.target import AprilGrid, Charuco, Checkerboard

ROWS, COLS, SPACING = 8, 11, 0.3
TAG_OF_LONG_SIDE = 0.06
MIN_MARGIN_MM = 10.0


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
