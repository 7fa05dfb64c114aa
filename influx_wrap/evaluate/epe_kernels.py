"""End-point errors of many frames into one histogram, point by point, without storing any.

Points come as directions a = X/Z, b = Y/Z in the order of their distance from the axis, so that
a frame looks only at those its field can hold. A block of them is projected without a
branch, which compilers turn into vector instructions; a point's bin is computed there too, and
points that are not seen go to a bin of their own.
"""

from __future__ import annotations

import numpy as np

from influx_wrap.compute.jit import fast_jit
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.projection_kernels import distort

BLOCK = 512
UNSEEN, INFINITE = 0, 1
"""Bins before the first of a histogram: of points the true camera does not see, and of those
that the prediction puts nowhere."""
FIRST = 2


@fast_jit
def add_errors(
    a: FloatArray,
    b: FloatArray,
    wide: FloatArray,
    true: FloatArray,
    predicted: FloatArray,
    is_mei: bool,
    folds: FloatArray,
    size: FloatArray,
    per_px: float,
    weight: int,
    histogram: IntArray,
) -> None:
    """Add the errors of a frame to ``histogram`` (B + 3,).

    a, b       (n,) directions; ``wide`` (n,) is sqrt(1 + a^2 + b^2)
    true       (8,) and ``predicted`` (8,): Brown-Conrady, or fx, fy, cx, cy, xi if ``is_mei``
    folds      (2,) squared radii from which on each turns back
    size       (2,) width and height of the picture
    per_px     bins in a pixel; the last bin takes all larger errors
    weight     how many frames this one stands for
    """
    fx, fy, cx, cy, k1, k2, p1, p2 = true
    gx, gy, dx, dy, m1, m2, q1, q2 = predicted
    right, bottom = size[0] - 0.5, size[1] - 0.5
    fold, predicted_fold = folds
    last = len(histogram) - 1
    highest = float(last - FIRST)
    bins = np.empty(BLOCK, np.int32)
    for start in range(0, len(a), BLOCK):
        n = min(BLOCK, len(a) - start)
        for i in range(n):
            x, y = a[start + i], b[start + i]
            r2 = x * x + y * y
            xd, yd, along, across, down = distort(k1, k2, p1, p2, x, y)
            u, v = fx * xd + cx, fy * yd + cy
            seen = (r2 < fold) & (along * down - across * across > 0.0)
            seen &= (u >= -0.5) & (v >= -0.5) & (u <= right) & (v <= bottom)

            if is_mei:
                depth = 1.0 + m1 * wide[start + i]
                there = depth > 0.0
                s = gx * x / depth + dx
                t = gy * y / depth + dy
            else:
                xd, yd, along, across, down = distort(m1, m2, q1, q2, x, y)
                s, t = gx * xd + dx, gy * yd + dy
                there = (r2 < predicted_fold) & (along * down - across * across > 0.0)

            error = per_px * np.sqrt((s - u) * (s - u) + (t - v) * (t - v))
            where = FIRST + int(error if error < highest else highest)
            where = where if there & (error < np.inf) else INFINITE
            bins[i] = where if seen else UNSEEN
        for i in range(n):
            histogram[bins[i]] += weight
