"""The distortion of every pixel of a picture and its inverse: the loops of an STMap.

The model and what is valid in it are those of ``model.intrinsics``. All functions are in this
one file because numba's cache looks only at the file a function is in.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from influx_wrap.model.intrinsics import FloatArray

_STEPS = 12
_CONVERGED = 1e-13


@njit(cache=True, nogil=True, error_model="numpy")
def _distort(theta: FloatArray, a: float, b: float) -> tuple[float, float, float, float, float]:
    """Distorted (xd, yd) and the derivatives xd_a, xd_b = yd_a, yd_b."""
    k1, k2, p1, p2 = theta[4], theta[5], theta[6], theta[7]
    r2 = a * a + b * b
    radial = 1 + r2 * (k1 + k2 * r2)
    slope = 2 * k1 + 4 * k2 * r2
    return (
        a * radial + 2 * p1 * a * b + p2 * (r2 + 2 * a * a),
        b * radial + p1 * (r2 + 2 * b * b) + 2 * p2 * a * b,
        radial + a * a * slope + 2 * p1 * b + 6 * p2 * a,
        a * b * slope + 2 * p1 * a + 2 * p2 * b,
        radial + b * b * slope + 6 * p1 * b + 2 * p2 * a,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def distorted(theta: FloatArray, fold: float, ab: FloatArray) -> FloatArray:
    """Distorted coordinates (n, 2) of directions (n, 2); NaN from the fold outwards."""
    result = np.full_like(ab, np.nan)
    for i in range(len(ab)):
        a, b = ab[i, 0], ab[i, 1]
        x, y, x_a, x_b, y_b = _distort(theta, a, b)
        if a * a + b * b < fold * fold and x_a * y_b - x_b * x_b > 0:
            result[i, 0], result[i, 1] = x, y
    return result


@njit(cache=True, nogil=True, error_model="numpy")
def undistorted(theta: FloatArray, fold: float, xy: FloatArray) -> FloatArray:
    """Directions (n, 2) of distorted coordinates (n, 2), neighbours one after the other.

    Newton's method from the displacement of the one before; NaN where that does not lead to a
    valid direction, which does not mean that there is none.
    """
    result = np.full_like(xy, np.nan)
    da, db = 0.0, 0.0
    for i in range(len(xy)):
        xd, yd = xy[i, 0], xy[i, 1]
        a, b = xd + da, yd + db
        da, db = 0.0, 0.0
        for _ in range(_STEPS):
            x, y, x_a, x_b, y_b = _distort(theta, a, b)
            ex, ey = x - xd, y - yd
            determinant = x_a * y_b - x_b * x_b
            if not (determinant > 0 and a * a + b * b < fold * fold):
                break
            if math.hypot(ex, ey) < _CONVERGED:
                result[i, 0], result[i, 1] = a, b
                da, db = a - xd, b - yd
                break
            a -= (y_b * ex - x_b * ey) / determinant
            b -= (x_a * ey - x_b * ex) / determinant
    return result
