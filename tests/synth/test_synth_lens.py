"""True intrinsics against the paper's rules."""

import math
from dataclasses import replace

import numpy as np
import pytest

from influx_wrap.annotate.gaps import Faults, find_faults
from influx_wrap.errors import InputError
from influx_wrap.lut.lookup import Status, make_lookup
from influx_wrap.model.experiment import Cell, Plan
from influx_wrap.model.table import Table
from influx_wrap.model.truth import Noise
from influx_wrap.synth.film.simulation import simulations
from influx_wrap.synth.lens import MOTIONS, simulated_lens, turned_rings
from tests.lenses import true_intrinsics


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


def test_one_lens_at_its_cells_and_between_them(canon: Plan) -> None:
    lens = simulated_lens(canon, breathing=0.03, pp_offset_px=(4.0, 2.0))
    truth = true_intrinsics(canon, breathing=0.03, pp_offset_px=(4.0, 2.0))
    for cell in canon.cells:
        assert lens.intrinsics(cell.lfl_mm, cell.fd_m) == truth[cell.name]
    lfl_mm = np.geomspace(17, 120, 2001)
    values = np.array([lens.intrinsics(lfl, 3.0).array for lfl in lfl_mm.tolist()])
    # Smooth: second differences vanish with the square of the step.
    for name, column in (("fx", 0), ("k1", 4)):
        second = np.abs(np.diff(values[:, column], 2)).max()
        assert second < 5e-5 * np.ptp(values[:, column]), name


def test_a_table_of_the_cells_agrees_between_them(canon: Plan) -> None:
    truth = true_intrinsics(canon, breathing=0.02)
    table = Table(
        lens="canon17",
        camera=canon.camera.name,
        image_size=canon.camera.image_size,
        pixel_um=(canon.camera.pixel_um, canon.camera.pixel_um),
        names=tuple(cell.name for cell in canon.cells),
        lfl_mm=np.array([cell.lfl_mm for cell in canon.cells]),
        fd_m=np.array([cell.fd_m for cell in canon.cells]),
        values=np.array([truth[cell.name].array for cell in canon.cells]),
        covariance=np.zeros((len(canon.cells), 8, 8)),
        is_drone=np.array([cell.board is None for cell in canon.cells]),
        grid=np.array([(cell.zoom_index, cell.focus_index) for cell in canon.cells]),
    )
    lens = simulated_lens(canon, breathing=0.02)
    settings = turned_rings(canon, "both", 200, np.random.default_rng(0))
    answers = make_lookup(table, "thin-lens").query(settings.lfl_mm, settings.fd_m)
    assert (answers.status == Status.INTERPOLATED).all()
    pairs = zip(settings.lfl_mm.tolist(), settings.fd_m.tolist(), strict=True)
    true = np.array([lens.intrinsics(lfl, fd).array for lfl, fd in pairs])
    off = np.abs(answers.intrinsics - true)
    assert (off[:, 0] / true[:, 0]).max() < 0.001
    # k1 is a cubic in CFL, of which a table's straight lines miss h^2 / 8 of the curvature.
    lfl_mm = np.linspace(80, 120, 41)
    k1 = [lens.intrinsics(lfl, canon.fd_m[0]).k1 for lfl in lfl_mm.tolist()]
    assert off[:, 4].max() < 40**2 / 8 * np.abs(np.diff(k1, 2)).max()


def test_focus_that_is_off_does_not_change_the_lens(canon: Plan) -> None:
    (one,) = simulations(canon, canon.cells[7:8], Noise(), seed=1, fd_jitter=0.05)
    assert one.cell.fd_m != canon.cells[7].fd_m
    assert one.truth == simulated_lens(canon).intrinsics(one.cell.lfl_mm, one.cell.fd_m)


@pytest.mark.parametrize("motion", MOTIONS)
def test_rings_are_turned_through_their_range(canon: Plan, motion: str) -> None:
    for seed in range(4):
        rings = turned_rings(canon, motion, 120, np.random.default_rng(seed))
        assert rings.frame.tolist() == list(range(120))
        assert find_faults(rings) == Faults((), (), ())
        moves = {"LFL": motion in ("zoom", "both"), "FD": motion in ("focus", "both")}
        for name, values, ends in (
            ("LFL", rings.lfl_mm, (17.0, 120.0)),
            ("FD", rings.fd_m, (canon.fd_m[0], canon.fd_m[-1])),
        ):
            assert values.min() >= ends[0]
            assert values.max() <= ends[1]
            if moves[name]:
                assert (values.min(), values.max()) == pytest.approx(ends, rel=2e-2)
            else:
                assert np.ptp(values) == 0


def test_an_unknown_motion(canon: Plan) -> None:
    with pytest.raises(InputError, match="no motion 'dolly'"):
        turned_rings(canon, "dolly", 10, np.random.default_rng(0))
