"""End-point error: how far apart true and estimated intrinsics put the same 3D points.

Per-cent errors say nothing about distortion; the distance in pixels between two
projections of one point covers all eight parameters at once (the paper's evaluation).
Points outside the true field of view do not count; where an estimate is missing, or no
camera at that point, the error is infinite.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from influx_wrap.evaluate.cells import CellResult
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics, project


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
