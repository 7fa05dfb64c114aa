"""A lens's table: what was measured at which setting.

One row per experiment: the lens focal length and focus distance that the metadata recorded,
eight intrinsics, their covariance, and the kind of target. The place of an experiment in the
planned grid, if it has one, says which experiments are neighbours; the measured focus
distances jitter about the planned ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.intrinsics import NAMES

SAME_LFL = 5e-3
"""Focal lengths that differ by less, relatively, are one setting of the zoom ring."""
SAME_FD = 0.05
"""Focus distances that differ by less are one setting of the focus ring, give or take jitter."""


@dataclass(frozen=True, eq=False)
class Table:
    """The experiments of one lens on one camera.

    names       (n,) of the experiments
    lfl_mm      (n,) lens focal lengths
    fd_m        (n,) focus distances, finite
    values      (n, 8) intrinsics in the order of ``NAMES``, pixel (0, 0) a pixel's centre
    covariance  (n, 8, 8) of the values; NaN where it is not known
    is_drone    (n,) True where the target was a drone, False for boards
    grid        (n, 2) zoom and focus index in the plan
    pixel_um    (2,) pitch of the sensor's pixels in x and in y
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
        good = (self.lfl_mm > 0) & (self.fd_m > 0) & np.isfinite(self.fd_m)
        good &= np.isfinite(self.values).all(axis=1) & (self.values[:, :2] > 0).all(axis=1)
        if not good.all():
            name = self.names[int(np.argmin(good))]
            raise InputError(
                f"experiment {name} of the table has no usable focal length, focus distance or "
                "intrinsics. Leave it out."
            )
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
