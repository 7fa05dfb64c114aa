"""What a table says about one setting of the lens: intrinsics, sigma, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from influx_wrap.lut.lookup import Status, make_lookup, one
from influx_wrap.lut.uncertainty import make_error_model, sigma
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.table import Table


@dataclass(frozen=True)
class SettingAnswer:
    """The answer at one setting.

    intrinsics  by name, and ``sigma`` their standard deviations
    status      ``interpolated`` or ``extrapolated``
    vertices    names of the experiments it comes from, with their weights
    """

    intrinsics: Mapping[str, float]
    sigma: Mapping[str, float]
    status: str
    vertices: tuple[tuple[str, float], ...]


def query_setting(table: Table, lfl_mm: float, fd_m: float, scheme: str) -> SettingAnswer:
    """Ask the table; an ``InputError`` says why it has no answer."""
    lookup = make_lookup(table, scheme)
    answers = lookup.query([lfl_mm], [fd_m])
    intrinsics = one(answers, table, lfl_mm, fd_m)
    sigmas = sigma(lookup, make_error_model(lookup), answers, np.array([lfl_mm]), np.array([fd_m]))
    rows = zip(answers.vertices[0].tolist(), answers.weights[0].tolist(), strict=True)
    return SettingAnswer(
        intrinsics,
        dict(zip(NAMES, sigmas[0].tolist(), strict=True)),
        Status(int(answers.status[0])).name.lower(),
        tuple((table.names[row], weight) for row, weight in rows if row >= 0),
    )
