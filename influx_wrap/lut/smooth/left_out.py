"""What the rest of a lens says about each of its experiments.

Leaving an experiment out of a Gaussian process has a closed form, so all of them are judged at
once. An experiment with a z-score above ``ODD`` in one of its intrinsics contradicts the others:
metadata of another take, or a bad calibration. It is set aside, and the rest is fitted anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from threadpoolctl import threadpool_limits

from influx_wrap.lut.smooth.fit import FEWEST, OFFSETS, Measured, find_members
from influx_wrap.lut.smooth.hidden import hidden_scores
from influx_wrap.lut.smooth.lens import SmoothLens, check_size, mixed
from influx_wrap.lut.smooth.posterior import predict_measured
from influx_wrap.lut.smooth.prior import KERNELS, ROUGH
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.smooth_fit import SmoothFit
from influx_wrap.model.table import Table

ODD = 5.0
ODD_HIDDEN = 6.0
"""The same for one whose sigma comes from one Gaussian process alone."""
_MOST_SET_ASIDE = 0.2
_LARGEST_LOGARITHM = 20.0


@dataclass(frozen=True, eq=False)
class Expected:
    """What the other experiments say about each of n.

    values  (n, 8) intrinsics that they predict
    sigma   (n, 8) of the difference from the measured ones
    z       (n, 8) the difference in units of that
    """

    values: FloatArray
    sigma: FloatArray
    z: FloatArray

    @property
    def worst(self) -> FloatArray:
        """(n,) the largest |z| of an experiment."""
        return np.asarray(np.abs(self.z).max(axis=1))


@lru_cache(maxsize=2)
@threadpool_limits.wrap(limits=1)
def expected(lens: SmoothLens) -> Expected:
    """Each experiment of a lens's table as the others predict it; computed once for all who ask."""
    table = lens.table
    n = len(table.names)
    difference, spread = np.empty((n, 8)), np.empty((n, 8, 8))
    kept, weights = lens.kept, np.array([member.weight for member in lens.fit.members])
    parts = [posterior.left_out() for posterior in lens.posteriors]
    difference[kept], spread[kept] = mixed(weights, *map(np.array, zip(*parts, strict=True)))
    measured = Measured.of(table)
    aside = np.setdiff1d(np.arange(n), kept)
    if len(aside):
        lfl_mm, fd_m = table.lfl_mm[aside], table.fd_m[aside]
        parts = [
            predict_measured(posterior, posterior.coordinates.all(lfl_mm, fd_m))
            for posterior in lens.posteriors
        ]
        mean, own = mixed(weights, *map(np.array, zip(*parts, strict=True)))
        difference[aside] = measured.values[aside] - mean
        spread[aside] = own + measured.noise[aside]
    outputs = measured.outputs
    predicted = outputs.intrinsics(measured.values - difference, table.lfl_mm)
    slope = outputs.slope(predicted, table.lfl_mm)
    covariance = slope @ spread @ slope.transpose(0, 2, 1)
    sigma = np.sqrt(np.einsum("nii->ni", covariance))
    away = np.einsum("nij,nj->ni", slope, difference)
    return Expected(predicted, sigma, away / sigma)


def rough_between(lens: SmoothLens) -> tuple[float, float] | None:
    """The neighbouring focal lengths in mm between which a lens is most probably not smooth (a jump
    or a kink of its cam); None of a lens that is."""
    columns = lens.table.columns
    if len(columns) < 3 or all(member.kernel != ROUGH for member in lens.fit.members):
        return None
    z = expected(lens).z[:, 0]
    off = np.array([np.mean(z[rows] ** 2) for _, rows in columns])
    k = int(np.argmax(off[:-1] + off[1:]))
    return columns[k][0], columns[k + 1][0]


def is_of(fit: SmoothFit, table: Table) -> bool:
    """Whether a fit from a file is one of this table, and can be answered with."""
    hyper = np.array([member.hyper for member in fit.members])
    weights = np.array([member.weight for member in fit.members])
    return bool(
        fit.fitted_to == table.fingerprint
        and set(fit.set_aside) <= set(table.names)
        and len(table.names) - len(fit.set_aside) >= FEWEST
        and all(member.kernel in KERNELS for member in fit.members)
        and all(member.offset in OFFSETS for member in fit.members)
        and np.abs(hyper).max() <= _LARGEST_LOGARITHM
        and abs(weights.sum() - 1) <= 1e-6
    )


@threadpool_limits.wrap(limits=1)
def fit_smooth(table: Table) -> SmoothFit:
    """The smooth lens of a table, without the experiments that contradict the others."""
    check_size(table)
    rows = np.arange(len(table.names))
    fewest = max(len(rows) - int(_MOST_SET_ASIDE * len(rows)), FEWEST + 2)
    members = find_members(table)
    while len(rows) > fewest:
        kept = table.rows(rows)
        worst = expected(SmoothLens(kept, SmoothFit(members, table.fingerprint))).worst
        if worst.max() > ODD:
            rows = np.delete(rows, int(np.argmax(worst)))
            members = find_members(table.rows(rows))
            continue
        hidden = hidden_scores(kept, members)
        row = int(np.argmax(hidden))
        if hidden[row] <= ODD_HIDDEN:
            break
        others = np.delete(rows, row)
        without = find_members(table.rows(others))
        # A lens may bend at an end of its range, as one Gaussian process alone would not have it.
        fit = SmoothFit(without, table.fingerprint, (kept.names[row],))
        if expected(SmoothLens(kept, fit)).worst[row] <= ODD:
            break
        rows, members = others, without
    names = {table.names[row] for row in rows.tolist()}
    aside = tuple(name for name in table.names if name not in names)
    return SmoothFit(members, table.fingerprint, aside)
