"""Inner corners of a checkerboard in one picture, to a few hundredths of a pixel.

The board is found as a lattice of corners in a reduced picture (``crossings``), which asks
nothing of the outer squares: they may be cut by the paper's edge. Where that gives no whole
board, as where the camera moved, OpenCV's detector is asked about a small picture. The corners
are then fitted to the grey values of the full picture (``square_corners``).

Only whole boards count, as nothing tells which part of a checkerboard is seen; a fifth of the
corners may be covered. AprilGrids and ChArUco boards may leave the picture.

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

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.target import Checkerboard
from influx_wrap.observe.board_map import MIN_CORNERS, robust_map
from influx_wrap.observe.crossings import find_lattices
from influx_wrap.observe.detection import (
    Detection,
    as_8_bit,
    cross,
    full_size,
    grey_values,
    nothing_found,
    reduced,
)
from influx_wrap.observe.square_corners import fit_square_corners, square_signs, steps

REDUCED_WIDTH_PX = 1000
"""Of the picture that lattices are looked for in first."""
MIN_SEEN = 0.8
"""Share of the corners that say where the others are."""
SMALL_WIDTH_PX = 500
"""Of the picture that OpenCV's slower detector is asked about."""
FIELD_OF_SQUARE = 0.3


def detect(image: np.ndarray, target: Checkerboard) -> Detection:
    """Find the corners of ``target`` in a grey picture (H, W), 8 or 16 bit.

    The whole board must be in the picture; single corners may be covered. A board whose rows
    and columns have an even sum is numbered from the end that is lower in the picture, see
    above.
    """
    image = as_8_bit(image)
    found = find_board(image, target.rows, target.cols)
    if found is None:
        return nothing_found(len(target.points))
    coarse, coarse_px = found
    coarse = _as_numbered(image, target, coarse)
    contrast = float(np.median(_contrast(image, coarse)))
    if contrast == 0:
        return nothing_found(len(target.points))
    # Negative where the board has its colours swapped, which no turn can mend.
    signs = np.sign(contrast) * square_signs(target.rows, target.cols)
    uv, confidence = fit_square_corners(image, coarse, coarse_px, signs)
    seen = confidence > 0
    if seen.mean() < MIN_SEEN:
        return nothing_found(len(target.points))
    return Detection(np.where(seen[..., None], uv, np.nan).reshape(-1, 2), confidence.reshape(-1))


def find_board(image: np.ndarray, rows: int, cols: int) -> tuple[FloatArray, float] | None:
    """Corners (rows, cols, 2) in an 8-bit picture (H, W) to some pixels, and how many."""
    scale = max(1, round(max(image.shape) / REDUCED_WIDTH_PX))
    # Half the size for what is blurred, twice for small squares.
    for s in dict.fromkeys((scale, 2 * scale, max(1, scale // 2))):
        for lattice in find_lattices(reduced(image, s)):
            corners = _whole(lattice, rows, cols)
            if corners is not None:
                return full_size(corners, s), float(s)
    return _ask_opencv(image, rows, cols)


def _whole(lattice: FloatArray, rows: int, cols: int) -> FloatArray | None:
    """A lattice as (rows, cols, 2) with its missing corners; None if it is another one."""
    if lattice.shape[:2] == (cols, rows) != (rows, cols):
        lattice = np.swapaxes(lattice, 0, 1)
    seen = np.isfinite(lattice[..., 0])
    if lattice.shape[:2] != (rows, cols) or seen.mean() < MIN_SEEN:
        return None
    if seen.all():
        return lattice
    if seen.sum() < MIN_CORNERS:
        return None
    row, col = np.indices((rows, cols))
    board = np.stack([col, row], axis=-1).astype(float)
    fit = robust_map(board[seen], lattice[seen])
    if fit is None:
        return None
    return np.where(seen[..., None], lattice, fit(board.reshape(-1, 2)).reshape(rows, cols, 2))


def _ask_opencv(image: np.ndarray, rows: int, cols: int) -> tuple[FloatArray, float] | None:
    """What OpenCV finds in a small picture, in which a smeared board is sharper."""
    scale = -(-max(image.shape) // SMALL_WIDTH_PX)
    found, corners = cv2.findChessboardCornersSB(reduced(image, scale), (cols, rows))
    if not found:
        return None
    grid = np.asarray(corners, dtype=float).reshape(rows, cols, 2)
    return full_size(grid, scale), float(scale)


def _as_numbered(image: np.ndarray, target: Checkerboard, corners: FloatArray) -> FloatArray:
    """The corners (rows, cols, 2) from the bottom left of the board on, row by row."""
    right, up = steps(corners)
    if cross(right, up).mean() > 0:
        # A board is seen from its front: with y downwards, up is left of right.
        corners = corners[:, ::-1]
    turns = [corners, corners[::-1, ::-1]]
    if target.rows == target.cols:
        turns += [np.swapaxes(turn, 0, 1)[::-1] for turn in turns]
    turns.sort(key=lambda turn: float(steps(turn)[1][..., 1].mean()))
    return next((turn for turn in turns if np.median(_contrast(image, turn)) > 0), turns[0])


def _contrast(image: np.ndarray, uv: FloatArray) -> FloatArray:
    """(rows, cols) how much brighter the white squares around each corner are than the black
    ones; negative where the colours are the other way round than the pattern has them.

    The weaker white square against the brighter black one, so that a blurred or covered
    corner has little by that measure.
    """
    right, up = steps(uv)
    rows, cols = np.indices(uv.shape[:2])
    # The pattern's bottom left square is black, so up and right of the first corner is too.
    sign = np.where((rows + cols) % 2 == 0, 1, -1)
    on_diagonal, off_diagonal = (
        [grey_values(image, uv + s * FIELD_OF_SQUARE * diagonal) for s in (1, -1)]
        for diagonal in (right + up, right - up)
    )
    first = np.minimum(*off_diagonal) - np.maximum(*on_diagonal)
    second = np.minimum(*on_diagonal) - np.maximum(*off_diagonal)
    return np.asarray(sign * np.where(first > second, first, -second))
