"""True intrinsics against the paper's rules."""

import math
from dataclasses import replace

import pytest

from influx_wrap.model.experiment import Cell, Plan
from influx_wrap.synth.lens import true_intrinsics


def test_focal_length_is_the_thin_lens_in_pixels(canon: Plan) -> None:
    truth = true_intrinsics(canon)
    assert list(truth) == [cell.name for cell in canon.cells]
    for cell in canon.cells:
        fx = cell.cfl_mm * 3424 / 28.25
        assert truth[cell.name].fx == pytest.approx(fx, rel=1e-12)
        assert truth[cell.name].fy == truth[cell.name].fx


def test_24_mm_at_2_m(canon: Plan) -> None:
    cell = Cell(0, 0, 24.0, 2.0, None)
    truth = true_intrinsics(replace(canon, cells=(cell,)))
    assert truth["z0f0"].fx == pytest.approx(2944.655, abs=1e-3)


def test_distortion_runs_from_barrel_to_pincushion(canon: Plan) -> None:
    truth = true_intrinsics(canon)
    shortest = min(canon.cells, key=lambda cell: cell.cfl_mm)
    longest = max(canon.cells, key=lambda cell: cell.cfl_mm)
    assert truth[shortest.name].k1 == pytest.approx(-0.15)
    ratio = longest.cfl_mm / shortest.cfl_mm
    assert truth[longest.name].k1 == pytest.approx(0.15 * ratio**2)
    for cell in canon.cells:
        p = (cell.cfl_mm - shortest.cfl_mm) / (longest.cfl_mm - shortest.cfl_mm)
        factor = (1 - 2 * p) * -0.15 / shortest.cfl_mm**2
        intrinsics = truth[cell.name]
        assert intrinsics.k1 == pytest.approx(cell.cfl_mm**2 * factor, rel=1e-9)
        assert (intrinsics.k2, intrinsics.p1, intrinsics.p2) == (0, 0, 0)


def test_principal_point(canon: Plan) -> None:
    centred = true_intrinsics(canon)["z0f0"]
    assert (centred.cx, centred.cy) == (1711.5, 1100.5)
    offset = true_intrinsics(canon, pp_offset_px=(12.0, -7.5))["z0f0"]
    assert (offset.cx, offset.cy) == (1723.5, 1093.0)


def test_breathing_stays_in_bounds_and_changes_sign(canon: Plan) -> None:
    thin, breathing = true_intrinsics(canon), true_intrinsics(canon, breathing=0.03)
    departure = {name: breathing[name].fx / thin[name].fx - 1 for name in thin}
    assert max(map(abs, departure.values())) == pytest.approx(0.03)
    assert departure["z0f0"] > 0 > departure["z7f0"]
    assert abs(departure["z0f9"]) < abs(departure["z0f5"]) < abs(departure["z0f0"])


def test_breathing_vanishes_at_infinity(canon: Plan) -> None:
    far = replace(canon, cells=(*canon.cells, Cell(0, 10, 17.0, math.inf, None)))
    assert true_intrinsics(far, breathing=0.1)["z0f10"].fx == pytest.approx(17 * 3424 / 28.25)


def test_a_lens_without_zoom_breathes_too(canon: Plan) -> None:
    cells = tuple(cell for cell in canon.cells if cell.zoom_index == 0)
    prime = replace(canon, lfl_mm=canon.lfl_mm[:1], cells=cells)
    thin, breathing = true_intrinsics(prime), true_intrinsics(prime, breathing=0.02)
    assert breathing["z0f0"].fx / thin["z0f0"].fx == pytest.approx(1.02)
