"""What is printed on a board: black and white cells in the board's own plane.

Both kinds of board are a grid of cells between straight lines, with lines at uneven
distances where an AprilGrid has gaps. So one table of cells serves the printer, who
wants rectangles, and the renderer, who wants to know what is at a point.

Kalibr's AprilGrid has a black square in every corner of a tag, as wide as the gap,
around the outside of the grid too: every corner of a tag is a crossing of two lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from influx_wrap.errors import InputError
from influx_wrap.model.intrinsics import BoolArray, FloatArray
from influx_wrap.model.tag36h11 import CODES, TAG_CELLS, tag_cells
from influx_wrap.model.target import AprilGrid, Checkerboard, Target


@dataclass(frozen=True, eq=False)
class Pattern:
    """Cells ``black`` (rows, columns), bottom row first, between the lines ``x_m``
    (columns + 1,) and ``y_m`` (rows + 1,), increasing, in metres as the target's points."""

    x_m: FloatArray
    y_m: FloatArray
    black: BoolArray


@lru_cache(maxsize=8)
def cell_pattern(target: Target) -> Pattern:
    """The cells of an AprilGrid or a checkerboard; white everywhere else."""
    if isinstance(target, AprilGrid):
        return _aprilgrid(target)
    if isinstance(target, Checkerboard):
        return _checkerboard(target)
    raise InputError("only an AprilGrid or a checkerboard can be drawn; this target is points.")


def _aprilgrid(target: AprilGrid) -> Pattern:
    n_tags = target.tag_rows * target.tag_cols
    if n_tags > len(CODES):
        raise InputError(
            f"an AprilGrid of {target.tag_rows} x {target.tag_cols} needs {n_tags} tags, "
            f"but tag36h11 has {len(CODES)}; use fewer rows or columns."
        )
    step = TAG_CELLS + 1
    black = np.zeros((target.tag_rows * step + 1, target.tag_cols * step + 1), dtype=bool)
    black[::step, ::step] = True
    for tag_id in range(n_tags):
        row, col = (step * k + 1 for k in divmod(tag_id, target.tag_cols))
        black[row : row + TAG_CELLS, col : col + TAG_CELLS] = tag_cells(tag_id)[::-1]

    x_m, y_m = (_tag_lines(target, n) for n in (target.tag_cols, target.tag_rows))
    if target.tag_spacing == 0:
        wide_x, wide_y = np.diff(x_m) > 0, np.diff(y_m) > 0
        black = black[wide_y][:, wide_x]
        x_m, y_m = np.append(x_m[:-1][wide_x], x_m[-1]), np.append(y_m[:-1][wide_y], y_m[-1])
    return Pattern(x_m, y_m, black)


def _tag_lines(target: AprilGrid, n_tags: int) -> FloatArray:
    """Lines (11 n_tags + 2,) of a row of tags: a gap before each tag, and one at the end."""
    gap_m = target.tag_size_m * target.tag_spacing
    starts = np.arange(n_tags) * (target.tag_size_m + gap_m)
    inside = target.tag_size_m * np.arange(TAG_CELLS + 1) / TAG_CELLS
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


def ink(target: Target, x: ArrayLike, y: ArrayLike) -> BoolArray:
    """Whether the board is black at x, y (...) in metres; a point on a line belongs to
    the cell to the right of it and above."""
    pattern = cell_pattern(target)
    white_outside = np.pad(pattern.black, 1)
    col = np.searchsorted(pattern.x_m, np.asarray(x, dtype=float), side="right")
    row = np.searchsorted(pattern.y_m, np.asarray(y, dtype=float), side="right")
    result: BoolArray = white_outside[row, col]
    return result


def black_rectangles(target: Target) -> FloatArray:
    """Rectangles (N, 4) x0, y0, x1, y1 in metres whose union is all that is black.

    They are the runs of black cells along the rows and along the columns, so they
    overlap: two black cells side by side are always inside one rectangle, and a
    printer or a viewer that smooths edges draws no pale seam between them.
    """
    pattern = cell_pattern(target)
    along_x = _runs(pattern.black)
    along_y = _runs(pattern.black.T)[:, [1, 0, 3, 2]]
    x0, y0, x1, y1 = np.unique(np.concatenate([along_x, along_y]), axis=0).T
    return np.column_stack([pattern.x_m[x0], pattern.y_m[y0], pattern.x_m[x1], pattern.y_m[y1]])


def _runs(black: BoolArray) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Runs (N, 4) of black cells as first column, first row, column and row after the last;
    equal runs in adjacent rows are one."""
    steps = np.diff(np.pad(black, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    finished: list[tuple[int, int, int, int]] = []
    open_runs: dict[tuple[int, int], int] = {}
    for row, step in enumerate(np.vstack([steps, np.zeros_like(steps[:1])])):
        starts, stops = np.flatnonzero(step == 1), np.flatnonzero(step == -1)
        runs = list(zip(starts.tolist(), stops.tolist(), strict=True))
        for start, stop in open_runs.keys() - set(runs):
            finished.append((start, open_runs.pop((start, stop)), stop, row))
        for run in runs:
            open_runs.setdefault(run, row)
    return np.array(finished, dtype=np.int64)
