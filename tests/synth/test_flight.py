"""The simulated flight: where the LED is, when it is lit, and what the receiver says."""

import numpy as np
import pytest
from pyproj import Transformer

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.experiment import Plan
from influx_wrap.model.flight import hover_points_m
from influx_wrap.model.intrinsics import Intrinsics, project
from influx_wrap.model.truth import Noise
from influx_wrap.synth.experiment import Experiment, cell_generator, simulate
from influx_wrap.synth.flight import (
    ANTENNA_ABOVE_LED_M,
    LATENCY_S,
    MOST_CLOCK_DRIFT,
    Flight,
    FlightOptions,
    FlightReadings,
    lit_frames,
    simulate_flight,
    take_readings,
)
from influx_wrap.synth.motion import FPS, SHUTTER
from tests.lenses import true_intrinsics

BALL_M = 0.005


def flown(
    plan: Plan, options: FlightOptions, cell_name: str = "z0f9"
) -> tuple[Flight, Experiment, Intrinsics]:
    cell = plan.cell(cell_name)
    truth = true_intrinsics(plan)[cell_name]
    noise = Noise(rtk_ball_m=BALL_M)
    experiment = simulate(cell, plan.camera, truth, noise, cell_generator(3, cell))
    return simulate_flight(experiment, options, np.random.default_rng(1)), experiment, truth


def read(flight: Flight) -> FlightReadings:
    return take_readings(flight, BALL_M, 1.44, np.random.default_rng(2))


def rotated_and_moved_onto(source: FloatArray, target: FloatArray) -> FloatArray:
    """Source points after the best rotation and shift, by the quaternion's eigenvector."""
    a, b = source - source.mean(axis=0), target - target.mean(axis=0)
    s = a.T @ b
    cross = np.array([s[1, 2] - s[2, 1], s[2, 0] - s[0, 2], s[0, 1] - s[1, 0]])
    lower = s + s.T - np.trace(s) * np.eye(3)
    matrix = np.block([[np.trace(s), cross[None]], [cross[:, None], lower]])
    w, *xyz = np.linalg.eigh(matrix)[1][:, -1]
    v = np.array(xyz)
    turned = a * (w * w - v @ v) + 2 * np.outer(a @ v, v) + 2 * w * np.cross(v, a)
    return turned + target.mean(axis=0)


def test_the_points_are_those_of_the_experiment_in_point_form(canon: Plan) -> None:
    flight, experiment, truth = flown(canon, FlightOptions())
    cfl_mm = 1e-3 * truth.fx * canon.camera.pixel_um
    expected = hover_points_m(cfl_mm, canon.cell("z0f9").fd_m, canon.camera.sensor_mm)
    np.testing.assert_allclose(flight.hover_m, expected, atol=1e-12)
    assert np.linalg.norm(flight.error_m, axis=1).max() <= BALL_M
    target = experiment.observations.target
    reported = flight.hover_m + flight.error_m
    shapes = [np.linalg.norm(p[:, None] - p, axis=2) for p in (target.points, reported)]
    np.testing.assert_allclose(shapes[0] * target.unit_m, shapes[1], atol=1e-9)


def test_every_point_is_visited_once_and_the_drone_stays_there(canon: Plan) -> None:
    flight, *_ = flown(canon, FlightOptions(drift_m=0.003))
    assert sorted(flight.point.tolist()) == list(range(24))
    assert (np.diff(flight.point) != 0).all()
    hops = np.linalg.norm(np.diff(flight.stops_m, axis=0), axis=1)
    assert hops.sum() < np.linalg.norm(np.diff(flight.hover_m, axis=0), axis=1).sum()
    for k in range(24):
        times = np.linspace(flight.arrive_s[k], flight.leave_s[k], 20)
        away = np.abs(flight.led_m(times) - flight.stops_m[k])
        assert away.max() <= 0.003 + 1e-9
        assert flight.arrive_s[k] < flight.on_s[k]
        assert flight.on_s[k] + flight.options.flash_s < flight.leave_s[k]
    assert np.std(np.diff(flight.on_s)) > 0.1
    times = np.arange(0, flight.n_frames / FPS, 1e-3)
    acceleration = np.diff(flight.led_m(times), 2, axis=0) / 1e-6
    assert np.abs(acceleration).max() < 200


@pytest.mark.parametrize("cell", ["z0f9", "z6f9"])
def test_lit_frames_by_counting_moments(canon: Plan, cell: str) -> None:
    options = FlightOptions(hover_s=0.6, transit_s=0.3, missed=2, extra=1)
    flight, _, truth = flown(canon, options, cell)
    lit = lit_frames(flight, truth, canon.camera.image_size)
    step = 1e-4
    moments = np.arange(0, flight.n_frames / FPS, step)
    frame = (moments * FPS).astype(int)
    open_now = moments * FPS - frame < SHUTTER
    exposed: dict[tuple[int, int], list[float]] = {}
    for k in np.flatnonzero(flight.is_seen):
        now = open_now & (moments >= flight.on_s[k]) & (moments < flight.on_s[k] + 0.25)
        for number in np.unique(frame[now]):
            exposed[k, number] = moments[now & (frame == number)].tolist()
    found = dict(zip(zip(lit.stop, lit.frame, strict=True), range(len(lit.frame)), strict=True))
    assert {key for key, times in exposed.items() if len(times) > 1} <= set(found)
    for key, times in exposed.items():
        share = len(times) * step * FPS / SHUTTER
        assert lit.share[found[key]] == pytest.approx(share, abs=0.011)
        uv, _ = project(truth, flight.led_m(times).mean(axis=0)[None])
        np.testing.assert_allclose(lit.uv[found[key]], uv[0], atol=0.02)
        np.testing.assert_allclose(
            lit.uv[found[key]], lit.uv_ends[found[key]].mean(axis=0), atol=0.01
        )
    assert (np.diff(lit.frame) > 0).all()
    assert len(np.unique(lit.stop)) == 24 - 2 + 1


def test_a_flash_outside_the_picture_is_not_seen(canon: Plan) -> None:
    flight, _, truth = flown(canon, FlightOptions())
    whole = lit_frames(flight, truth, canon.camera.image_size)
    width, height = canon.camera.image_size
    half = lit_frames(flight, truth, (width // 2, height))
    assert len(np.unique(whole.stop)) == 24
    assert len(np.unique(half.stop)) == 12


def test_missed_and_extra_flashes(canon: Plan) -> None:
    flight, *_ = flown(canon, FlightOptions(missed=3, extra=2))
    assert (len(flight.point), int((flight.point < 0).sum())) == (26, 2)
    assert int((~flight.is_seen).sum()) == 3
    assert flight.is_seen[flight.point < 0].all()
    for k in np.flatnonzero(flight.point < 0):
        middle = (flight.stops_m[k - 1] + flight.stops_m[k + 1]) / 2
        np.testing.assert_allclose(flight.stops_m[k], middle)
    assert len(read(flight).stop) == 24


def test_readings_by_way_of_geocentric_coordinates(canon: Plan) -> None:
    flight, *_ = flown(canon, FlightOptions())
    readings = read(flight)
    to_geocentric = Transformer.from_crs("EPSG:4979", "EPSG:4978")
    geocentric = np.stack(to_geocentric.transform(*readings.geodetic.T), axis=1)
    back = rotated_and_moved_onto(geocentric, readings.led_m)
    expected = readings.led_m + flight.error_m[flight.point[readings.stop]]
    shape = [np.linalg.norm(p[:, None] - p, axis=2) for p in (back, expected)]
    np.testing.assert_allclose(*shape, atol=1e-5)
    # Left-handed would fit as well as a distance goes.
    assert np.linalg.norm(back - readings.led_m, axis=1).max() < 1.5 * BALL_M
    assert readings.geodetic[:, 2].min() > 27 + 2 + ANTENNA_ABOVE_LED_M - 0.1
    assert readings.covariance_m2 is not None
    np.testing.assert_allclose(readings.covariance_m2, BALL_M**2 / 5 * np.eye(3))


def test_the_readings_have_a_clock_of_their_own(canon: Plan) -> None:
    flight, *_ = flown(canon, FlightOptions())
    readings = read(flight)
    since = (readings.time_s - readings.clock_offset_s) / (1 + readings.clock_drift)
    late = since - flight.on_s[readings.stop]
    assert 0 <= late.min() <= late.max() <= LATENCY_S + 1e-6
    assert abs(readings.clock_drift) <= MOST_CLOCK_DRIFT
    assert readings.clock_offset_s > 1.7e9
    np.testing.assert_allclose(flight.led_m(since), readings.led_m, atol=1e-6)
    assert take_readings(flight, 0.0, 1.44, np.random.default_rng(2)).covariance_m2 is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"hover_s": 0.3}, "too short for a flash of 0.25 s; it needs 0.45 s"),
        ({"hover_s": float("nan")}, "too short"),
        ({"transit_s": 0.0}, "must take some time"),
        ({"flash_s": -1.0}, "must take some time"),
        ({"drift_m": float("inf")}, "drift must be"),
        ({"missed": -1}, "at least 0"),
    ],
)
def test_flights_that_cannot_be(values: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        FlightOptions(**values)


def test_more_flashes_missed_than_there_are(canon: Plan) -> None:
    for options in (FlightOptions(missed=25), FlightOptions(extra=24)):
        with pytest.raises(InputError, match="at most 24 flashes to miss and 23 extra"):
            flown(canon, options)
