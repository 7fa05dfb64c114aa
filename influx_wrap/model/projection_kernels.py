"""The camera model's arithmetic, once for all who need it: distortion, projection, its inverse.

The formulas are those of ``model.intrinsics``. ``distort`` becomes a part of every kernel that
calls it, of the solver's as of the renderer's, and is computed with that kernel's arithmetic.
``theta`` (8,) are the intrinsics in the order of ``NAMES``, ``fold`` the radius of the fold.
"""

from __future__ import annotations

import math

import numpy as np

from influx_wrap.compute.jit import fused_jit, inlined, jit
from influx_wrap.model.arrays import BoolArray, FloatArray


@inlined
def distort(
    k1: float, k2: float, p1: float, p2: float, a: float, b: float
) -> tuple[float, float, float, float, float]:
    """Distorted (xd, yd) of (a, b) and the derivatives xd_a, xd_b = yd_a, yd_b."""
    aa, bb, ab = a * a, b * b, a * b
    r2 = aa + bb
    radial = 1.0 + r2 * (k1 + k2 * r2)
    slope = 2.0 * k1 + 4.0 * k2 * r2
    xd = a * radial + p1 * (2.0 * ab) + p2 * (r2 + 2.0 * aa)
    yd = b * radial + p1 * (r2 + 2.0 * bb) + p2 * (2.0 * ab)
    xd_a = radial + aa * slope + 2.0 * p1 * b + 6.0 * p2 * a
    xd_b = ab * slope + 2.0 * p1 * a + 2.0 * p2 * b
    yd_b = radial + bb * slope + 6.0 * p1 * b + 2.0 * p2 * a
    return xd, yd, xd_a, xd_b, yd_b


@jit
def project_points(
    theta: FloatArray, fold: float, points: FloatArray, uv: FloatArray, valid: BoolArray
) -> None:
    """Pixels ``uv`` (n, 2) of points (n, 3) in camera space; NaN where not ``valid`` (n,)."""
    for i in range(len(points)):
        inverse_z = 1.0 / points[i, 2]
        a, b = points[i, 0] * inverse_z, points[i, 1] * inverse_z
        xd, yd, xd_a, xd_b, yd_b = distort(theta[4], theta[5], theta[6], theta[7], a, b)
        u, v = theta[0] * xd + theta[2], theta[1] * yd + theta[3]
        valid[i] = (
            points[i, 2] > 0
            and a * a + b * b < fold * fold
            and xd_a * yd_b - xd_b * xd_b > 0
            and math.isfinite(u)
            and math.isfinite(v)
        )
        uv[i, 0] = u if valid[i] else np.nan
        uv[i, 1] = v if valid[i] else np.nan


@jit
def differentiate(
    theta: FloatArray,
    points: FloatArray,
    valid: BoolArray,
    d_theta: FloatArray,
    d_point: FloatArray,
) -> None:
    """d uv / d intrinsics (n, 2, 8) and d uv / d point (n, 2, 3); NaN where not ``valid``."""
    fx, fy = theta[0], theta[1]
    for i in range(len(points)):
        if not valid[i]:
            d_theta[i] = np.nan
            d_point[i] = np.nan
            continue
        inverse_z = 1.0 / points[i, 2]
        a, b = points[i, 0] * inverse_z, points[i, 1] * inverse_z
        xd, yd, xd_a, xd_b, yd_b = distort(theta[4], theta[5], theta[6], theta[7], a, b)
        r2, ab = a * a + b * b, a * b
        u, v = d_theta[i, 0], d_theta[i, 1]
        u[0], u[1], u[2], u[3] = xd, 0.0, 1.0, 0.0
        u[4], u[5] = fx * a * r2, fx * a * r2 * r2
        u[6], u[7] = fx * 2.0 * ab, fx * (r2 + 2.0 * a * a)
        v[0], v[1], v[2], v[3] = 0.0, yd, 0.0, 1.0
        v[4], v[5] = fy * b * r2, fy * b * r2 * r2
        v[6], v[7] = fy * (r2 + 2.0 * b * b), fy * 2.0 * ab
        u, v = d_point[i, 0], d_point[i, 1]
        u[0], u[1] = fx * xd_a * inverse_z, fx * xd_b * inverse_z
        u[2] = -(u[0] * a + u[1] * b)
        v[0], v[1] = fy * xd_b * inverse_z, fy * yd_b * inverse_z
        v[2] = -(v[0] * a + v[1] * b)


@jit
def _undistorted_radius(distorted: float, k1: float, k2: float, fold: float) -> float:
    """Solve r (1 + k1 r^2 + k2 r^4) = distorted on [0, fold), good enough to polish."""
    low, high = 0.0, fold
    if math.isinf(fold):
        high = max(distorted, 1e-3)
        while high * (1 + high * high * (k1 + k2 * high * high)) < distorted:
            high *= 2
    r = min(distorted, high)
    for _ in range(60):
        value = r * (1 + r * r * (k1 + k2 * r * r)) - distorted
        if value < 0:
            low = r
        else:
            high = r
        moved = r - value / (1 + r * r * (3 * k1 + 5 * k2 * r * r))
        if not low < moved < high:
            moved = 0.5 * (low + high)
        done = abs(moved - r) <= 1e-6 * r
        r = moved
        if done:
            break
    return r


@jit
def undistort(
    k1: float, k2: float, p1: float, p2: float, fold: float, xd: float, yd: float
) -> tuple[float, float]:
    """The ray (a, b) of one distorted point; NaN if there is none.

    The radial part is solved first by a bracketed Newton iteration, which cannot leave the
    branch that contains the axis; a plain Newton iteration in the plane then takes care of
    the small tangential part.
    """
    if k1 == 0 and k2 == 0 and p1 == 0 and p2 == 0:
        if math.isfinite(xd) and math.isfinite(yd):
            return xd, yd
        return np.nan, np.nan
    distorted = math.sqrt(xd * xd + yd * yd)
    if not math.isfinite(distorted):
        return np.nan, np.nan
    # No direction inside the fold gets further out than this, whatever the tangential part.
    if math.isfinite(fold):
        rim = fold * (1 + fold * fold * (k1 + k2 * fold * fold))
        if distorted > rim + 4 * (abs(p1) + abs(p2)) * fold * fold:
            return np.nan, np.nan
    scale = 1.0
    if distorted > 0:
        scale = _undistorted_radius(distorted, k1, k2, fold) / distorted
    a, b = xd * scale, yd * scale
    for _ in range(20):
        x, y, x_a, x_b, y_b = distort(k1, k2, p1, p2, a, b)
        ex, ey = x - xd, y - yd
        if not math.sqrt(ex * ex + ey * ey) > 1e-14 * (1 + distorted):
            break
        determinant = x_a * y_b - x_b * x_b
        a -= (y_b * ex - x_b * ey) / determinant
        b -= (x_a * ey - x_b * ex) / determinant
    x, y, x_a, x_b, y_b = distort(k1, k2, p1, p2, a, b)
    ex, ey = x - xd, y - yd
    if (
        math.sqrt(ex * ex + ey * ey) < 1e-9 * (1 + distorted)
        and a * a + b * b < fold * fold
        and x_a * y_b - x_b * x_b > 0
    ):
        return a, b
    return np.nan, np.nan


@jit
def unproject_pixels(theta: FloatArray, fold: float, uv: FloatArray, ab: FloatArray) -> None:
    """Rays ``ab`` (n, 2) of pixels (n, 2); NaN where there is none."""
    for i in range(len(uv)):
        xd, yd = (uv[i, 0] - theta[2]) / theta[0], (uv[i, 1] - theta[3]) / theta[1]
        ab[i, 0], ab[i, 1] = undistort(theta[4], theta[5], theta[6], theta[7], fold, xd, yd)


@fused_jit
def _newton_row(
    theta: FloatArray,
    fold: float,
    xd: FloatArray,
    yd: float,
    above: FloatArray,
    above_b: FloatArray,
    a: FloatArray,
    b: FloatArray,
    good: BoolArray,
) -> None:
    """Rays a, b (W,) of a row by one Newton step from where the three rows ``above``,
    ``above_b`` (3, W) point to; ``good`` (W,) where that was enough."""
    k1, k2, p1, p2 = theta[4], theta[5], theta[6], theta[7]
    far_a, middle_a, near_a = above[0], above[1], above[2]
    far_b, middle_b, near_b = above_b[0], above_b[1], above_b[2]
    for u in range(len(a)):
        a0 = 3 * (near_a[u] - middle_a[u]) + far_a[u]
        b0 = 3 * (near_b[u] - middle_b[u]) + far_b[u]
        x, y, x_a, x_b, y_b = distort(k1, k2, p1, p2, a0, b0)
        ex, ey = x - xd[u], y - yd
        inverse = 1 / (x_a * y_b - x_b * x_b)
        a1 = a0 - (y_b * ex - x_b * ey) * inverse
        b1 = b0 - (x_a * ey - x_b * ex) * inverse
        a[u], b[u] = a1, b1
        x, y, x_a, x_b, y_b = distort(k1, k2, p1, p2, a1, b1)
        miss = abs(x - xd[u]) + abs(y - yd)
        good[u] = (
            (miss <= 1e-14 * (1 + abs(xd[u]) + abs(yd)))
            & (a1 * a1 + b1 * b1 < fold * fold)
            & (x_a * y_b - x_b * x_b > 0)
        )


@jit
def undistort_grid(
    theta: FloatArray, fold: float, u0: float, v0: float, a: FloatArray, b: FloatArray
) -> None:
    """Rays a, b (H, W) of the pixels (u0 + column, v0 + row), NaN where there is none.

    ``theta`` (8,) are the intrinsics, ``fold`` the radius of the fold. Three rows are solved
    point by point; the others follow from the rows above them.
    """
    height, width = a.shape
    xd = (np.arange(width) + u0 - theta[2]) / theta[0]
    good = np.zeros(width, dtype=np.bool_)
    for row in range(height):
        yd = (row + v0 - theta[3]) / theta[1]
        good[:] = False
        if row >= 3:
            above, above_b = a[row - 3 : row], b[row - 3 : row]
            _newton_row(theta, fold, xd, yd, above, above_b, a[row], b[row], good)
        for u in range(width):
            if not good[u]:
                a[row, u], b[row, u] = undistort(
                    theta[4], theta[5], theta[6], theta[7], fold, xd[u], yd
                )
