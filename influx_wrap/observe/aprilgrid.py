"""Corners of an AprilGrid in one picture, to a hundredth of a pixel.

Three steps, coarse to fine:

1. Tags are found as a lattice and read together, in a reduced picture (``lattice``).
2. They agree on where the board is: a smooth map from board to picture (a homography
   and a polynomial, for the lens's distortion) is fitted to their corners, and those that
   contradict it are thrown out.
3. The map says where every corner must be and how the board lies there. Each is fitted to
   the grey values of the full picture (``corner_kernels``); the map is fitted again, and
   continued to corners that had no tag nearby, ring by ring, so that it never reaches far.

A corner is kept if the picture around it looks as computed, if it is where the map of all
the others has it, and if its own uncertainty is small. What is blurred, covered or too
small fails there, and is missing rather than wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.spatial import cKDTree

from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.pattern import cell_pattern
from influx_wrap.model.tag36h11 import TAG_CELLS
from influx_wrap.model.target import AprilGrid
from influx_wrap.observe.board_map import MIN_CORNERS, BoardMap, fit_map, misfits, robust_map
from influx_wrap.observe.corner_kernels import fit_corners
from influx_wrap.observe.detection import Detection, as_8_bit, inside_picture, nothing_found
from influx_wrap.observe.lattice import Tags, find_tags

REDUCED_WIDTH_PX = 1750
DARK, VERY_DARK = 0.35, 0.2
"""Shares of the brightness below which a tag is dark; a steep tone curve needs the second."""
WINDOW_PX, WINDOW_CELLS = 6.0, 2.0
"""Half the window around a corner: so many pixels, but no more than so many cells of a tag,
within which the print is symmetric about the corner."""
MIN_CELL_PX = 1.2
"""Narrower cells of a tag run into each other."""
FIRST_BLUR_PX = 0.9
ITERATIONS = 8
MIN_CORRELATION = 0.8
MIN_CONTRAST = 0.3
"""Least contrast of a corner, as a share of the board's own contrast."""
MAX_SIGMA_PX = 0.3
ENOUGH_SHARE = 0.25
"""So many of the board's tags say where all of them are."""
RING_TAGS, MAX_RINGS, MAX_TRIES = 1.6, 16, 4
UNEXPLAINED, UNEXPLAINED_FACTOR = 0.1, 5.0
"""Share of the grey values' variance around a corner that its print may leave unexplained; a
picture in which more is usual, noisy or unevenly blurred, may have so many times the usual."""


def detect(image: np.ndarray, grid: AprilGrid) -> Detection:
    """Find the corners of ``grid`` in a grey picture (H, W), 8 or 16 bit."""
    image = as_8_bit(image)
    tags = _find(image, grid)
    if tags is None:
        return nothing_found(len(grid.points))
    board = _board(grid)
    points, corners = _tag_corners(tags, grid)
    fit = robust_map(board.xy[points], corners)
    if fit is None:
        return nothing_found(len(grid.points))

    uv, confidence = np.full((len(board.xy), 2), np.nan), np.zeros(len(board.xy))
    reach = RING_TAGS * TAG_CELLS * (1 + grid.tag_spacing)
    wanted = _distance(board.xy, board.xy[points]) < reach
    tried = np.zeros(len(board.xy), dtype=int)
    blur_px = FIRST_BLUR_PX
    for _ in range(MAX_RINGS):
        tried[wanted] += 1
        some_uv, some_confidence, blur_px = _refine(image, board, fit, wanted, blur_px)
        uv[wanted], confidence[wanted] = some_uv, some_confidence
        found = confidence > 0
        if found.sum() < MIN_CORNERS:
            return nothing_found(len(grid.points))
        fit = fit_map(board.xy[found], uv[found])
        confidence[misfits(fit, board.xy, uv, found) | _unlike(confidence)] = 0.0
        found = confidence > 0
        wanted = ~found & (tried < MAX_TRIES) & (_distance(board.xy, board.xy[found]) < reach)
        if not wanted.any():
            break
    found = confidence > 0
    return Detection(np.where(found[:, None], uv, np.nan), confidence)


@dataclass(frozen=True, eq=False)
class _Board:
    """A grid in units of a tag's cell: corners ``xy`` (T, 2), the ``lines`` (T, 2) of the
    pattern that cross there, the lines themselves and the cells between (+1 white, -1
    black), with white around."""

    xy: FloatArray
    lines: IntArray
    x_lines: FloatArray
    y_lines: FloatArray
    cells: FloatArray


@lru_cache(maxsize=8)
def _board(grid: AprilGrid) -> _Board:
    cell_m = grid.tag_size_m / TAG_CELLS
    pattern = cell_pattern(grid)
    xy = grid.points[:, :2] / cell_m
    x_lines, y_lines = pattern.x_m / cell_m, pattern.y_m / cell_m
    lines = np.stack(
        [np.searchsorted(x_lines, xy[:, 0] - 0.1), np.searchsorted(y_lines, xy[:, 1] - 0.1)], axis=1
    )
    return _Board(xy, lines, x_lines, y_lines, np.where(np.pad(pattern.black, 1), -1.0, 1.0))


def _find(image: np.ndarray, grid: AprilGrid) -> Tags | None:
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


def _tag_corners(tags: Tags, grid: AprilGrid) -> tuple[IntArray, FloatArray]:
    """Points (4 n,) of the board and where tags have them (4 n, 2)."""
    rows, cols = np.divmod(tags.ids, grid.tag_cols)
    width = 2 * grid.tag_cols
    points = (2 * rows * width + 2 * cols)[:, None] + np.array([0, 1, width + 1, width])
    return points.ravel(), tags.corners.reshape(-1, 2)


def _distance(points: FloatArray, others: FloatArray) -> FloatArray:
    """(n,) distance of points (n, 2) to the nearest of others (m, 2)."""
    return np.asarray(cKDTree(others).query(points)[0])


def _unlike(confidence: FloatArray) -> BoolArray:
    """(T,) found corners that look far less like the print than the picture's others do."""
    found = confidence > 0
    unexplained = 1 - confidence**2
    usual = float(np.median(unexplained[found])) if found.any() else 0.0
    return found & (unexplained > max(UNEXPLAINED, UNEXPLAINED_FACTOR * usual))


def _refine(
    image: np.ndarray, board: _Board, fit: BoardMap, wanted: BoolArray, blur_px: float
) -> tuple[FloatArray, FloatArray, float]:
    """Corners (n, 2) of the n ``wanted``, their confidence (n,), 0 where there is none, and
    the picture's blur."""
    xy = board.xy[wanted]
    expected = fit(xy)
    right = fit(xy + np.array([0.5, 0.0])) - fit(xy - np.array([0.5, 0.0]))
    up = fit(xy + np.array([0.0, 0.5])) - fit(xy - np.array([0.0, 0.5]))
    per_cell = np.stack([np.linalg.norm(right, axis=1), np.linalg.norm(up, axis=1)], axis=1)
    area = np.abs(right[:, 0] * up[:, 1] - right[:, 1] * up[:, 0])
    narrow = area / per_cell.max(axis=1)
    half = np.minimum(WINDOW_CELLS, WINDOW_PX / per_cell)
    fitted = fit_corners(
        image, expected, right, up, half, board.lines[wanted], board.x_lines, board.y_lines,
        board.cells, blur_px, ITERATIONS,
    )  # fmt: skip
    uv, contrast, blur, correlation = fitted[:, :2], fitted[:, 2], fitted[:, 3], fitted[:, 4]
    with np.errstate(invalid="ignore"):
        good = (correlation > MIN_CORRELATION) & (narrow > MIN_CELL_PX)
        good &= fitted[:, 5:].max(axis=1) < MAX_SIGMA_PX
        good &= np.linalg.norm(uv - expected, axis=1) < np.maximum(1.5, narrow)
        good &= inside_picture(uv, image)
        if good.any():
            good &= contrast > MIN_CONTRAST * float(np.median(contrast[good]))
    if good.any():
        blur_px = float(np.median(blur[good]))
    return uv, np.where(good, correlation, 0.0), blur_px
