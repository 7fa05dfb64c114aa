"""A lens's table that answers: intrinsics and sigma at any setting."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from influx_wrap.lut.lens_model import LensModel, make_lens_model
from influx_wrap.lut.lookup import Status, one
from influx_wrap.lut.schemes import DEFAULT
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.table import Table


@dataclass(frozen=True, eq=False)
class TableAnswer:
    """What a table says at settings of any shape (...).

    intrinsics  (..., 8) in the order of ``NAMES``; NaN where there is no answer
    sigma       (..., 8) their standard deviations; NaN where there is no answer, or where an
                experiment that it comes from has no covariance
    covariance  (..., 8, 8) of the intrinsics; None from schemes that know sigmas only
    status      (...) ``interpolated``, ``extrapolated``, or why there is no answer
    vertices    (..., k) rows of the table's experiments it comes from, -1 for none; with the
                scheme ``smooth``, to which all contribute, k is 0
    weights     (..., k) theirs
    """

    intrinsics: FloatArray
    sigma: FloatArray
    covariance: FloatArray | None
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
        if isinstance(table, cls):
            return table
        return cls(**{field.name: getattr(table, field.name) for field in fields(Table)})

    def query(
        self,
        lfl_mm: ArrayLike,
        fd_m: ArrayLike,
        *,
        scheme: str = DEFAULT,
        by_covariance: bool | None = None,
    ) -> TableAnswer:
        """Intrinsics at a lens focal length and a focus distance (``inf`` allowed), or at arrays
        of them, which are broadcast.

        ``by_covariance`` says whether experiments count as far as their covariances say, or all
        alike; without it all alike for the scheme ``paper`` only.

        One setting at which the table has no answer raises ``InputError``; in arrays it is NaN.

        Example:
            answer = table.query(lfl_mm=35, fd_m=2.4)
            print(answer.camera.fx, answer.sigma[0], answer.status)
        """
        lfl, fd = np.broadcast_arrays(np.asarray(lfl_mm, float), np.asarray(fd_m, float))
        model = _ready(self, scheme, by_covariance)
        settings = lfl.ravel(), fd.ravel()
        answers = model.query(*settings)
        if lfl.ndim == 0:
            one(answers, self, float(lfl), float(fd), model.nearest_m)
        deviation = model.sigma(answers, *settings)
        covariance = model.covariance(answers, *settings)
        names = np.array([Status(code).name.lower() for code in answers.status.tolist()])
        return TableAnswer(
            answers.intrinsics.reshape(*lfl.shape, 8),
            deviation.reshape(*lfl.shape, 8),
            None if covariance is None else covariance.reshape(*lfl.shape, 8, 8),
            names.reshape(lfl.shape),
            answers.vertices.reshape(*lfl.shape, -1),
            answers.weights.reshape(*lfl.shape, -1),
        )


@lru_cache(maxsize=8)
def _ready(table: LensTable, scheme: str, by_covariance: bool | None) -> LensModel:
    return make_lens_model(table, scheme, by_covariance=by_covariance)
