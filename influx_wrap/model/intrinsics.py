"""Brown-Conrady intrinsics: the eight numbers a calibration is after.

A point (X, Y, Z) in camera space becomes a = X/Z, b = Y/Z, r^2 = a^2 + b^2 and

    u = fx * (a (1 + k1 r^2 + k2 r^4) + 2 p1 a b + p2 (r^2 + 2 a^2)) + cx
    v = fy * (b (1 + k1 r^2 + k2 r^4) + p1 (r^2 + 2 b^2) + 2 p2 a b) + cy

(OpenCV's first four distortion coefficients, Kalibr's ``pinhole-radtan``).
Pixel (0, 0) is the centre of the top-left pixel.

With barrel distortion the polynomial turns back at some radius: beyond it two
directions share a pixel and the formula is no camera any more. Every function
here returns a ``valid`` mask next to its numbers and says ``False`` there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray as BoolArray
from influx_wrap.model.arrays import FloatArray as FloatArray


@dataclass(frozen=True, slots=True)
class Intrinsics:
    """Focal lengths and principal point in pixels, distortion without unit."""

    fx: float
    fy: float
    cx: float
    cy: float
    k1: float = 0.0
    k2: float = 0.0
    p1: float = 0.0
    p2: float = 0.0

    @classmethod
    def from_array(cls, values: ArrayLike) -> Intrinsics:
        """From eight numbers in the order of ``NAMES``."""
        return cls(*(float(v) for v in np.asarray(values, dtype=float)))

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, float]) -> Intrinsics:
        """From a mapping with the keys of ``NAMES``."""
        missing = [name for name in NAMES if name not in mapping]
        if missing:
            raise InputError(f"intrinsics lack {', '.join(missing)}; all of {NAMES} are needed.")
        return cls(*(float(mapping[name]) for name in NAMES))

    @property
    def array(self) -> FloatArray:
        """(8,) in the order of ``NAMES``."""
        return np.array(astuple(self), dtype=float)

    def as_dict(self) -> dict[str, float]:
        """Name to value, in the order of ``NAMES``."""
        return dict(zip(NAMES, astuple(self), strict=True))


NAMES: tuple[str, ...] = tuple(f.name for f in fields(Intrinsics))
"""The eight parameters, in the order every array of intrinsics uses."""


def image_centre(image_size: tuple[int, int]) -> tuple[float, float]:
    """(cx, cy) of the middle of a (width, height) image, pixel centres at integers."""
    width, height = image_size
    return (width - 1) / 2, (height - 1) / 2


def fold_radius(k1: float, k2: float) -> float:
    """Smallest normalised radius where r (1 + k1 r^2 + k2 r^4) stops growing, or inf."""
    return float(fold_radii(np.array([[0, 0, 0, 0, k1, k2, 0, 0]], dtype=float))[0])


def fold_radii(theta: FloatArray) -> FloatArray:
    """(n,) the ``fold_radius`` of many cameras (n, 8)."""
    k1, k2 = theta[:, 4], theta[:, 5]
    with np.errstate(all="ignore"):
        root = np.sqrt(9 * k1 * k1 - 20 * k2)
        # The smaller positive root of 5 k2 s^2 + 3 k1 s + 1 is where the slope changes first.
        near, far = 2 / (-3 * k1 + root), 2 / (-3 * k1 - root)
        candidates = np.stack([near, far])
        # Rounding may leave a root at a place that no picture has.
        candidates[~((candidates > 0) & (candidates < 1e12))] = np.inf
        result: FloatArray = np.sqrt(candidates.min(axis=0))
    return result


def project(intrinsics: Intrinsics, points: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Project points (..., 3) in camera space to pixels.

    Returns ``uv`` (..., 2) and ``valid`` (...): False behind the camera and from
    the fold of the distortion outwards, where ``uv`` is NaN.
    """
    points, shape = _rows(points, 3)
    uv, valid = _project(intrinsics, points)
    return uv.reshape(*shape, 2), valid.reshape(shape)


def project_with_jacobians(
    intrinsics: Intrinsics, points: ArrayLike
) -> tuple[FloatArray, BoolArray, FloatArray, FloatArray]:
    """Project points (..., 3) and differentiate.

    Returns ``uv`` (..., 2), ``valid`` (...), d uv / d intrinsics (..., 2, 8) and
    d uv / d point (..., 2, 3). Invalid entries are NaN.
    """
    points, shape = _rows(points, 3)
    uv, valid = _project(intrinsics, points)
    d_theta, d_point = np.empty((len(points), 2, 8)), np.empty((len(points), 2, 3))
    _kernels().differentiate(intrinsics.array, points, valid, d_theta, d_point)
    return (
        uv.reshape(*shape, 2),
        valid.reshape(shape),
        d_theta.reshape(*shape, 2, 8),
        d_point.reshape(*shape, 2, 3),
    )


def unproject(intrinsics: Intrinsics, uv: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Undistort pixels (..., 2) to normalised coordinates (a, b) (..., 2).

    The inverse of ``project`` up to depth. ``valid`` (...) is False for pixels
    that no direction inside the fold reaches; their coordinates are NaN.
    """
    pixels, shape = _rows(uv, 2)
    ab = np.empty((len(pixels), 2))
    fold = fold_radius(intrinsics.k1, intrinsics.k2)
    _kernels().unproject_pixels(intrinsics.array, fold, pixels, ab)
    return ab.reshape(*shape, 2), np.isfinite(ab[:, 0]).reshape(shape)


def field_of_view_deg(
    intrinsics: Intrinsics, image_size: tuple[int, int]
) -> tuple[float, float, float]:
    """Horizontal, vertical and diagonal field of view, with the distortion.

    Angles between the directions of the middles of the left and right edge of the picture, of the
    upper and lower edge, and of the opposite corners that are further apart; NaN where the
    distortion folds before the edge.
    """
    left, right, top, bottom = -0.5, image_size[0] - 0.5, -0.5, image_size[1] - 0.5
    x, y = image_centre(image_size)
    edges = [(left, y), (right, y), (x, top), (x, bottom)]
    corners = [(left, top), (right, bottom), (left, bottom), (right, top)]
    ab, _ = unproject(intrinsics, edges + corners)
    rays = np.concatenate([ab, np.ones((8, 1))], axis=1)
    across = np.linalg.norm(np.cross(rays[::2], rays[1::2]), axis=1)
    along = (rays[::2] * rays[1::2]).sum(axis=1)
    horizontal, vertical, *diagonals = np.degrees(np.arctan2(across, along)).tolist()
    return horizontal, vertical, float(np.max(diagonals))


def pixel_rays(
    intrinsics: Intrinsics, image_size: tuple[int, int], first_px: tuple[float, float] = (0, 0)
) -> tuple[FloatArray, FloatArray]:
    """a and b (height, width) of a grid of pixels, ``first_px`` the (u, v) of the first; NaN
    where there is no ray. Much faster than ``unproject``: neighbours look alike."""
    a, b = np.empty((2, image_size[1], image_size[0]))
    fold = fold_radius(intrinsics.k1, intrinsics.k2)
    _kernels().undistort_grid(intrinsics.array, fold, float(first_px[0]), float(first_px[1]), a, b)
    return a, b


def _kernels() -> ModuleType:
    """Loaded when the first point is projected: many commands never project any."""
    from influx_wrap.model import projection_kernels

    return projection_kernels


def _project(intrinsics: Intrinsics, points: FloatArray) -> tuple[FloatArray, BoolArray]:
    uv, valid = np.empty((len(points), 2)), np.empty(len(points), dtype=bool)
    fold = fold_radius(intrinsics.k1, intrinsics.k2)
    _kernels().project_points(intrinsics.array, fold, points, uv, valid)
    return uv, valid


def _rows(values: ArrayLike, width: int) -> tuple[FloatArray, tuple[int, ...]]:
    """The values as contiguous rows (n, width), and the shape of all axes before."""
    array = np.asarray(values, dtype=float)
    return np.ascontiguousarray(array.reshape(-1, width)), array.shape[:-1]
