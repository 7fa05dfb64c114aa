"""Small worlds for the tests: a board or a flight seen by a camera that is known.

They are made with OpenCV's projection, not ours, and kept small, so that a plain
optimiser can solve them too.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from scipy.spatial.transform import Rotation

from influx_wrap.calibrate.problem import Problem, pack
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import AprilGrid, bow_basis

IMAGE_SIZE = (1280, 960)
CAMERA = Intrinsics(1105.0, 1098.0, 648.0, 471.0, -0.12, 0.06, 1.2e-3, -0.9e-3)
# A size and a gap that single precision holds exactly: OpenCV calibrates from that.
GRID = AprilGrid(tag_cols=8, tag_rows=6, tag_size_m=1 / 32, tag_spacing=0.25)


@dataclass(frozen=True, eq=False)
class Scene:
    """Observations and the poses (V, 12) behind them."""

    observations: Observations
    poses: FloatArray
    outliers: BoolArray

    @property
    def problem(self) -> Problem:
        return pack(self.observations)


def opencv_project(theta: FloatArray, pose: FloatArray, points: FloatArray) -> FloatArray:
    """Pixels (n, 2) of target points (n, 3), by OpenCV."""
    matrix = np.array([[theta[0], 0, theta[2]], [0, theta[1], theta[3]], [0, 0, 1.0]])
    rotation = cv2.Rodrigues(pose[:9].reshape(3, 3))[0]
    pixels, _ = cv2.projectPoints(points, rotation, pose[9:], matrix, theta[4:])
    return pixels[:, 0]


def board_scene(
    seed: int,
    n_views: int = 20,
    *,
    grid: AprilGrid = GRID,
    camera: Intrinsics = CAMERA,
    depth_m: float = 0.6,
    tilt_deg: float = 30.0,
    sigma_px: float = 0.1,
    n_outliers: int = 0,
    bow_m: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> Scene:
    """A board held at random tilts and places; ``n_outliers`` corners are 3 to 10 px off.

    Pixels are rounded to single precision, so that OpenCV sees the same numbers.
    """
    rng = np.random.default_rng(seed)
    flat = grid.points
    bent = flat + np.array([0, 0, 1]) * (bow_basis(flat) @ np.array(bow_m))[:, None]
    middle = (flat.min(axis=0) + flat.max(axis=0)) / 2
    span = np.array([*IMAGE_SIZE]) / camera.fx * depth_m

    poses, uv = [], []
    for _ in range(n_views):
        tilt = np.radians(tilt_deg) * rng.standard_normal(3) * [1, 1, 0.3]
        rotation = Rotation.from_rotvec(tilt).as_matrix() @ np.diag([1.0, -1.0, -1.0])
        centre = np.append(span * rng.uniform(-0.3, 0.3, 2), depth_m * rng.uniform(0.85, 1.15))
        poses.append(np.concatenate([rotation.ravel(), centre - rotation @ middle]))
        uv.append(opencv_project(camera.array, poses[-1], bent))
    uv = np.array(uv)
    inside = ((uv > 4) & (uv < np.array(IMAGE_SIZE) - 5)).all(axis=2)
    uv += sigma_px * rng.standard_normal(uv.shape)

    outliers = np.zeros(inside.shape, dtype=bool)
    candidates = np.argwhere(inside)
    for view, point in rng.choice(candidates, n_outliers, replace=False):
        angle, length = rng.uniform(0, 2 * np.pi), rng.uniform(3, 10)
        uv[view, point] += length * np.array([np.cos(angle), np.sin(angle)])
        outliers[view, point] = True
    uv = np.clip(uv, 0, np.array(IMAGE_SIZE) - 1).astype(np.float32).astype(float)
    uv[~inside] = 0.0
    return Scene(Observations(grid, uv, inside, IMAGE_SIZE), np.array(poses), outliers)
