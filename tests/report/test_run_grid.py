"""Experiments in the plane of LFL and FD, whatever their folders are called."""

from __future__ import annotations

import math

from influx_wrap.evaluate.cells import CellResult
from influx_wrap.formats.influx import LensSettings
from influx_wrap.report.run_grid import run_grid

PLAN = LensSettings((20.0, 30.0), (1.0, 2.0), ())


def cell(name: str, lfl_mm: float | None, fd_m: float | None) -> CellResult:
    return CellResult(name, lfl_mm, fd_m, None, "x", None, None, None, None, None)


def test_planned_experiments_stand_where_their_names_say() -> None:
    grid = run_grid([cell("z1f1", 30.4, 2.0), cell("z0f0", None, None)], PLAN)
    assert grid.lfl_mm.named == ((20.0, "z0"), (30.0, "z1"))
    assert grid.fd_m.named == ((1.0, "f0"), (2.0, "f1"))
    assert grid.places == ((1, 1), (0, 0))
    assert run_grid([cell("z1f1", 30.4, 2.0)], PLAN).lfl_mm.values == (30.0,), "no empty column"


def test_other_names_stand_by_their_setting() -> None:
    """In the plan's column if it is the same, also beside an experiment that has its place."""
    takes = [cell("z1f1", 30.0, 2.0), cell("take 2", 30.5, 1.97), cell("B007", 52.0, math.inf)]
    takes += [cell("B008", 53.0, math.inf), cell("B009", 56.5, 2.0)]
    grid = run_grid(takes, PLAN)
    assert grid.lfl_mm.named == ((30.0, "z1"), (52.5, ""), (56.5, ""))
    assert grid.fd_m.named == ((2.0, "f1"), (math.inf, ""))
    assert grid.places == ((0, 0), (0, 0), (1, 1), (1, 1), (2, 0))


def test_a_name_that_is_not_true_is_not_believed() -> None:
    for lfl_mm, fd_m in ((33.0, 2.0), (30.0, math.inf)):
        grid = run_grid([cell("z1f1", lfl_mm, fd_m), cell("z1f0", 30.0, 1.0)], PLAN)
        assert grid.places[0] != grid.places[1]
        assert grid.lfl_mm.values[grid.places[0][0]] == lfl_mm  # type: ignore[index]
        assert grid.fd_m.values[grid.places[0][1]] == fd_m  # type: ignore[index]


def test_without_a_setting_or_a_plan() -> None:
    odd = [cell("z1f1b", None, 2.0), cell("z2f0", None, None), cell("notes", 20.0, None)]
    assert run_grid(odd, PLAN).places == (None, None, None)
    assert run_grid([], None).lfl_mm.values == ()
    grid = run_grid([cell("z1f1", 30.4, 2.0), cell("b", 24.0, 0.5)], None)
    assert grid.lfl_mm.named == ((24.0, ""), (30.4, ""))
    assert grid.places == ((1, 1), (0, 0))
