"""How the board is moved: five orientations, each at 4 x 5 positions over the picture.

The board's middle stays on the plane in focus. At the outermost positions a part
of the printed pattern (``OVERHANG``) is beyond the picture's edge when the board is
parallel to the sensor, so that the picture's rim, where distortion shows, is
covered. A hand adds a little to every pose: ``JITTER_DEG`` about each axis, and
``JITTER`` of the distance in depth and of the footprint sideways.

A wide lens sees a tilted board at the picture's rim almost edge-on. Nobody holds it so: it
is turned back towards the camera until the view is at most ``MAX_INCIDENCE_DEG`` oblique.
"""

from __future__ import annotations

import numpy as np

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.hardware import Board, Camera
from influx_wrap.model.intrinsics import Intrinsics, fold_radius, unproject
from influx_wrap.model.pose import TILTS_DEG, rotation_matrix

POSITION_ROWS, POSITION_COLS = 4, 5
OVERHANG = 0.07
JITTER_DEG = 2.0
JITTER = 0.02

# Target +y is up and +z towards the viewer, camera +y is down and +z away from it.
FRONTAL = np.diag([1.0, -1.0, -1.0])

MAX_INCIDENCE_DEG = 60.0

# Close to the fold of a barrel distortion a pixel is worth a huge step to the side: the
# board would be squeezed into a sliver.
FOLD_MARGIN = 0.75


def board_poses(
    board: Board, camera: Camera, truth: Intrinsics, depth_m: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Rotations (100, 3, 3) and translations (100, 3) in m from board to camera space.

    ``depth_m`` is from the centre of projection to the plane in focus.
    """
    points = board.grid.points
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    centres = _centres_m(np.ptp(points[:, :2], axis=0), camera, truth, depth_m)

    n_tilts, n_positions = len(TILTS_DEG), len(centres)
    rotations = np.repeat(rotation_matrix(np.radians(TILTS_DEG)) @ FRONTAL, n_positions, axis=0)
    centres = np.tile(centres, (n_tilts, 1))

    wobble = rotation_matrix(np.radians(JITTER_DEG) * rng.standard_normal((len(rotations), 3)))
    seen_m = depth_m * np.array(camera.image_size) / np.array([truth.fx, truth.fy])
    extent = np.array([*seen_m, depth_m])
    centres = centres + JITTER * extent * rng.standard_normal(centres.shape)
    rotations = _turned_back(wobble @ rotations, centres)
    return rotations, centres - rotations @ middle


def _turned_back(rotations: FloatArray, centres: FloatArray) -> FloatArray:
    """Rotations (n, 3, 3) of boards at centres (n, 3), none seen too obliquely."""
    normals = rotations[:, :, 2]
    towards_camera = -centres / np.linalg.norm(centres, axis=1, keepdims=True)
    axis = np.cross(normals, towards_camera)
    sine = np.linalg.norm(axis, axis=1)
    incidence = np.arctan2(sine, (normals * towards_camera).sum(axis=1))
    excess = np.maximum(0.0, incidence - np.radians(MAX_INCIDENCE_DEG))
    return rotation_matrix(axis * (excess / np.maximum(sine, 1e-12))[:, None]) @ rotations


def _centres_m(
    pattern_m: FloatArray, camera: Camera, truth: Intrinsics, depth_m: float
) -> FloatArray:
    """(20, 3) where the pattern's middle is held, row by row."""
    y, x = np.meshgrid(
        np.linspace(-1, 1, POSITION_ROWS), np.linspace(-1, 1, POSITION_COLS), indexing="ij"
    )
    position = np.stack([x, y], axis=-1).reshape(-1, 2)
    size = np.array(camera.image_size)
    pixels = (size - 1) / 2 + position * size / 2
    directions, _ = unproject(truth, _inside_fold(truth, pixels))
    centres = directions * depth_m - position * (0.5 - OVERHANG) * pattern_m
    return np.column_stack([centres, np.full(len(centres), depth_m)])


def _inside_fold(truth: Intrinsics, pixels: FloatArray) -> FloatArray:
    """Pixels (N, 2), those that see directions near the fold pulled towards the middle."""
    radius = FOLD_MARGIN * fold_radius(truth.k1, truth.k2)
    if np.isinf(radius):
        return pixels
    limit = radius * (1 + radius**2 * (truth.k1 + truth.k2 * radius**2))
    focal, centre = np.array([truth.fx, truth.fy]), np.array([truth.cx, truth.cy])
    distorted = (pixels - centre) / focal
    reach = np.linalg.norm(distorted, axis=1, keepdims=True)
    pulled: FloatArray = centre + focal * distorted * np.minimum(1, limit / reach)
    return pulled
