"""Which settings the experiments of a table surround."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull

from influx_wrap.model.arrays import BoolArray, FloatArray

_TOLERANCE = 1e-9
"""Of the extent of all points: what rounding is worth."""


@dataclass(frozen=True, eq=False)
class Hull:
    """The convex hull of points in a plane.

    low, scale  (2,) places are taken as (place - low) / scale
    sides       (m, 3) a, b and c of each side: inside, a x + b y + c is at most zero
    """

    low: FloatArray
    scale: FloatArray
    sides: FloatArray

    def holds(self, places: FloatArray) -> BoolArray:
        """(q,) which places (q, 2) are within; NaN is not."""
        with np.errstate(invalid="ignore"):
            return self.away(places) <= 0

    def away(self, places: FloatArray) -> FloatArray:
        """(q,) how far beyond the farthest of the sides places (q, 2) are, in units of the points'
        extent; negative within."""
        scaled = (places - self.low) / self.scale
        return np.asarray((scaled @ self.sides[:, :2].T + self.sides[:, 2]).max(axis=1))


def make_hull(points: FloatArray) -> Hull:
    """The hull of points (n, 2), a little wider than they are."""
    extent = np.ptp(points, axis=0)
    low = points.min(axis=0)
    scale = np.where(extent > _TOLERANCE * np.abs(low), extent, 1.0)
    points = (points - low) / scale
    centre = points.mean(axis=0)
    _, sizes, axes = np.linalg.svd(points - centre)
    if len(points) < 3 or sizes[1] < _TOLERANCE:
        # All on a line: as far as the outermost on it.
        normals = np.concatenate([axes, -axes])
    else:
        normals = ConvexHull(points).equations[:, :2]
    reach = (points @ normals.T).max(axis=0)
    return Hull(low, scale, np.column_stack([normals, -reach - _TOLERANCE]))
