"""Kernels of the incremental stage; ``incremental`` says what they do and why."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from influx_wrap.calibrate.kernels import (
    linearise_view,
    move_pose,
    reduce_view,
    view_residuals,
)
from influx_wrap.compute.jit import jit
from influx_wrap.model.arrays import FloatArray, IntArray


class Corners(NamedTuple):
    """A ``Problem``'s data, weights, count and first; a rollout has weights of its own."""

    data: FloatArray
    weights: FloatArray
    sizes: IntArray
    first: IntArray


class Limits(NamedTuple):
    """When ``optimise`` is done; reach is the image's normalised radius."""

    rank_tolerance: float
    max_iterations: int
    step_tolerance: float
    cost_tolerance: float
    linearisation_px: float
    reach: float


class Views(NamedTuple):
    """Linearisations of V views.

    theta (V, 8) and pose (V, 12) are where each was formed; s (V, 8, 8), r (V, 8),
    w (V, 6, 8) and c (V, 6) are ``reduce_view``'s; diagonal (V, 8) is that of the
    intrinsics before the pose was eliminated, cost (V,) the sum of squared residuals.
    """

    theta: FloatArray
    pose: FloatArray
    s: FloatArray
    r: FloatArray
    w: FloatArray
    c: FloatArray
    diagonal: FloatArray
    cost: FloatArray


def new_views(n: int) -> tuple[FloatArray, Views]:
    """Room for n views: a table (n, width) whose rows can be copied, and ``Views`` of it."""
    shapes = ((8,), (12,), (8, 8), (8,), (6, 8), (6,), (8,), ())
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    table = np.zeros((n, int(ends[-1])))
    parts = [
        table[:, end - math.prod(shape) : end].reshape(n, *shape)
        for shape, end in zip(shapes, ends, strict=True)
    ]
    return table, Views(*parts)


@jit
def linearise(v, theta, pose, corners, views, scratch):
    """Form view v's reduced system at theta and pose; False if it has none."""
    # Not literals: those would make numba compile the kernels once more.
    no_bow, n_shared = np.int64(0), np.int64(8)
    h, g, damping = np.empty((14, 14)), np.empty(14), np.zeros(14)
    s, r, w, c = np.empty((8, 8)), np.empty(8), np.empty((6, 8)), np.empty(6)
    first, last = corners.first[v], corners.first[v + 1]
    cost = linearise_view(
        theta, np.zeros(3), no_bow, pose, corners.data, corners.weights, corners.sizes,
        first, last, scratch, h, g,
    )  # fmt: skip
    solvable = reduce_view(h, g, n_shared, damping, s, r, w, c)
    views.cost[v] = cost
    for i in range(12):
        views.pose[v, i] = pose[i]
    for i in range(8):
        views.theta[v, i] = theta[i]
        views.diagonal[v, i] = h[i, i]
        views.r[v, i] = r[i]
        for j in range(8):
            views.s[v, i, j] = s[i, j]
    for i in range(6):
        views.c[v, i] = c[i]
        for j in range(8):
            views.w[v, i, j] = w[i, j]
    return solvable and math.isfinite(cost)


@jit
def _pose_step(v, theta, views, step, pose):
    """Step (6,) and pose (12,) of view v from its linearisation point to its optimum at theta."""
    for i in range(6):
        total = views.c[v, i]
        for j in range(8):
            total -= views.w[v, i, j] * (theta[j] - views.theta[v, j])
        step[i] = total
    for i in range(12):
        pose[i] = views.pose[v, i]
    move_pose(pose, step, pose)


@jit
def _second_order_px(v, theta, views, step, reach):
    """What view v's linearisation leaves out at theta and a pose step, in pixels.

    The relative changes of the picture's geometry, summed over all parameters and
    squared: the neglected terms are products of two such changes.
    """
    f, depth = abs(theta[0]), abs(views.pose[v, 11])
    r2 = reach * reach
    relative = 0.0
    for i in range(8):
        change = abs(theta[i] - views.theta[v, i])
        if i < 4:
            relative += change / f
        elif i == 4:
            relative += change * r2
        elif i == 5:
            relative += change * r2 * r2
        else:
            relative += change * 3.0 * reach
    relative += math.sqrt(step[0] * step[0] + step[1] * step[1] + step[2] * step[2])
    relative += math.sqrt(step[3] * step[3] + step[4] * step[4] + step[5] * step[5]) / depth
    return f * reach * relative * relative


@jit
def _assemble(kept, theta, views, s, b, diagonal):
    """Sum the kept views' systems at theta; returns the linearised cost there."""
    s[:] = 0.0
    b[:] = 0.0
    diagonal[:] = 0.0
    cost = 0.0
    moved = np.empty(8)
    for v in kept:
        cost += views.cost[v]
        for i in range(8):
            moved[i] = theta[i] - views.theta[v, i]
        for i in range(8):
            total = views.r[v, i]
            for j in range(8):
                s[i, j] += views.s[v, i, j]
                total -= views.s[v, i, j] * moved[j]
            b[i] += total
            diagonal[i] += views.diagonal[v, i]
            cost -= moved[i] * (total + views.r[v, i])
    return cost


@jit
def _truncated_step(s, b, diagonal, tolerance, step):
    """Solve s step = b in scaled directions that carry information; returns their number."""
    scale = 1.0 / np.sqrt(diagonal)
    scaled = np.empty((8, 8))
    for i in range(8):
        for j in range(8):
            scaled[i, j] = s[i, j] * scale[i] * scale[j]
    values, vectors = np.linalg.eigh(scaled)
    rank = 0
    step[:] = 0.0
    for k in range(8):
        if values[k] > tolerance * values[7]:
            rank += 1
            projection = 0.0
            for i in range(8):
                projection += vectors[i, k] * scale[i] * b[i]
            projection /= values[k]
            for i in range(8):
                step[i] += projection * vectors[i, k]
    for i in range(8):
        step[i] *= scale[i]
    return rank


@jit
def optimise(kept, theta, corners, views, scratch, limits, s):
    """Gauss-Newton over the views ``kept`` (K,): moves theta, views and s in place.

    Returns (converged, rank, cost before, cost after). A view's pose is that of its
    linearisation point; ``_pose_step`` gives it at theta.
    """
    b, diagonal, step = np.empty(8), np.empty(8), np.empty(8)
    pose_step, pose = np.empty(6), np.empty(12)
    rank = 0
    start = _assemble(kept, theta, views, s, b, diagonal)
    cost = start
    for _ in range(limits.max_iterations):
        before = cost
        rank = _truncated_step(s, b, diagonal, limits.rank_tolerance, step)
        if not np.all(np.isfinite(step)):
            break
        theta += step
        largest = np.max(np.abs(step))
        fresh = 0
        for v in kept:
            _pose_step(v, theta, views, pose_step, pose)
            neglected = _second_order_px(v, theta, views, pose_step, limits.reach)
            if neglected >= limits.linearisation_px:
                largest = max(largest, np.max(np.abs(pose_step)))
                fresh += 1
                if not linearise(v, theta, pose, corners, views, scratch):
                    return False, rank, start, np.inf
        cost = _assemble(kept, theta, views, s, b, diagonal)
        if (
            fresh == 0
            or largest < limits.step_tolerance
            or abs(before - cost) < limits.cost_tolerance
        ):
            return True, rank, start, cost
    return False, rank, start, cost


@jit
def corner_sigmas(kept, theta, corners, views, residual):
    """Residuals of the kept views; returns their standard deviation per axis (2,)."""
    n = 0
    sums, squares = np.zeros(2), np.zeros(2)
    step, pose = np.empty(6), np.empty(12)
    for v in kept:
        _pose_step(v, theta, views, step, pose)
        first, last = corners.first[v], corners.first[v + 1]
        view_residuals(theta, np.zeros(3), pose, corners.data, corners.sizes, first, last, residual)
        for chunk in range(first, last):
            for i in range(corners.sizes[chunk]):
                if corners.weights[chunk, i] > 0.0:
                    n += 1
                    for axis in range(2):
                        sums[axis] += residual[chunk, i, axis]
                        squares[axis] += residual[chunk, i, axis] ** 2
    mean = sums / n
    return np.sqrt(np.maximum(squares / n - mean * mean, 0.0))


@jit
def drop_corners(v, residual, sigma, factor, corners):
    """Zero the weights of view v's outlying corners; returns how many, and how many remain."""
    dropped = 0
    remaining = 0
    for chunk in range(corners.first[v], corners.first[v + 1]):
        for i in range(corners.sizes[chunk]):
            if corners.weights[chunk, i] > 0.0:
                if (
                    abs(residual[chunk, i, 0]) > factor * sigma[0]
                    or abs(residual[chunk, i, 1]) > factor * sigma[1]
                ):
                    corners.weights[chunk, i] = 0.0
                    dropped += 1
                else:
                    remaining += 1
    return dropped, remaining
