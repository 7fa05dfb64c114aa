"""Experiments count as far as their covariance says: the badly measured learn from the others.

A drone's single view says little about the principal point, whose sigma may be fifty times that
of a board nearby, but linear interpolation takes every experiment at its word. So before anything
is interpolated, what is known badly is replaced by a best estimate; the well measured stay as they
are, and regions and weights, too, so that answers are as continuous as before.

The estimate is by kriging. Two settings of a lens differ, in each intrinsic, by a variance that
grows linearly with their distance in ln LFL and 1 / FD; how fast, the experiments themselves show,
beyond their noise. Intrinsics are scaled by the focal length so that they change alike over the
zoom. With K the covariances that follow, S those of the measurements v (8 x 8 each), and
B = (K + S)^-1, all other experiments say that experiment i is off by T_i (B v)_i, with covariance
T_i - S_i, where T_i is the inverse of B's block i.

Along eigenvectors of S_i in units of T_i - S_i with an eigenvalue of at most ``TRUSTED`` the
measurement stays untouched. Along others the prediction takes over, and with it intrinsics that
are correlated with what it corrects: cx and p2, fx and k1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import eigh

from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.table import Table

TRUSTED = 9.0
"""A measurement's variance over that of what the others say, up to which it is not touched: a sigma
three times theirs."""
POWERS = np.array([0.0, 0, 0, 0, -2, -4, -1, -1])
"""Of the focal length by which intrinsics are multiplied: what they do at the picture's corner."""
_RIDGE = 1e-9
"""Of the usual variance, so that experiments without any noise can be inverted."""
_ITERATIONS = 20


@dataclass(frozen=True, eq=False)
class Experiments:
    """A table's n experiments as they count.

    values      (n, 8) intrinsics
    covariance  (n, 8, 8) theirs; NaN where it is not known
    fields      what each was estimated from; empty if all count alike
    """

    values: FloatArray
    covariance: FloatArray
    fields: Mapping[int, _Field] = field(default_factory=dict)

    def without(self, row: int, rows: list[int]) -> FloatArray:
        """(k, 8) values of some experiments (k,) if another, ``row``, had never been made."""
        values = self.values[rows]
        for k, other in enumerate(rows):
            if other in self.fields:
                values[k] = self.fields[other].without(row, other)
        return values


def as_measured(table: Table) -> Experiments:
    """All experiments count alike."""
    return Experiments(table.values, table.covariance)


def weighed(table: Table) -> Experiments:
    """What an experiment's covariance leaves open is taken from others of its own column and the
    two beside it."""
    known = np.asarray(np.isfinite(table.covariance).all(axis=(1, 2)))
    columns = [rows[known[rows]] for _, rows in table.columns]
    values, covariance = table.values.copy(), table.covariance.copy()
    fields: dict[int, _Field] = {}
    for number, own in enumerate(columns):
        rows = np.concatenate(columns[max(number - 1, 0) : number + 2])
        if len(own) == 0 or len(rows) < 2:
            continue
        lens = _make_field(table.rows(rows), rows)
        for row in own.tolist():
            fields[row] = lens
            values[row], covariance[row] = lens.estimate(row)
    return Experiments(values, covariance, fields)


@dataclass(frozen=True, eq=False)
class _Field:
    """What m experiments say about each other.

    table       theirs
    place       number of each, from 0, by its row in the whole table
    scale       (m, 8) what intrinsics are multiplied by
    noise       (m, 8, 8) covariance of the scaled measurements
    precision   (m, 8, m, 8) B
    pull        (m, 8) B v
    """

    table: Table
    place: Mapping[int, int]
    scale: FloatArray
    noise: FloatArray
    precision: FloatArray
    pull: FloatArray

    def estimate(self, row: int) -> tuple[FloatArray, FloatArray]:
        """Intrinsics (8,) of an experiment and their covariance (8, 8)."""
        k = self.place[row]
        return self._estimate(k, self.pull[k], self.precision[k, :, k])

    def without(self, row: int, other: int) -> FloatArray:
        """(8,) intrinsics of another experiment if ``row`` had never been made."""
        k, left = self.place[other], self.place.get(row)
        pull, precision = self.pull[k], self.precision[k, :, k]
        if left is not None:
            beside = self.precision[left, :, k]
            link = np.linalg.solve(self.precision[left, :, left], beside).T
            pull, precision = pull - link @ self.pull[left], precision - link @ beside
        return self._estimate(k, pull, precision)[0]

    def _estimate(
        self, k: int, pull: FloatArray, precision: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        values, noise, scale = self.table.values[k], self.noise[k], self.scale[k]
        both = np.linalg.inv(precision)
        share, vectors = eigh(noise, (both + both.T) / 2)
        ratio = share / np.maximum(1 - share, _RIDGE)
        if (ratio <= TRUSTED).all():
            return values, self.table.covariance[k]
        own = (TRUSTED / np.maximum(ratio, TRUSTED)) ** 2
        back = both @ vectors
        # In these coordinates the measurement has variance share, the prediction 1 - share.
        change = -back @ ((1 - own) * (back.T @ pull))
        spread = (back * (own**2 * share + (1 - own) ** 2 * (1 - share))) @ back.T
        return values + change / scale, spread / np.outer(scale, scale)


def _make_field(table: Table, rows: IntArray) -> _Field:
    """What experiments say about each other; ``rows`` (m,) are theirs in the whole table."""
    m = len(rows)
    focal = np.sqrt(table.values[:, 0] * table.values[:, 1])
    scale = focal[:, None] ** POWERS
    scale[:, :2] = 1 / table.lfl_mm[:, None]
    variance = np.diagonal(table.covariance, axis1=1, axis2=2) * scale**2
    usual = np.sqrt(np.median(variance, axis=0))
    scale = scale / np.where(usual > 0, usual, 1.0)
    noise = table.covariance * scale[:, :, None] * scale[:, None, :] + _RIDGE * np.eye(8)
    values = scale * table.values
    weights = 1 / np.diagonal(noise, axis1=1, axis2=2)
    values = values - (weights * values).sum(axis=0) / weights.sum(axis=0)
    change = _changes(table, values, noise)
    # The mean is not known: a level common to all that may be anything.
    prior = 10 * (change.max(axis=(0, 1)) + _RIDGE) - change / 2
    both = np.zeros((m, 8, m, 8))
    each, own = np.arange(8), np.arange(m)
    both[:, each, :, each] = prior.transpose(2, 0, 1)
    both[own, :, own] += noise
    inverse: FloatArray = np.asarray(np.linalg.inv(both.reshape(8 * m, 8 * m)), float)
    precision = inverse.reshape(m, 8, m, 8)
    pull = np.einsum("iajb,jb->ia", precision, values)
    place = {row: k for k, row in enumerate(rows.tolist())}
    return _Field(table, place, scale, noise, precision, pull)


def _changes(table: Table, values: FloatArray, noise: FloatArray) -> FloatArray:
    """(m, m, 8) variance of the lens's own change between experiments, of scaled values (m, 8)."""
    one, other = np.triu_indices(len(values), 1)
    column = np.empty(len(values), dtype=np.int64)
    for number, (_, rows) in enumerate(table.columns):
        column[rows] = number
    in_column = column[one] == column[other]
    square = (values[one] - values[other]) ** 2
    variance = np.diagonal(noise, axis1=1, axis2=2)
    variance = variance[one] + variance[other]
    along_x = np.abs(np.subtract.outer(np.log(table.lfl_mm), np.log(table.lfl_mm)))
    along_y = np.abs(np.subtract.outer(1 / table.fd_m, 1 / table.fd_m))
    x, y = along_x[one, other], along_y[one, other]
    rate_y = _rate(square[in_column], variance[in_column], y[in_column])
    rest = (square - rate_y * y[:, None])[~in_column]
    rate_x = _rate(rest, variance[~in_column], x[~in_column])
    return np.asarray(np.hypot(rate_x * along_x[..., None], rate_y * along_y[..., None]))


def _rate(square: FloatArray, variance: FloatArray, distance: FloatArray) -> FloatArray:
    """(8,) how fast squares of differences (e, 8) grow with distance (e,) beyond their noise
    (e, 8), with one sigma of its own on top: seeming constancy is no proof of it."""
    if not distance.any():
        return np.zeros(square.shape[1])
    along = distance[:, None]
    rate = np.maximum((square - variance).sum(axis=0) / along.sum(), 0.0)
    for _ in range(_ITERATIONS):
        # Experiments at the same place, to rounding, have weight zero.
        per_change = along / (variance + rate * along) ** 2
        weights = along * per_change
        rate = np.maximum((per_change * (square - variance)).sum(axis=0), 0.0)
        rate = rate / weights.sum(axis=0)
    # n values differ in n - 1 ways, however many pairs they make.
    repeated = max(np.sqrt(len(distance) / 2), 1.0)
    return np.asarray(rate + np.sqrt(2 * repeated / weights.sum(axis=0)))
