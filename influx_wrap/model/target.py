"""Calibration targets: 3D points in a fixed order that observations refer to.

Boards lie in the plane z = 0 with x to the right and y up as the board is read;
a point cloud (the drone's hover points) is any set of 3D points.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.tag36h11 import BORDER_CELLS, CODE_CELLS


def _plane_grid(y: FloatArray, x: FloatArray) -> FloatArray:
    """Points (len(y) * len(x), 3) row by row, z = 0."""
    yy, xx = np.meshgrid(y, x, indexing="ij")
    return np.stack([xx, yy, np.zeros_like(xx)], axis=-1).reshape(-1, 3)


MAX_POINTS = 100_000


def _check_count(cols: int, rows: int) -> None:
    if cols * rows > MAX_POINTS:
        raise InputError(f"a board has at most {MAX_POINTS} points, not {cols} x {rows}.")


@dataclass(frozen=True)
class AprilGrid:
    """Kalibr's AprilGrid: tags with a gap of ``tag_spacing`` tag sizes between them.

    A tag's code has a black border of ``border_cells`` cells, two in Kalibr. Tag 0 is at the
    bottom left, ids run row by row. Points are the tags' corners, numbered row by row over
    the (2 tag_rows) x (2 tag_cols) grid of corners from the bottom-left corner of tag 0.
    """

    tag_cols: int
    tag_rows: int
    tag_size_m: float
    tag_spacing: float
    border_cells: int = BORDER_CELLS

    def __post_init__(self) -> None:
        if self.border_cells not in (1, 2):
            raise InputError(f"a tag's border has 1 or 2 cells, not {self.border_cells}.")
        if self.tag_cols < 1 or self.tag_rows < 1:
            raise InputError("an AprilGrid needs at least one row and one column of tags.")
        _check_count(2 * self.tag_cols, 2 * self.tag_rows)
        if not self.tag_size_m > 0 or not self.tag_spacing >= 0:
            raise InputError("an AprilGrid needs a positive tagSize and a tagSpacing >= 0.")

    @property
    def tag_cells_across(self) -> int:
        """How many cells wide a tag is, with its border."""
        return CODE_CELLS + 2 * self.border_cells

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
        _check_count(self.cols, self.rows)
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


@dataclass(frozen=True)
class Charuco:
    """OpenCV's ChArUco board: a checkerboard of ``cols`` x ``rows`` squares, with a marker in
    each white one.

    Points are its inner corners, row by row from the bottom left; OpenCV counts them from the
    top. Marker ids run row by row from the top left, where the square is black. Boards of
    OpenCV before 4.6 (``legacy``) with an even number of rows have a white one there.

    dictionary  OpenCV's name of the markers, such as DICT_5X5_100
    codes       of the board's markers: ``code_cells`` squared bits, row by row from the top
                left, the first cell in the highest bit; 1 is white. A border of one cell is
                around them.
    """

    cols: int
    rows: int
    square_size_m: float
    marker_size_m: float
    dictionary: str
    code_cells: int
    codes: tuple[int, ...] = field(repr=False)
    legacy: bool = False

    def __post_init__(self) -> None:
        if min(self.cols, self.rows) < 2 or self.cols * self.rows < 6:
            raise InputError("a ChArUco board needs at least 2 x 3 squares.")
        if not 0 < self.marker_size_m < self.square_size_m:
            raise InputError(
                f"a ChArUco board's markers ({self.marker_size_m:g} m) must be smaller than its "
                f"squares ({self.square_size_m:g} m)."
            )
        n_markers = self.cols * self.rows // 2
        if len(self.codes) < n_markers:
            raise InputError(
                f"a ChArUco board of {self.cols} x {self.rows} squares needs {n_markers} markers, "
                f"but {self.dictionary} has {len(self.codes)}."
            )

    @property
    def grid_shape(self) -> tuple[int, int]:
        """(rows, columns) of points."""
        return self.rows - 1, self.cols - 1

    @cached_property
    def marker_squares(self) -> tuple[tuple[int, int], ...]:
        """(row, column) of each marker's square, from the top left, by id."""
        white_first = self.legacy and self.rows % 2 == 0
        squares = ((row, col) for row in range(self.rows) for col in range(self.cols))
        return tuple(at for at in squares if ((at[0] + at[1]) % 2 == 0) == white_first)

    @cached_property
    def points(self) -> FloatArray:
        """(T, 3) in metres."""
        y, x = (self.square_size_m * np.arange(n, dtype=float) for n in self.grid_shape)
        return _plane_grid(y, x)


@dataclass(frozen=True)
class CircleGrid:
    """Centres of dark circles, row by row from the bottom left.

    Neighbours are ``spacing_m`` apart. In an asymmetric grid every other row is shifted: circles
    are at x = 2 col + (row mod 2) and y = row, in units of ``spacing_m``, as in Kalibr and
    OpenCV, so that those of a row are two spacings apart.
    """

    cols: int
    rows: int
    spacing_m: float
    asymmetric: bool = False

    def __post_init__(self) -> None:
        if self.cols < 2 or self.rows < 2:
            raise InputError("a circle grid needs at least 2 x 2 circles.")
        _check_count(self.cols, self.rows)
        if not self.spacing_m > 0:
            raise InputError("a circle grid needs a positive spacing.")

    @property
    def grid_shape(self) -> tuple[int, int]:
        """(rows, columns) of points."""
        return self.rows, self.cols

    @cached_property
    def points(self) -> FloatArray:
        """(T, 3) in metres."""
        row, col = (np.array(n, dtype=float) for n in np.indices(self.grid_shape))
        x = 2 * col + row % 2 if self.asymmetric else col
        grid = np.stack([x, row, np.zeros_like(x)], axis=-1)
        return np.asarray(self.spacing_m * grid.reshape(-1, 3))


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


BoardTarget = AprilGrid | Checkerboard | Charuco | CircleGrid
"""What can be seen in pictures."""

Target = BoardTarget | PointCloud


def in_kalibr_s_words(target: Target) -> Target:
    """A target with the same points that Kalibr has a kind and keys for."""
    match target:
        case PointCloud():
            return PointCloud(target.points)
        case AprilGrid():
            return replace(target, border_cells=BORDER_CELLS)
        case Charuco():
            rows, cols = target.grid_shape
            return Checkerboard(cols, rows, target.square_size_m, target.square_size_m)
        case _:
            return target


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
