"""The smooth lens on a grid of settings: as exact as it needs to be, and fast.

An answer with its covariance takes a large system of equations. Both are smooth functions of
the setting, so they are computed at the nodes of a grid, once, and interpolated for the frames
of a clip by polynomials of fifth order. (Sigmas would not do: near experiments they have the
shape of a V, of which the covariances are the smooth squares.) The explorer's page holds the
same nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from influx_wrap.lut.smooth.grid_kernels import POINTS, interpolate
from influx_wrap.lut.smooth.outputs import N_OUTPUTS
from influx_wrap.lut.smooth.places import Places
from influx_wrap.model.arrays import FloatArray

STEPS = 64
"""Between one end of zoom or focus and the other."""
OFFSET = 0.4
"""Of the grid's own coordinates; in the middle of what members have."""
_MORE = POINTS // 2 - 1
"""Nodes beyond the ends, so that there, too, interpolation has nodes on both sides."""
_LOWER = np.tril_indices(N_OUTPUTS)


@dataclass(frozen=True, eq=False)
class Grid:
    """Nodes over (u, v).

    places     the coordinates
    low, step  (2,) of the nodes
    nodes      (rows, columns, 44) eight outputs and the lower triangle of their covariance
    """

    places: Places
    low: FloatArray
    step: FloatArray
    nodes: FloatArray

    def mean_at(self, lfl_mm: FloatArray, fd_m: FloatArray) -> FloatArray:
        """Outputs (q, 8) at settings (q,)."""
        x = (self.places.both(lfl_mm, fd_m) - self.low) / self.step
        only = np.ascontiguousarray(self.nodes[..., :N_OUTPUTS])
        return np.asarray(interpolate(only, x[:, 0], x[:, 1]))

    def at(self, lfl_mm: FloatArray, fd_m: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Outputs (q, 8) and their covariance (q, 8, 8) at settings (q,)."""
        x = (self.places.both(lfl_mm, fd_m) - self.low) / self.step
        found = interpolate(self.nodes, x[:, 0], x[:, 1])
        covariance = np.empty((len(x), N_OUTPUTS, N_OUTPUTS))
        covariance[:, _LOWER[0], _LOWER[1]] = found[:, N_OUTPUTS:]
        covariance[:, _LOWER[1], _LOWER[0]] = found[:, N_OUTPUTS:]
        return found[:, :N_OUTPUTS], covariance


def make_grid(
    places: Places,
    low: FloatArray,
    high: FloatArray,
    outputs: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
) -> Grid:
    """A grid between two corners (2,), of a function from places (q, 2) to outputs (q, 8) and
    their covariance (q, 8, 8)."""
    step = (high - low) / STEPS
    low = low - _MORE * step
    count = STEPS + 1 + 2 * _MORE
    u, v = (low[k] + step[k] * np.arange(count) for k in range(2))
    x = np.column_stack([np.repeat(u, count), np.tile(v, count)])
    mean, covariance = outputs(x)
    both = np.concatenate([mean, covariance[:, _LOWER[0], _LOWER[1]]], axis=1)
    return Grid(places, low, step, both.reshape(count, count, -1))
