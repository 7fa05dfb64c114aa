"""What is printed on a board: black and white cells in the board's own plane.

Boards are a grid of cells between straight lines, with lines at uneven distances where an
AprilGrid has gaps or a ChArUco board's squares have markers. So one table of cells serves
the printer, who wants outlines, and the renderer, who wants to know what is at a point.

Kalibr's AprilGrid has a black square in every corner of a tag, as wide as the gap,
around the outside of the grid too: every corner of a tag is a crossing of two lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.tag36h11 import N_TAGS, tag_cells
from influx_wrap.model.target import AprilGrid, Charuco, Checkerboard, Target


@dataclass(frozen=True, eq=False)
class Pattern:
    """Cells ``black`` (rows, columns), bottom row first, between the lines ``x_m``
    (columns + 1,) and ``y_m`` (rows + 1,), increasing, in metres as the target's points."""

    x_m: FloatArray
    y_m: FloatArray
    black: BoolArray


@lru_cache(maxsize=8)
def cell_pattern(target: Target) -> Pattern:
    """The cells of an AprilGrid, a checkerboard or a ChArUco board; white everywhere else."""
    if isinstance(target, AprilGrid):
        return _aprilgrid(target)
    if isinstance(target, Checkerboard):
        return _checkerboard(target)
    if isinstance(target, Charuco):
        return _charuco(target)
    raise InputError(
        "only an AprilGrid, a checkerboard or a ChArUco board can be drawn; this target is "
        "circles or points."
    )


def _aprilgrid(target: AprilGrid) -> Pattern:
    n_tags = target.tag_rows * target.tag_cols
    if n_tags > N_TAGS:
        raise InputError(
            f"an AprilGrid of {target.tag_rows} x {target.tag_cols} needs {n_tags} tags, "
            f"but tag36h11 has {N_TAGS}; use fewer rows or columns."
        )
    across = target.tag_cells_across
    step = across + 1
    black = np.zeros((target.tag_rows * step + 1, target.tag_cols * step + 1), dtype=bool)
    black[::step, ::step] = True
    for tag_id in range(n_tags):
        row, col = (step * k + 1 for k in divmod(tag_id, target.tag_cols))
        cells = tag_cells(tag_id, target.border_cells)
        black[row : row + across, col : col + across] = cells[::-1]

    x_m, y_m = (_tag_lines(target, n) for n in (target.tag_cols, target.tag_rows))
    if target.tag_spacing == 0:
        wide_x, wide_y = np.diff(x_m) > 0, np.diff(y_m) > 0
        black = black[wide_y][:, wide_x]
        x_m, y_m = np.append(x_m[:-1][wide_x], x_m[-1]), np.append(y_m[:-1][wide_y], y_m[-1])
    return Pattern(x_m, y_m, black)


def _tag_lines(target: AprilGrid, n_tags: int) -> FloatArray:
    """Lines of a row of tags: a gap before each tag, and one at the end."""
    gap_m = target.tag_size_m * target.tag_spacing
    starts = np.arange(n_tags) * (target.tag_size_m + gap_m)
    across = target.tag_cells_across
    inside = target.tag_size_m * np.arange(across + 1) / across
    lines = (starts[:, None] + inside).ravel()
    return np.concatenate([[-gap_m], lines, [lines[-1] + gap_m]])


def _checkerboard(target: Checkerboard) -> Pattern:
    """One square more than inner corners each way; the bottom-left one is black."""
    rows, cols = np.arange(target.rows + 1), np.arange(target.cols + 1)
    return Pattern(
        x_m=target.col_spacing_m * np.arange(-1.0, target.cols + 1),
        y_m=target.row_spacing_m * np.arange(-1.0, target.rows + 1),
        black=(rows[:, None] + cols) % 2 == 0,
    )


def _charuco(target: Charuco) -> Pattern:
    """Squares of a margin, a marker and a margin each, with the same lines in all of them."""
    n = target.code_cells + 2
    black = np.zeros((target.rows, n + 2, target.cols, n + 2), dtype=bool)
    row, col = np.indices((target.rows, target.cols))
    first_row, first_col = target.marker_squares[0]
    dark = (row + col) % 2 != (first_row + first_col) % 2
    black[:] = dark[:, None, :, None]
    for code, (row_from_top, at) in zip(target.codes, target.marker_squares, strict=False):
        bits = [code >> bit & 1 for bit in reversed(range(target.code_cells**2))]
        cells = np.pad(np.array(bits).reshape(target.code_cells, -1) == 0, 1, constant_values=True)
        black[row_from_top, 1:-1, at, 1:-1] = cells
    lines = [_square_lines(target, count) for count in (target.cols, target.rows)]
    return Pattern(lines[0], lines[1], black.reshape(len(lines[1]) - 1, -1)[::-1])


def _square_lines(target: Charuco, count: int) -> FloatArray:
    """Lines of a row of ``count`` squares; the first inner corner is at 0."""
    margin_m = (target.square_size_m - target.marker_size_m) / 2
    marker = target.marker_size_m * np.linspace(0, 1, target.code_cells + 3)
    inside = np.concatenate([[0.0], margin_m + marker])
    starts = target.square_size_m * np.arange(-1.0, count - 1)
    return np.append((starts[:, None] + inside).ravel(), starts[-1] + target.square_size_m)


def black_outlines(target: Target) -> list[FloatArray]:
    """Closed outlines (n, 2) in metres of all that is black, with black to their left.

    They meet in points but never overlap, and no two edges coincide. So, filled as one
    shape by any rule, they leave no pale seam between black cells that touch, and a
    viewer that smooths edges covers each of them once: it stays where it is.
    """
    pattern = cell_pattern(target)
    edges = _directed_edges(pattern.black)
    ahead = {edge for edge in edges if edge[2] == 0}
    outlines = []
    for start in sorted(ahead):
        if start not in ahead:
            continue
        corners: list[tuple[int, int]] = []
        row, col, heading = start
        while not corners or (row, col, heading) != start:
            corners.append((row, col))
            while (row, col, heading) in edges:
                ahead.discard((row, col, heading))
                row, col = row + _NORTH[heading], col + _EAST[heading]
            # Left first: black cells that touch in a point only are not joined.
            left, right = (heading + 1) % 4, (heading + 3) % 4
            heading = left if (row, col, left) in edges else right
        rows, cols = np.array(corners).T
        outlines.append(np.column_stack([pattern.x_m[cols], pattern.y_m[rows]]))
    return outlines


_EAST, _NORTH = (1, 0, -1, 0), (0, 1, 0, -1)


def _directed_edges(black: BoolArray) -> set[tuple[int, int, int]]:
    """Edges between black and white cells as (row, column, heading): the line crossing
    where one begins, and where it goes with black to its left (0 east, 1 north, ...)."""
    padded = np.pad(black, 1).astype(np.int8)
    rising, eastward = np.diff(padded, axis=0)[:, 1:-1], np.diff(padded, axis=1)[1:-1]
    found: set[tuple[int, int, int]] = set()
    for heading, where, shift in (
        (0, rising == 1, (0, 0)),
        (1, eastward == -1, (0, 0)),
        (2, rising == -1, (0, 1)),
        (3, eastward == 1, (1, 0)),
    ):
        begin = np.argwhere(where) + shift
        found.update((row, col, heading) for row, col in begin.tolist())
    return found
