"""The smooth lens, ready to answer.

Answers are given wherever the lens can be set: between experiments, on to infinity, and down to
``NEAREST`` of the nearest experiment. Where no experiments are around, sigma says so.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from influx_wrap.errors import InputError
from influx_wrap.lut.lookup import Answers, Status
from influx_wrap.lut.schemes import SMOOTH
from influx_wrap.lut.smooth.fit import FEWEST, Measured
from influx_wrap.lut.smooth.grid import OFFSET, Grid, make_grid
from influx_wrap.lut.smooth.hull import Hull, make_hull
from influx_wrap.lut.smooth.places import Places
from influx_wrap.lut.smooth.posterior import Posterior, condition
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.smooth_fit import SmoothFit
from influx_wrap.model.table import Table

NEAREST = 0.8
"""Share of the nearest experiment's focus distance down to which answers are given."""
LFL_MARGIN = 0.01
"""How far beyond the experiments', relatively, a focal length is answered: what metadata jitter."""
_MANY = 2000
"""With more queries than that, the grid is worth its making."""
_MOST_THREADS = 4
"""Each needs 100 MB for the grid of 80 experiments."""


@dataclass(frozen=True, eq=False)
class SmoothLens:
    """A table with what is known about its smoothness."""

    table: Table
    fit: SmoothFit

    scheme_name = SMOOTH

    def __post_init__(self) -> None:
        check_size(self.table)

    @cached_property
    def kept(self) -> IntArray:
        """(k,) rows of the table's experiments that take part."""
        return np.flatnonzero([name not in self.fit.set_aside for name in self.table.names])

    @cached_property
    def measured(self) -> Measured:
        """The experiments that take part."""
        return Measured.of(self.table.rows(self.kept))

    @cached_property
    def posteriors(self) -> tuple[Posterior, ...]:
        """One a member."""
        table, result = self.table.rows(self.kept), []
        for member in self.fit.members:
            places = Places.of(table, member.offset)
            x = places.all(table.lfl_mm, table.fd_m)
            args = member.hyper, x, self.measured.values, self.measured.noise
            with threadpool_limits(limits=1):
                result.append(condition(member.kernel, places, *args))
        return tuple(result)

    @property
    def _weights(self) -> FloatArray:
        return np.array([member.weight for member in self.fit.members])

    @cached_property
    def places(self) -> Places:
        """The coordinates that answers are asked in; each member has its own besides."""
        return Places.of(self.table.rows(self.kept), OFFSET)

    @threadpool_limits.wrap(limits=1)
    def outputs(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Outputs (q, 8) and their covariance (q, 8, 8) at ``places`` (q, 2), all members
        together."""

        def of(one: Posterior) -> tuple[FloatArray, FloatArray]:
            return one.mean_and_covariance(self.places.moved(x, one.coordinates.offset))

        # Most of it is solving equations, which leaves other threads free.
        with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:
            parts = list(threads.map(of, self.posteriors))
        return mixed(self._weights, *map(np.array, zip(*parts, strict=True)))

    @cached_property
    def grid(self) -> Grid:
        """The same at the nodes of a grid."""
        places = self.places
        ends = np.array(places.lfl_mm) * np.array([1 - LFL_MARGIN, 1 + LFL_MARGIN])
        u = places.u(ends)
        nearest = places.v(np.array(self.nearest_m))
        low, high = np.array([u[0], 0.0]), np.array([u[1], nearest])
        return make_grid(places, low, high, self.outputs)

    def _at(self, lfl_mm: FloatArray, fd_m: FloatArray) -> tuple[FloatArray, FloatArray]:
        if len(lfl_mm) <= _MANY:
            return self.outputs(self.places.both(lfl_mm, fd_m))
        mean, covariance = self.grid.at(lfl_mm, fd_m)
        # Where experiments are far more exact than what is between them, the grid is too coarse.
        lost = np.flatnonzero((np.einsum("qii->qi", covariance) <= 0).any(axis=1))
        if len(lost):
            covariance[lost] = self.outputs(self.places.both(lfl_mm[lost], fd_m[lost]))[1]
        return mean, covariance

    def query(self, lfl_mm: ArrayLike, fd_m: ArrayLike) -> Answers:
        """Intrinsics at focal lengths and focus distances (q,), infinity included."""
        lfl, fd = np.broadcast_arrays(np.asarray(lfl_mm, float), np.asarray(fd_m, float))
        lfl, fd = np.ravel(lfl), np.ravel(fd)
        status = self._status(lfl, fd)
        answered = status <= Status.EXTRAPOLATED
        intrinsics = np.full((len(lfl), 8), np.nan)
        if answered.any():
            mean = self._mean(lfl[answered], fd[answered])
            intrinsics[answered] = self.measured.outputs.intrinsics(mean, lfl[answered])
        nobody = np.empty((len(lfl), 0))
        return Answers(intrinsics, status, nobody.astype(np.int64), nobody)

    def covariance(self, answers: Answers, lfl_mm: FloatArray, fd_m: FloatArray) -> FloatArray:
        """(q, 8, 8) of answers (q,) at settings (q,); NaN where there is no answer."""
        result = np.full((len(lfl_mm), 8, 8), np.nan)
        some = answers.answered
        if some.any():
            slope = self.measured.outputs.slope(answers.intrinsics[some], lfl_mm[some])
            spread = self._at(lfl_mm[some], fd_m[some])[1]
            result[some] = slope @ spread @ slope.transpose(0, 2, 1)
        return result

    def sigma(self, answers: Answers, lfl_mm: FloatArray, fd_m: FloatArray) -> FloatArray:
        """(q, 8) standard deviations of answers (q,) at settings (q,)."""
        return np.asarray(np.sqrt(np.einsum("qii->qi", self.covariance(answers, lfl_mm, fd_m))))

    def _mean(self, lfl_mm: FloatArray, fd_m: FloatArray) -> FloatArray:
        if len(lfl_mm) > _MANY:
            return self.grid.mean_at(lfl_mm, fd_m)
        parts = [one.mean(one.coordinates.all(lfl_mm, fd_m)) for one in self.posteriors]
        return np.asarray(np.einsum("m,mqi->qi", self._weights, np.array(parts)))

    @cached_property
    def nearest_m(self) -> float:
        """FD down to which answers are given."""
        return NEAREST * self.places.nearest_m

    @cached_property
    def hull(self) -> Hull:
        """What the experiments surround, of places (ln LFL, 1 / FD)."""
        table = self.table.rows(self.kept)
        return make_hull(np.column_stack([np.log(table.lfl_mm), 1 / table.fd_m]))

    def _status(self, lfl: FloatArray, fd: FloatArray) -> NDArray[np.int8]:
        table = self.table.rows(self.kept)
        status = np.zeros(len(lfl), dtype=np.int8)
        with np.errstate(invalid="ignore", divide="ignore"):
            places = np.column_stack([np.log(lfl), 1 / fd])
            outside = lfl < table.lfl_mm.min() * (1 - LFL_MARGIN)
            outside |= lfl > table.lfl_mm.max() * (1 + LFL_MARGIN)
            usable = (lfl > 0) & np.isfinite(lfl) & (fd >= self.nearest_m)
        status[~self.hull.holds(places)] = Status.EXTRAPOLATED
        status[outside] = Status.LFL_OUTSIDE
        status[~usable] = Status.UNUSABLE
        return status


def mixed(
    weights: FloatArray, means: FloatArray, covariances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean (q, c) and covariance (q, c, c) of m Gaussians with weights (m,), means (m, q, c) and
    covariances (m, q, c, c)."""
    mean = np.einsum("m,mqi->qi", weights, means)
    away = means - mean
    covariance = np.einsum("m,mqij->qij", weights, covariances)
    return mean, covariance + np.einsum("m,mqi,mqj->qij", weights, away, away)


def check_size(table: Table) -> None:
    """Refuse a table that says too little."""
    if not np.isfinite(table.fd_m).any():
        raise InputError(
            f"all experiments of {table.lens} are focused at infinity: how its focus changes the "
            "picture is not known. Film some at finite distances."
        )
    if len(table.names) < FEWEST:
        raise InputError(
            f"the scheme smooth needs at least {FEWEST} experiments, and the table of {table.lens} "
            f"has {len(table.names)}. Choose another one, as --scheme thin-lens."
        )
