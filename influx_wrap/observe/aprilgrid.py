"""Corners of an AprilGrid in one picture, to a hundredth of a pixel.

Tags are found as a lattice and read together, in a reduced picture (``lattice``). Their corners
say where the board is; what is printed around every corner is then fitted to the grey values of
the full picture (``printed``).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.target import AprilGrid
from influx_wrap.observe.detection import Detection, as_8_bit, nothing_found
from influx_wrap.observe.lattice import Tags, find_tags
from influx_wrap.observe.printed import PrintedBoard, fit_printed, printed_board

REDUCED_WIDTH_PX = 1750
DARK, VERY_DARK = 0.35, 0.2
"""Shares of the brightness below which a tag is dark; a steep tone curve needs the second."""
ENOUGH_SHARE = 0.25
"""So many of the board's tags say where all of them are."""


def detect(image: np.ndarray, grid: AprilGrid) -> Detection:
    """Find the corners of ``grid`` in a grey picture (H, W), 8 or 16 bit."""
    image = as_8_bit(image)
    tags = find_grid(image, grid)
    if tags is None:
        return nothing_found(len(grid.points))
    return measure(image, grid, *tag_corners(tags, grid))


def measure(image: np.ndarray, grid: AprilGrid, points: IntArray, uv: FloatArray) -> Detection:
    """The corners of ``grid`` in a grey picture (H, W), some ``points`` (n,) of which are known
    to be about at pixels ``uv`` (n, 2)."""
    board = _board(grid)
    return fit_printed(as_8_bit(image), board, board.xy[points], uv)


@lru_cache(maxsize=8)
def _board(grid: AprilGrid) -> PrintedBoard:
    across = grid.tag_cells_across
    return printed_board(
        grid,
        cell_m=grid.tag_size_m / across,
        # The border is the same all around, and the code inside is not.
        window_cells=float(grid.border_cells),
        ring_cells=across * (1 + grid.tag_spacing),
    )


def find_grid(image: np.ndarray, grid: AprilGrid) -> Tags | None:
    """Tags, from as small a picture as will do; the most of them if it is never enough."""
    first = max(1, round(image.shape[1] / REDUCED_WIDTH_PX))
    smaller, larger = max(1, first // 2), 2 * first
    ways = ((first, DARK), (smaller, DARK), (first, VERY_DARK), (larger, DARK))
    best = None
    for scale, dark_share in dict.fromkeys(ways):
        tags = find_tags(image, grid, scale, dark_share)
        if tags is not None and (best is None or len(tags.ids) > len(best.ids)):
            best = tags
        if best is not None and len(best.ids) >= ENOUGH_SHARE * grid.tag_rows * grid.tag_cols:
            break
    return best


def tag_corners(tags: Tags, grid: AprilGrid) -> tuple[IntArray, FloatArray]:
    """Points (4 n,) of the board and where tags have them (4 n, 2)."""
    return points_of_tags(tags.ids, grid).ravel(), tags.corners.reshape(-1, 2)


def points_of_tags(ids: IntArray, grid: AprilGrid) -> IntArray:
    """(n, 4) the points that are the corners of tags (n,), in the order of ``Tags.corners``."""
    rows, cols = np.divmod(ids, grid.tag_cols)
    width = 2 * grid.tag_cols
    return np.asarray((2 * rows * width + 2 * cols)[:, None] + np.array([0, 1, width + 1, width]))
