"""Tuning the CFL, with a simulated lens whose CFL is not a thin lens's."""

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.flight import CORNERS, corner_points_m, hover_points_m
from influx_wrap.model.hardware import Camera
from influx_wrap.model.optics import thin_lens_cfl_mm
from influx_wrap.plan.tuning import EDGES, STEP, Tuning, tune_by_pixels, tune_by_sight

CAMERA = Camera("arri", 28.25, 18.17, 3424, 2202)
CENTRE = np.array([1711.5, 1100.5])
SETTINGS = [(17.0, 13.5), (17.0, 4.5), (35.0, 13.5)]


def picture(points: FloatArray, true_cfl_mm: float, k1: float = 0.0) -> FloatArray:
    """Pixels (N, 2) of points in the picture of a lens; NaN where they are outside of it."""
    normalised = points[:, :2] / points[:, 2:]
    normalised = normalised * (1 + k1 * np.sum(normalised**2, axis=1, keepdims=True))
    uv = normalised * true_cfl_mm * np.array([3424 / 28.25, 2202 / 18.17]) + CENTRE
    outside = np.any((uv < -0.5) | (uv > np.array([3423.5, 2201.5])), axis=1)
    return np.where(outside[:, None], np.nan, uv)


def seen_at(cfl_mm: float, fd_m: float, true_cfl_mm: float) -> list[str]:
    """Names of the corners that a crew sees of a test flight."""
    uv = picture(corner_points_m(cfl_mm, fd_m, CAMERA.sensor_mm), true_cfl_mm)
    return [name for name, pixel in zip(CORNERS, uv, strict=True) if np.isfinite(pixel).all()]


def hovers_seen(cfl_mm: float, fd_m: float, true_cfl_mm: float) -> int:
    points = hover_points_m(cfl_mm, fd_m, CAMERA.sensor_mm)
    return int(np.isfinite(picture(points, true_cfl_mm)).all(axis=1).sum())


@pytest.mark.parametrize(("lfl_mm", "fd_m"), [(17.0, 13.5), (24.0, 9.0), (35.0, 13.5)])
@pytest.mark.parametrize("breathing", [0.02, 0.05])
def test_by_sight_a_longer_lens_is_found_in_a_few_flights(
    lfl_mm: float, fd_m: float, breathing: float
) -> None:
    cfl = thin_lens_cfl_mm(lfl_mm, fd_m)
    true = (1 + breathing) * cfl
    flights = 1
    while len(seen := seen_at(cfl, fd_m, true)) < 4:
        cfl = tune_by_sight(cfl, seen or ["none"]).cfl_mm
        flights += 1
    assert flights <= 3
    assert tune_by_sight(cfl, seen).cfl_mm == cfl
    assert cfl < STEP * true
    assert hovers_seen(cfl, fd_m, true) == 24


def test_seen_at_the_very_edge_is_not_enough_but_its_pixels_are() -> None:
    """At short FD the margin hides some 5 %, but less of it at the far points."""
    cfl, fd = thin_lens_cfl_mm(17, 4.5), 4.5
    true = 1.05 * cfl
    assert len(seen_at(cfl, fd, true)) == 4
    assert hovers_seen(cfl, fd, true) < 24
    assert "at the very edge" in tune_by_sight(cfl, ["all"]).notes[0]
    uv = picture(corner_points_m(cfl, fd, CAMERA.sensor_mm), true)
    assert hovers_seen(tune_by_pixels(cfl, fd, CAMERA, uv).cfl_mm, fd, true) == 24


@pytest.mark.parametrize(("lfl_mm", "fd_m"), SETTINGS)
@pytest.mark.parametrize("breathing", [-0.05, -0.02, 0.0, 0.015, 0.05])
def test_by_pixels_any_lens_is_found(lfl_mm: float, fd_m: float, breathing: float) -> None:
    rng = np.random.default_rng(0)
    thin = thin_lens_cfl_mm(lfl_mm, fd_m)
    true, cfl, flights = (1 + breathing) * thin, thin, 0
    while abs(cfl / true - 1) > 0.002 and flights < 4:
        # Outside the picture there is nothing to measure: one step by sight comes first.
        uv = picture(corner_points_m(cfl, fd_m, CAMERA.sensor_mm), true)
        if np.isfinite(uv).all():
            cfl = tune_by_pixels(cfl, fd_m, CAMERA, uv + rng.normal(0, 2, uv.shape)).cfl_mm
        else:
            cfl = tune_by_sight(cfl, ["none"]).cfl_mm
        flights += 1
    assert cfl == pytest.approx(true, rel=0.002)
    assert flights <= (4 if breathing > 0.02 else 1)
    assert hovers_seen(cfl, fd_m, true) == 24


def test_the_scale_is_that_of_the_radii() -> None:
    cfl, fd = 20.0, 10.0
    uv = picture(corner_points_m(cfl, fd, CAMERA.sensor_mm), 0.97 * cfl)
    tuned = tune_by_pixels(cfl, fd, CAMERA, uv[[2, 0, 3, 1]])
    assert tuned.cfl_mm == pytest.approx(0.97 * cfl, rel=1e-12)
    assert tune_by_pixels(cfl, fd, CAMERA, uv[[0, 2]]).cfl_mm == pytest.approx(0.97 * cfl)
    assert "0.9700 times" in tuned.notes[0]


@pytest.mark.parametrize(
    ("shift", "words"),
    [
        ((60.0, 0.0), "1.5 deg to the left of"),
        ((-60.0, 0.0), "1.5 deg to the right of"),
        ((0.0, 60.0), "1.5 deg up of"),
        ((0.0, -60.0), "1.5 deg down of"),
        ((60.0, -60.0), "to the left and 1.5 deg down of"),
    ],
)
def test_a_camera_that_looks_elsewhere_is_told_from_a_longer_lens(
    shift: tuple[float, float], words: str
) -> None:
    """Where everything is seen too far to the right, the camera looks too far to the left."""
    uv = picture(corner_points_m(20, 10, CAMERA.sensor_mm), 0.95 * 20) + shift
    tuned = tune_by_pixels(20, 10, CAMERA, uv)
    assert tuned.cfl_mm == pytest.approx(0.95 * 20, rel=0.002)
    assert any(words in note for note in tuned.notes)


def test_barrel_distortion_is_warned_of_with_a_cfl_that_is_safe() -> None:
    cfl, fd, k1 = thin_lens_cfl_mm(17, 13.5), 13.5, -0.1
    uv = picture(corner_points_m(cfl, fd, CAMERA.sensor_mm), cfl, k1)
    tuned = tune_by_pixels(cfl, fd, CAMERA, uv)
    assert tuned.cfl_mm == pytest.approx(cfl * (1 + k1 * 0.95), rel=0.01)

    def lost(cfl_mm: float) -> int:
        points = hover_points_m(cfl_mm, fd, CAMERA.sensor_mm)
        return int(np.isnan(picture(points, cfl, k1)).any(axis=1).sum())

    note = tuned.notes[-1]
    assert lost(tuned.cfl_mm) > 0
    assert f"{lost(tuned.cfl_mm)} of the 24 points" in note
    advised = float(note.split("--cfl-mm ")[1].split()[0])
    assert tuned.cfl_mm < advised < cfl
    assert lost(advised) == 0
    assert lost(0.995 * advised) > 0


@pytest.mark.parametrize("names", [EDGES, CORNERS, ("all",)])
def test_seen_everywhere_changes_nothing(names: tuple[str, ...]) -> None:
    tuned = tune_by_sight(17.0, names)
    assert tuned.cfl_mm == 17.0
    assert "--pixels" in tuned.notes[0]


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (("left", "right"), ("Not seen: top, bottom",)),
        (("none",), ("seen nowhere: check the camera's position",)),
        (("left", "top", "bottom"), ("Not seen: right", "seen at the left, not at the right")),
        (("top-left", "bottom-left"), ("seen at the left, not at the right: the heading",)),
        (("left", "right", "top"), ("seen at the top, not at the bottom: the tilt",)),
        (("top-left", "top-right", "bottom-right"), ("Not seen: bottom-left",)),
    ],
)
def test_seen_in_part_is_a_step(seen: tuple[str, ...], words: tuple[str, ...]) -> None:
    tuned = tune_by_sight(17.0, seen)
    assert tuned.cfl_mm == pytest.approx(1.02 * 17.0)
    text = " ".join(tuned.notes)
    for word in words:
        assert word in text


@pytest.mark.parametrize(
    "seen", [(), ("",), ("all", "left"), ("none", "left"), ("left", "top-left"), ("Links",)]
)
def test_reports_that_say_nothing_are_refused(seen: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="--seen takes edges"):
        tune_by_sight(17.0, seen)


def by_pixels(*uv: tuple[float, float]) -> Tuning:
    return tune_by_pixels(20, 10, CAMERA, np.array(uv, dtype=float).reshape(-1, 2))


def test_pixels_that_cannot_be_are_refused() -> None:
    with pytest.raises(InputError, match="two at least; got 1"):
        by_pixels((50, 50))
    with pytest.raises(InputError, match="outside a picture of 3424 x 2202"):
        by_pixels((50, 50), (3424, 50))
    with pytest.raises(InputError, match="two positions are at the top-left, 60,60"):
        by_pixels((50, 50), (60, 60))
    with pytest.raises(InputError, match="two at least; got 5"):
        by_pixels(*[(50, 50)] * 5)
    with pytest.raises(InputError, match="Are they of this flight, in a picture of 3424 x 2202"):
        by_pixels((1200, 800), (2200, 1400))
