"""Inner corners of a checkerboard in one picture, to a few hundredths of a pixel.

OpenCV's sector-based detector finds the board in a reduced picture; the corners are then
refined on the full one. It finds whole boards only: one that is partly covered or leaves
the picture gives nothing, which is why AprilGrids are the better target.

Which corner is the first? The target counts from the bottom left, where the pattern has
a black square. With an odd sum of rows and columns (of corners or of squares, the sums
are both odd or both even) only one end of the board has black corner squares along its
side: the colours tell the orientation, however the board is held. With an even sum the
board looks the same turned by 180 degrees, and nothing in the picture tells; a square one
may even look the same turned by 90. Then the numbering starts so that the board's up
points as far up in the picture as the colours allow. Each view by itself is right that way,
since its pose absorbs the turn; what ties views together (a bent board, a known motion)
would be wrong for a board that was held the other way up in between. Such a board may also
be printed with black and white swapped; it is taken as it is.
"""

from __future__ import annotations

import cv2
import numpy as np

from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.target import Checkerboard
from influx_wrap.observe.detection import Detection, as_8_bit, cross, nothing_found

BORDER_PX = 4.0
REDUCED_WIDTHS_PX = (1100, 2200)
"""The detector's time grows with the picture; small boards get a second, finer look."""
REACH_OF_SQUARE = 0.5
"""Half the refinement window in squares: it must not reach the next line of the pattern."""
WINDOW_PX = (2, 12)
MIN_SQUARE_PX = 5.0
MIN_CONTRAST = 0.35
"""Least contrast of a corner's squares, as a share of the board's own contrast."""
FIELD_OF_SQUARE = 0.3


def detect(image: np.ndarray, target: Checkerboard) -> Detection:
    """Find the corners of ``target`` in a grey picture (H, W), 8 or 16 bit.

    All of them must be in the picture. A board whose rows and columns have an even sum is
    numbered from the end that is lower in the picture, see above.
    """
    image = as_8_bit(image)
    nothing = nothing_found(len(target.points))
    for width_px in REDUCED_WIDTHS_PX:
        scale = max(1, round(image.shape[1] / width_px))
        coarse = _find(image, target, scale)
        if coarse is not None or scale == 1:
            break
    if coarse is None:
        return nothing
    coarse = _as_numbered(image, target, coarse)
    uv, usable = _refine(image, coarse, max_step_px=1.5 * scale)
    contrast = _contrast(image, uv)
    # Negative where the board has its colours swapped, which no turn can mend.
    typical = float(np.median(contrast))
    if typical == 0:
        return nothing
    confidence = np.clip(contrast / typical, 0, 1)
    confidence[~usable | (confidence < MIN_CONTRAST)] = 0
    found = confidence > 0
    return Detection(np.where(found[..., None], uv, np.nan).reshape(-1, 2), confidence.reshape(-1))


def _find(image: np.ndarray, target: Checkerboard, scale: int) -> FloatArray | None:
    """Corners (rows, cols, 2) in full-size pixels, from a picture reduced by ``scale``."""
    height, width = (n // scale * scale for n in image.shape)
    if min(height, width) == 0:
        return None
    size = (width // scale, height // scale)
    reduced = cv2.resize(image[:height, :width], size, interpolation=cv2.INTER_AREA)
    found, corners = cv2.findChessboardCornersSB(reduced, (target.cols, target.rows))
    if not found:
        return None
    # Pixel centres of the reduced picture lie between those of the full one.
    full = np.asarray(corners, dtype=float) * scale + (scale - 1) / 2
    return full.reshape(target.rows, target.cols, 2)


def _as_numbered(image: np.ndarray, target: Checkerboard, corners: FloatArray) -> FloatArray:
    """The corners (rows, cols, 2) from the bottom left of the board on, row by row."""
    right, up = _steps(corners)
    if cross(right, up).mean() > 0:
        # A board is seen from its front: with y downwards, up is left of right.
        corners = corners[:, ::-1]
    turns = [corners, corners[::-1, ::-1]]
    if target.rows == target.cols:
        turns += [np.swapaxes(turn, 0, 1)[::-1] for turn in turns]
    turns.sort(key=lambda turn: float(_steps(turn)[1][..., 1].mean()))
    return next((turn for turn in turns if np.median(_contrast(image, turn)) > 0), turns[0])


def _steps(corners: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Steps (rows, cols, 2) from each corner to the right and up on the board, in pixels."""
    return np.asarray(np.gradient(corners, axis=1)), np.asarray(np.gradient(corners, axis=0))


def _refine(
    image: np.ndarray, coarse: FloatArray, max_step_px: float
) -> tuple[FloatArray, BoolArray]:
    """Corners (rows, cols, 2) on the full picture, and which of them (rows, cols) to use."""
    right, up = _steps(coarse)
    longest = np.maximum(np.linalg.norm(right, axis=-1), np.linalg.norm(up, axis=-1))
    narrow = np.abs(cross(right, up)) / np.maximum(longest, 1e-9)
    halves = np.clip(np.rint(REACH_OF_SQUARE * narrow), *WINDOW_PX).astype(int)
    criteria = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_COUNT, 50, 1e-3)
    uv = coarse.copy()
    for half in np.unique(halves).tolist():
        same = halves == half
        points = coarse[same].astype(np.float32).reshape(-1, 1, 2)
        refined = cv2.cornerSubPix(image, points, (half, half), (-1, -1), criteria)
        uv[same] = refined.reshape(-1, 2)
    strayed = np.linalg.norm(uv - coarse, axis=-1) > np.maximum(max_step_px, 0.25 * narrow)
    last = np.array(image.shape[::-1]) - 1
    inside = ((uv >= BORDER_PX) & (uv <= last - BORDER_PX)).all(axis=-1)
    return uv, inside & ~strayed & (narrow >= MIN_SQUARE_PX)


def _contrast(image: np.ndarray, uv: FloatArray) -> FloatArray:
    """(rows, cols) how much brighter the white squares around each corner are than the black
    ones; negative where the colours are the other way round than the pattern has them.

    The weaker white square against the brighter black one, so that a blurred or covered
    corner has little by that measure.
    """
    right, up = _steps(uv)
    rows, cols = np.indices(uv.shape[:2])
    # The pattern's bottom left square is black, so up and right of the first corner is too.
    sign = np.where((rows + cols) % 2 == 0, 1, -1)
    on_diagonal = [_sample(image, uv + s * FIELD_OF_SQUARE * (right + up)) for s in (1, -1)]
    off_diagonal = [_sample(image, uv + s * FIELD_OF_SQUARE * (right - up)) for s in (1, -1)]
    first = np.minimum(*off_diagonal) - np.maximum(*on_diagonal)
    second = np.minimum(*on_diagonal) - np.maximum(*off_diagonal)
    return np.asarray(sign * np.where(first > second, first, -second))


def _sample(image: np.ndarray, uv: FloatArray) -> FloatArray:
    """Brightness (rows, cols) of the picture at pixels (rows, cols, 2)."""
    at = uv.astype(np.float32)
    values = cv2.remap(
        image, at[..., 0], at[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    return np.asarray(values, dtype=float)
