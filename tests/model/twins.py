"""The camera model in plain numpy, to compare the kernels with."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.intrinsics import Intrinsics


def fold_radius(k1: float, k2: float) -> float:
    """Smallest normalised radius where r (1 + k1 r^2 + k2 r^4) stops growing, or inf."""
    roots = np.roots([5 * k2, 3 * k1, 1.0]) if k2 != 0 else np.array([-1 / (3 * k1)] if k1 else [])
    positive = [float(root.real) for root in roots if abs(root.imag) < 1e-12 and root.real > 0]
    return math.sqrt(min(positive)) if positive else math.inf


def distort(
    theta: FloatArray, a: FloatArray, b: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Distorted (xd, yd) and the derivatives xd_a, xd_b = yd_a, yd_b."""
    k1, k2, p1, p2 = theta[4:]
    r2 = a * a + b * b
    radial = 1 + r2 * (k1 + k2 * r2)
    slope = 2 * k1 + 4 * k2 * r2
    xd = a * radial + 2 * p1 * a * b + p2 * (r2 + 2 * a * a)
    yd = b * radial + p1 * (r2 + 2 * b * b) + 2 * p2 * a * b
    xd_a = radial + a * a * slope + 2 * p1 * b + 6 * p2 * a
    xd_b = a * b * slope + 2 * p1 * a + 2 * p2 * b
    yd_b = radial + b * b * slope + 6 * p1 * b + 2 * p2 * a
    return xd, yd, xd_a, xd_b, yd_b


def project(intrinsics: Intrinsics, points: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Project points (..., 3) in camera space to pixels.

    Returns ``uv`` (..., 2) and ``valid`` (...): False behind the camera and from
    the fold of the distortion outwards, where ``uv`` is NaN.
    """
    uv, valid, _, _ = project_with_jacobians(intrinsics, points)
    return uv, valid


def project_with_jacobians(
    intrinsics: Intrinsics, points: ArrayLike
) -> tuple[FloatArray, BoolArray, FloatArray, FloatArray]:
    """Project points (..., 3) and differentiate.

    Returns ``uv`` (..., 2), ``valid`` (...), d uv / d intrinsics (..., 2, 8) and
    d uv / d point (..., 2, 3). Invalid entries are NaN.
    """
    theta = intrinsics.array
    fx, fy, cx, cy = theta[:4]
    points = np.asarray(points, dtype=float)
    with np.errstate(all="ignore"):
        inverse_z = 1 / points[..., 2]
        a = points[..., 0] * inverse_z
        b = points[..., 1] * inverse_z
        xd, yd, xd_a, xd_b, yd_b = distort(theta, a, b)
        r2 = a * a + b * b
        fold = fold_radius(intrinsics.k1, intrinsics.k2)
        valid = (points[..., 2] > 0) & (r2 < fold * fold) & (xd_a * yd_b - xd_b * xd_b > 0)
        uv = np.stack([fx * xd + cx, fy * yd + cy], axis=-1)
        valid &= np.logical_and.reduce(np.isfinite(uv), axis=-1)

        zero, one = np.zeros_like(a), np.ones_like(a)
        u_theta = [xd, zero, one, zero, fx * a * r2, fx * a * r2 * r2]
        u_theta += [fx * 2 * a * b, fx * (r2 + 2 * a * a)]
        v_theta = [zero, yd, zero, one, fy * b * r2, fy * b * r2 * r2]
        v_theta += [fy * (r2 + 2 * b * b), fy * 2 * a * b]
        d_theta = np.stack([np.stack(u_theta, -1), np.stack(v_theta, -1)], axis=-2)

        u_point = [xd_a, xd_b, -(xd_a * a + xd_b * b)]
        v_point = [xd_b, yd_b, -(xd_b * a + yd_b * b)]
        d_point = np.stack([fx * np.stack(u_point, -1), fy * np.stack(v_point, -1)], axis=-2)
        d_point = d_point * inverse_z[..., None, None]
    for array in (uv, d_theta, d_point):
        array[~valid] = np.nan
    return uv, valid, d_theta, d_point


def unproject(intrinsics: Intrinsics, uv: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Undistort pixels (..., 2) to normalised coordinates (a, b) (..., 2).

    The inverse of ``project`` up to depth. ``valid`` (...) is False for pixels
    that no direction inside the fold reaches; their coordinates are NaN.

    The radial part is solved first by a bracketed Newton iteration, which cannot
    leave the branch that contains the axis; a plain Newton iteration in the plane
    then takes care of the small tangential part.
    """
    theta = intrinsics.array
    uv = np.asarray(uv, dtype=float)
    xd = (uv[..., 0] - intrinsics.cx) / intrinsics.fx
    yd = (uv[..., 1] - intrinsics.cy) / intrinsics.fy
    if not theta[4:].any():
        ab = np.stack([xd, yd], axis=-1)
        return ab, np.logical_and.reduce(np.isfinite(ab), axis=-1)
    k1, k2 = intrinsics.k1, intrinsics.k2
    fold = fold_radius(k1, k2)
    with np.errstate(all="ignore"):
        distorted = np.hypot(xd, yd)
        radius = _undistorted_radius(distorted, k1, k2, fold)
        scale = np.where(distorted > 0, radius / distorted, 1.0)
        a, b = xd * scale, yd * scale
        for _ in range(20):
            x, y, x_a, x_b, y_b = distort(theta, a, b)
            ex, ey = x - xd, y - yd
            if not np.any(np.hypot(ex, ey) > 1e-14 * (1 + distorted)):
                break
            determinant = x_a * y_b - x_b * x_b
            a = a - (y_b * ex - x_b * ey) / determinant
            b = b - (x_a * ey - x_b * ex) / determinant
        x, y, x_a, x_b, y_b = distort(theta, a, b)
        tolerance = 1e-9 * (1 + distorted)
        valid = (
            (np.hypot(x - xd, y - yd) < tolerance)
            & (a * a + b * b < fold * fold)
            & (x_a * y_b - x_b * x_b > 0)
        )
    ab = np.stack([a, b], axis=-1)
    ab[~valid] = np.nan
    return ab, valid


def _undistorted_radius(distorted: FloatArray, k1: float, k2: float, fold: float) -> FloatArray:
    """Solve r (1 + k1 r^2 + k2 r^4) = distorted on [0, fold), good enough to polish."""

    def forward(r: FloatArray) -> FloatArray:
        return r * (1 + r * r * (k1 + k2 * r * r))

    if math.isinf(fold):
        high = np.maximum(distorted, 1e-3)
        while np.any(short := forward(high) < distorted):
            high = np.where(short, 2 * high, high)
    else:
        high = np.full_like(distorted, fold)
    low = np.zeros_like(distorted)
    r = np.minimum(distorted, high)
    for _ in range(60):
        value = forward(r) - distorted
        low = np.where(value < 0, r, low)
        high = np.where(value >= 0, r, high)
        step = r - value / (1 + r * r * (3 * k1 + 5 * k2 * r * r))
        inside = (step > low) & (step < high)
        moved = np.where(inside, step, 0.5 * (low + high))
        done = not np.any(np.abs(moved - r) > 1e-6 * r)
        r = moved
        if done:
            break
    return r
