"""A triangulation in which chosen edges are kept, exact whatever the points.

Tables are small and their points lie almost in rows, the worst case for geometry in
floating point: a sliver of no width, seen from two sides, becomes a gap or an overlap.
So coordinates are whole numbers here: every float is one, times a power of two, and Python's
have any number of digits. Orientation and circle tests are exact.

Points are added from left to right, each joined to what it sees of the hull. Edges that
are to be kept are then brought in by flipping those they cross, and all others are flipped
until the triangles are Delaunay's.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

from influx_wrap.model.arrays import FloatArray

Edge = tuple[int, int]
Triangle = tuple[int, int, int]
_Point = tuple[int, int]


def triangulate(points: FloatArray, kept: Iterable[Edge] = ()) -> list[Triangle]:
    """Triangles, counter-clockwise, that tile the convex hull of distinct points (n, 2).

    Edges in ``kept`` are edges of the result. They must not cross each other or run through
    a third point. Empty if all points are on a line.
    """
    mesh = _Mesh(_whole_numbers(points))
    mesh.sweep()
    fixed = set()
    for a, b in kept:
        mesh.insert(a, b)
        fixed |= {(a, b), (b, a)}
    mesh.improve(fixed)
    return mesh.triangles()


def _whole_numbers(points: FloatArray) -> list[_Point]:
    """Points (n, 2) times the power of two that makes whole numbers of all coordinates."""
    exact = [[Fraction(value) for value in point] for point in points.tolist()]
    unit = max((value.denominator for point in exact for value in point), default=1)
    return [(int(x * unit), int(y * unit)) for x, y in exact]


class _Mesh:
    """Triangles as a map from each directed edge to the vertex on its left."""

    def __init__(self, points: list[_Point]) -> None:
        self.points = points
        self.left_of: dict[Edge, int] = {}

    def sweep(self) -> None:
        """Add all points from left to right."""
        order = sorted(range(len(self.points)), key=self.points.__getitem__)
        a, b = order[:2] if len(order) > 1 else (0, 0)
        first = next((k for k in range(2, len(order)) if self._turn(a, b, order[k])), None)
        if first is None:
            return
        # The points before the first that is not on their line make a fan with it.
        line, apex = order[:first], order[first]
        if self._turn(line[0], line[1], apex) < 0:
            line = line[::-1]
        for a, b in pairwise(line):
            self._add(a, b, apex)
        hull = [*line, apex]
        for point in order[first + 1 :]:
            hull = self._join(hull, point)

    def _join(self, hull: list[int], point: int) -> list[int]:
        """Connect a point outside with the sides of the hull it sees; returns the new hull."""
        n = len(hull)
        sees = [self._turn(hull[k], hull[(k + 1) % n], point) < 0 for k in range(n)]
        start = next(k for k in range(n) if sees[k] and not sees[k - 1])
        length = 0
        while sees[(start + length) % n]:
            a, b = hull[(start + length) % n], hull[(start + length + 1) % n]
            self._add(b, a, point)
            length += 1
        hidden = (start + length) % n
        kept = [hull[(hidden + k) % n] for k in range(n - length + 1)]
        return [*kept, point]

    def _add(self, a: int, b: int, c: int) -> None:
        self.left_of |= {(a, b): c, (b, c): a, (c, a): b}

    def insert(self, a: int, b: int) -> None:
        """Make (a, b) an edge by flipping the edges in its way."""
        while (a, b) not in self.left_of and (b, a) not in self.left_of:
            crossing = [(c, d) for c, d in self.left_of if c < d and self._cross(a, b, c, d)]
            flipped = False
            for edge in crossing:
                if self._convex(*edge):
                    new = self._flip(*edge)
                    flipped = True
                    if not self._cross(a, b, *new):
                        break
            if not flipped:
                raise ValueError(f"edge {a}, {b} cannot be kept: it crosses another or a point")

    def improve(self, fixed: set[Edge]) -> None:
        """Flip edges that are not fixed until no circle of a triangle holds a neighbour."""
        waiting = [edge for edge in self.left_of if edge[0] < edge[1]]
        while waiting:
            a, b = waiting.pop()
            if (a, b) in fixed or (a, b) not in self.left_of or (b, a) not in self.left_of:
                continue
            c, d = self.left_of[a, b], self.left_of[b, a]
            if self._in_circle(a, b, c, d) and self._convex(a, b):
                self._flip(a, b)
                waiting += [(a, c), (c, b), (b, d), (d, a)]

    def triangles(self) -> list[Triangle]:
        """Each once, its least vertex first."""
        return sorted((a, b, c) for (a, b), c in self.left_of.items() if a < b and a < c)

    def _flip(self, a: int, b: int) -> Edge:
        c, d = self.left_of.pop((a, b)), self.left_of.pop((b, a))
        self._add(c, d, b)
        self._add(d, c, a)
        return c, d

    def _convex(self, a: int, b: int) -> bool:
        """Whether the two triangles at edge a, b make up a strictly convex quadrilateral."""
        if (a, b) not in self.left_of or (b, a) not in self.left_of:
            return False
        c, d = self.left_of[a, b], self.left_of[b, a]
        return self._turn(d, b, c) > 0 and self._turn(c, a, d) > 0

    def _cross(self, a: int, b: int, c: int, d: int) -> bool:
        """Whether edges a, b and c, d cross inside both."""
        (ax, ay), (bx, by) = self.points[a], self.points[b]
        (cx, cy), (dx, dy) = self.points[c], self.points[d]
        # Most are far apart, which takes no arithmetic to see.
        if max(cx, dx) < min(ax, bx) or max(ax, bx) < min(cx, dx):
            return False
        if max(cy, dy) < min(ay, by) or max(ay, by) < min(cy, dy):
            return False
        if len({a, b, c, d}) < 4:
            return False
        return (
            self._turn(a, b, c) * self._turn(a, b, d) < 0
            and self._turn(c, d, a) * self._turn(c, d, b) < 0
        )

    def _turn(self, a: int, b: int, c: int) -> int:
        """1 if a, b, c turn left, -1 if right, 0 if they are on a line."""
        (ax, ay), (bx, by), (cx, cy) = self.points[a], self.points[b], self.points[c]
        one, other = (bx - ax) * (cy - ay), (by - ay) * (cx - ax)
        return (one > other) - (one < other)

    def _in_circle(self, a: int, b: int, c: int, d: int) -> bool:
        """Whether d is inside the circle through a, b, c."""
        dx, dy = self.points[d]
        rows = []
        for x, y in (self.points[k] for k in (a, b, c)):
            u, v = x - dx, y - dy
            rows.append((u, v, u * u + v * v))
        (a1, a2, a3), (b1, b2, b3), (c1, c2, c3) = rows
        determinant = a1 * (b2 * c3 - b3 * c2) - a2 * (b1 * c3 - b3 * c1) + a3 * (b1 * c2 - b2 * c1)
        return determinant > 0
