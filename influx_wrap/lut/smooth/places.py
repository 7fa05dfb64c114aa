"""Coordinates in which a lens is smooth.

    u = ln LFL, from 0 at the table's shortest to 1 at its longest (or twice the shortest)
    v = (N - a) / (FD - a), with N the table's nearest focus distance: 1 there, 0 at infinity
    w = (shortest / LFL)^2, in which, by third-order theory, distortion at the corner is linear

The offset a moves the origin of distances from the sensor towards the front of the lens, where
1 / distance is what focusing is linear in; which one fits, the data say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.table import Table


@dataclass(frozen=True)
class Places:
    """The coordinates of one lens.

    lfl_mm    the shortest and the longest focal length
    nearest_m the nearest focus distance
    offset    a, in units of ``nearest_m``
    """

    lfl_mm: tuple[float, float]
    nearest_m: float
    offset: float

    @classmethod
    def of(cls, table: Table, offset: float) -> Places:
        """Those of a table."""
        ends = float(table.lfl_mm.min()), float(table.lfl_mm.max())
        return cls(ends, float(table.fd_m.min()), offset)

    @property
    def width(self) -> float:
        """ln LFL that u is in units of; at least a factor of two, as experiments of a smaller range
        are of a part of a zoom, which is as smooth as the whole."""
        return max(math.log(self.lfl_mm[1] / self.lfl_mm[0]), math.log(2))

    def u(self, lfl_mm: FloatArray) -> FloatArray:
        """(n,) of focal lengths (n,)."""
        return np.asarray(np.log(lfl_mm / self.lfl_mm[0]) / self.width)

    def v(self, fd_m: FloatArray) -> FloatArray:
        """(n,) of focus distances (n,), infinity included."""
        return np.asarray((1 - self.offset) / (fd_m / self.nearest_m - self.offset))

    def moved(self, x: FloatArray, offset: float) -> FloatArray:
        """Places (n, 3) in the coordinates with another offset, of u and v (n, 2) in these."""
        v = (1 - offset) * x[:, 1] / (1 - self.offset + (self.offset - offset) * x[:, 1])
        return np.column_stack([x[:, 0], v, np.exp(-2 * self.width * x[:, 0])])

    def all(self, lfl_mm: FloatArray, fd_m: FloatArray) -> FloatArray:
        """(n, 3) u, v and w."""
        w = (self.lfl_mm[0] / lfl_mm) ** 2
        return np.stack([self.u(lfl_mm), self.v(fd_m), w], axis=-1)

    def both(self, lfl_mm: FloatArray, fd_m: FloatArray) -> FloatArray:
        """(n, 2) u and v."""
        return np.stack([self.u(lfl_mm), self.v(fd_m)], axis=-1)
