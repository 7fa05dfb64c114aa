"""Where the camera stands in a laser scan.

The paper puts one camera into every scene by hand and does not publish where. Ours follows
from the scan itself. A scan is in its scanner's own coordinates: the scanner at the origin,
levelled, z up. The camera takes the scanner's place, from which everything in the scan is
visible, but ``CAMERA_HEIGHT_M`` above the floor; it is level and looks where there is most
to see.

*The floor* is the height at which the scan covers the largest area, counted in squares of
``FLOOR_CELL_M`` within ``FLOOR_REACH_M`` around the scanner and ``FLOOR_BELOW_M`` below it.
Where no ``LEAST_FLOOR_CELLS`` squares are at any height, there is no floor to stand on, and
the camera stays at the scanner's own height.

*What there is to see* is counted in cells of one degree by one degree by ``DEPTH_RATIO`` in
distance: a cell counts once, however densely it was scanned, and a direction with things at
several distances counts several times. Cells count more the nearer to the axis they would be,
falling to nothing at the edge of the widest lens's field, so that a telephoto lens has something
in view as well. Of the 360 azimuths, the best is taken; of equal ones, the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray, FloatArray

CAMERA_HEIGHT_M = 1.44
FLOOR_REACH_M = 10.0
FLOOR_BELOW_M = (0.3, 3.0)
FLOOR_CELL_M, FLOOR_LAYER_M = 0.1, 0.02
LEAST_FLOOR_CELLS = 50
HALF_FIELD_DEG = (40, 30)
"""Half the field of view of a 17 mm lens across and along, in round numbers."""
DEPTH_RANGE_M = (0.5, 500.0)
DEPTH_RATIO = 1.1


@dataclass(frozen=True, eq=False)
class ScanCamera:
    """A camera in a scan: its place (3,) in metres, and its axes x, y, z as rows (3, 3)."""

    position: FloatArray
    axes: FloatArray

    def to_camera(self, points: FloatArray) -> FloatArray:
        """Points (n, 3) of the scan in camera space: x right, y down, z forward."""
        moved = points - self.position
        # Sums written out give everybody the same bits, which a matrix product does not.
        return np.column_stack(
            [moved[:, 0] * x + moved[:, 1] * y + moved[:, 2] * z for x, y, z in self.axes]
        )


def look(position: ArrayLike, forward: ArrayLike, up: ArrayLike) -> ScanCamera:
    """The camera at ``position`` that looks ``forward``, its picture's top towards ``up``."""
    ahead, above = np.asarray(forward, dtype=float), np.asarray(up, dtype=float)
    right = np.cross(ahead, above)
    if not np.linalg.norm(right) > 1e-9 * np.linalg.norm(ahead) * np.linalg.norm(above):
        raise InputError("forward and up must be two directions that are not the same.")
    z, x = ahead / np.linalg.norm(ahead), right / np.linalg.norm(right)
    return ScanCamera(np.asarray(position, dtype=float), np.array([x, np.cross(z, x), z]))


def place_camera(chunks: Iterable[FloatArray], again: Iterable[FloatArray]) -> ScanCamera:
    """The camera of a scan, whose points (n, 3) come twice, in pieces."""
    floor = _floor_height(chunks)
    height = 0.0 if floor is None else floor + CAMERA_HEIGHT_M
    position = np.array([0.0, 0.0, height])
    azimuth = math.radians(_best_azimuth_deg(points - position for points in again))
    return look(position, [math.cos(azimuth), math.sin(azimuth), 0.0], [0.0, 0.0, 1.0])


def _floor_height(chunks: Iterable[FloatArray]) -> float | None:
    nearest, deepest = FLOOR_BELOW_M
    n_side = round(2 * FLOOR_REACH_M / FLOOR_CELL_M)
    n_layers = round((deepest - nearest) / FLOOR_LAYER_M)
    covered = np.zeros((n_layers, n_side, n_side), dtype=bool)
    for points in chunks:
        x, y, z = points.T
        near = (np.abs(x) < FLOOR_REACH_M) & (np.abs(y) < FLOOR_REACH_M)
        near &= (z > -deepest) & (z < -nearest)
        column = ((x[near] + FLOOR_REACH_M) / FLOOR_CELL_M).astype(np.int64)
        row = ((y[near] + FLOOR_REACH_M) / FLOOR_CELL_M).astype(np.int64)
        layer = ((z[near] + deepest) / FLOOR_LAYER_M).astype(np.int64)
        indices = [(layer, n_layers), (row, n_side), (column, n_side)]
        covered[tuple(np.minimum(index, n - 1) for index, n in indices)] = True
    # Three layers together, as a floor need not lie within one.
    area = covered[:-2] | covered[1:-1] | covered[2:]
    cells = area.sum(axis=(1, 2))
    best = int(cells.argmax())
    if cells[best] < LEAST_FLOOR_CELLS:
        return None
    return -deepest + (best + 1.5) * FLOOR_LAYER_M


def _best_azimuth_deg(chunks: Iterable[FloatArray]) -> float:
    """The middle of the azimuth (from x to y) around which there is most to see."""
    seen = _occupied(chunks)
    across, along = HALF_FIELD_DEG
    # Whole numbers, so that equal is equal on every machine.
    elevation = np.arange(-along, along)
    by_azimuth = seen.sum(axis=2) @ (2 * along - np.abs(2 * elevation + 1))
    offsets = np.arange(1 - across, across)
    score = sum((across - abs(d)) * np.roll(by_azimuth, -d) for d in offsets.tolist())
    return float(np.argmax(score)) + 0.5


def _occupied(chunks: Iterable[FloatArray]) -> BoolArray:
    """Which cells of azimuth, elevation and distance have points."""
    nearest, farthest = DEPTH_RANGE_M
    along = HALF_FIELD_DEG[1]
    n_depths = math.ceil(math.log(farthest / nearest) / math.log(DEPTH_RATIO))
    occupied = np.zeros((360, 2 * along, n_depths), dtype=bool)
    limit = math.tan(math.radians(along))
    for points in chunks:
        x, y, z = points.T
        level2 = x * x + y * y
        use = (z * z < limit * limit * level2) & (level2 + z * z >= nearest * nearest)
        use &= level2 + z * z < farthest * farthest
        x, y, z, level2 = x[use], y[use], z[use], level2[use]
        azimuth = np.floor(np.degrees(np.arctan2(y, x))).astype(np.int64) % 360
        elevation = np.floor(np.degrees(np.arctan2(z, np.sqrt(level2)))).astype(np.int64) + along
        distance = np.log((level2 + z * z) / nearest**2) / (2 * math.log(DEPTH_RATIO))
        occupied[
            azimuth,
            np.clip(elevation, 0, 2 * along - 1),
            np.minimum(distance.astype(np.int64), n_depths - 1),
        ] = True
    return occupied
