"""A table that answers, whatever the scheme: regions between experiments, or the smooth lens."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

from numpy.typing import ArrayLike

from influx_wrap.lut.lookup import Answers, Lookup, make_lookup
from influx_wrap.lut.schemes import DEFAULT, SMOOTH
from influx_wrap.lut.smooth.left_out import fit_smooth, is_of
from influx_wrap.lut.smooth.lens import SmoothLens
from influx_wrap.lut.uncertainty import ErrorModel, make_error_model, sigma
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.table import Table


class LensModel(Protocol):
    """Intrinsics and sigma at any setting."""

    @property
    def table(self) -> Table:
        """Whose answers these are."""

    @property
    def scheme_name(self) -> str:
        """One of ``SCHEMES``."""

    @property
    def nearest_m(self) -> float:
        """FD down to which answers are given; 0 if that depends on LFL."""

    def query(self, lfl_mm: ArrayLike, fd_m: ArrayLike) -> Answers:
        """Intrinsics at focal lengths and focus distances (q,), infinity included."""

    def sigma(self, answers: Answers, lfl_mm: FloatArray, fd_m: FloatArray) -> FloatArray:
        """(q, 8) standard deviations of answers (q,) at settings (q,)."""

    def covariance(
        self, answers: Answers, lfl_mm: FloatArray, fd_m: FloatArray
    ) -> FloatArray | None:
        """(q, 8, 8) of answers (q,); None from schemes that know sigmas only."""


@dataclass(frozen=True, eq=False)
class RegionLens:
    """Regions between experiments, with what leaving experiments out says about errors."""

    lookup: Lookup

    @property
    def table(self) -> Table:
        """Whose answers these are."""
        return self.lookup.table

    @property
    def scheme_name(self) -> str:
        """One of ``SCHEMES``."""
        return self.lookup.scheme.name

    @property
    def nearest_m(self) -> float:
        """Depends on LFL."""
        return 0.0

    @cached_property
    def errors(self) -> ErrorModel:
        """What sigmas are made of."""
        return make_error_model(self.lookup)

    def query(self, lfl_mm: ArrayLike, fd_m: ArrayLike) -> Answers:
        """Intrinsics at focal lengths and focus distances (q,), infinity included."""
        return self.lookup.query(lfl_mm, fd_m)

    def sigma(self, answers: Answers, lfl_mm: FloatArray, fd_m: FloatArray) -> FloatArray:
        """(q, 8) standard deviations of answers (q,) at settings (q,)."""
        return sigma(self.lookup, self.errors, answers, lfl_mm, fd_m)

    def covariance(self, answers: Answers, lfl_mm: FloatArray, fd_m: FloatArray) -> None:
        """Not known."""


def make_lens_model(
    table: Table, scheme: str = DEFAULT, *, by_covariance: bool | None = None
) -> LensModel:
    """A table, ready to answer by a scheme; ``by_covariance`` is for schemes with regions (see
    ``make_lookup``): the smooth lens always weighs experiments by their covariance."""
    if scheme == SMOOTH:
        return smooth_lens(table)
    return RegionLens(make_lookup(table, scheme, by_covariance=by_covariance))


def is_fitted(table: Table) -> bool:
    """Whether a table's file has a fit, and that of the experiments that are in it."""
    return table.smooth is not None and is_of(table.smooth, table)


@lru_cache(maxsize=2)
def smooth_lens(table: Table) -> SmoothLens:
    """The smooth lens of a table, the same one each time; what its file does not know about it is
    found out."""
    known = table.smooth
    if known is None or not is_fitted(table):
        known = fit_smooth(table)
    return SmoothLens(table, known)
