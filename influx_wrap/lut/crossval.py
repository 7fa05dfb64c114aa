"""How well a table predicts each of its own experiments from the others.

Leave-one-out as in the paper: of the experiments in regions around the one left out, four
that form a grid region around it are looked for, and of several the one that interpolates
least over focal lengths is taken; that is bilinear interpolation. Otherwise the remaining
neighbours are triangulated, column by column as the table itself is, and the triangle that
holds the one left out answers: between two experiments of its own column, these two. An
experiment that is outside of what the others enclose, as most of the nearest and farthest of
their columns are, is not judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from influx_wrap.lut.kernels import in_quad, locate
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
        answer = _from_grid(lookup, row, around) or _from_strips(lookup, row, around)
        if answer is not None:
            vertices[row], weights[row] = answer
    mixed = np.full_like(table.values, np.nan)
    for row in np.flatnonzero(vertices[:, 0] >= 0).tolist():
        others = vertices[row][vertices[row] >= 0]
        values = lookup.experiments.without(row, others.tolist())
        mixed[row] = weights[row, : len(others)] @ scheme.blended(values, table.fd_m[others])
    predicted = scheme.intrinsics(mixed, table.fd_m)
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


def _from_strips(lookup: Lookup, row: int, around: list[int]) -> _Answer | None:
    """What the regions between the others say: of two of the same column, or of three."""
    places = lookup.regions.places
    columns = [
        np.array([k for k, other in enumerate(around) if other in rows])
        for rows in (set(rows.tolist()) for _, rows in lookup.table.columns)
    ]
    columns = [rows for rows in columns if len(rows)]
    if not columns:
        return None
    regions = make_regions(places[around], columns, np.empty((0, 4), dtype=np.int64))
    x, y = places[row : row + 1].T
    low, high = regions.range_of_y(x)
    slack = ON_RIM * np.ptp(places[:, 1])
    if not low[0] - slack <= y[0] <= high[0] + slack:
        return None
    region, weights = locate(x, y, regions.places, regions.vertices, regions.boxes)
    if region[0] < 0:
        return None
    vertices = regions.vertices[region[0]].tolist()
    return [around[k] if k >= 0 else -1 for k in vertices], weights[0]
