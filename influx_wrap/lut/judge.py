"""Schemes compared by what leaving experiments out says about each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from influx_wrap.lut.crossval import LeftOut
from influx_wrap.lut.lookup import Lookup, make_lookup
from influx_wrap.lut.schemes import REGION_SCHEMES, SMOOTH
from influx_wrap.lut.smooth.left_out import expected
from influx_wrap.lut.smooth.lens import SmoothLens
from influx_wrap.lut.uncertainty import ErrorModel, make_error_model
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.table import Table

TIE = 1e-9


@dataclass(frozen=True, eq=False)
class Judgement:
    """A scheme's leave-one-out errors on a table of n experiments.

    lookup  the table, as the scheme reads it
    model   the scheme's, with what each experiment was predicted from
    errors  (n, 8) in per cent for fx, fy, cx, cy, absolute for the rest; NaN where an
            experiment is not enclosed by others
    within  (8,) share of the errors within one sigma; NaN where no sigma is known
    """

    lookup: Lookup
    model: ErrorModel
    errors: FloatArray
    within: FloatArray

    @property
    def scheme(self) -> str:
        """Its name."""
        return self.lookup.scheme.name

    @property
    def left_out(self) -> LeftOut:
        """Each experiment predicted from the others."""
        return self.model.left_out

    @property
    def judged(self) -> int:
        """How many experiments could be predicted."""
        return int(self.left_out.judged.sum())

    @property
    def median(self) -> FloatArray:
        """(8,) of the errors."""
        return np.asarray(np.median(self.errors[self.left_out.judged], axis=0))

    @property
    def largest(self) -> FloatArray:
        """(8,) of the errors."""
        return np.asarray(np.max(self.errors[self.left_out.judged], axis=0))


def judge(table: Table, scheme: str) -> Judgement:
    """Leave every experiment out once."""
    lookup = make_lookup(table, scheme)
    table = lookup.table
    model = make_error_model(lookup)
    left_out = model.left_out
    difference = np.abs(left_out.predicted - table.values)
    # Sigma is scaled such that one of the errors is just as large: rounding must not decide.
    share = np.where(
        np.isnan(model.left_out_sigma),
        np.nan,
        difference <= (1 + TIE) * model.left_out_sigma,
    )
    errors = difference.copy()
    errors[:, :4] *= 100 / np.abs(table.values[:, :4])
    judged = left_out.judged
    known = judged & ~np.isnan(share).any(axis=1)
    within = share[known].mean(axis=0) if known.any() else np.full(8, np.nan)
    return Judgement(lookup, model, errors, within)


@dataclass(frozen=True, eq=False)
class SmoothJudgement:
    """The same of the smooth lens, which predicts every experiment: here are the errors of those
    that the other schemes can predict, too.

    errors  (n, 8) as of a ``Judgement``
    within  (8,) share of the errors within one sigma
    """

    errors: FloatArray
    within: FloatArray
    scheme: str = SMOOTH

    @property
    def judged(self) -> int:
        """How many experiments could be predicted."""
        return int(np.isfinite(self.errors[:, 0]).sum())

    @property
    def median(self) -> FloatArray:
        """(8,) of the errors."""
        return np.asarray(np.nanmedian(self.errors, axis=0))

    @property
    def largest(self) -> FloatArray:
        """(8,) of the errors."""
        return np.asarray(np.nanmax(self.errors, axis=0))


def judge_smooth(lens: SmoothLens, judged: BoolArray) -> SmoothJudgement:
    """Leave every experiment out once; of those at a finite distance, count the ``judged`` (n,)."""
    said, table = expected(lens), lens.table
    n = len(judged)
    errors = np.abs(said.values - table.values)[:n]
    errors[:, :4] *= 100 / np.abs(table.values[:n, :4])
    errors[~judged] = np.nan
    return SmoothJudgement(errors, np.mean(np.abs(said.z[:n][judged]) <= 1, axis=0))


def judge_all(table: Table) -> list[Judgement]:
    """All schemes on one table."""
    return [judge(table, scheme) for scheme in REGION_SCHEMES]


Judged = Judgement | SmoothJudgement


def favoured(judgements: Sequence[Judged]) -> Judged | None:
    """The scheme with the smallest root mean square of the focal lengths' errors."""
    able = [judgement for judgement in judgements if judgement.judged]
    if not able:
        return None
    return min(able, key=lambda j: float(np.nanmean(j.errors[:, :2] ** 2)))
