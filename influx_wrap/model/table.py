"""A lens's table: what was measured at which setting.

One row per experiment: the lens focal length and focus distance that the metadata recorded,
eight intrinsics, their covariance, and the kind of target. The place of an experiment in the
planned grid, if it has one, says which experiments are neighbours; the measured focus
distances jitter about the planned ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.smooth_fit import SmoothFit

SAME_LFL = 5e-3
"""Focal lengths that differ by less, relatively, are one setting of the zoom ring."""
SAME_FD = 0.05
"""Focus distances that differ by less are one setting of the focus ring, give or take jitter."""
ROUNDING = 1e-6
"""Of a covariance, relative to its variances."""


@dataclass(frozen=True, eq=False)
class Table:
    """The experiments of one lens on one camera.

    names       (n,) of the experiments
    lfl_mm      (n,) lens focal lengths
    fd_m        (n,) focus distances; experiments at infinity come last
    values      (n, 8) intrinsics in the order of ``NAMES``, pixel (0, 0) a pixel's centre
    covariance  (n, 8, 8) of the values; NaN where it is not known
    is_drone    (n,) True where the target was a drone, False for boards
    grid        (n, 2) zoom and focus index in the plan
    pixel_um    (2,) pitch of the sensor's pixels in x and in y
    smooth      what is known about the lens's smoothness, if it was found out
    """

    lens: str
    camera: str
    image_size: tuple[int, int]
    pixel_um: tuple[float, float]
    names: tuple[str, ...]
    lfl_mm: FloatArray
    fd_m: FloatArray
    values: FloatArray
    covariance: FloatArray
    is_drone: BoolArray
    grid: IntArray
    provenance: Mapping[str, Any] = field(default_factory=dict)
    smooth: SmoothFit | None = None

    def __post_init__(self) -> None:
        n = len(self.names)
        if n == 0:
            raise InputError("a table needs at least one experiment.")
        shapes = {
            "lfl_mm": (n,),
            "fd_m": (n,),
            "values": (n, len(NAMES)),
            "covariance": (n, len(NAMES), len(NAMES)),
            "is_drone": (n,),
            "grid": (n, 2),
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise InputError(f"{name} of a table must be of shape {shape}.")
        good = (self.lfl_mm > 0) & np.isfinite(self.lfl_mm) & (self.fd_m > 0)
        good &= np.isfinite(self.values).all(axis=1) & (self.values[:, :2] > 0).all(axis=1)
        if not good.all():
            name = self.names[int(np.argmin(good))]
            raise InputError(
                f"experiment {name} of the table has no usable focal length, focus distance or "
                "intrinsics. Leave it out."
            )
        is_possible = is_covariance(self.covariance)
        if not is_possible.all():
            name = self.names[int(np.argmin(is_possible))]
            raise InputError(
                f"experiment {name} of the table has a matrix that is no covariance: it is not "
                "symmetric, or has a negative variance. Build the table anew, or make it null."
            )
        if (np.diff(np.isinf(self.fd_m).astype(int)) < 0).any():
            raise InputError("experiments focused at infinity must be the last of a table.")
        settings = np.column_stack([self.lfl_mm, self.fd_m])
        _, first, count = np.unique(settings, axis=0, return_index=True, return_counts=True)
        if (count > 1).any():
            again = first[np.argmax(count > 1)]
            raise InputError(
                f"two experiments are at {self.lfl_mm[again]:g} mm and {self.fd_m[again]:g} m, "
                f"{self.names[again]} and another: keep one of them."
            )

    def rows(self, rows: IntArray) -> Table:
        """The table with some of its experiments."""
        return Table(
            self.lens,
            self.camera,
            self.image_size,
            self.pixel_um,
            tuple(self.names[row] for row in rows.tolist()),
            self.lfl_mm[rows],
            self.fd_m[rows],
            self.values[rows],
            self.covariance[rows],
            self.is_drone[rows],
            self.grid[rows],
            self.provenance,
        )

    @cached_property
    def finite(self) -> Table:
        """The table without the experiments focused at infinity; rows keep their numbers."""
        is_finite = np.isfinite(self.fd_m)
        return self if is_finite.all() else self.rows(np.flatnonzero(is_finite))

    @cached_property
    def fingerprint(self) -> str:
        """Of all that answers are made from, and of the way a smooth lens is made of them."""
        digest = hashlib.sha256(repr((3, self.names, self.image_size, self.pixel_um)).encode())
        for values in (self.lfl_mm, self.fd_m, self.values, self.covariance):
            digest.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
        return digest.hexdigest()[:32]

    @cached_property
    def cells(self) -> IntArray:
        """(m, 4) board experiments around each cell of the grid: from one to the next focus
        distance, on to the next focal length, and back."""
        row_at = {
            place: row
            for row, place in enumerate(map(tuple, _ranks(self.grid).tolist()))
            if not self.is_drone[row]
        }
        corners = ((0, 0), (0, 1), (1, 1), (1, 0))
        around = [[row_at.get((z + i, f + j), -1) for i, j in corners] for z, f in row_at]
        return np.array([cell for cell in around if min(cell) >= 0], dtype=np.int64).reshape(-1, 4)

    @cached_property
    def columns(self) -> tuple[tuple[float, IntArray], ...]:
        """Focal lengths in rising order, each with its experiments by focus distance."""
        labels = group(self.lfl_mm, SAME_LFL)
        columns = []
        for label in range(int(labels.max()) + 1):
            rows = np.flatnonzero(labels == label)
            columns.append((float(self.lfl_mm[rows].mean()), rows[np.argsort(self.fd_m[rows])]))
        return tuple(columns)


def is_covariance(matrices: FloatArray) -> BoolArray:
    """(n,) which of matrices (n, k, k) are covariances, up to rounding; one of NaN may be."""
    known = np.isfinite(matrices).all(axis=(1, 2))
    possible = np.asarray(~np.isinf(matrices).any(axis=(1, 2)))
    some = matrices[known]
    scale = np.sqrt(np.abs(np.einsum("nii->ni", some)))
    scale = np.where(scale > 0, scale, 1.0)
    scaled = some / scale[:, :, None] / scale[:, None, :]
    is_symmetric = np.abs(scaled - scaled.transpose(0, 2, 1)).max(axis=(1, 2), initial=0) < ROUNDING
    with np.errstate(over="ignore"):
        bounded = np.abs(scaled).max(axis=(1, 2), initial=0) < 1 + ROUNDING
    good = np.asarray(is_symmetric & bounded)
    least = np.linalg.eigvalsh(np.where(good[:, None, None], scaled, 0.0)).min(axis=1, initial=0)
    possible[known] = good & (least > -ROUNDING)
    return possible


def group(values: FloatArray, relative_gap: float) -> IntArray:
    """(n,) number of the group, in rising order, of positive values (n,).

    A new group begins where the next value is larger by more than ``relative_gap``.
    """
    order = np.argsort(values, kind="stable")
    steps = np.diff(np.log(values[order]))
    labels = np.empty(len(values), dtype=np.int64)
    labels[order] = np.concatenate([[0], np.cumsum(steps > relative_gap)])
    return labels


def grid_of(lfl_mm: FloatArray, fd_m: FloatArray) -> IntArray:
    """(n, 2) zoom and focus indices of experiments whose plan is not known."""
    return np.stack([group(lfl_mm, SAME_LFL), group(fd_m, SAME_FD)], axis=1)


def _ranks(grid: IntArray) -> IntArray:
    """(n, 2) indices counted among those that occur: a row left out altogether is no gap."""
    return np.stack(
        [np.unique(grid[:, axis], return_inverse=True)[1].ravel() for axis in range(2)], axis=1
    )
