"""Observations laid out for the kernels.

The least-squares kernels want every view's points side by side in memory, one
coordinate after the other, so that a loop over points becomes SIMD code. A view
is cut into chunks of at most ``CHUNK`` points, few enough for the Jacobian of a chunk to
stay in the processor's first cache; a chunk is eight rows of ``CHUNK`` numbers:

    x, y, z of the target point; u, v of the pixel; the three bow shapes

Which points take part is not stored here but in a weight array (C, CHUNK), so
that rollouts which drop different corners share the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from influx_wrap.calibrate.kernels import CHUNK, ROWS
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import bow_basis, is_planar


@dataclass(frozen=True, eq=False)
class Problem:
    """V views in C chunks.

    data     (C, ROWS * CHUNK)
    count    (C,) points in each chunk
    first    (V + 1,) chunks of view v are first[v] .. first[v + 1]
    point    (C, CHUNK) index of the target point, -1 where padded
    weights  (C, CHUNK) 1 for every point, 0 where padded
    names    what people call the views
    """

    data: FloatArray
    count: IntArray
    first: IntArray
    point: IntArray
    weights: FloatArray
    names: tuple[str, ...]
    n_target_points: int
    image_size: tuple[int, int]

    @property
    def n_views(self) -> int:
        """Number of views."""
        return len(self.first) - 1

    @property
    def view_of_chunk(self) -> IntArray:
        """(C,) the view each chunk belongs to."""
        return np.repeat(np.arange(self.n_views), np.diff(self.first))

    def some_views(self, active: BoolArray) -> tuple[Problem, BoolArray]:
        """The problem of the active views (V,) alone, and which chunks (C,) those are."""
        chunks = active[self.view_of_chunk]
        lengths = np.diff(self.first)[active]
        part = replace(
            self,
            data=self.data[chunks],
            count=self.count[chunks],
            first=np.concatenate([[0], np.cumsum(lengths)]),
            point=self.point[chunks],
            weights=self.weights[chunks],
            names=tuple(self.names[view] for view in np.flatnonzero(active).tolist()),
        )
        return part, chunks


def pack(observations: Observations) -> Problem:
    """Lay observations out for the kernels."""
    target = observations.target.points
    basis = bow_basis(target) if is_planar(target) else np.zeros((len(target), 3))
    view, seen = np.nonzero(observations.valid)
    per_view = np.bincount(view, minlength=observations.n_views)
    first = np.concatenate([[0], np.cumsum(-(-per_view // CHUNK))])
    rank = np.arange(len(view)) - np.repeat(np.cumsum(per_view) - per_view, per_view)
    chunk, slot = first[view] + rank // CHUNK, rank % CHUNK

    rows = [target[seen], observations.uv[view, seen], basis[seen]]
    data = np.zeros((first[-1], ROWS, CHUNK))
    data[:, 2] = 1.0  # padding stays in front of the camera
    data[chunk, :, slot] = np.concatenate(rows, axis=1)
    point = np.full((first[-1], CHUNK), -1, dtype=np.int64)
    point[chunk, slot] = seen
    return Problem(
        data=data.reshape(-1, ROWS * CHUNK),
        count=np.bincount(chunk, minlength=first[-1]),
        first=first,
        point=point,
        weights=(point >= 0).astype(float),
        names=observations.view_names,
        n_target_points=len(target),
        image_size=observations.image_size,
    )
