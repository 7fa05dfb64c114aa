"""Stage 2: a first focal length.

The original guess comes from the picture: on a fisheye, straight rows of corners
become circles, and two circles meet in the vanishing points of the rows' direction,
half a turn apart. On ordinary lenses the rows hardly bend and the guess is far off,
which is why the paper takes the thin-lens focal length instead (``model.optics``).
"""

from __future__ import annotations

import numpy as np

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import image_centre
from influx_wrap.model.observations import Observations


class FocalLengthError(RuntimeError):
    """No focal length could be found in the observations."""


def vanishing_point_focal_px(observations: Observations) -> float:
    """Median over all pairs of corner rows in all complete views."""
    shape = observations.target.grid_shape
    if shape is None:
        raise FocalLengthError("initialisation of the focal length failed: the target has no rows")
    complete = observations.valid.all(axis=1)
    if not complete.any():
        raise FocalLengthError(
            "initialisation of the focal length failed: no view shows the whole board"
        )
    rows = observations.uv[complete].reshape(-1, *shape, 2) - image_centre(observations.image_size)
    guesses = np.concatenate([_row_pair_focals(view) for view in rows])
    if guesses.size == 0:
        raise FocalLengthError("initialisation of the focal length failed: no two rows intersect")
    return float(np.median(guesses))


def _row_pair_focals(rows: FloatArray) -> FloatArray:
    """Focal lengths from rows (R, N, 2) of one view whose circles meet in two points."""
    centres, radii = _fit_circles(rows)
    first, second = np.triu_indices(len(rows), k=1)
    apart = np.linalg.norm(centres[second] - centres[first], axis=1)
    r1, r2 = radii[first], radii[second]
    with np.errstate(invalid="ignore", divide="ignore"):
        along = (r1**2 - r2**2 + apart**2) / (2 * apart)
        chord = 2 * np.sqrt(r1**2 - along**2)
    return chord[np.isfinite(chord) & (chord > 0)] / np.pi


def _fit_circles(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Least-squares circles through each row: centres (R, 2), radii (R,).

    The algebraic fit: x^2 + y^2 = 2 a x + 2 b y + c is linear in a, b and c.
    """
    design = np.concatenate([2 * rows, np.ones((*rows.shape[:2], 1))], axis=2)
    squares = (rows**2).sum(axis=2)
    solution = np.stack(
        [np.linalg.lstsq(a, y, rcond=None)[0] for a, y in zip(design, squares, strict=True)]
    )
    centres = solution[:, :2]
    return centres, np.sqrt(solution[:, 2] + (centres**2).sum(axis=1))
