"""Where a board is in every frame of a video, roughly, and how far it has moved.

That is what a first look at all frames says, without the exact corners that only some of them are
searched for. It tells poses that are held from motion between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.target import Target

MOST_POINTS = 100
"""Of a board, for the distance between two places of it."""


@dataclass(frozen=True, eq=False)
class Looks:
    """What the first look says of F frames.

    homography    (F, 3, 3) the board's plane, in metres, to pixels; NaN where it is not seen
    step_px       (F,) how far it has moved since the frame before; NaN where that is not known
    is_candidate  (F,) the frames whose corners were measured to choose from
    """

    homography: FloatArray
    step_px: FloatArray
    is_candidate: BoolArray

    @property
    def is_seen(self) -> BoolArray:
        """(F,) whether the board is seen."""
        return np.isfinite(self.homography[:, 0, 0])

    @property
    def candidates(self) -> list[int]:
        """The candidates' frames, ascending."""
        return list(np.flatnonzero(self.is_candidate).tolist())

    def speed_px(self) -> FloatArray:
        """(F,) how far the board is from where it is in the nearer of the neighbours; NaN if
        neither is known."""
        return np.fmin(self.step_px, np.append(self.step_px[1:], np.nan))

    def displacement_px(
        self, target: Target, size: tuple[int, int], frames: IntArray, others: IntArray
    ) -> FloatArray:
        """(N,) median distance between the target's points in frames (N,) and in others (N,), of
        those that are in both pictures; NaN where the board is not seen or none is."""
        corners = _some_points(target)
        a, b = (self._project(corners, some) for some in (frames, others))
        inside = np.all((a >= 0) & (b >= 0) & (a < size) & (b < size), axis=2)
        distance = np.where(inside, np.linalg.norm(a - b, axis=2), np.nan)
        result = np.full(len(frames), np.nan)
        known = inside.any(axis=1)
        result[known] = np.nanmedian(distance[known], axis=1)
        return result

    def _project(self, points: FloatArray, frames: IntArray) -> FloatArray:
        """(N, P, 2) points (P, 3), homogeneous, in frames (N,)."""
        uvw = np.einsum("nij,pj->npi", self.homography[frames], points)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(uvw[..., :2] / uvw[..., 2:])


def _some_points(target: Target) -> FloatArray:
    """(P, 3) some points of the board's plane, spread over it, with a third of 1."""
    points = target.points[:: -(-len(target.points) // MOST_POINTS), :2]
    return np.column_stack([points, np.ones(len(points))])
