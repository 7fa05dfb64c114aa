"""Corners of a printed board in one picture, once some places on it are known.

Two steps, coarse to fine:

1. The places agree on where the board is: a smooth map from board to picture (``board_map``)
   is fitted to them, and those that contradict it are thrown out.
2. The map says where every corner must be and how the board lies there. Each is fitted to
   the grey values of the full picture (``corner_kernels``); the map is fitted again, and
   continued to corners farther off, ring by ring, so that it never reaches far.

A corner is kept if the picture around it looks as computed, if it is where the map of all
the others has it, and if its own uncertainty is small. What is blurred, covered or too
small fails there, and is missing rather than wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.pattern import cell_pattern
from influx_wrap.model.target import AprilGrid, Charuco
from influx_wrap.observe.board_map import MIN_CORNERS, BoardMap, fit_map, misfits, robust_map
from influx_wrap.observe.corner_kernels import fit_corners
from influx_wrap.observe.detection import Detection, inside_picture, nothing_found

WINDOW_PX = 6.0
"""Half the window around a corner, at most."""
MIN_CELL_PX = 1.2
"""Narrower cells of a tag run into each other."""
FIRST_BLUR_PX = 0.9
ITERATIONS = 8
MIN_CORRELATION = 0.8
MIN_CONTRAST = 0.3
"""Least contrast of a corner, as a share of the board's own contrast."""
MAX_SIGMA_PX = 0.3
RINGS, MAX_RINGS, MAX_TRIES = 1.6, 16, 4
UNEXPLAINED, UNEXPLAINED_FACTOR = 0.1, 5.0
"""Share of the grey values' variance around a corner that its print may leave unexplained; a
picture in which more is usual, noisy or unevenly blurred, may have so many times the usual."""


@dataclass(frozen=True, eq=False)
class PrintedBoard:
    """A board in units of a tag's cell: corners ``xy`` (T, 2), the ``lines`` (T, 2) of the
    pattern that cross there, the lines themselves and the cells between (+1 white, -1
    black), with white around.

    window_cells  how far from a corner the print is the same after half a turn
    ring_cells    how far the map is continued at a time
    """

    xy: FloatArray
    lines: IntArray
    x_lines: FloatArray
    y_lines: FloatArray
    cells: FloatArray
    window_cells: float
    ring_cells: float


def printed_board(
    target: AprilGrid | Charuco, *, cell_m: float, window_cells: float, ring_cells: float
) -> PrintedBoard:
    """What is printed around the points of a target."""
    pattern = cell_pattern(target)
    xy = target.points[:, :2] / cell_m
    x_lines, y_lines = pattern.x_m / cell_m, pattern.y_m / cell_m
    lines = np.stack(
        [np.searchsorted(x_lines, xy[:, 0] - 0.1), np.searchsorted(y_lines, xy[:, 1] - 0.1)], axis=1
    )
    cells = np.where(np.pad(pattern.black, 1), -1.0, 1.0)
    return PrintedBoard(xy, lines, x_lines, y_lines, cells, window_cells, RINGS * ring_cells)


def fit_printed(
    image: np.ndarray, board: PrintedBoard, known_xy: FloatArray, known_uv: FloatArray
) -> Detection:
    """The corners of a board in an 8-bit picture (H, W), from places ``known_xy`` (n, 2) on it,
    in cells, and where they are in the picture, ``known_uv`` (n, 2)."""
    n = len(board.xy)
    fit = robust_map(known_xy, known_uv)
    if fit is None:
        return nothing_found(n)
    uv, confidence = np.full((n, 2), np.nan), np.zeros(n)
    wanted = _distance(board.xy, known_xy) < board.ring_cells
    tried = np.zeros(n, dtype=int)
    blur_px = FIRST_BLUR_PX
    for _ in range(MAX_RINGS):
        tried[wanted] += 1
        some_uv, some_confidence, blur_px = _refine(image, board, fit, wanted, blur_px)
        uv[wanted], confidence[wanted] = some_uv, some_confidence
        found = confidence > 0
        if found.sum() < MIN_CORNERS:
            return nothing_found(n)
        fit = fit_map(board.xy[found], uv[found])
        confidence[misfits(fit, board.xy, uv, found) | _unlike(confidence)] = 0.0
        found = confidence > 0
        near = _distance(board.xy, board.xy[found]) < board.ring_cells
        wanted = ~found & (tried < MAX_TRIES) & near
        if not wanted.any():
            break
    found = confidence > 0
    return Detection(np.where(found[:, None], uv, np.nan), confidence)


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
    image: np.ndarray, board: PrintedBoard, fit: BoardMap, wanted: BoolArray, blur_px: float
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
    half = np.minimum(board.window_cells, WINDOW_PX / per_cell)
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
