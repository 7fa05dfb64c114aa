"""Where a board's plane lies in a picture: a homography, and a polynomial for the distortion.

It needs neither the lens nor the board's pose, follows a sheet that is not flat, and says where
corners must be that were not found yet, and which of those found are wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from influx_wrap.model.arrays import BoolArray, FloatArray

MIN_CORNERS = 12
MISFIT_PX, MISFIT_FACTOR = 0.3, 6.0
DAMPING = 1e-4


@dataclass(frozen=True, eq=False)
class BoardMap:
    """Board (x, y) to pixels: a homography, then a polynomial correction."""

    homography: FloatArray
    centre: FloatArray
    scale: float
    correction: FloatArray

    def __call__(self, board: FloatArray) -> FloatArray:
        base = cv2.perspectiveTransform(board[None], self.homography)[0]
        terms = _monomials((base - self.centre) / self.scale, len(self.correction))
        return np.asarray(base + terms @ self.correction)


MAX_ORDER = 7
_POWERS = np.array([(i - j, j) for i in range(MAX_ORDER + 1) for j in range(i + 1)])


def _monomials(p: FloatArray, n: int) -> FloatArray:
    """(len(p), n) products of x and y in rising order."""
    up_to = np.cumprod(np.broadcast_to(p[..., None], (len(p), 2, MAX_ORDER)), axis=2)
    powers = np.concatenate([np.ones((len(p), 2, 1)), up_to], axis=2)
    return np.asarray(powers[:, 0, _POWERS[:n, 0]] * powers[:, 1, _POWERS[:n, 1]])


def fit_map(board: FloatArray, uv: FloatArray) -> BoardMap:
    """Least-squares map through points (n, 2) and pixels (n, 2)."""
    homography = _homography(board, uv)
    base = cv2.perspectiveTransform(board[None], homography)[0]
    centre, scale = base.mean(axis=0), float(np.abs(base - base.mean(axis=0)).max())
    # Third order; fifth and seventh with corners enough to hold them.
    n = 10 if len(board) < 100 else 21 if len(board) < 250 else 36
    design = _monomials((base - centre) / scale, n)
    # A little damping: with few tags the polynomial must not swing between them.
    damping = DAMPING * len(board) * np.eye(n)
    correction = np.linalg.solve(design.T @ design + damping, design.T @ (uv - base))
    return BoardMap(homography, centre, scale, correction)


def _homography(board: FloatArray, uv: FloatArray) -> FloatArray:
    """(3, 3) from points (n, 2) to pixels (n, 2), by the direct linear transformation."""
    to_board, to_uv = _normalisation(board), _normalisation(uv)
    x, y = (board @ to_board[:2, :2] + to_board[:2, 2]).T
    u, v = (uv @ to_uv[:2, :2] + to_uv[:2, 2]).T
    one, zero = np.ones_like(x), np.zeros_like(x)
    above = np.stack([x, y, one, zero, zero, zero, -u * x, -u * y, -u], axis=1)
    below = np.stack([zero, zero, zero, x, y, one, -v * x, -v * y, -v], axis=1)
    _, vectors = np.linalg.eigh(above.T @ above + below.T @ below)
    homography = np.linalg.solve(to_uv, vectors[:, 0].reshape(3, 3) @ to_board)
    return np.asarray(homography / homography[2, 2])


def _normalisation(points: FloatArray) -> FloatArray:
    """(3, 3) that moves points (n, 2) to the origin and scales them to about 1."""
    centre = points.mean(axis=0)
    scale = 1 / float(np.abs(points - centre).mean())
    return np.array([[scale, 0, -scale * centre[0]], [0, scale, -scale * centre[1]], [0, 0, 1]])


def robust_map(board: FloatArray, uv: FloatArray) -> BoardMap | None:
    """The map that most of the points (n, 2) and pixels (n, 2) agree on."""
    good = np.ones(len(board), dtype=bool)
    for _ in range(4):
        if good.sum() < MIN_CORNERS:
            return None
        fit = fit_map(board[good], uv[good])
        off = np.linalg.norm(fit(board) - uv, axis=1)
        agreed, good = good, off < max(1.5, 3 * float(np.median(off)))
        if (agreed == good).all():
            break
    return fit


def misfits(fit: BoardMap, board: FloatArray, uv: FloatArray, found: BoolArray) -> BoolArray:
    """(T,) found corners that lie off the smooth map of all of them."""
    off = np.zeros(len(board))
    off[found] = np.linalg.norm(fit(board[found]) - uv[found], axis=1)
    usual = float(np.median(off[found])) if found.any() else 0.0
    return off > max(MISFIT_PX, MISFIT_FACTOR * usual)
