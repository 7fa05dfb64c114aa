"""True intrinsics: the zoom against ray-traced zooms, the thin lens against the paper's rules."""

import math
from dataclasses import replace

import numpy as np
import pytest

from influx_wrap.annotate.gaps import Faults, find_faults
from influx_wrap.errors import InputError
from influx_wrap.lut.lookup import Status, make_lookup
from influx_wrap.model.experiment import Cell, Plan
from influx_wrap.model.intrinsics import Intrinsics, project
from influx_wrap.model.table import Table
from influx_wrap.model.truth import Noise
from influx_wrap.synth.film.simulation import simulations
from influx_wrap.synth.lens import (
    LENS_MODELS,
    MOTIONS,
    LensOptions,
    ZoomLens,
    simulated_lens,
    turned_rings,
)
from influx_wrap.synth.zoom import design_zoom
from tests.lenses import true_intrinsics

DIAGONAL_PX = math.hypot(3424, 2202) / 2


def corner_px(intrinsics: Intrinsics) -> float:
    """How far k1 and k2 move the picture's corner."""
    radius2 = (DIAGONAL_PX / intrinsics.fx) ** 2
    return DIAGONAL_PX * (intrinsics.k1 * radius2 + intrinsics.k2 * radius2**2)


def true_zoom(plan: Plan, options: LensOptions | None = None) -> list[tuple[Cell, Intrinsics]]:
    lens = simulated_lens(plan, options)
    return [(cell, lens.intrinsics(cell.lfl_mm, cell.fd_m)) for cell in plan.cells]


def test_cfl_and_depth_are_those_of_the_groups(canon: Plan, premista: Plan) -> None:
    for plan, focusing in ((canon, "internal"), (premista, "front")):
        design, lens = design_zoom(plan.lens, focusing), simulated_lens(plan)
        for cell in plan.cells:
            view = design.view(cell.lfl_mm, cell.fd_m)
            state = lens.state(cell.lfl_mm, cell.fd_m)
            assert state.intrinsics.fx == pytest.approx(view.cfl_mm * 3424 / 28.25, rel=1e-12)
            assert state.depth_m == pytest.approx(cell.fd_m - 1e-3 * view.pupil_mm, rel=1e-12)


def test_pixels_are_as_square_as_the_cameras(canon: Plan) -> None:
    for _, truth in true_zoom(canon):
        assert truth.fy / truth.fx == pytest.approx(28.25 / 3424 / (18.17 / 2202), rel=1e-12)
    square = replace(canon, camera=replace(canon.camera, sensor_height_mm=28.25 / 3424 * 2202))
    assert all(truth.fy == pytest.approx(truth.fx) for _, truth in true_zoom(square))


def test_principal_point_is_off_and_wanders(canon: Plan, premista: Plan) -> None:
    """By as much as traced zooms with groups off the axis: -18 to +4 px, 0.1 to 1 px by focus."""
    for plan in (canon, premista):
        lens = simulated_lens(plan)
        centres = np.array([(truth.cx - 1711.5, truth.cy - 1100.5) for _, truth in true_zoom(plan)])
        assert np.abs(centres).min() > 3
        assert np.abs(centres).max() < 35
        assert (np.ptp(centres, axis=0) > 5).all()
        longest = plan.lens.lfl_max_mm
        near, far = (lens.intrinsics(longest, fd).cx for fd in (plan.lens.fd_min_m, math.inf))
        assert 0.1 < abs(near - far) < 5


def test_distortion_is_barrel_at_wide_and_pincushion_at_tele(canon: Plan, premista: Plan) -> None:
    for plan in (canon, premista):
        lens, k1_min = simulated_lens(plan), plan.lens.synthetic_k1_min
        shortest, longest = plan.lens.lfl_min_mm, plan.lens.lfl_max_mm
        wide, tele = lens.intrinsics(shortest, math.inf), lens.intrinsics(longest, math.inf)
        assert wide.k1 == pytest.approx(k1_min, rel=1e-12)
        assert corner_px(wide) < 0 < corner_px(tele) < 0.5 * abs(corner_px(wide))
        assert wide.k2 > 0 > tele.k2
        assert lens.intrinsics(shortest, plan.lens.fd_min_m).k1 != wide.k1


def test_distortion_over_zoom_is_that_of_a_traced_zoom() -> None:
    """The corner's displacement by k1 of a ray-traced 80-200 mm at infinity is linear in
    1 / LFL^2, as the simulated is."""
    lfl_mm = np.array([81.04, 94.5, 110.3, 128.6, 150.0, 175.0, 197.9])
    traced_px = np.array([-31.36, -12.13, 2.05, 12.64, 20.53, 26.28, 29.59])
    fit = np.polynomial.Polynomial.fit(lfl_mm**-2, traced_px, 1)
    assert np.abs(fit(lfl_mm**-2) - traced_px).max() < 0.3


@pytest.mark.parametrize(
    ("fx", "k1", "cx", "cy", "p1", "p2"),
    [
        (8859.07, -0.222101033, 1701.85042, 1099.53872, 2.30750143e-05, 2.31603764e-4),
        (10317.5, -0.311681775, 1710.11461, 1104.05396, -1.02949244e-4, 4.0126409e-05),
    ],
)
def test_decentring_is_that_of_a_traced_zoom(
    fx: float, k1: float, cx: float, cy: float, p1: float, p2: float
) -> None:
    """p = k1 w / f, here with the lens's axis in the image centre, is what two ray-traced zooms
    with groups off the axis have."""
    assert k1 * (cx - 1711.5) / fx == pytest.approx(p2, rel=0.06)
    assert k1 * (cy - 1100.5) / fx == pytest.approx(p1, rel=0.06)


def test_distortion_is_centred_on_the_axis(canon: Plan) -> None:
    """With p1 and p2 the picture is distorted about the lens's axis, where k1 alone would
    distort it about the principal point; to first order in their distance."""
    lens = simulated_lens(canon)
    assert isinstance(lens, ZoomLens)
    truth = replace(lens.intrinsics(120, 3.0), k2=0.0)
    focal = np.array([truth.fx, truth.fy])
    wander = np.array(lens.design.view(120, 3.0).principal_mm) * 3424 / 28.25 / focal
    points = np.random.default_rng(0).uniform(-0.1, 0.1, (50, 2))
    seen, _ = project(truth, np.column_stack([points, np.ones(50)]))
    about = points + wander
    moved = truth.k1 * about * (about**2).sum(axis=1, keepdims=True)
    expected = points + moved
    shift = (seen - (truth.cx, truth.cy)) / focal - expected
    alone = points + truth.k1 * points * (points**2).sum(axis=1, keepdims=True) - expected
    assert np.abs(shift).max() < 0.02 * np.abs(alone).max()


@pytest.mark.parametrize("model", LENS_MODELS)
def test_a_lens_is_smooth(canon: Plan, premista: Plan, model: str) -> None:
    for plan in (canon, premista):
        lens = simulated_lens(plan, LensOptions(model))
        ends = plan.lens.lfl_min_mm, plan.lens.lfl_max_mm
        by_zoom = [lens.intrinsics(lfl, 3.0).array for lfl in np.geomspace(*ends, 801).tolist()]
        near = np.linspace(0, 1 / plan.lens.fd_min_m, 801)
        fds = [1 / v if v > 0 else math.inf for v in near.tolist()]
        by_focus = [lens.intrinsics(ends[1], fd).array for fd in fds]
        for values in (np.array(by_zoom), np.array(by_focus)):
            # Second differences vanish with the square of the step.
            second, span = np.abs(np.diff(values, 2, axis=0)).max(axis=0), np.ptp(values, axis=0)
            assert (second <= 5e-4 * span + 1e-9).all()


def test_options_override(canon: Plan) -> None:
    own = dict(true_zoom_by_name(canon))
    moved = dict(true_zoom_by_name(canon, LensOptions(pp_offset_px=(20.0, -12.0))))
    breathing = dict(true_zoom_by_name(canon, LensOptions(breathing=0.03)))
    thin = true_intrinsics(canon, breathing=0.03)
    for name, truth in own.items():
        assert (moved[name].cx, moved[name].cy) == (1731.5, 1088.5)
        assert replace(moved[name], cx=truth.cx, cy=truth.cy) == truth
        assert breathing[name].fx == pytest.approx(thin[name].fx, rel=1e-12)
        assert breathing[name].p1 != 0


def true_zoom_by_name(
    plan: Plan, options: LensOptions | None = None
) -> list[tuple[str, Intrinsics]]:
    return [(cell.name, truth) for cell, truth in true_zoom(plan, options)]


def test_a_variant_is_chosen(canon: Plan) -> None:
    assert simulated_lens(canon) == simulated_lens(canon, LensOptions("internal"))
    assert simulated_lens(canon) != simulated_lens(canon, LensOptions("front"))
    with pytest.raises(InputError, match="no lens model 'fisheye'; known: internal, front, thin"):
        LensOptions("fisheye")
    with pytest.raises(InputError, match="breathing is a share"):
        LensOptions(breathing=3)


def test_the_lens_does_not_depend_on_the_seed(canon: Plan) -> None:
    cells = canon.cells[:3]
    first, second = (
        simulations(canon, cells, Noise(), seed=seed, fd_jitter=0.0) for seed in (0, 1)
    )
    assert [one.truth for one in first] == [one.truth for one in second]
    assert [one.cell for one in first] == list(cells)


def test_focus_jitters_unless_told(canon: Plan) -> None:
    made = simulations(canon, canon.cells, Noise(), seed=0)
    off = np.array(
        [math.log(one.cell.fd_m / cell.fd_m) for one, cell in zip(made, canon.cells, strict=True)]
    )
    assert off[10:].std() == pytest.approx(0.01, rel=0.3)
    assert min(one.cell.fd_m for one in made) >= canon.lens.fd_min_m


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
    lens = simulated_lens(canon, LensOptions("thin", 0.03, (4.0, 2.0)))
    truth = true_intrinsics(canon, breathing=0.03, pp_offset_px=(4.0, 2.0))
    for cell in canon.cells:
        assert lens.intrinsics(cell.lfl_mm, cell.fd_m) == truth[cell.name]


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
    lens = simulated_lens(canon, LensOptions("thin", 0.02))
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
    state = simulated_lens(canon).state(one.cell.lfl_mm, one.cell.fd_m)
    assert (one.truth, one.depth_m) == (state.intrinsics, state.depth_m)


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
