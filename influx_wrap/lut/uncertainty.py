"""How far an answer may be off: measurement and interpolation.

What the experiments' own covariances say is carried over by the weights. Between experiments
the lens may bend away from what is interpolated: the error of linear interpolation is

    1/2 (Hxx Gx + Hyy Gy),    Gx = sum of w_i (x_i - x)^2,  Gy likewise in y

with H the second derivatives. How large those are nearby, leaving experiments out tells: what
their neighbours in the same column, or in the columns on both sides, predict, differs from
them by -1/2 H d1 d2, with d1, d2 the distances to the two. So the error vanishes at an
experiment and grows towards the middle of a region. One factor for each intrinsic and
direction makes up for what the model lacks: it is such that 68 % of these differences are
within one sigma, each judged by the second derivatives at its neighbours alone. A last one
for each intrinsic does the same for the paper's leave-one-out errors.

An experiment without a covariance may be off by any amount, and so may an answer that takes
part in it: their sigma is not known, which is NaN, and never the part that is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from influx_wrap.lut.crossval import LeftOut, leave_one_out
from influx_wrap.lut.lookup import Answers, Lookup, Status
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray

FACTORS = (0.1, 10.0)
NO_WEIGHT = 1e-9
"""An experiment with less has no part in an answer, but for rounding."""
WITHIN_ONE_SIGMA = 0.6827


@dataclass(frozen=True, eq=False)
class ErrorModel:
    """Errors of what a lookup blends, at its n experiments, and what they were judged by.

    variance        (n, 8) of measurement; NaN where it is not known
    curvature       (n, 2, 8) mean square of the second derivatives in x and in y nearby
    left_out        each experiment predicted from the others
    left_out_sigma  (n, 8) standard deviation of the difference between a predicted and a
                    measured intrinsic, without what the experiment itself says about bends;
                    NaN where it is not known
    """

    variance: FloatArray
    curvature: FloatArray
    left_out: LeftOut
    left_out_sigma: FloatArray


def make_error_model(lookup: Lookup) -> ErrorModel:
    """What leaving experiments out says about a table's errors."""
    table, scheme, blended = lookup.table, lookup.scheme, lookup.blended
    slope = scheme.slope(blended, table.fd_m)
    measured = np.diagonal(lookup.experiments.covariance, axis1=1, axis2=2) / slope**2
    # How much a lens bends can be told without knowing how well it was measured.
    variance = np.nan_to_num(measured)
    bends, near = _bends(lookup, blended, variance), lookup.regions.neighbours
    others = _local(bends.square, near & ~np.eye(len(near), dtype=bool))
    factor = np.stack([_true_factor(bends, others, axis) for axis in range(2)])

    left_out = leave_one_out(lookup)
    noise, bent = variance.copy(), np.zeros_like(variance)
    for row in np.flatnonzero(left_out.judged).tolist():
        known = bends.square.copy()
        known[row] = np.nan
        own = slice(row, row + 1)
        by_others, bent[own] = _blended_variance(
            lookup,
            left_out.vertices[own],
            left_out.weights[own],
            lookup.regions.places[own],
            variance,
            factor**2 * _local(known, near),
        )
        noise[row] += by_others[0]
    error = (left_out.predicted - table.values) / slope
    scale = _true_scale(error[left_out.judged], noise[left_out.judged], bent[left_out.judged])
    left_out_sigma = np.abs(slope) * np.sqrt(noise + scale**2 * bent)
    unknown = np.isnan(measured) | _is_unknown(measured, left_out.vertices, left_out.weights)
    return ErrorModel(
        measured,
        scale**2 * factor**2 * _local(bends.square, near),
        left_out,
        np.where(unknown, np.nan, left_out_sigma),
    )


def sigma(
    lookup: Lookup, model: ErrorModel, answers: Answers, lfl_mm: FloatArray, fd_m: FloatArray
) -> FloatArray:
    """(q, 8) standard deviations of answers (q,) at settings (q,); NaN where there is no answer,
    or where an experiment that it comes from has no covariance."""
    scheme = lookup.scheme
    places = np.einsum("qk,qkc->qc", answers.weights, lookup.regions.places[answers.vertices])
    measured, bent = _blended_variance(
        lookup,
        answers.vertices,
        answers.weights,
        places,
        np.nan_to_num(model.variance),
        model.curvature,
    )
    fd = np.where(answers.status == Status.EXTRAPOLATED, scheme.fd(places[:, 1]), fd_m)
    blended = np.einsum("qk,qkc->qc", answers.weights, lookup.blended[answers.vertices])
    slope = scheme.slope(blended, fd)
    result = np.abs(slope) * np.sqrt(measured + bent)
    beyond = answers.status == Status.EXTRAPOLATED
    if beyond.any():
        columns, _, scatter = lookup.column_lenses
        relative = np.interp(lfl_mm[beyond], columns, scatter)
        focal = answers.intrinsics[beyond, :2]
        result[beyond, :2] = np.hypot(result[beyond, :2], relative[:, None] * focal)
    result[~answers.answered] = np.nan
    result[_is_unknown(model.variance, answers.vertices, answers.weights)] = np.nan
    return result


def _is_unknown(variance: FloatArray, vertices: IntArray, weights: FloatArray) -> BoolArray:
    """(q, 8) whether a variance (n, 8) is NaN that has weight (q, k) among vertices (q, k)."""
    has_part = np.abs(weights)[..., None] > NO_WEIGHT
    return np.asarray((np.isnan(variance)[vertices] & has_part).any(axis=1))


def _blended_variance(
    lookup: Lookup,
    vertices: IntArray,
    weights: FloatArray,
    places: FloatArray,
    variance: FloatArray,
    curvature: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """(q, 8) each: what measurement and what interpolation contribute at places (q, 2)."""
    measured = np.einsum("qk,qkc->qc", weights**2, variance[vertices])
    away = lookup.regions.places[vertices] - places[:, None]
    reach = np.einsum("qk,qka->qa", weights, away**2)
    local = np.einsum("qk,qkac->qac", weights, curvature[vertices])
    bent = np.einsum("qa,qac->qc", (0.5 * reach) ** 2, local)
    return measured, bent


@dataclass(frozen=True, eq=False)
class _Bends:
    """Differences of n experiments from what those on both sides predict, in x and in y.

    error   (n, 2, 8), NaN where there are none on both sides
    noise   (n, 2, 8) variance of the error from measurement
    reach   (n, 2) d1 d2: half of it times the second derivative is the error
    """

    error: FloatArray
    noise: FloatArray
    reach: FloatArray

    @property
    def square(self) -> FloatArray:
        """(n, 2, 8) squares of the second derivatives, less those of the noise."""
        return np.asarray((self.error**2 - self.noise) * (2 / self.reach[..., None]) ** 2)


def _bends(lookup: Lookup, blended: FloatArray, variance: FloatArray) -> _Bends:
    table, places = lookup.table, lookup.regions.places
    shape = len(places), 2, blended.shape[1]
    bends = _Bends(np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape[:2], np.nan))
    columns = [rows[np.argsort(places[rows, 1])] for _, rows in table.columns]
    for number, rows in enumerate(columns):
        for k, row in enumerate(rows.tolist()):
            y = places[row, 1]
            sides: list[tuple[_Share | None, _Share | None]] = [(None, None), (None, None)]
            if 0 < number < len(columns) - 1:
                left, right = columns[number - 1], columns[number + 1]
                sides[0] = _along(places, left, y), _along(places, right, y)
            if 0 < k < len(rows) - 1:
                sides[1] = ([int(rows[k - 1])], [1.0]), ([int(rows[k + 1])], [1.0])
            for axis, (one, other) in enumerate(sides):
                if one is not None and other is not None:
                    _measure_bend(bends, blended, variance, places, row, axis, one, other)
    return bends


_Share = tuple[list[int], list[float]]


def _along(places: FloatArray, rows: IntArray, y: float) -> _Share | None:
    """The experiments of a column around y and their weights; None beyond its ends."""
    heights = places[rows, 1]
    if not heights[0] <= y <= heights[-1] or len(rows) < 2:
        return None
    k = int(np.clip(np.searchsorted(heights, y), 1, len(rows) - 1))
    share = (y - heights[k - 1]) / (heights[k] - heights[k - 1])
    return [int(rows[k - 1]), int(rows[k])], [1 - share, share]


def _measure_bend(
    bends: _Bends,
    blended: FloatArray,
    variance: FloatArray,
    places: FloatArray,
    row: int,
    axis: int,
    one: _Share,
    other: _Share,
) -> None:
    """Fill in the difference of an experiment from the line between one side and the other."""
    at = [float(np.dot(shares, places[rows, axis])) for rows, shares in (one, other)]
    before, after = places[row, axis] - at[0], at[1] - places[row, axis]
    if before <= 0 or after <= 0:
        return  # Two experiments at the same place say nothing about bends.
    share = before / (before + after)
    rows = [*one[0], *other[0]]
    weights = np.array([*((1 - share) * np.array(one[1])), *(share * np.array(other[1]))])
    bends.error[row, axis] = weights @ blended[rows] - blended[row]
    bends.noise[row, axis] = weights**2 @ variance[rows] + variance[row]
    bends.reach[row, axis] = before * after


def _local(bends: FloatArray, near: BoolArray) -> FloatArray:
    """(n, 2, 8) what bends (n, 2, 8) of near experiments say about each.

    Their mean where an experiment has a bend of its own among them. On the rim of a table
    nothing is known about the side beyond, and lenses bend most at their near limit: there
    the largest counts.
    """
    known = np.isfinite(bends)
    own = known & np.diag(near)[:, None, None]
    total = np.einsum("ij,jac->iac", near, np.where(known, bends, 0.0))
    count = np.einsum("ij,jac->iac", near, known)
    floor = np.where(known, bends, -np.inf)
    largest = np.stack([floor[some].max(axis=0, initial=-np.inf) for some in near])
    everywhere = floor.max(axis=0, initial=0.0)
    on_rim = np.where(count > 0, largest, everywhere)
    return np.maximum(np.where(own, total / np.maximum(count, 1), on_rim), 0.0)


def _true_factor(bends: _Bends, others: FloatArray, axis: int) -> FloatArray:
    """(8,) by which second derivatives must be multiplied so that 68 % of the differences along
    an axis are within one sigma, judged by those of ``others`` (n, 2, 8)."""
    known = np.isfinite(bends.reach[:, axis])
    bent = (0.5 * bends.reach[known, axis, None]) ** 2 * others[known, axis]
    return _true_scale(bends.error[known, axis], bends.noise[known, axis], bent)


def _true_scale(error: FloatArray, noise: FloatArray, bent: FloatArray) -> FloatArray:
    """(8,) f such that 68 % of errors (n, 8) are within sqrt(noise + f^2 bent)."""
    if len(error) == 0:
        return np.ones(error.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.sqrt((error**2 - noise) / bent)
    needed = np.where(error**2 <= noise, 0.0, needed)
    return np.clip(np.quantile(needed, WITHIN_ONE_SIGMA, axis=0, method="higher"), *FACTORS)
