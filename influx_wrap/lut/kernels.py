"""A table's hot loop: which region a query is in, and what its vertices weigh there."""

from __future__ import annotations

import math

import numpy as np

from influx_wrap.compute.jit import jit
from influx_wrap.model.arrays import FloatArray, IntArray

RIM = 1e-6
"""How far outside all regions, in weights, a query still counts as on the rim of the nearest:
in a region that is almost a line, rounding is worth so much."""


@jit
def on_line(corners: FloatArray, x: float, y: float, weights: FloatArray) -> float:
    """Weights (first two of 4) of the ends of a piece of a line, on which a place is; returns the
    lesser. By shares of x, or of y if the line is upright."""
    axis = 0 if corners[0, 0] != corners[1, 0] else 1
    at = x if axis == 0 else y
    share = (at - corners[0, axis]) / (corners[1, axis] - corners[0, axis])
    weights[0], weights[1], weights[2], weights[3] = 1 - share, share, 0.0, 0.0
    return min(share, 1 - share)


@jit
def in_triangle(corners: FloatArray, x: float, y: float, weights: FloatArray) -> float:
    """Barycentric weights (first three of 4) of a triangle's corners; returns the least."""
    ax, ay = corners[0, 0], corners[0, 1]
    ux, uy = corners[1, 0] - ax, corners[1, 1] - ay
    vx, vy = corners[2, 0] - ax, corners[2, 1] - ay
    area = ux * vy - uy * vx
    b = ((x - ax) * vy - (y - ay) * vx) / area
    c = (ux * (y - ay) - uy * (x - ax)) / area
    weights[0], weights[1], weights[2], weights[3] = 1 - b - c, b, c, 0.0
    return min(1 - b - c, b, c)


@jit
def in_quad(corners: FloatArray, x: float, y: float, weights: FloatArray) -> float:
    """Bilinear weights (4,) of a convex quadrilateral's corners; returns the least of the
    factors they are made of, negative outside.

    The place is a + s e + t f + s t g; eliminating s leaves a quadratic equation in t, whose
    first coefficient vanishes if two sides are parallel.
    """
    ax, ay = corners[0, 0], corners[0, 1]
    ex, ey = corners[1, 0] - ax, corners[1, 1] - ay
    fx, fy = corners[3, 0] - ax, corners[3, 1] - ay
    gx, gy = corners[2, 0] - corners[1, 0] - fx, corners[2, 1] - corners[1, 1] - fy
    hx, hy = x - ax, y - ay
    k2 = gx * fy - gy * fx
    k1 = ex * fy - ey * fx + hx * gy - hy * gx
    k0 = hx * ey - hy * ex
    root = math.sqrt(max(0.0, k1 * k1 - 4 * k2 * k0))
    q = -0.5 * (k1 + (root if k1 >= 0 else -root))
    t = k0 / q if q != 0 else 0.0
    if k2 != 0 and not -0.5 <= t <= 1.5:
        t = q / k2
    dx, dy = ex + t * gx, ey + t * gy
    s = (hx - t * fx) / dx if abs(dx) > abs(dy) else (hy - t * fy) / dy
    weights[0], weights[1] = (1 - s) * (1 - t), s * (1 - t)
    weights[2], weights[3] = s * t, (1 - s) * t
    return min(s, t, 1 - s, 1 - t)


@jit
def locate(
    x: FloatArray,
    y: FloatArray,
    places: FloatArray,
    vertices: IntArray,
    boxes: FloatArray,
) -> tuple[IntArray, FloatArray]:
    """Region (q,) of queries x, y (q,), -1 outside all; and its vertices' weights (q, 4).

    ``boxes`` (r, 4) are least x, least y, greatest x and greatest y of the regions.
    """
    region = np.full(len(x), -1)
    weights = np.zeros((len(x), 4))
    corners, trial = np.empty((4, 2)), np.empty(4)
    for k in range(len(x)):
        best = -RIM
        for candidate in range(len(vertices)):
            left, bottom, right, top = boxes[candidate]
            if not (left <= x[k] <= right and bottom <= y[k] <= top):
                continue
            size = 0
            while size < 4 and vertices[candidate, size] >= 0:
                corners[size, 0] = places[vertices[candidate, size], 0]
                corners[size, 1] = places[vertices[candidate, size], 1]
                size += 1
            if size == 4:
                least = in_quad(corners, x[k], y[k], trial)
            elif size == 3:
                least = in_triangle(corners, x[k], y[k], trial)
            elif size == 2:
                least = on_line(corners, x[k], y[k], trial)
            else:
                least = 0.0
                trial[0], trial[1], trial[2], trial[3] = 1.0, 0.0, 0.0, 0.0
            if least > best:
                best = least
                region[k] = candidate
                weights[k] = trial
                if least >= 0:
                    break
    return region, weights


@jit
def blend(
    region: IntArray, weights: FloatArray, vertices: IntArray, values: FloatArray
) -> FloatArray:
    """(q, c) values (n, c) of the regions' vertices, weighted; NaN where there is no region."""
    columns = values.shape[1]
    result = np.full((len(region), columns), np.nan)
    for k in range(len(region)):
        if region[k] < 0:
            continue
        for column in range(columns):
            result[k, column] = 0.0
        for corner in range(4):
            vertex = vertices[region[k], corner]
            if vertex < 0:
                break
            for column in range(columns):
                result[k, column] += weights[k, corner] * values[vertex, column]
    return result
