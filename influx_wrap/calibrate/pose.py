"""Stage 1: the pose of every view, by Perspective-n-Point on undistorted rays.

SQPnP finds the global optimum of an algebraic error for planar and 3D targets
alike; a few Gauss-Newton steps on the pixels follow, so that poses are already
least-squares poses for the intrinsics they were found with.
"""

from __future__ import annotations

import cv2
import numpy as np

from influx_wrap.calibrate import kernels
from influx_wrap.calibrate.problem import Problem
from influx_wrap.model.intrinsics import FloatArray, Intrinsics, unproject

REFINE_TOLERANCE = 1e-9
NO_BOW = np.zeros(3)


class PoseError(RuntimeError):
    """No pose could be found for a view."""


def estimate_poses(
    problem: Problem, theta: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Poses (V, 12) of all views for intrinsics ``theta`` (8,)."""
    weights = problem.weights if weights is None else weights
    blocks = problem.data.reshape(len(problem.data), -1, weights.shape[1])
    rays, reachable = unproject(
        Intrinsics.from_array(theta), np.stack([blocks[:, 3], blocks[:, 4]], axis=-1)
    )
    usable = reachable & (weights > 0)
    poses = np.empty((problem.n_views, 12))
    for view in range(problem.n_views):
        chunks = slice(problem.first[view], problem.first[view + 1])
        mask = usable[chunks]
        points = np.moveaxis(blocks[chunks, :3], 1, 2)[mask]
        poses[view] = _solve_pnp(points, rays[chunks][mask], view)
    kernels.refine_poses(
        theta, NO_BOW, poses, problem.data, weights, problem.count, problem.first, REFINE_TOLERANCE
    )
    return poses


def _solve_pnp(points: FloatArray, rays: FloatArray, view: int) -> FloatArray:
    """Pose (12,) that takes points (n, 3) onto normalised rays (n, 2)."""
    if len(points) < 4:
        raise PoseError(f"view {view} has fewer than 4 points inside the camera's field of view")
    # SQPnP works about the origin; centring keeps it accurate for far-away frames.
    centre = points.mean(axis=0)
    found, rotation_vector, translation = cv2.solvePnP(
        points - centre, rays, np.eye(3), None, flags=cv2.SOLVEPNP_SQPNP
    )
    if not found or not np.isfinite(translation).all():
        raise PoseError(f"no pose fits view {view}")
    rotation = cv2.Rodrigues(rotation_vector)[0]
    return np.concatenate([rotation.ravel(), translation[:, 0] - rotation @ centre])
