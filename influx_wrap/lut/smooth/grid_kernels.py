"""Interpolation on a grid of two coordinates, many queries at once."""

from __future__ import annotations

import numpy as np

from influx_wrap.compute.jit import jit
from influx_wrap.model.arrays import FloatArray

POINTS = 6
"""Nodes on a line that an interpolated value comes from."""


@jit
def lagrange_weights(place: float, count: int, weights: FloatArray) -> int:
    """Weights (6,) of the nodes around a place, of the polynomial through them; returns the
    first of the nodes. Places are in units of the nodes' distance."""
    first = min(max(int(np.floor(place)) - (POINTS // 2 - 1), 0), count - POINTS)
    for i in range(POINTS):
        weights[i] = 1.0
        for j in range(POINTS):
            if j != i:
                weights[i] *= (place - first - j) / (i - j)
    return first


@jit
def interpolate(nodes: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """(q, c) of nodes (rows, columns, c) at x, y (q,), in units of the nodes' distances."""
    rows, columns, channels = nodes.shape
    result = np.zeros((len(x), channels))
    along, across = np.empty(POINTS), np.empty(POINTS)
    for k in range(len(x)):
        row = lagrange_weights(x[k], rows, along)
        column = lagrange_weights(y[k], columns, across)
        for i in range(POINTS):
            for j in range(POINTS):
                weight = along[i] * across[j]
                for c in range(channels):
                    result[k, c] += weight * nodes[row + i, column + j, c]
    return result
