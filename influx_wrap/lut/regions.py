"""The regions between a table's experiments: who answers for which place.

A place is (x, y): lens focal length, and focus distance or its reciprocal. Experiments of one
focal length are a column, and a region never reaches farther than from a column to the next:
focus distances jitter, so that the convex hull of all places is spanned by whichever columns
stick out, and Delaunay's triangles along it join columns that have others between them.

Between two neighbouring columns lies a strip. Four neighbouring board experiments enclose a
quadrilateral, in which values are interpolated bilinearly; the rest of the strip is made up of
Delaunay triangles, in which they are barycentric (paper, "LUT Interpolation Scheme"). Both are
linear along an edge, and edges are shared whole, so values are continuous across them. The
table's outline goes from the nearest experiment of each column to that of the next, and along
the farthest likewise. For a plan measured without jitter that is the convex hull, and the
triangles are those of Delaunay's triangulation of all experiments.

The place of a query within a quadrilateral is that of the bilinear map from the unit square.
Where two sides have a constant focal length, as in the paper's trapezoids, that is the paper's
formula; it holds as well if the focal lengths of a column are not quite the same. Then a column
is a line with bends, and belongs to the strips on both sides of it.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    vertices  (r, 4) experiments at the corners of each region, counter-clockwise; the last
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

    @cached_property
    def neighbours(self) -> BoolArray:
        """(n, n) which experiments share a region, each with itself too."""
        near = np.eye(len(self.places), dtype=bool)
        for vertices in self.vertices:
            members = vertices[vertices >= 0]
            near[np.ix_(members, members)] = True
        return near

    @cached_property
    def outline(self) -> tuple[FloatArray, FloatArray]:
        """Corners (m, 2) of the lower and of the upper side of all regions, from left to right."""
        if np.ptp(self.places[:, 0]) == 0:
            order = np.argsort(self.places[:, 1])
            return self.places[order[:1]], self.places[order[-1:]]
        edges: set[Edge] = set()
        for vertices in self.vertices.tolist():
            around = [vertex for vertex in vertices if vertex >= 0]
            # Once around a piece of a line is there and back: it is its own rim, on both sides.
            edges |= set(pairwise([*around, around[0]]))
        x = self.places[:, 0]
        is_line = {tuple(row[:2]) for row in self.vertices.tolist() if row[2] < 0}
        rim = [(a, b) for a, b in edges if (b, a) not in edges or {(a, b), (b, a)} & is_line]
        lower = sorted((x[a], a, b) for a, b in rim if x[a] < x[b])
        upper = sorted((x[b], b, a) for a, b in rim if x[a] > x[b])
        return self._path(lower), self._path(upper)

    def range_of_y(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Least and greatest y (q,) of the outline at x (q,)."""
        low, high = self.outline
        return np.interp(x, *low.T), np.interp(x, *high.T)

    def _path(self, edges: list[tuple[float, int, int]]) -> FloatArray:
        """Corners (m, 2) along edges that follow each other."""
        return np.asarray(self.places[[edges[0][1], *(end for _, _, end in edges)]])


def make_regions(places: FloatArray, columns: Sequence[IntArray], cells: IntArray) -> Regions:
    """Regions between distinct places (n, 2).

    ``columns`` are the rows of each focal length, from left to right; every place of a column
    is left of every place of the next. ``cells`` (m, 4) are experiments in order around a cell
    of the grid; each becomes a quadrilateral if it is convex, lies between two neighbouring
    columns and has no other experiment in it.
    """
    # Delaunay's circles mean something only where steps are alike in both directions; a power
    # of two leaves all digits as they are.
    scaled = places * np.exp2([-_usual_exponent(values) for values in places.T])
    chains = [_chain(places, rows) for rows in columns]
    if len(chains) == 1:
        return Regions(places, _along_a_line(places, chains[0]))
    strips = []
    for number, (left, right) in enumerate(pairwise(chains)):
        strip = _Strip(scaled, left, right, number == 0, number == len(chains) - 2)
        regions = strip.regions(cells)
        # Two columns of one experiment each.
        strips.append(regions if len(regions) else _along_a_line(places, [*left, *right]))
    return Regions(places, np.concatenate(strips))


def _chain(places: FloatArray, rows: IntArray) -> list[int]:
    """Rows by rising y, then x."""
    return [int(rows[k]) for k in np.lexsort((places[rows, 0], places[rows, 1]))]


def _along_a_line(places: FloatArray, rows: list[int]) -> IntArray:
    """(r, 4) the pieces between neighbours, of places on a line."""
    if len(rows) == 1:
        return np.array([[rows[0], -1, -1, -1]])
    order = sorted(rows, key=lambda row: tuple(places[row]))
    return np.array([[a, b, -1, -1] for a, b in pairwise(order)])


def _usual_exponent(values: FloatArray) -> int:
    """The power of two next to the median distance between values (n,) that differ."""
    steps = np.diff(np.unique(values))
    return round(float(np.log2(np.median(steps)))) if len(steps) else 0


@dataclass(frozen=True, eq=False)
class _Strip:
    """What lies between two columns, given from below upwards.

    is_first, is_last   whether nothing is left of the left column, right of the right one
    """

    points: FloatArray
    left: list[int]
    right: list[int]
    is_first: bool
    is_last: bool

    def regions(self, cells: IntArray) -> IntArray:
        """(r, 4) quadrilaterals and triangles; none if all points are on a line."""
        rows = [*self.left, *self.right]
        local = {row: k for k, row in enumerate(rows)}
        quads = self._quads(cells)
        kept = [*pairwise(self.left), *pairwise(self.right)]
        for quad in quads:
            kept += pairwise([*quad, quad[0]])
        edges = sorted({(min(local[a], local[b]), max(local[a], local[b])) for a, b in kept})
        in_quads = {frozenset(quad[:k] + quad[k + 1 :]) for quad in quads for k in range(4)}
        found = [
            tuple(rows[k] for k in triangle) for triangle in triangulate(self.points[rows], edges)
        ]
        rest = [
            [*triangle, -1]
            for triangle in found
            if frozenset(triangle) not in in_quads and self._is_between(triangle)
        ]
        return np.array([*quads, *rest], dtype=np.int64).reshape(-1, 4)

    def _quads(self, cells: IntArray) -> list[list[int]]:
        """Cells of the grid in this strip, counter-clockwise, from below upwards."""
        left = {row: k for k, row in enumerate(self.left)}
        right = {row: k for k, row in enumerate(self.right)}
        quads, free = [], 0
        own = [cell for cell in cells.tolist() if cell[0] in left and cell[2] in right]
        for a, b, c, d in sorted(own, key=lambda cell: min(left[cell[0]], left.get(cell[1], 0))):
            if b not in left or d not in right:
                continue
            (a, b), (d, c) = sorted((a, b), key=left.get), sorted((d, c), key=right.get)  # type: ignore[arg-type]
            quad = [a, d, c, b]
            follow = left[b] == left[a] + 1 and right[c] == right[d] + 1
            if follow and right[d] >= free and self._is_convex(quad) and self._is_free(quad):
                quads.append(quad)
                free = right[c]
        return quads

    def _is_between(self, triangle: tuple[int, ...]) -> bool:
        """Whether a triangle is right of the left column and left of the right one.

        Only where focal lengths of a column differ can it be elsewhere; what is outside of the
        outermost columns is nobody else's.
        """
        if not self.is_first and _is_left_of(self.left, triangle):
            return False
        return self.is_last or _is_left_of(self.right, triangle) is not False

    def _cross(self, a: int, b: int, c: int) -> float:
        """Twice the signed area of a triangle."""
        (ax, ay), (bx, by), (cx, cy) = self.points[[a, b, c]]
        return float((bx - ax) * (cy - ay) - (by - ay) * (cx - ax))

    def _is_convex(self, quad: list[int]) -> bool:
        turns = [self._cross(quad[k - 2], quad[k - 1], quad[k]) for k in range(4)]
        # Not by a hair: the map from the unit square must be well defined.
        return min(turns) > 1e-6 * max(turns)

    def _is_free(self, quad: list[int]) -> bool:
        """Whether no other point is in a quadrilateral or on its rim."""
        others = [row for row in (*self.left, *self.right) if row not in quad]
        sides = [(quad[k - 1], quad[k]) for k in range(4)]
        return not any(all(self._cross(a, b, row) >= 0 for a, b in sides) for row in others)


def _is_left_of(chain: list[int], triangle: tuple[int, ...]) -> bool | None:
    """Whether a counter-clockwise triangle is left of the column two of its corners are in;
    None if it has less than two there."""
    own = sorted(set(chain) & set(triangle), key=chain.index)
    if len(own) < 2:
        return None
    lower, upper = own[:2]
    return triangle[(triangle.index(lower) + 1) % 3] == upper
