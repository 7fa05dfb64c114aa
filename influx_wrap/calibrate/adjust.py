"""Bundle adjustment of all views at once: Levenberg-Marquardt on the reduced system.

The damping follows Nielsen's rule: after a good step it shrinks by how well the step
was predicted, after a bad one it grows ever faster. ``KALIBR_STOP`` damps and ends as
Kalibr's initialisation does, which matters: that run stops long before weakly
determined directions have converged, so where it stops is part of the procedure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from influx_wrap.calibrate import kernels
from influx_wrap.calibrate.problem import Problem
from influx_wrap.model.arrays import FloatArray


@dataclass(frozen=True)
class Stop:
    """How an adjustment is damped and when it ends.

    scaled_damping     damp each parameter by lambda times its own curvature (Marquardt);
                       else all alike by lambda^2, as Kalibr does
    least_shrink       the most a good step may shrink the damping, as a factor
    step_tolerance     end when no parameter moves by more
    cost_tolerance     end when the cost (px^2) changes by less
    decrement          end when the cost the next step promises to save is less than
                       this share of the residual variance; independent of units
    """

    lambda0: float
    scaled_damping: bool
    least_shrink: float
    max_iterations: int
    step_tolerance: float = 0.0
    cost_tolerance: float = 0.0
    decrement: float = 0.0


KALIBR_STOP = Stop(
    lambda0=10.0,
    scaled_damping=False,
    least_shrink=1 / 3,
    max_iterations=200,
    step_tolerance=1e-3,
    cost_tolerance=1.0,
)
TIGHT_STOP = Stop(
    lambda0=1e-5, scaled_damping=True, least_shrink=1e-3, max_iterations=100, decrement=1e-9
)


@dataclass(frozen=True, eq=False)
class Prior:
    """A soft wish for the shared parameters: mean (n,) and information (n,) = 1 / sigma^2."""

    mean: FloatArray
    information: FloatArray


@dataclass(frozen=True, eq=False)
class Adjustment:
    """Where an adjustment ended.

    theta        (8,) intrinsics
    bow          (3,) bow coefficients in metres, zero unless estimated
    poses        (V, 12)
    cost         sum of squared weighted residuals, px^2
    information  (n, n) of the shared parameters with the poses eliminated, for a
                 corner sigma of 1 px; n = 8, or 11 with the bow
    """

    theta: FloatArray
    bow: FloatArray
    poses: FloatArray
    cost: float
    information: FloatArray
    converged: bool


def adjust(
    problem: Problem,
    theta: FloatArray,
    poses: FloatArray,
    *,
    stop: Stop,
    weights: FloatArray | None = None,
    bow: FloatArray | None = None,
    prior: Prior | None = None,
) -> Adjustment:
    """Minimise the weighted reprojection error over intrinsics, poses and (if given) bow."""
    weights = problem.weights if weights is None else weights
    n_bow = 0 if bow is None else 3
    n_shared, n_views = 8 + n_bow, problem.n_views
    size = n_shared + 6
    shared = np.concatenate([theta, np.zeros(3) if bow is None else bow])
    poses = poses.copy()
    arrays = (problem.data, weights, problem.count, problem.first)
    n_residuals = 2 * float((weights > 0).sum())
    dof = max(n_residuals - n_shared - 6 * n_views, 1.0)

    h, trial_h = np.empty((2, n_views, size, size))
    g, trial_g = np.empty((2, n_views, size))
    s, r = np.empty((n_shared, n_shared)), np.empty(n_shared)
    w, c = np.empty((n_views, 6, n_shared)), np.empty((n_views, 6))
    moved = np.empty_like(poses)

    def prior_cost(values: FloatArray) -> float:
        if prior is None:
            return 0.0
        return float(prior.information @ (values[:n_shared] - prior.mean) ** 2)

    def prior_pull(values: FloatArray) -> FloatArray:
        if prior is None:
            return np.zeros(n_shared)
        return prior.information * (prior.mean - values[:n_shared])

    prior_information = np.zeros(n_shared) if prior is None else prior.information

    def linearise(values: FloatArray, at: FloatArray, h: FloatArray, g: FloatArray) -> float:
        costs = kernels.linearise_views(values[:8], values[8:], n_bow, at, *arrays, h, g)
        return float(costs.sum()) + prior_cost(values)

    cost = linearise(shared, poses, h, g)
    damping_factor, growth = stop.lambda0, 2.0
    converged = False
    iterations = 0
    while iterations < stop.max_iterations and not converged:
        iterations += 1
        diagonal = np.einsum("vii->vi", h) if stop.scaled_damping else np.ones_like(g)
        shared_diagonal = diagonal[:, :n_shared].sum(axis=0) if stop.scaled_damping else 1.0
        damping = damping_factor if stop.scaled_damping else damping_factor**2
        if not kernels.reduce_views(h, g, n_shared, damping * diagonal, s, r, w, c):
            damping_factor, growth = damping_factor * growth, growth * 2
            continue
        shared_damping = damping * shared_diagonal + prior_information
        damped = s + np.diag(np.broadcast_to(shared_damping, n_shared))
        step = _solve_scaled(damped, r + prior_pull(shared))
        largest = kernels.step_poses(poses, w, c, step, moved)
        largest = max(largest, float(np.abs(step).max()))
        trial = shared.copy()
        trial[:n_shared] += step
        trial_cost = linearise(trial, moved, trial_h, trial_g)

        pose_step = c - w @ step
        promised = step @ (g[:, :n_shared].sum(axis=0) + prior_pull(shared)) + np.sum(
            pose_step * g[:, n_shared:]
        )
        promised += damping_factor * (
            np.sum(shared_diagonal * step**2) + np.sum(diagonal[:, n_shared:] * pose_step**2)
        )
        decrease = cost - trial_cost
        small = promised < stop.decrement * cost / dof
        if not decrease >= 0 and not (small and trial_cost <= cost * (1 + 1e-12)):
            # Nothing smaller to gain: the step promises less than rounding can show.
            if small or largest < 1e-14:
                converged = True
                break
            damping_factor, growth = damping_factor * growth, growth * 2
            if damping_factor > 1e30:
                break
            continue
        shared, cost = trial, trial_cost
        poses, moved = moved, poses
        h, g, trial_h, trial_g = trial_h, trial_g, h, g
        gain = decrease / promised if promised > 0 else 1.0
        damping_factor *= max(stop.least_shrink, 1 - (2 * gain - 1) ** 3)
        growth = 2.0
        converged = small or largest < stop.step_tolerance or abs(decrease) < stop.cost_tolerance
    kernels.reduce_views(h, g, n_shared, np.zeros_like(g), s, r, w, c)
    return Adjustment(
        theta=shared[:8],
        bow=shared[8:],
        poses=poses,
        cost=cost,
        information=s + np.diag(prior_information),
        converged=converged,
    )


def _solve_scaled(matrix: FloatArray, rhs: FloatArray) -> FloatArray:
    """Solve a symmetric positive system whose unknowns have very different units."""
    scale = 1 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    scaled = matrix * scale[:, None] * scale[None, :]
    try:
        solution = np.linalg.solve(scaled, scale * rhs)
    except np.linalg.LinAlgError:
        solution = np.linalg.lstsq(scaled, scale * rhs, rcond=1e-14)[0]
    result: FloatArray = scale * solution
    return result
