"""Intrinsics at any setting of a lens, from its table.

Inside the table they are interpolated in the region the setting is in. Beyond it, in
focus distance, the paper's extrapolation holds: all but the focal lengths are those of the
nearest focus distance in the table, and the focal lengths are those of thin lenses, one for
each of the two neighbouring focal lengths of the table, whose own focal length is the
harmonic mean over that column's experiments (supplement, "LUT Extrapolation Scheme").
A focal length beyond the table's is nobody's to guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from influx_wrap.errors import InputError
from influx_wrap.lut.kernels import blend, locate
from influx_wrap.lut.regions import Regions, make_regions
from influx_wrap.lut.schemes import PAPER, Scheme, cfl_mm, effective_lfl_mm
from influx_wrap.lut.weighing import Experiments, as_measured, weighed
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.table import Table

LFL_TOLERANCE = 1e-6
"""How far beyond the table's, relatively, a focal length still is the table's own."""


class Status(IntEnum):
    """Where an answer comes from."""

    INTERPOLATED = 0
    EXTRAPOLATED = 1
    LFL_OUTSIDE = 2
    UNUSABLE = 3
    """A setting that is no number, not positive, or nearer than the lens can focus."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Intrinsics at q settings.

    intrinsics  (q, 8) in the order of ``NAMES``; NaN where there is no answer
    status      (q,) a ``Status`` each
    vertices    (q, 4) experiments, as rows of the table, that all but extrapolated focal
                lengths come from; -1 for nobody
    weights     (q, 4) of the vertices
    """

    intrinsics: FloatArray
    status: NDArray[np.int8]
    vertices: IntArray
    weights: FloatArray

    @property
    def answered(self) -> BoolArray:
        """(q,) where there is an answer."""
        return np.asarray(self.status <= Status.EXTRAPOLATED)


@dataclass(frozen=True, eq=False)
class Lookup:
    """A table with a scheme, ready for queries."""

    table: Table
    scheme: Scheme
    regions: Regions
    experiments: Experiments

    @cached_property
    def blended(self) -> FloatArray:
        """(n, 8) what is interpolated between the experiments."""
        return self.scheme.blended(self.experiments.values, self.table.fd_m)

    def query(self, lfl_mm: ArrayLike, fd_m: ArrayLike) -> Answers:
        """Intrinsics at focal lengths and focus distances (q,), infinity included."""
        lfl, fd = np.broadcast_arrays(np.asarray(lfl_mm, float), np.asarray(fd_m, float))
        lfl, fd = np.ravel(lfl), np.ravel(fd)
        status = self._first_status(lfl, fd)
        usable = status == Status.INTERPOLATED
        x = np.clip(lfl, self.regions.places[:, 0].min(), self.regions.places[:, 0].max())
        with np.errstate(divide="ignore"):
            y = self.scheme.y(fd)
        low, high = self.regions.range_of_y(x)
        slack = 1e-12 * (np.abs(low) + np.abs(high))
        inside = (y >= low - slack) & (y <= high + slack)
        status[usable & ~inside] = Status.EXTRAPOLATED
        nearest = np.where(usable, np.clip(y, low, high), low)
        own = self.regions
        region, weights = locate(x, nearest, own.places, own.vertices, own.boxes)
        vertices = own.vertices[region]
        blended = blend(region, weights, own.vertices, self.blended)
        with np.errstate(divide="ignore"):
            place_fd = np.where(inside, fd, self.scheme.fd(nearest))
        intrinsics = self.scheme.intrinsics(blended, place_fd)
        beyond = status == Status.EXTRAPOLATED
        if beyond.any():
            focal = self.extrapolated_cfl_mm(x[beyond], fd[beyond])
            for axis, pixel_um in enumerate(self.table.pixel_um):
                intrinsics[beyond, axis] = focal / (1e-3 * pixel_um)
            too_near = np.flatnonzero(beyond)[np.isnan(focal)]
            status[too_near] = Status.UNUSABLE
        nobody = status > Status.EXTRAPOLATED
        intrinsics[nobody], weights[nobody], vertices[nobody] = np.nan, 0.0, -1
        return Answers(intrinsics, status, vertices, weights)

    def _first_status(self, lfl: FloatArray, fd: FloatArray) -> NDArray[np.int8]:
        status = np.zeros(len(lfl), dtype=np.int8)
        least, most = self.table.lfl_mm.min(), self.table.lfl_mm.max()
        with np.errstate(invalid="ignore"):
            outside = (lfl < least * (1 - LFL_TOLERANCE)) | (lfl > most * (1 + LFL_TOLERANCE))
            usable = (lfl > 0) & np.isfinite(lfl) & (fd > 0)
        status[outside] = Status.LFL_OUTSIDE
        status[~usable] = Status.UNUSABLE
        return status

    @cached_property
    def column_lenses(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Focal lengths (c,) of the table's columns, the effective focal length (c,) of each
        in mm, and its relative scatter (c,) over the column's experiments."""
        table = self.table
        metric = 0.5e-3 * (self.experiments.values[:, :2] * np.array(table.pixel_um)).sum(axis=1)
        inverse = 1 / effective_lfl_mm(metric, table.fd_m)
        lfl = np.array([value for value, _ in table.columns])
        mean = np.array([inverse[rows].mean() for _, rows in table.columns])
        scatter = np.array([inverse[rows].std() for _, rows in table.columns]) / mean
        return lfl, 1 / mean, scatter

    def extrapolated_cfl_mm(self, lfl_mm: FloatArray, fd_m: FloatArray) -> FloatArray:
        """Camera focal lengths (q,) at settings (q,) beyond the table.

        The paper's, linear between those at the two neighbouring focal lengths; the scheme
        ``thin-lens`` is linear in the lenses' own focal length there as everywhere.
        """
        columns, effective, _ = self.column_lenses
        right = np.clip(np.searchsorted(columns, lfl_mm), 1 if len(columns) > 1 else 0, None)
        right = np.minimum(right, len(columns) - 1)
        left = np.maximum(right - 1, 0)
        width = columns[right] - columns[left]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(width > 0, (lfl_mm - columns[left]) / width, 0.0)
        share = np.clip(share, 0.0, 1.0)
        if self.scheme.name == "thin-lens":
            return cfl_mm((1 - share) * effective[left] + share * effective[right], fd_m)
        both = [cfl_mm(effective[side], fd_m) for side in (left, right)]
        return np.asarray((1 - share) * both[0] + share * both[1])


def make_lookup(table: Table, scheme: str = PAPER, *, by_covariance: bool | None = None) -> Lookup:
    """A table's regions in the coordinates of a scheme; experiments at infinity have no part.

    by_covariance  whether experiments count as their covariances say, or all alike; without it
                   all alike for ``paper``, which is as published, and otherwise as they say
    """
    if not np.isfinite(table.fd_m).any():
        raise InputError(
            f"all experiments of {table.lens} are focused at infinity: there is nothing between "
            "them to interpolate."
        )
    table = table.finite
    chosen = Scheme(scheme, table.pixel_um)
    places = np.column_stack([table.lfl_mm, chosen.y(table.fd_m)])
    if len(table.columns) == 1:
        # Focal lengths that differ by less than can be set are one.
        places[:, 0] = table.lfl_mm.mean()
    columns = [rows for _, rows in table.columns]
    regions = make_regions(places, columns, table.cells)
    if by_covariance is None:
        by_covariance = scheme != "paper"
    experiments = weighed(table) if by_covariance else as_measured(table)
    return Lookup(table, chosen, regions, experiments)


def one(
    answers: Answers, table: Table, lfl_mm: float, fd_m: float, nearest_m: float = 0.0
) -> dict[str, float]:
    """The intrinsics of a single query; an ``InputError`` says why there are none.

    ``nearest_m`` is down to where answers are given, if that does not depend on LFL.
    """
    status = Status(int(answers.status[0]))
    if status == Status.LFL_OUTSIDE:
        least, most = table.lfl_mm.min(), table.lfl_mm.max()
        raise InputError(
            f"LFL {lfl_mm:g} mm is outside the table of {table.lens}, which runs from {least:g} to "
            f"{most:g} mm."
        )
    if status == Status.UNUSABLE and 0 < fd_m < nearest_m:
        raise InputError(
            f"FD {fd_m:g} m is nearer than {nearest_m:.3g} m, down to where {table.lens} is known: "
            f"its nearest experiment is at {table.fd_m.min():.3g} m. Film one that is nearer."
        )
    if status == Status.UNUSABLE:
        raise InputError(
            f"LFL {lfl_mm:g} mm with FD {fd_m:g} m is no setting of a lens: both must be positive, "
            "and the distance more than four times the focal length."
        )
    return dict(zip(NAMES, answers.intrinsics[0].tolist(), strict=True))
