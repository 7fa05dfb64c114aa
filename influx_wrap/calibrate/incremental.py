"""Stage 4: views one by one, kept if they tell something new (Kalibr's procedure).

Starting from the intrinsics of stage 3, views are offered in a given order. Each
is added, all kept views and the intrinsics are optimised again, and the view stays
if the information about the intrinsics grew by more than 0.2 bits (or its numerical
rank rose). Once more than twenty views are kept, corners more than four sigma off
are removed, and a view that lost corners has to earn its place again.

The optimiser is Gauss-Newton on the reduced system of the eight intrinsics. Each
kept view is held as its linearisation: the Schur complement, valid around the
intrinsics and the pose it was formed at. As long as the intrinsics stay close to
that point the view's contribution to the normal equations is known without touching
its corners again, so offering a view costs one linearisation, that of the new view.
A view is linearised anew as soon as the intrinsics have moved so far that the
neglected second-order term could exceed ``linearisation_px`` somewhere in the
image; with 0 every view is linearised anew in every iteration. The final
optimisation always runs with the latter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

import numba as nb
import numpy as np
from numpy.typing import NDArray

from influx_wrap.calibrate.kernels import (
    SCRATCH,
    linearise_view,
    move_pose,
    reduce_view,
    refine_pose,
    view_residuals,
)
from influx_wrap.calibrate.problem import CHUNK, IntArray, Problem
from influx_wrap.model.intrinsics import FloatArray

_jit = nb.njit(nogil=True, cache=True, error_model="numpy")


class Verdict(IntEnum):
    """What became of a view in a rollout."""

    KEPT = 0
    LITTLE_INFORMATION = 1
    COST_ROSE = 2
    NO_CONVERGENCE = 3
    TOO_FEW_CORNERS = 4


@dataclass(frozen=True)
class IncrementalOptions:
    """Kalibr's settings of the incremental stage."""

    information_gain_bits: float = 0.2
    outlier_sigmas: float = 4.0
    min_views_outlier: int = 20
    remove_outliers: bool = True
    rank_tolerance: float = 8e-6
    max_iterations: int = 50
    step_tolerance: float = 1e-3
    cost_tolerance: float = 1e-3
    linearisation_px: float = 1e-6
    max_restarts: int = 3


@dataclass(frozen=True, eq=False)
class Rollout:
    """One pass over the views.

    theta          (8,) intrinsics; NaN if the stage diverged
    kept           (K,) views in the order they were accepted
    poses          (K, 12) of the kept views
    verdict        (V,) a ``Verdict`` for each view
    gain_bits      (V,) information gain when last offered, inf where the rank rose
    weights        (C, CHUNK) 0 where a corner was removed
    information    (8, 8) of the intrinsics for a corner sigma of 1 px
    """

    theta: FloatArray
    kept: IntArray
    poses: FloatArray
    verdict: NDArray[np.int64]
    gain_bits: FloatArray
    weights: FloatArray
    information: FloatArray
    restarts: int
    converged: bool


def run_rollout(
    problem: Problem,
    theta: FloatArray,
    poses: FloatArray,
    orders: IntArray,
    options: IncrementalOptions,
) -> Rollout:
    """Offer the views in the order orders[0]; orders[1:] serve the restarts.

    theta (8,) and poses (V, 12) are where stage 3 ended, orders is (1 + restarts, V).
    """
    for attempt, order in enumerate(orders):
        outcome = _rollout(
            theta, poses, problem.data, problem.weights, problem.count, problem.first, order,
            _reach(theta, problem.image_size),
            options.information_gain_bits, options.outlier_sigmas,
            options.min_views_outlier if options.remove_outliers else problem.n_views + 1,
            options.rank_tolerance, options.max_iterations, options.step_tolerance,
            options.cost_tolerance, options.linearisation_px,
        )  # fmt: skip
        converged, final, kept, kept_poses, verdict, gain, weights, information = outcome
        if converged:
            break
    return Rollout(
        theta=final if converged else np.full(8, np.nan),
        kept=kept,
        poses=kept_poses,
        verdict=verdict,
        gain_bits=gain,
        weights=weights,
        information=information,
        restarts=attempt,
        converged=bool(converged),
    )


def _reach(theta: FloatArray, image_size: tuple[int, int]) -> float:
    """Normalised radius of the farthest image corner from the centre."""
    return 0.5 * math.hypot(*image_size) / min(abs(theta[0]), abs(theta[1]))


@_jit
def _drift_px(theta, reference, reach):  # type: ignore[no-untyped-def]
    """Size in pixels of the second-order term when theta leaves reference.

    The relative change of the image's geometry, summed over the parameters, squared:
    products of two such changes are what a linearisation leaves out.
    """
    f = abs(reference[0])
    r2 = reach * reach
    relative = abs(theta[0] - reference[0]) / f + abs(theta[1] - reference[1]) / f
    relative += (abs(theta[2] - reference[2]) + abs(theta[3] - reference[3])) / f
    relative += abs(theta[4] - reference[4]) * r2 + abs(theta[5] - reference[5]) * r2 * r2
    relative += 3.0 * (abs(theta[6] - reference[6]) + abs(theta[7] - reference[7])) * reach
    return f * reach * relative * relative


@_jit
def _linearise(v, theta, poses, data, weights, count, first, views, scratch):  # type: ignore[no-untyped-def]
    """Form view v's reduced system at theta and poses[v]; False if it has none."""
    lin_theta, s, r, w, c, diagonal, cost = views
    h, g = np.empty((14, 14)), np.empty(14)
    cost[v] = linearise_view(
        theta, np.zeros(3), 0, poses[v], data, weights, count, first[v], first[v + 1],
        scratch, h, g,
    )  # fmt: skip
    lin_theta[v] = theta
    for i in range(8):
        diagonal[v, i] = h[i, i]
    return math.isfinite(cost[v]) and reduce_view(h, g, 8, np.zeros(14), s[v], r[v], w[v], c[v])


@_jit
def _pose_at(v, theta, poses, views, out):  # type: ignore[no-untyped-def]
    """Pose of view v at theta by back-substitution; returns the largest step component."""
    lin_theta, _, _, w, c, _, _ = views
    step = np.empty(6)
    largest = 0.0
    for i in range(6):
        total = c[v, i]
        for j in range(8):
            total -= w[v, i, j] * (theta[j] - lin_theta[v, j])
        step[i] = total
        largest = max(largest, abs(total))
    move_pose(poses[v], step, out)
    return largest


@_jit
def _assemble(kept, n_kept, theta, views, s, b, diagonal):  # type: ignore[no-untyped-def]
    """Sum the kept views' systems at theta; returns the model's cost there."""
    lin_theta, s_view, r_view, _, c, diagonal_view, cost_view = views
    s[:] = 0.0
    b[:] = 0.0
    diagonal[:] = 0.0
    cost = 0.0
    for k in range(n_kept):
        v = kept[k]
        cost += cost_view[v]
        for i in range(8):
            di = theta[i] - lin_theta[v, i]
            total = r_view[v, i]
            for j in range(8):
                s[i, j] += s_view[v, i, j]
                total -= s_view[v, i, j] * (theta[j] - lin_theta[v, j])
            b[i] += total
            diagonal[i] += diagonal_view[v, i]
            cost -= di * (total + r_view[v, i])
    return cost


@_jit
def _truncated_step(s, b, diagonal, tolerance, step):  # type: ignore[no-untyped-def]
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


@_jit
def _information_bits(s, rank):  # type: ignore[no-untyped-def]
    """Half the sum of log2 of the ``rank`` largest singular values."""
    values = np.linalg.eigvalsh(s)
    total = 0.0
    for k in range(8 - rank, 8):
        total += math.log2(max(values[k], 1e-300))
    return 0.5 * total


@_jit
def _optimise(kept, n_kept, theta, poses, data, weights, count, first, views, reach, scratch,
              rank_tolerance, max_iterations, step_tolerance, cost_tolerance, linearisation_px,
              s):  # type: ignore[no-untyped-def]  # fmt: skip
    """Gauss-Newton over the kept views, in place: theta, poses, views, s.

    Returns (converged, rank, cost). Views' poses are those of their linearisation
    points; ``_pose_at`` gives them at theta.
    """
    b, diagonal, step, moved = np.empty(8), np.empty(8), np.empty(8), np.empty(12)
    cost = np.inf
    rank = 0
    for _ in range(max_iterations):
        before = _assemble(kept, n_kept, theta, views, s, b, diagonal)
        rank = _truncated_step(s, b, diagonal, rank_tolerance, step)
        if not np.all(np.isfinite(step)):
            return False, rank, np.inf
        theta += step
        largest = np.max(np.abs(step))
        fresh = 0
        for k in range(n_kept):
            v = kept[k]
            if _drift_px(theta, views[0][v], reach) >= linearisation_px:
                largest = max(largest, _pose_at(v, theta, poses, views, moved))
                poses[v] = moved
                fresh += 1
                if not _linearise(v, theta, poses, data, weights, count, first, views, scratch):
                    return False, rank, np.inf
        cost = _assemble(kept, n_kept, theta, views, s, b, diagonal)
        if fresh == 0 or largest < step_tolerance or abs(before - cost) < cost_tolerance:
            return True, rank, cost
    return False, rank, cost


@_jit
def _copy_state(kept, n_kept, poses, views, to_poses, to_views):  # type: ignore[no-untyped-def]
    """Copy the kept views' poses and linearisations."""
    for k in range(n_kept):
        v = kept[k]
        to_poses[v] = poses[v]
        to_views[0][v] = views[0][v]
        to_views[1][v] = views[1][v]
        to_views[2][v] = views[2][v]
        to_views[3][v] = views[3][v]
        to_views[4][v] = views[4][v]
        to_views[5][v] = views[5][v]
        to_views[6][v] = views[6][v]


@_jit
def _new_views(n):  # type: ignore[no-untyped-def]
    """Room for n linearised views: theta, s, r, w, c, diagonal of A, cost."""
    return (
        np.zeros((n, 8)), np.zeros((n, 8, 8)), np.zeros((n, 8)), np.zeros((n, 6, 8)),
        np.zeros((n, 6)), np.zeros((n, 8)), np.zeros(n),
    )  # fmt: skip


@_jit
def _corner_sigmas(kept, n_kept, theta, poses, data, weights, count, first, views, out):  # type: ignore[no-untyped-def]
    """Residuals of the kept views into out; returns their standard deviation per axis."""
    n = 0
    sums, squares = np.zeros(2), np.zeros(2)
    pose = np.empty(12)
    for k in range(n_kept):
        v = kept[k]
        _pose_at(v, theta, poses, views, pose)
        view_residuals(theta, np.zeros(3), pose, data, count, first[v], first[v + 1], out)
        for chunk in range(first[v], first[v + 1]):
            for i in range(count[chunk]):
                if weights[chunk, i] > 0.0:
                    n += 1
                    for axis in range(2):
                        sums[axis] += out[chunk, i, axis]
                        squares[axis] += out[chunk, i, axis] ** 2
    mean = sums / n
    return np.sqrt(np.maximum(squares / n - mean * mean, 0.0))


@_jit
def _drop_corners(v, residual, sigma, factor, weights, count, first):  # type: ignore[no-untyped-def]
    """Zero the weights of view v's outlying corners; returns how many, and how many remain."""
    dropped = 0
    remaining = 0
    for chunk in range(first[v], first[v + 1]):
        for i in range(count[chunk]):
            if weights[chunk, i] > 0.0:
                if (
                    abs(residual[chunk, i, 0]) > factor * sigma[0]
                    or abs(residual[chunk, i, 1]) > factor * sigma[1]
                ):
                    weights[chunk, i] = 0.0
                    dropped += 1
                else:
                    remaining += 1
    return dropped, remaining


@_jit
def _rollout(start_theta, start_poses, data, start_weights, count, first, order, reach,
             gain_bits, outlier_sigmas, min_views_outlier, rank_tolerance, max_iterations,
             step_tolerance, cost_tolerance, linearisation_px):  # type: ignore[no-untyped-def]  # fmt: skip
    n_views = len(order)
    theta = start_theta.copy()
    poses = start_poses.copy()
    weights = start_weights.copy()
    views, saved_views = _new_views(n_views), _new_views(n_views)
    saved_poses = poses.copy()
    kept = np.empty(n_views, dtype=np.int64)
    n_kept = 0
    verdict = np.full(n_views, 1, dtype=np.int64)
    gains = np.full(n_views, np.nan)
    s, trial_s = np.zeros((8, 8)), np.empty((8, 8))
    scratch = np.empty(SCRATCH)
    residual = np.zeros((len(data), CHUNK, 2))
    rank = 0
    diverged = False

    # A work list of (view, queue of outlier checks) would hide the flow: the offers of
    # the shuffled order come first, each possibly followed by checks; `turn` n_views
    # stands for the final check of everything.
    checked_all = False
    for turn in range(n_views + 1):
        if turn < n_views:
            candidate = order[turn]
            accepted, gain, code, theta, rank, ok = _offer(
                candidate, kept, n_kept, theta, rank, s, trial_s, poses, saved_poses,
                start_poses, data, weights, count, first, views, saved_views, reach, scratch,
                gain_bits, rank_tolerance, max_iterations, step_tolerance, cost_tolerance,
                linearisation_px,
            )  # fmt: skip
            verdict[candidate] = code
            gains[candidate] = gain
            if not ok:
                diverged = True
                break
            if not accepted:
                continue
            n_kept += 1
            if n_kept <= min_views_outlier:
                continue
        elif n_kept <= min_views_outlier:
            break
        check = np.empty(0, dtype=np.int64)
        if turn == n_views or not checked_all:
            check = kept[:n_kept][::-1].copy()
            checked_all = True
        else:
            check = kept[n_kept - 1 : n_kept].copy()

        stale = True
        sigma = np.zeros(2)
        for v in check:
            if stale:
                sigma = _corner_sigmas(
                    kept, n_kept, theta, poses, data, weights, count, first, views, residual
                )
                stale = False
            dropped, remaining = _drop_corners(
                v, residual, sigma, outlier_sigmas, weights, count, first
            )
            if dropped == 0:
                continue
            stale = True
            k = 0
            for i in range(n_kept):
                if kept[i] != v:
                    kept[k] = kept[i]
                    k += 1
            n_kept = k
            ok, rank, _ = _optimise(
                kept, n_kept, theta, poses, data, weights, count, first, views, reach, scratch,
                rank_tolerance, max_iterations, step_tolerance, cost_tolerance,
                linearisation_px, s,
            )  # fmt: skip
            if not ok:
                diverged = True
                break
            if remaining < 4:
                verdict[v] = 4
                continue
            accepted, gain, code, theta, rank, ok = _offer(
                v, kept, n_kept, theta, rank, s, trial_s, poses, saved_poses, poses.copy(),
                data, weights, count, first, views, saved_views, reach, scratch, gain_bits,
                rank_tolerance, max_iterations, step_tolerance, cost_tolerance,
                linearisation_px,
            )  # fmt: skip
            verdict[v] = code
            gains[v] = gain
            if not ok:
                diverged = True
                break
            if accepted:
                n_kept += 1
        if diverged:
            break

    if not diverged and n_kept > 0:
        for _ in range(2):
            ok, rank, _ = _optimise(
                kept, n_kept, theta, poses, data, weights, count, first, views, reach, scratch,
                rank_tolerance, max_iterations, 1e-6, 0.0, 0.0, s,
            )  # fmt: skip
        diverged = not ok
    pose = np.empty(12)
    kept_poses = np.empty((n_kept, 12))
    for k in range(n_kept):
        _pose_at(kept[k], theta, poses, views, pose)
        kept_poses[k] = pose
    finished = not diverged and n_kept > 0
    return finished, theta, kept[:n_kept].copy(), kept_poses, verdict, gains, weights, s


@_jit
def _offer(candidate, kept, n_kept, theta, rank, s, trial_s, poses, saved_poses, start_poses,
           data, weights, count, first, views, saved_views, reach, scratch, gain_bits,
           rank_tolerance, max_iterations, step_tolerance, cost_tolerance,
           linearisation_px):  # type: ignore[no-untyped-def]  # fmt: skip
    """Add a view, optimise, and keep it or restore what was.

    Returns (accepted, gain, verdict, theta, rank, ok); ok is False when the
    optimisation ran out of iterations. Writes the candidate to kept[n_kept] and
    updates s, poses and views if it is accepted.
    """
    _copy_state(kept, n_kept, poses, views, saved_poses, saved_views)
    saved_theta = theta.copy()
    poses[candidate] = start_poses[candidate]
    refine_pose(
        theta, np.zeros(3), poses[candidate], data, weights, count, first[candidate],
        first[candidate + 1], scratch, 1e-6,
    )  # fmt: skip
    usable = _linearise(candidate, theta, poses, data, weights, count, first, views, scratch)
    kept[n_kept] = candidate
    accepted = False
    ok = True
    gain = np.nan
    code = 3
    new_rank = rank
    if usable:
        b, diagonal = np.empty(8), np.empty(8)
        before = _assemble(kept, n_kept + 1, theta, views, trial_s, b, diagonal)
        ok, new_rank, cost = _optimise(
            kept, n_kept + 1, theta, poses, data, weights, count, first, views, reach, scratch,
            rank_tolerance, max_iterations, step_tolerance, cost_tolerance, linearisation_px,
            trial_s,
        )  # fmt: skip
        if ok:
            if new_rank > rank:
                gain = np.inf
            else:
                gain = _information_bits(trial_s, new_rank)
                gain -= _information_bits(s, new_rank)
            if cost > before:
                code = 2
            elif gain > gain_bits:
                code = 0
                accepted = True
            else:
                code = 1
    if accepted:
        s[:] = trial_s
        return True, gain, code, theta, new_rank, ok
    _copy_state(kept, n_kept, saved_poses, saved_views, poses, views)
    return False, gain, code, saved_theta, rank, ok
