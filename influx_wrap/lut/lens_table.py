"""A lens's table that answers: intrinsics and sigma at any setting."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from influx_wrap.lut.lookup import Lookup, Status, make_lookup, one
from influx_wrap.lut.schemes import DEFAULT
from influx_wrap.lut.uncertainty import ErrorModel, make_error_model, sigma
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.table import Table


@dataclass(frozen=True, eq=False)
class TableAnswer:
    """What a table says at settings of any shape (...).

    intrinsics  (..., 8) in the order of ``NAMES``; NaN where there is no answer
    sigma       (..., 8) their standard deviations; NaN where there is no answer, or where an
                experiment that it comes from has no covariance
    status      (...) ``interpolated``, ``extrapolated``, or why there is no answer
    vertices    (..., k) rows of the table's experiments it comes from, -1 for none
    weights     (..., k) theirs
    """

    intrinsics: FloatArray
    sigma: FloatArray
    status: NDArray[np.str_]
    vertices: IntArray
    weights: FloatArray

    @property
    def camera(self) -> Intrinsics:
        """The intrinsics of an answer at one setting."""
        return Intrinsics.from_array(self.intrinsics.reshape(-1, 8)[0])


@dataclass(frozen=True, eq=False)
class LensTable(Table):
    """A ``Table`` with ``query``."""

    @classmethod
    def of(cls, table: Table) -> LensTable:
        """The same table, able to answer."""
        return cls(**{field.name: getattr(table, field.name) for field in fields(Table)})

    def query(self, lfl_mm: ArrayLike, fd_m: ArrayLike, *, scheme: str = DEFAULT) -> TableAnswer:
        """Intrinsics at a lens focal length and a focus distance (``inf`` allowed), or at arrays
        of them, which are broadcast.

        One setting at which the table has no answer raises ``InputError``; in arrays it is NaN.

        Example:
            answer = table.query(lfl_mm=35, fd_m=2.4)
            print(answer.camera.fx, answer.sigma[0], answer.status)
        """
        lfl, fd = np.broadcast_arrays(np.asarray(lfl_mm, float), np.asarray(fd_m, float))
        lookup, model = _ready(self, scheme)
        answers = lookup.query(lfl.ravel(), fd.ravel())
        if lfl.ndim == 0:
            one(answers, self, float(lfl), float(fd))
        deviation = sigma(lookup, model, answers, lfl.ravel(), fd.ravel())
        names = np.array([Status(code).name.lower() for code in answers.status.tolist()])
        return TableAnswer(
            answers.intrinsics.reshape(*lfl.shape, 8),
            deviation.reshape(*lfl.shape, 8),
            names.reshape(lfl.shape),
            answers.vertices.reshape(*lfl.shape, -1),
            answers.weights.reshape(*lfl.shape, -1),
        )


@lru_cache(maxsize=8)
def _ready(table: LensTable, scheme: str) -> tuple[Lookup, ErrorModel]:
    lookup = make_lookup(table, scheme)
    return lookup, make_error_model(lookup)
