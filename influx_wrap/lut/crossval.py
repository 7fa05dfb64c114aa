"""How well a table predicts each of its own experiments from the others.

Leave-one-out as in the paper: of the experiments in regions around the one left out, four
that form a grid region around it are looked for, and of several the one that interpolates
least over focal lengths is taken; that is bilinear interpolation. Otherwise the remaining
neighbours are triangulated and the triangle that holds the one left out answers. An
experiment on the rim of the others is not enclosed by them, and is not judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from influx_wrap.lut.kernels import in_quad, in_triangle
from influx_wrap.lut.lookup import Lookup
from influx_wrap.lut.regions import make_regions
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray

ON_RIM = 1e-9


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Predictions of a table's n experiments.

    predicted  (n, 8) intrinsics; NaN for experiments that no others enclose
    vertices   (n, 4) which experiments predicted it, -1 for nobody
    weights    (n, 4) of the vertices
    """

    predicted: FloatArray
    vertices: IntArray
    weights: FloatArray

    @property
    def judged(self) -> BoolArray:
        """(n,) which experiments were predicted."""
        return np.asarray(self.vertices[:, 0] >= 0)

    @property
    def is_bilinear(self) -> BoolArray:
        """(n,) which were predicted from four experiments of the grid."""
        return np.asarray(self.vertices[:, 3] >= 0)


def leave_one_out(lookup: Lookup) -> LeftOut:
    """Predict each experiment of a table from the others."""
    table, scheme = lookup.table, lookup.scheme
    n = len(table.names)
    vertices, weights = np.full((n, 4), -1), np.zeros((n, 4))
    for row in range(n):
        around = _neighbours(lookup, row)
        answer = _from_grid(lookup, row, around) or _from_triangles(lookup, row, around)
        if answer is not None:
            vertices[row], weights[row] = answer
    judged = vertices[:, 0] >= 0
    blended = scheme.blended(table.values, table.fd_m)
    mixed = np.einsum("nk,nkc->nc", weights, blended[vertices])
    predicted = scheme.intrinsics(mixed, table.fd_m)
    predicted[~judged] = np.nan
    return LeftOut(predicted, vertices, weights)


_Answer = tuple[list[int], FloatArray]


def _neighbours(lookup: Lookup, row: int) -> list[int]:
    """The experiments in regions that involve an experiment."""
    involved = lookup.regions.vertices[(lookup.regions.vertices == row).any(axis=1)]
    return sorted(set(involved.ravel().tolist()) - {row, -1})


def _from_grid(lookup: Lookup, row: int, around: list[int]) -> _Answer | None:
    """Four board experiments, two at each of two focal lengths, that enclose one."""
    table, places = lookup.table, lookup.regions.places
    boards = [k for k in around if not table.is_drone[k]]
    row_at = {tuple(table.grid[k].tolist()): k for k in boards}
    zooms = sorted({z for z, _ in row_at})
    focuses = sorted({f for _, f in row_at})
    best: tuple[float, _Answer] | None = None
    for z0, z1 in combinations(zooms, 2):
        for f0, f1 in combinations(focuses, 2):
            names = ((z0, f0), (z1, f0), (z1, f1), (z0, f1))
            if not all(name in row_at for name in names):
                continue
            quad = [row_at[name] for name in names]
            weights = np.zeros(4)
            if in_quad(places[quad], places[row, 0], places[row, 1], weights) < -ON_RIM:
                continue
            over_lfl = float(np.sum(weights * np.abs(places[quad, 0] - places[row, 0])))
            if best is None or over_lfl < best[0]:
                best = over_lfl, (quad, weights)
    return None if best is None else best[1]


def _from_triangles(lookup: Lookup, row: int, around: list[int]) -> _Answer | None:
    """Three experiments around one."""
    if len(around) < 3:
        return None
    places = lookup.regions.places
    triangles = make_regions(places[around], np.empty((0, 4), dtype=np.int64)).vertices
    for triangle in triangles.tolist():
        if triangle[2] < 0:
            continue
        corners = [around[k] for k in triangle[:3]]
        weights = np.zeros(4)
        if in_triangle(places[corners], places[row, 0], places[row, 1], weights) > ON_RIM:
            return [*corners, -1], weights
    return None
