"""The zoom of thin groups against matrix optics (ABCD, with a third row for decentring)."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.hardware import FOCUSING, Lens
from influx_wrap.model.optics import thin_lens_cfl_mm
from influx_wrap.synth.zoom import STOP, ThinGroup, design_zoom, pinhole_view

CANON, PREMISTA = (load_catalogue().lens(name) for name in ("canon17", "premista80"))
OTHERS = (
    Lens("standard", 24, 70, 0.38, 0.6),
    Lens("wide", 14, 24, 0.28, 0.5),
    Lens("prime", 50, 50, 0.45, 0.6),
    Lens("long", 200, 800, 6.0, 8.0),
    Lens("broadcast", 10, 200, 1.0, 2.0),
)
INTERNAL = [(lens, "internal") for lens in (CANON, PREMISTA, *OTHERS)]
FRONT = [(lens, "front") for lens in (CANON, PREMISTA, *OTHERS[:3])]


def settings(lens: Lens) -> list[tuple[float, float]]:
    lfl_mm = np.geomspace(lens.lfl_min_mm, lens.lfl_max_mm, 7).tolist()
    fds_m = [lens.fd_min_m, 1.03 * lens.fd_min_m, 2 * lens.fd_min_m, 10 * lens.fd_min_m, math.inf]
    return [(lfl, fd) for lfl in lfl_mm for fd in fds_m]


def gap(length_mm: float) -> np.ndarray:
    """Of (height, slope, 1)."""
    return np.array([[1, length_mm, 0], [0, 1, 0], [0, 0, 1]])


def refraction(group: ThinGroup, axis: int = 0) -> np.ndarray:
    power = 1 / group.focal_mm
    return np.array([[1, 0, 0], [-power, 1, power * group.off_axis_mm[axis]], [0, 0, 1]])


def between(
    groups: Sequence[ThinGroup], start_mm: float, end_mm: float, axis: int = 0
) -> np.ndarray:
    """From a place before the groups to one behind them."""
    matrix, place = np.eye(3), start_mm
    for group in groups:
        matrix = refraction(group, axis) @ gap(place - group.place_mm) @ matrix
        place = group.place_mm
    return gap(place - end_mm) @ matrix


def centred(groups: Sequence[ThinGroup]) -> list[ThinGroup]:
    return [ThinGroup(group.focal_mm, group.place_mm) for group in groups]


def test_one_group_is_the_thin_lens() -> None:
    for lfl_mm, fd_m in ((24.0, 2.0), (120.0, 0.9), (50.0, math.inf)):
        cfl_mm = thin_lens_cfl_mm(lfl_mm, fd_m)
        view = pinhole_view([ThinGroup(lfl_mm, cfl_mm)], 0)
        assert view.cfl_mm == pytest.approx(cfl_mm, rel=1e-14)
        assert view.pupil_mm == pytest.approx(cfl_mm, rel=1e-14)
        assert view.principal_mm == (0, 0)


def test_a_group_before_the_stop_by_hand() -> None:
    """A lens of 50 mm, and a stop 20 mm behind it where there is a pane of glass.

    The stop is seen 20 * 50 / 30 = 33.3 mm behind the lens. Rays that come in straight meet in the
    lens's focus, on the sensor, which moves with the lens; the picture is upside down.
    """
    groups = [ThinGroup(50.0, 50.0, (0.3, -0.6)), ThinGroup(1e15, 30.0)]
    view = pinhole_view(groups, 1)
    assert view.cfl_mm == pytest.approx(50)
    assert view.pupil_mm == pytest.approx(50 - 100 / 3)
    assert view.principal_mm == pytest.approx((-0.3, 0.6))


@pytest.mark.parametrize(("lens", "focusing"), INTERNAL + FRONT)
def test_it_is_in_focus_with_the_lfl_at_infinity(lens: Lens, focusing: str) -> None:
    design = design_zoom(lens, focusing)
    for lfl_mm, fd_m in settings(lens):
        groups = centred(design.groups(lfl_mm, fd_m))
        if math.isinf(fd_m):
            system = between(groups, groups[0].place_mm, 0)
            assert system[0, 0] == pytest.approx(0, abs=1e-9)
            assert system[1, 0] == pytest.approx(-1 / lfl_mm, rel=1e-9)
        else:
            assert between(groups, 1e3 * fd_m, 0)[0, 1] == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize(("lens", "focusing"), INTERNAL + FRONT)
def test_groups_stay_apart_and_in_front_of_the_sensor(lens: Lens, focusing: str) -> None:
    design = design_zoom(lens, focusing)
    for setting in settings(lens):
        places = np.array([group.place_mm for group in design.groups(*setting)])
        assert np.diff(places).max() < -0.02 * design.focal_mm[0]
        assert places[-1] > 0
        assert places[0] < 0.8e3 * lens.fd_min_m


@pytest.mark.parametrize(("lens", "focusing"), [(CANON, "internal"), (PREMISTA, "front")])
def test_every_point_is_where_the_pinhole_has_it(lens: Lens, focusing: str) -> None:
    """Rays from points at any depth through the middle of the stop, found by matrices."""
    rng, design = np.random.default_rng(0), design_zoom(lens, focusing)
    for lfl_mm, fd_m in settings(lens):
        groups = design.groups(lfl_mm, fd_m)
        view = design.view(lfl_mm, fd_m)
        for axis in (0, 1):
            place_mm = 1e3 * lens.fd_min_m * rng.uniform(0.8, 20)
            height = rng.uniform(-200, 200)
            to_stop = between(groups[:STOP], place_mm, groups[STOP].place_mm, axis)
            slope = -(to_stop[0, 0] * height + to_stop[0, 2]) / to_stop[0, 1]
            end = (between(groups, place_mm, 0, axis) @ [height, slope, 1])[0]
            # Decentred groups move the pupil as well; the pinhole is where parallel rays say.
            straight = straight_ray_mm(groups, place_mm, axis)
            depth_mm = place_mm - view.pupil_mm
            expected = view.principal_mm[axis] + view.cfl_mm * (height - straight) / depth_mm
            assert -end == pytest.approx(expected, rel=1e-9, abs=1e-9)


def straight_ray_mm(groups: Sequence[ThinGroup], place_mm: float, axis: int) -> float:
    """Height of the ray that comes in at a right angle to the sensor and meets the stop."""
    to_stop = between(groups[:STOP], place_mm, groups[STOP].place_mm, axis)
    return float(-to_stop[0, 2] / to_stop[0, 0])


@pytest.mark.parametrize(("lens", "focusing"), INTERNAL + FRONT)
def test_cfl_is_magnification_times_distance_from_the_pupil(lens: Lens, focusing: str) -> None:
    design = design_zoom(lens, focusing)
    for lfl_mm, fd_m in settings(lens):
        view = design.view(lfl_mm, fd_m)
        if math.isinf(fd_m):
            assert view.cfl_mm == pytest.approx(lfl_mm, rel=1e-9)
        else:
            magnification = between(centred(design.groups(lfl_mm, fd_m)), 1e3 * fd_m, 0)[0, 0]
            assert view.cfl_mm == pytest.approx(-magnification * (1e3 * fd_m - view.pupil_mm))


def test_it_breathes_as_traced_zooms_do() -> None:
    """CFL / LFL - 1 at the nearest focus: traced zooms are between -2 and +127 %."""
    for lens, focusing, low, high in (
        (CANON, "internal", 0.001, 0.097),
        (PREMISTA, "internal", 0.004, 0.126),
        (CANON, "front", 0.187, 0.960),
        (PREMISTA, "front", 0.216, 0.441),
    ):
        design = design_zoom(lens, focusing)
        lfl_mm = np.geomspace(lens.lfl_min_mm, lens.lfl_max_mm, 20).tolist()
        breathing = [design.view(lfl, lens.fd_min_m).cfl_mm / lfl - 1 for lfl in lfl_mm]
        assert min(breathing) == pytest.approx(low, abs=0.001)
        assert max(breathing) == pytest.approx(high, abs=0.001)


@pytest.mark.parametrize("focusing", FOCUSING)
def test_what_cannot_be_focused_is_refused(focusing: str) -> None:
    design = design_zoom(CANON, focusing)
    for fd_m in (0.1, 0.25, 0.3):
        with pytest.raises(
            InputError, match=f"{focusing} focusing cannot be focused at {fd_m:g} m"
        ):
            design.view(120, fd_m)


def test_a_front_group_that_looks_into_infinity_is_refused() -> None:
    design = design_zoom(OTHERS[-1], "front")
    with pytest.raises(InputError, match="--lens-model thin"):
        design.view(200, 1.0)
