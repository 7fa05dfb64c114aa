"""Plain-numpy twins of the kernels: dense, slow and obvious.

They share nothing with the kernels but the model's projection, which has its own tests
against OpenCV and finite differences.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from influx_wrap.calibrate.problem import Problem
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.pose import skew
from influx_wrap.model.target import bow_basis
from tests.model.twins import project_with_jacobians


def moved(pose: FloatArray, step: FloatArray) -> FloatArray:
    """Pose (12,) turned by the rotation vector step[:3] and shifted by step[3:]."""
    rotation = Rotation.from_rotvec(step[:3]).as_matrix() @ pose[:9].reshape(3, 3)
    return np.concatenate([rotation.ravel(), pose[9:] + step[3:]])


def shaped(points: FloatArray, bow: FloatArray) -> FloatArray:
    """Board points (n, 3) bent by the bow coefficients (3,)."""
    return points + np.array([0, 0, 1]) * (bow_basis(points) @ bow)[:, None]


def view_system(
    theta: FloatArray, pose: FloatArray, points: FloatArray, uv: FloatArray, bow: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Residuals (2n,) of one view and the Jacobian of its projection (2n, 8 + bow + 6)."""
    bent = points if bow is None else shaped(points, bow)
    rotation = pose[:9].reshape(3, 3)
    rotated = bent @ rotation.T
    projected, _, d_theta, d_camera = project_with_jacobians(
        Intrinsics.from_array(theta), rotated + pose[9:]
    )
    columns = [d_theta]
    if bow is not None:
        columns.append((d_camera @ rotation[:, 2])[:, :, None] * bow_basis(points)[:, None, :])
    columns += [-d_camera @ skew(rotated), d_camera]
    jacobian = np.concatenate(columns, axis=2)
    return (uv - projected).ravel(), jacobian.reshape(-1, jacobian.shape[2])


def schur(h: FloatArray, g: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """The first n unknowns' normal equations with all others eliminated."""
    inverse = np.linalg.inv(h[n:, n:])
    coupling = h[:n, n:] @ inverse
    return h[:n, :n] - coupling @ h[n:, :n], g[:n] - coupling @ g[n:]


def scatter(problem: Problem, per_slot: np.ndarray) -> np.ndarray:
    """Values (C, CHUNK, ...) of a problem's slots to (V, T, ...), zero where nothing was seen."""
    shape = (problem.n_views, problem.n_target_points, *per_slot.shape[2:])
    result = np.zeros(shape, dtype=per_slot.dtype)
    seen = problem.point >= 0
    views = np.broadcast_to(problem.view_of_chunk[:, None], problem.point.shape)
    result[views[seen], problem.point[seen]] = per_slot[seen]
    return result
