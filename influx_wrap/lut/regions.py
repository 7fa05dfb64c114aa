"""The regions between a table's experiments: who answers for which place.

A place is (x, y): lens focal length, and focus distance or its reciprocal. Four neighbouring
board experiments enclose a quadrilateral, in which values are interpolated bilinearly; the
rest of the hull is made up of Delaunay triangles, in which they are barycentric (paper,
"LUT Interpolation Scheme"). Both are linear along an edge, and edges are shared whole, so
values are continuous across them.

The place of a query within a quadrilateral is that of the bilinear map from the unit square.
Where two sides have a constant focal length, as in the paper's trapezoids, that is the paper's
formula; it holds as well if the focal lengths are not quite the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from influx_wrap.lut.triangulate import Edge, triangulate
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray

BOX_MARGIN = 1e-6
"""By how much of the whole table regions' boxes are wider, so that rounding hides nobody."""


@dataclass(frozen=True, eq=False)
class Regions:
    """Regions over places.

    places    (n, 2) x and y of the experiments
    vertices  (r, 4) experiments at the corners of each region, in order around it; the last
              is -1 for triangles, the last two for pieces of a line, the last three for a
              single place
    """

    places: FloatArray
    vertices: IntArray

    @property
    def is_quad(self) -> BoolArray:
        """(r,) which regions are quadrilaterals."""
        return np.asarray(self.vertices[:, 3] >= 0)

    @cached_property
    def boxes(self) -> FloatArray:
        """(r, 4) least x, least y, greatest x and greatest y of each, with a margin."""
        # In place of a corner that is not there, the first.
        corners = self.places[np.where(self.vertices < 0, self.vertices[:, :1], self.vertices)]
        margin = BOX_MARGIN * np.ptp(self.places, axis=0)
        return np.hstack([corners.min(axis=1) - margin, corners.max(axis=1) + margin])


def make_regions(places: FloatArray, cells: IntArray) -> Regions:
    """Regions that tile the hull of distinct places (n, 2).

    ``cells`` (m, 4) are experiments in order around a cell of the grid; each becomes a
    quadrilateral if it is convex and no other experiment is in it.
    """
    if len(places) < 3 or np.linalg.matrix_rank(places - places[0]) < 2:
        return Regions(places, _along_a_line(places))
    # Delaunay's circles mean something only where steps are alike in both directions.
    scaled = places / np.array([_usual_step(places[:, 0]), _usual_step(places[:, 1])])
    quads = [_counter_clockwise(scaled, cell) for cell in cells.tolist()]
    quads = [quad for quad in quads if _is_convex(scaled, quad) and _is_free(scaled, quad)]
    kept: set[Edge] = set()
    for quad in quads:
        kept |= {(min(a, b), max(a, b)) for a, b in pairwise([*quad, quad[0]])}
    in_quads = {frozenset(quad[:k] + quad[k + 1 :]) for quad in quads for k in range(4)}
    rest = [
        [*triangle, -1]
        for triangle in triangulate(scaled, sorted(kept))
        if frozenset(triangle) not in in_quads
    ]
    return Regions(places, np.array([*quads, *rest], dtype=np.int64).reshape(-1, 4))


def _along_a_line(places: FloatArray) -> IntArray:
    """(r, 4) the pieces between neighbours, of places (n, 2) on a line."""
    if len(places) == 1:
        return np.array([[0, -1, -1, -1]])
    order = np.lexsort((places[:, 1], places[:, 0]))
    nobody = np.full(len(order) - 1, -1)
    return np.stack([order[:-1], order[1:], nobody, nobody], axis=1)


def _usual_step(values: FloatArray) -> float:
    """Median distance between values (n,) that differ."""
    return float(np.median(np.diff(np.unique(values))))


def _cross(points: FloatArray, a: int, b: int, c: int) -> float:
    """Twice the signed area of a triangle."""
    (ax, ay), (bx, by), (cx, cy) = points[a], points[b], points[c]
    return float((bx - ax) * (cy - ay) - (by - ay) * (cx - ax))


def _counter_clockwise(points: FloatArray, quad: list[int]) -> list[int]:
    return quad if _cross(points, quad[0], quad[1], quad[2]) > 0 else quad[::-1]


def _is_convex(points: FloatArray, quad: list[int]) -> bool:
    turns = [_cross(points, quad[k - 2], quad[k - 1], quad[k]) for k in range(4)]
    # Not by a hair: the map from the unit square must be well defined.
    return min(turns) > 1e-6 * max(turns)


def _is_free(points: FloatArray, quad: list[int]) -> bool:
    """Whether no other point is in a quadrilateral or on its rim."""
    sides = [(quad[k - 1], quad[k]) for k in range(4)]
    others = np.setdiff1d(np.arange(len(points)), quad)
    inside = np.ones(len(others), dtype=bool)
    for a, b in sides:
        d, to = points[b] - points[a], points[others] - points[a]
        inside &= d[0] * to[:, 1] - d[1] * to[:, 0] >= 0
    return not inside.any()
