"""Experiments that hide: wrong, but the hyper-parameters have given way to them.

An experiment that is off makes the lens look rougher than it is, and then it is not far off any
more. So those that stand out a little are each left out of the search for hyper-parameters, one
output and one Gaussian process at a time, and are judged by what the others alone make of the
lens.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from influx_wrap.lut.smooth.fit import WIDENING, Measured
from influx_wrap.lut.smooth.hull import make_hull
from influx_wrap.lut.smooth.hyper import OutputData, find
from influx_wrap.lut.smooth.outputs import ASPECT, N_OUTPUTS
from influx_wrap.lut.smooth.places import Places
from influx_wrap.lut.smooth.prior import (
    ALONE,
    basis,
    covariance,
    variance,
)
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.smooth_fit import Member
from influx_wrap.model.table import Table

_CANDIDATES = 3
_STANDS_OUT = 1.5
_FAR_OUT = 0.05
"""Of what the others extend over."""


def hidden_scores(table: Table, members: tuple[Member, ...]) -> FloatArray:
    """(n,) largest |z| of each experiment that stands out, hyper-parameters found without it;
    zero for the others."""
    best = max(members, key=lambda member: member.weight)
    beyond = far_out(table)
    x = Places.of(table, best.offset).all(table.lfl_mm, table.fd_m)
    measured = Measured.of(table)
    scores = np.zeros(len(table.names))
    for j in range(N_OUTPUTS):
        if j == ASPECT:
            continue
        evidence = measured.of_output(best.kernel, x, j)
        for row in _standing_out(evidence, best.hyper[j]).tolist():
            if not beyond[row]:
                scores[row] = max(scores[row], _score_without(evidence, row))
    return scores


def far_out(table: Table) -> BoolArray:
    """(n,) which experiments are far outside of what the others surround: what they find there, the
    others cannot contradict."""
    points = np.column_stack([np.log(table.lfl_mm), 1 / table.fd_m])
    rows = range(len(points))
    away = [make_hull(np.delete(points, k, axis=0)).away(points[[k]])[0] for k in rows]
    return np.array(away) > _FAR_OUT


def _standing_out(evidence: OutputData, hyper: FloatArray) -> IntArray:
    """(k,) the experiments with the largest z-scores, hyper-parameters found with them."""
    inverse = np.linalg.inv(_total(evidence, hyper))
    z = np.abs(inverse @ evidence.values) / np.sqrt(np.diag(inverse))
    order = np.argsort(-z)[:_CANDIDATES]
    return order[z[order] > _STANDS_OUT]


def _score_without(evidence: OutputData, row: int) -> float:
    """|z| of an experiment, hyper-parameters found without it and their amplitudes widened."""
    others = np.arange(len(evidence.values)) != row
    rest = replace(
        evidence,
        places=evidence.places[others],
        values=evidence.values[others],
        variance=evidence.variance[others],
    )
    hyper, _ = find(rest)
    hyper[:3] += np.log(WIDENING)
    own = evidence.places[[row]]
    between = _between(evidence, hyper, own, rest.places)[0]
    factor = cho_factor(_total(rest, hyper), lower=True)
    spread = variance(hyper, own)[0] + basis(own)[0] ** 2 @ evidence.linear
    spread += evidence.variance[row] + np.exp(2 * hyper[ALONE])
    spread -= between @ cho_solve(factor, between)
    return float(abs(evidence.values[row] - between @ cho_solve(factor, rest.values)) / spread**0.5)


def _between(
    evidence: OutputData, hyper: FloatArray, x: FloatArray, other: FloatArray
) -> FloatArray:
    smooth = covariance(evidence.kernel, hyper, x, other)
    return np.asarray(smooth + (basis(x) * evidence.linear) @ basis(other).T)


def _total(evidence: OutputData, hyper: FloatArray) -> FloatArray:
    """(n, n) covariance of what was measured."""
    noise = evidence.variance + np.exp(2 * hyper[ALONE])
    return _between(evidence, hyper, evidence.places, evidence.places) + np.diag(noise)
