"""Clips to export and an independent camera to read them back with."""

from __future__ import annotations

import cv2
import numpy as np

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.clip import Clip
from influx_wrap.model.intrinsics import Intrinsics, project, unproject

IMAGE_SIZE = (3424, 2202)
SMALL_SIZE = (86, 55)
TOLERANCE_PX = 1e-6


def make_clip(image_size: tuple[int, int] = IMAGE_SIZE, missing: bool = True) -> Clip:
    """Six frames from wide to long, not numbered in a row; two at one setting, one at infinity,
    one without an answer unless ``missing`` is False."""
    scale = image_size[0] / IMAGE_SIZE[0]
    intrinsics = np.array(
        [
            [2105.3, 2103.1, 1709.2, 1111.7, -0.113, 0.041, 0.0007, -0.0011],
            [3605.3, 3609.1, 1719.2, 1091.7, -0.043, 0.021, -0.0012, 0.0008],
            [3605.3, 3609.1, 1719.2, 1091.7, -0.043, 0.021, -0.0012, 0.0008],
            [np.nan] * 8,
            [9005.7, 9001.3, 1755.4, 1130.2, 0.09, -0.31, 0.0021, 0.0017],
            [14905.1, 14911.9, 1650.0, 1080.9, 0.21, -1.31, -0.0031, 0.0027],
        ]
    )
    intrinsics[:, :4] *= scale
    clip = Clip(
        "A001 C001",
        image_size,
        (8.25 / scale, 8.25 / scale),
        np.array([4, 5, 6, 7, 9, 12]),
        np.array([17.3, 29.8, 29.8, 200.0, 74.0, 122.5]),
        np.array([0.85, 1.7, 1.7, 2.0, 12.5, np.inf]),
        intrinsics,
    )
    return clip if missing else clip.rows(clip.answered)


def points_in_view(camera: Intrinsics, image_size: tuple[int, int], n: int = 1000) -> FloatArray:
    """(n, 3) points in camera space seen at random pixels."""
    rng = np.random.default_rng(5)
    uv = rng.uniform(-0.5, np.array(image_size) - 0.5, (2 * n, 2))
    ab, valid = unproject(camera, uv)
    ab = ab[valid][:n]
    assert len(ab) == n
    depth = rng.uniform(0.5, 30.0, (n, 1))
    return np.column_stack([ab, np.ones(n)]) * depth


def opencv_pixels(
    points: FloatArray, values: FloatArray | list[float], origin_px: float = 0.0
) -> FloatArray:
    """Pixels (n, 2), centres at integers, of OpenCV with eight intrinsics whose origin lies
    ``origin_px`` before the first pixel's centre."""
    fx, fy, cx, cy, k1, k2, p1, p2 = values
    matrix = np.array([[fx, 0, cx - origin_px], [0, fy, cy - origin_px], [0, 0, 1]])
    zero = np.zeros(3)
    found, _ = cv2.projectPoints(points, zero, zero, matrix, np.array([k1, k2, p1, p2]))
    return found[:, 0]


def expected(clip: Clip, frame: int) -> tuple[FloatArray, FloatArray]:
    """Points (1000, 3) seen in a frame, and our pixels (1000, 2)."""
    camera = clip.camera(clip.frames.tolist().index(frame))
    points = points_in_view(camera, clip.image_size)
    uv, valid = project(camera, points)
    assert valid.all()
    return points, uv


def worst(a: FloatArray, b: FloatArray) -> float:
    """Largest distance of pixels (n, 2)."""
    return float(np.linalg.norm(a - b, axis=1).max())
