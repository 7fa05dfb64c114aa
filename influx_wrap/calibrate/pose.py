"""Stage 1: the pose of every view, by Perspective-n-Point on undistorted rays.

SQPnP finds the global optimum of an algebraic error for planar and 3D targets
alike, from a few dozen points spread over the view; Gauss-Newton on the pixels of all
points follows, so that poses are least-squares poses for the intrinsics they were
found with.
"""

from __future__ import annotations

import cv2
import numpy as np

from influx_wrap.calibrate import kernels
from influx_wrap.calibrate.problem import Problem
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.intrinsics import Intrinsics, unproject

MAX_POINTS = 60
REFINE_TOLERANCE = 1e-7
MAX_REFINEMENTS = 20
NO_BOW = np.zeros(3)


class PoseError(RuntimeError):
    """No pose could be found for a view."""


def estimate_poses(problem: Problem, theta: FloatArray) -> FloatArray:
    """Poses (V, 12) of all views for intrinsics ``theta`` (8,)."""
    weights = problem.weights
    blocks = problem.data.reshape(len(problem.data), -1, weights.shape[1])
    chunk, slot, last = _spread(problem, weights)
    rays, reachable = unproject(Intrinsics.from_array(theta), blocks[chunk, 3:5, slot])
    points = blocks[chunk, :3, slot]
    poses = np.empty((problem.n_views, 12))
    for view, (start, end) in enumerate(zip([0, *last[:-1]], last, strict=True)):
        mask = reachable[start:end]
        name = problem.names[view]
        poses[view] = _solve_pnp(points[start:end][mask], rays[start:end][mask], name)
    return refine_poses(problem, theta, poses, weights)


def refine_poses(
    problem: Problem,
    theta: FloatArray,
    poses: FloatArray,
    weights: FloatArray,
    bow: FloatArray = NO_BOW,
) -> FloatArray:
    """Gauss-Newton on each pose (V, 12) with the intrinsics fixed; a step that fails is halved."""
    arrays = (problem.data, weights, problem.count, problem.first)
    n = len(poses)
    (h, trial_h), (g, trial_g) = np.empty((2, n, 14, 14)), np.empty((2, n, 14))
    s, r, w, c = np.empty((8, 8)), np.empty(8), np.empty((n, 6, 8)), np.empty((n, 6))
    poses, moved = poses.copy(), np.empty_like(poses)
    costs = kernels.linearise_views(theta, bow, 0, poses, *arrays, h, g)
    share = np.ones(n)
    for _ in range(MAX_REFINEMENTS):
        if not kernels.reduce_views(h, g, 8, np.zeros_like(g), s, r, w, c):
            break
        kernels.step_poses(poses, w, share[:, None] * c, np.zeros(8), moved)
        trial = kernels.linearise_views(theta, bow, 0, moved, *arrays, trial_h, trial_g)
        better = trial <= costs
        poses[better], costs[better] = moved[better], trial[better]
        h[better], g[better] = trial_h[better], trial_g[better]
        largest = np.abs(c).max(axis=1) * share
        share = np.where(better, 1.0, share / 2)
        if np.all(largest < REFINE_TOLERANCE):
            break
    return poses


def _spread(problem: Problem, weights: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
    """Chunk and slot (n,) of at most ``MAX_POINTS`` active points, evenly over each view.

    Also where each view's points end among them, (V,).
    """
    chunk, slot = np.nonzero(weights > 0)
    active = np.bincount(problem.view_of_chunk[chunk], minlength=problem.n_views)
    begin = np.cumsum(active) - active
    wanted = np.minimum(active, MAX_POINTS)
    last = np.cumsum(wanted)
    step = (active - 1) / np.maximum(wanted - 1, 1)
    rank = np.arange(last[-1]) - np.repeat(last - wanted, wanted)
    picked = np.repeat(begin, wanted) + np.rint(rank * np.repeat(step, wanted)).astype(np.int64)
    return chunk[picked], slot[picked], last


def _solve_pnp(points: FloatArray, rays: FloatArray, name: str) -> FloatArray:
    """Pose (12,) that takes points (n, 3) onto normalised rays (n, 2)."""
    if len(points) < 4:
        raise PoseError(f"{name} has fewer than 4 points inside the camera's field of view")
    # SQPnP works about the origin; centring keeps it accurate for far-away frames.
    centre = points.mean(axis=0)
    try:
        found, rotation_vector, translation = cv2.solvePnP(
            points - centre, rays, np.eye(3), None, flags=cv2.SOLVEPNP_SQPNP
        )
    except cv2.error:
        # Rays within a millionth of each other, as an absurd focal length gives.
        found, rotation_vector, translation = False, np.zeros(3), np.zeros((3, 1))
    if not found or not np.isfinite(translation).all():
        raise PoseError(f"no pose fits {name}")
    rotation = cv2.Rodrigues(rotation_vector)[0]
    return np.concatenate([rotation.ravel(), translation[:, 0] - rotation @ centre])
