"""Corners between the squares of a checkerboard, fitted to the grey values around them.

The picture around a corner is computed and fitted as for an AprilGrid (``corner_kernels``).
What is known of the print is less: squares inside the board are whole, but outer ones may be
cut by the paper's edge, covered by a hand, or hold a marker. How far a corner's squares reach is
therefore measured. The print is the same after half a turn about the corner, as far as only its
four squares are seen; the window ends where the picture is not.
"""

from __future__ import annotations

import numpy as np

from influx_wrap.model.arrays import FloatArray
from influx_wrap.observe.board_map import MIN_CORNERS, fit_map, misfits
from influx_wrap.observe.corner_kernels import fit_corners
from influx_wrap.observe.detection import cross, grey_values, inside_picture

REACH = 0.5
"""Half the window in squares, at most: it must not come near the next line of the pattern."""
FIRST_REACH, LEAST_REACH = 0.3, 0.15
WINDOW_PX, LEAST_WINDOW_PX = 8.0, 2.5
RINGS = 10
MAX_ASYMMETRY = 0.2
"""Most that the picture may differ from itself after half a turn, as a share of contrast."""
FIRST_BLUR_PX = 0.9
ITERATIONS = 10
MIN_SQUARE_PX = 4.0
MIN_CORRELATION = 0.8
MIN_CONTRAST = 0.25
"""Least contrast of a corner, as a share of the board's own contrast."""
MAX_SIGMA_PX = 0.3


def steps(corners: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Steps (rows, cols, 2) from each corner to the right and up on the board, in pixels."""
    return np.asarray(np.gradient(corners, axis=1)), np.asarray(np.gradient(corners, axis=0))


def square_signs(rows: int, cols: int) -> FloatArray:
    """(rows + 1, cols + 1) the squares around rows x cols corners, bottom row first: -1 is
    black, as the one at the bottom left, and +1 white."""
    row, col = np.indices((rows + 1, cols + 1))
    return np.where((row + col) % 2 == 0, -1.0, 1.0)


def fit_square_corners(
    image: np.ndarray, coarse: FloatArray, coarse_px: float, signs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Corners (rows, cols, 2) of an 8-bit picture (H, W), and their confidence (rows, cols),
    0 where there is none.

    coarse     (rows, cols, 2) where they are, to about ``coarse_px`` pixels
    signs      (rows + 1, cols + 1) of the squares, as ``square_signs`` has them
    """
    right, up = steps(coarse)
    per_square = np.stack([np.linalg.norm(right, axis=-1), np.linalg.norm(up, axis=-1)], axis=-1)
    narrow = np.abs(cross(right, up)) / np.maximum(per_square.max(axis=-1), 1e-9)
    per_square = np.maximum(per_square, 1e-9)
    least = LEAST_WINDOW_PX + 1.5 * coarse_px
    first = np.clip(FIRST_REACH, least / per_square, REACH)
    near = _fit(image, coarse, right, up, first, signs)
    middle = np.where(np.isfinite(near[..., :2]), near[..., :2], coarse)
    reach = _symmetric_reach(image, middle, right, up)[..., None]
    window = np.maximum(np.minimum(reach, WINDOW_PX / per_square), LEAST_WINDOW_PX / per_square)
    fitted = _fit(image, middle, right, up, np.minimum(window, REACH), signs)
    uv, contrast, correlation = fitted[..., :2], fitted[..., 2], fitted[..., 4]
    with np.errstate(invalid="ignore"):
        good = (correlation > MIN_CORRELATION) & (narrow > MIN_SQUARE_PX)
        good &= fitted[..., 5:].max(axis=-1) < MAX_SIGMA_PX
        moved = np.linalg.norm(uv - coarse, axis=-1)
        good &= moved < np.maximum(1.5 * max(coarse_px, 1.0), 0.25 * narrow)
        good &= inside_picture(uv, image)
        if good.any():
            good &= contrast > MIN_CONTRAST * float(np.median(contrast[good]))
    if good.sum() >= max(MIN_CORNERS, good.size // 2):
        good &= ~_misplaced(uv, good)
    return uv, np.where(good, correlation, 0.0)


def _fit(
    image: np.ndarray,
    uv: FloatArray,
    right: FloatArray,
    up: FloatArray,
    half: FloatArray,
    signs: FloatArray,
) -> FloatArray:
    """(rows, cols, 7) what ``fit_corners`` says, with windows ``half`` (rows, cols, 2)."""
    rows, cols = uv.shape[:2]
    row, col = np.indices((rows, cols))
    lines = np.stack([col, row], axis=-1).reshape(-1, 2)
    flat = [np.ascontiguousarray(a.reshape(-1, 2)) for a in (uv, right, up, half)]
    fitted = fit_corners(
        image, *flat, lines, np.arange(float(cols)), np.arange(float(rows)), signs,
        FIRST_BLUR_PX, ITERATIONS,
    )  # fmt: skip
    return np.asarray(fitted).reshape(rows, cols, 7)


def _symmetric_reach(
    image: np.ndarray, uv: FloatArray, right: FloatArray, up: FloatArray
) -> FloatArray:
    """(rows, cols) how far, in squares, the picture is the same after half a turn."""
    shape = uv.shape[:2]
    at = REACH * np.arange(-RINGS, RINGS + 1) / RINGS
    s, t = (axis.ravel() for axis in np.meshgrid(at, at))
    ring = np.maximum(np.abs(s), np.abs(t)) * (RINGS / REACH)
    offsets = s[:, None] * right.reshape(-1, 1, 2) + t[:, None] * up.reshape(-1, 1, 2)
    values = grey_values(image, uv.reshape(-1, 1, 2) + offsets)
    contrast = values.std(axis=1)
    unlike = np.abs(values - values[:, ::-1]) / np.maximum(2 * contrast[:, None], 1e-9)
    mean = np.stack(
        [unlike[:, np.rint(ring) == k].mean(axis=1) for k in range(1, RINGS + 1)], axis=1
    )
    alike = np.cumprod(mean < MAX_ASYMMETRY, axis=1).sum(axis=1)
    return np.asarray(np.maximum(REACH * alike / RINGS, LEAST_REACH)).reshape(shape)


def _misplaced(uv: FloatArray, good: np.ndarray) -> np.ndarray:
    """(rows, cols) which of the good corners lie off the smooth map of all of them."""
    rows, cols = uv.shape[:2]
    row, col = np.indices((rows, cols))
    board = np.stack([col, row], axis=-1).reshape(-1, 2).astype(float)
    flat, found = uv.reshape(-1, 2), good.ravel()
    return misfits(fit_map(board[found], flat[found]), board, flat, found).reshape(rows, cols)
