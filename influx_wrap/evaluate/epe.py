"""End-point error: how far apart true and estimated intrinsics put the same 3D points.

Per-cent errors say nothing about distortion; the distance in pixels between two
projections of one point covers all eight parameters at once (the paper's evaluation).
Points outside the true field of view do not count; where an estimate is missing, or no
camera at that point, the error is infinite.

The paper takes 100 000 points from laser scans. The built-in scene stands in for them
without a download: an indoor and an outdoor place as a scanner at the camera would see
them, from boxes at arm's length to distant facades.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from influx_wrap.evaluate.cells import CellResult
from influx_wrap.model.intrinsics import FloatArray, Intrinsics, project

WIDEST_FIELD = (1.3, 1.0)
"""Half-extent of the scanned directions x/z and y/z: more than a 17 mm lens sees."""

# Walls as (axis, coordinate) and boxes as (lowest corner, highest corner), in metres in
# camera space: x right, y down, z forward, the camera 1.44 m above the ground.
INDOOR_WALLS = ((1, 1.44), (1, -1.56), (0, -3.0), (0, 3.0), (2, 9.0))
INDOOR_BOXES = (
    ((-1.6, 0.7, 2.2), (-0.4, 1.44, 3.0)),
    ((0.3, 0.2, 1.2), (0.7, 1.44, 1.6)),
    ((-0.5, -0.2, 5.0), (0.6, 1.44, 5.6)),
    ((1.4, -0.9, 4.0), (2.2, 1.44, 4.5)),
)
OUTDOOR_WALLS = ((1, 1.44), (0, -18.0), (0, 22.0), (2, 120.0))
OUTDOOR_BOXES = (
    ((-4.5, -0.1, 9.0), (-2.6, 1.44, 13.5)),
    ((1.8, -0.4, 16.0), (3.9, 1.44, 20.0)),
    ((-0.4, -0.3, 6.0), (0.2, 1.44, 6.4)),
    ((-14.0, -9.0, 45.0), (-3.0, 1.44, 60.0)),
    ((6.0, -16.0, 70.0), (20.0, 1.44, 90.0)),
)

Walls = tuple[tuple[int, float], ...]
Boxes = tuple[tuple[tuple[float, float, float], tuple[float, float, float]], ...]


def builtin_points(n: int = 100_000, seed: int = 0) -> FloatArray:
    """(n, 3) points in camera space, half of them indoors and half outdoors.

    Directions fill a field that is itself drawn between nothing and the widest, so that
    telephoto and wide-angle settings both see thousands of points.
    """
    rng = np.random.default_rng(seed)
    field = np.array(WIDEST_FIELD) * rng.uniform(0, 1, (n, 1))
    directions = np.column_stack([field * rng.uniform(-1, 1, (n, 2)), np.ones(n)])
    indoors = np.arange(n) < n // 2
    depth = np.where(
        indoors,
        _first_hit(directions, INDOOR_WALLS, INDOOR_BOXES),
        _first_hit(directions, OUTDOOR_WALLS, OUTDOOR_BOXES),
    )
    return directions * depth[:, None]


def epe_px(
    true: Intrinsics,
    estimate: Intrinsics | None,
    points: ArrayLike,
    image_size: tuple[int, int],
) -> FloatArray:
    """(m,) distances in pixels for the m points that the true camera sees.

    ``points`` (n, 3) are in camera space. Infinite where there is no estimate, or where
    it puts a point nowhere.
    """
    points = np.asarray(points, dtype=float)
    uv, valid = project(true, points)
    with np.errstate(invalid="ignore"):
        inside = (uv >= -0.5) & (uv <= np.array(image_size) - 0.5)
    seen = valid & inside.all(axis=1)
    if estimate is None:
        return np.full(int(seen.sum()), np.inf)
    estimated, _ = project(estimate, points[seen])
    distance: FloatArray = np.linalg.norm(estimated - uv[seen], axis=1)
    distance[np.isnan(distance)] = np.inf
    return distance


def cell_epe_px(
    cells: Iterable[CellResult], points: FloatArray, image_size: tuple[int, int]
) -> Iterator[FloatArray]:
    """``epe_px`` of every cell whose truth is known; a failed cell's errors are infinite."""
    for cell in cells:
        if cell.truth is not None:
            yield epe_px(cell.truth, cell.intrinsics, points, image_size)


def share_below(errors: Iterable[FloatArray], thresholds: FloatArray) -> FloatArray:
    """(k,) share of all errors that are at most each of the ``thresholds`` (k,)."""
    below, total = np.zeros(len(thresholds)), 0
    for values in errors:
        below += np.searchsorted(np.sort(values), thresholds, side="right")
        total += len(values)
    return below / max(total, 1)


def _first_hit(directions: FloatArray, walls: Walls, boxes: Boxes) -> FloatArray:
    """(n,) depth at which rays (n, 3) with z = 1 first meet a surface."""
    depth = np.full(len(directions), np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for axis, coordinate in walls:
            hit = coordinate / directions[:, axis]
            depth = np.minimum(depth, np.where(hit > 0, hit, np.inf))
        for low, high in boxes:
            ends = np.stack([np.array(low) / directions, np.array(high) / directions])
            enter, leave = ends.min(axis=0).max(axis=1), ends.max(axis=0).min(axis=1)
            depth = np.minimum(depth, np.where((enter <= leave) & (enter > 0), enter, np.inf))
    return depth
