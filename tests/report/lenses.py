"""Tables as the explorer may meet them: whole, with holes, and hardly any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from influx_wrap.model.table import Table
from tests.lut.lenses import breathing_table


def holed() -> Table:
    """Forty of a lens's eighty experiments."""
    table = breathing_table("canon17")
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


ODD: dict[str, Callable[[], Table]] = {
    "one experiment": lambda: breathing_table("canon17").rows(np.array([5])),
    "two experiments": lambda: breathing_table("canon17").rows(np.array([5, 25])),
    "one column": one_column,
    "drones": drones,
    "no covariances": unmeasured,
}
