"""Tables as the explorer may meet them: whole, with holes, and hardly any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from influx_wrap.model.table import Table
from tests.lut.lenses import breathing_table


def measured() -> Table:
    """A lens whose distortion is as certain as what it does at the picture's corner: so are
    those of calibrations, while a coefficient grows with the focal length."""
    table = breathing_table("canon17")
    zoom = table.lfl_mm / table.lfl_mm.min()
    scale = np.ones_like(table.values)
    scale[:, 4:] = np.column_stack([zoom**2, zoom**4, zoom, zoom])
    return replace(table, covariance=table.covariance * scale[:, :, None] * scale[:, None, :])


def holed() -> Table:
    """Forty of a lens's eighty experiments."""
    table = measured()
    rows = np.random.default_rng(1).choice(len(table.names), 40, replace=False)
    return table.rows(np.sort(rows))


def one_column() -> Table:
    """One focal length, which differs by less than can be set."""
    table = breathing_table("canon17")
    table = table.rows(np.flatnonzero(table.lfl_mm == 24))
    return replace(table, lfl_mm=table.lfl_mm + 1e-3 * np.arange(len(table.names)))


def drones() -> Table:
    """What was too far away for a board."""
    table = breathing_table("canon17")
    return table.rows(np.flatnonzero(table.is_drone))


def unmeasured() -> Table:
    """Intrinsics whose uncertainty nobody knows."""
    table = holed()
    return replace(table, covariance=np.full_like(table.covariance, np.nan))


def one_distance() -> Table:
    """One focus distance, at six focal lengths."""
    table = breathing_table("canon17")
    _, rows = np.unique(table.lfl_mm, return_index=True)
    table = table.rows(rows[:6])
    return replace(table, fd_m=np.full(6, 2.0))


def contradicted() -> Table:
    """An experiment whose focal length is that of another take."""
    table = holed()
    table.values[11, :2] *= 1.03
    return table


ODD: dict[str, Callable[[], Table]] = {
    "one experiment": lambda: breathing_table("canon17").rows(np.array([5])),
    "two experiments": lambda: breathing_table("canon17").rows(np.array([5, 25])),
    "one column": one_column,
    "one distance": one_distance,
    "a contradiction": contradicted,
    "drones": drones,
    "no covariances": unmeasured,
}
