"""Calibration targets: 3D points in a fixed order that observations refer to.

Boards lie in the plane z = 0 with x to the right and y up as the board is read;
a point cloud (the drone's hover points) is any set of 3D points.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray


def _plane_grid(y: FloatArray, x: FloatArray) -> FloatArray:
    """Points (len(y) * len(x), 3) row by row, z = 0."""
    yy, xx = np.meshgrid(y, x, indexing="ij")
    return np.stack([xx, yy, np.zeros_like(xx)], axis=-1).reshape(-1, 3)


@dataclass(frozen=True)
class AprilGrid:
    """Kalibr's AprilGrid: tags with a gap of ``tag_spacing`` tag sizes between them.

    Tag 0 is at the bottom left, ids run row by row. Points are the tags' corners,
    numbered row by row over the (2 tag_rows) x (2 tag_cols) grid of corners from
    the bottom-left corner of tag 0.
    """

    tag_cols: int
    tag_rows: int
    tag_size_m: float
    tag_spacing: float

    def __post_init__(self) -> None:
        if self.tag_cols < 1 or self.tag_rows < 1:
            raise InputError("an AprilGrid needs at least one row and one column of tags.")
        if not self.tag_size_m > 0 or not self.tag_spacing >= 0:
            raise InputError("an AprilGrid needs a positive tagSize and a tagSpacing >= 0.")

    @property
    def grid_shape(self) -> tuple[int, int]:
        """(rows, columns) of points."""
        return 2 * self.tag_rows, 2 * self.tag_cols

    @cached_property
    def points(self) -> FloatArray:
        """(T, 3) in metres."""
        pitch = self.tag_size_m * (1 + self.tag_spacing)
        rows, cols = (np.arange(n) for n in self.grid_shape)
        y = rows // 2 * pitch + rows % 2 * self.tag_size_m
        x = cols // 2 * pitch + cols % 2 * self.tag_size_m
        return _plane_grid(y, x)

    @cached_property
    def tag_of_point(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """(T,) id of the tag each point belongs to."""
        rows, cols = (np.arange(n) // 2 for n in self.grid_shape)
        return (rows[:, None] * self.tag_cols + cols[None, :]).ravel()


@dataclass(frozen=True)
class Checkerboard:
    """Inner corners of a checkerboard, row by row from the bottom left."""

    cols: int
    rows: int
    col_spacing_m: float
    row_spacing_m: float

    def __post_init__(self) -> None:
        if self.cols < 2 or self.rows < 2:
            raise InputError("a checkerboard needs at least 2 x 2 inner corners.")
        if not self.col_spacing_m > 0 or not self.row_spacing_m > 0:
            raise InputError("a checkerboard needs positive spacings.")

    @property
    def grid_shape(self) -> tuple[int, int]:
        """(rows, columns) of points."""
        return self.rows, self.cols

    @cached_property
    def points(self) -> FloatArray:
        """(T, 3) in metres."""
        y = self.row_spacing_m * np.arange(self.rows, dtype=float)
        x = self.col_spacing_m * np.arange(self.cols, dtype=float)
        return _plane_grid(y, x)


@dataclass(frozen=True, eq=False)
class PointCloud:
    """Any 3D points (T, 3), in units of ``unit_m`` metres.

    An RTK fix is good to millimetres, not exact: ``point_sigma`` is the standard deviation
    of each coordinate, or ``point_covariance`` (T, 3, 3) the covariance of each point, in the
    same units; both None if it is not known.
    """

    points: FloatArray
    point_sigma: float | None = None
    unit_m: float = 1.0
    point_covariance: FloatArray | None = None

    grid_shape = None

    def __post_init__(self) -> None:
        points = np.ascontiguousarray(self.points, dtype=float)
        if points.ndim != 2 or points.shape[1:] != (3,) or len(points) < 4:
            raise InputError(f"a point target needs at least 4 points X, Y, Z; got {points.shape}.")
        bad = ~np.isfinite(points).all(axis=1)
        if bad.any():
            raise InputError(f"point {int(np.argmax(bad))} of the target is not finite.")
        if self.point_sigma is not None and not self.point_sigma >= 0:
            raise InputError(f"point_sigma must be >= 0, got {self.point_sigma:g}.")
        if not self.unit_m > 0:
            raise InputError(f"unit_m must be positive, got {self.unit_m:g}.")
        object.__setattr__(self, "points", points)
        if self.point_covariance is not None:
            self._check_covariance(np.asarray(self.point_covariance, dtype=float))

    def _check_covariance(self, covariance: FloatArray) -> None:
        if self.point_sigma is not None:
            raise InputError("a point target has a point_sigma or covariances, not both.")
        if covariance.shape != (len(self.points), 3, 3) or not np.isfinite(covariance).all():
            raise InputError(
                f"{len(self.points)} points need as many finite 3 x 3 covariances, got an array "
                f"{covariance.shape}."
            )
        smallest = np.linalg.eigvalsh(covariance)[:, 0]
        symmetric = np.isclose(covariance, np.swapaxes(covariance, 1, 2), rtol=1e-6, atol=0.0)
        bad = (smallest <= 0) | ~symmetric.all(axis=(1, 2))
        if bad.any():
            raise InputError(f"the covariance of point {int(np.argmax(bad))} is none.")

    @property
    def covariance(self) -> FloatArray | None:
        """(T, 3, 3) in the target's units; None if points are exact or nothing is known."""
        if self.point_covariance is not None:
            return self.point_covariance
        if not self.point_sigma:
            return None
        return np.tile(self.point_sigma**2 * np.eye(3), (len(self.points), 1, 1))


Target = AprilGrid | Checkerboard | PointCloud


def is_planar(points: FloatArray) -> bool:
    """Whether points (T, 3) lie in one plane, to a millionth of their extent."""
    singular = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return bool(singular[2] <= 1e-6 * singular[0])


def is_collinear(points: FloatArray) -> bool:
    """Whether points (T, 3) lie on one line, to a millionth of their extent."""
    singular = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return bool(singular[1] <= 1e-6 * singular[0])


def bow_basis(points: FloatArray) -> FloatArray:
    """Shapes (T, 3) a bent board can take: z = basis @ (bow_x_m, bow_y_m, twist_m).

    With x and y running from -1 to 1 over the points, the columns are 1 - x^2,
    1 - y^2 and x y: a parabolic bend along each side, whose coefficient is the sag
    in the middle, and a twist. Lower orders are a shift or a tilt of the board,
    which belong to its pose.
    """
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    x, y = ((points[:, :2] - (low + high) / 2) / ((high - low) / 2)).T
    return np.stack([1 - x * x, 1 - y * y, x * y], axis=-1)
