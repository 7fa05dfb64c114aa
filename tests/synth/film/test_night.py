"""Filmed flights: the LED is lit where and when the truth says, and the readings fit it."""

from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest

from benchmarks.nights import TEN, first_rows, lit_rows, plan
from influx_wrap.errors import InputError
from influx_wrap.formats.flight import read_flash_rtk
from influx_wrap.formats.flight_recording import read_flight_recording
from influx_wrap.formats.recording_truth import FlightTruth, read_flight_truth
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.hardware import Camera
from influx_wrap.model.intrinsics import project
from influx_wrap.synth.film.cells import shoot_films
from influx_wrap.synth.film.night import NightFilm, NightFootage, plan_night
from influx_wrap.synth.flight import FlightOptions
from influx_wrap.synth.night import NightOptions

TINY = Camera("tiny", 28.25, 18.17, 320, 206)
FLIGHT = FlightOptions(hover_s=0.45, transit_s=0.1, missed=1, extra=1)
NIGHT = NightOptions(core_px=6, halo_px=16, scatter=0.2)


def tiny(name: str = "plain", codec: str = "h264") -> NightFilm:
    return plan(replace(TEN[name], night=NIGHT, flight=FLIGHT, codec=codec), TINY)


def shoot(one: NightFilm, folder: Path, processes: int = 1) -> Path:
    done: list[tuple[int, int | None]] = []
    shoot_films([one], folder, processes=processes, progress=lambda *now: done.append(now))
    assert done[-1] == (one.n_frames, one.n_frames)
    return folder / one.simulation.cell.name


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shoot(tiny(), tmp_path_factory.mktemp("night"))


@pytest.fixture(scope="module")
def answer(night: Path) -> FlightTruth:
    truth = read_flight_truth(night)
    assert truth is not None
    return truth


def red(folder: Path) -> FloatArray:
    """Red (F, H, W) of all frames."""
    with av.open(str(read_flight_recording(folder).footage)) as container:
        frames = [frame.to_ndarray(format="bgr24") for frame in container.decode(video=0)]
    return np.array(frames)[..., 2].astype(np.float32)


def test_a_recording_of_a_flight(night: Path, answer: FlightTruth) -> None:
    recording = read_flight_recording(night)
    cell = tiny().simulation.cell
    assert (recording.lens, recording.camera, recording.cell) == ("canon17", "tiny", "z0f9")
    assert (recording.lfl_mm, recording.fd_m) == pytest.approx((cell.lfl_mm, cell.fd_m))
    assert recording.footage.name == "clip.mp4"
    assert (len(answer.flash_point), len(answer.reading_flash)) == (24, 24)
    assert answer.reading_flash.tolist().count(-1) == 1
    assert answer.flash_point.tolist().count(-1) == 1
    read = answer.reading_flash[answer.reading_flash >= 0]
    np.testing.assert_array_equal(
        answer.flash_point[read], answer.reading_point[answer.reading_flash >= 0]
    )


def test_the_led_is_where_and_when_the_truth_says(night: Path, answer: FlightTruth) -> None:
    frames = red(night)
    lit = dict(zip(answer.lit_frame.tolist(), answer.lit_share.tolist(), strict=True))
    others = tiny().others
    v, u = np.mgrid[: TINY.height_px, : TINY.width_px]
    away = np.ones(frames.shape[1:], dtype=bool)
    for lamp in others.steady:
        away &= np.hypot(u - lamp.u, v - lamp.v) > 20
    misses = []
    for number, picture in enumerate(frames):
        shown = np.where(away, picture, 0)
        if lit.get(number, 0.0) < 0.01:
            # The aeroplane's beacon is smaller.
            assert (shown > 120).sum() < 40
        elif lit[number] > 0.5:
            at = answer.lit_uv[lit_rows(answer)[number]]
            near = np.where(np.hypot(u - at[0], v - at[1]) < 10, np.maximum(shown - 120, 0), 0)
            assert (near > 0).sum() > 100
            found = np.array([(u * near).sum(), (v * near).sum()]) / near.sum()
            misses.append(found - at)
    assert len(misses) > 120
    assert np.sqrt(np.mean(np.square(misses))) < 0.1
    assert np.abs(np.mean(misses, axis=0)).max() < 0.03


def test_the_readings_are_the_leds_places_with_the_receivers_error(
    night: Path, answer: FlightTruth
) -> None:
    readings = read_flash_rtk(read_flight_recording(night).rtk)
    assert len(set(readings.ids)) == 24
    in_camera = readings.xyz_m @ answer.rotation.T + answer.translation
    error = np.linalg.norm(in_camera - answer.reading_m, axis=1)
    assert 0.4 * answer.rtk_ball_m < error.max() <= answer.rtk_ball_m + 1e-6
    assert readings.covariance_m2 is not None
    variance = np.mean((in_camera - answer.reading_m) ** 2)
    assert readings.covariance_m2[0, 0, 0] == pytest.approx(variance, rel=0.5)
    matched = answer.reading_flash >= 0
    since = (readings.time_s - answer.clock_offset_s)[matched] / (1 + answer.clock_drift)
    late = since - answer.flash_time_s[answer.reading_flash[matched]]
    assert -1e-3 < late.min() <= late.max() < 0.05


def test_the_truth_of_an_experiment_projects_to_the_flashes(answer: FlightTruth) -> None:
    matched = np.flatnonzero(answer.reading_flash >= 0)
    truth = answer.of_readings(matched, [10.0, -5.0, 30.0], 12.0, corner_px=0.1)
    posed = truth.target_points @ truth.rotations[0].T + truth.translations[0]
    uv, _ = project(truth.intrinsics, posed)
    np.testing.assert_allclose(
        uv, answer.lit_uv[first_rows(answer)][answer.reading_flash[matched]], atol=0.05
    )


def test_the_same_bytes_whoever_renders(tmp_path: Path) -> None:
    one = tiny("lights", "ffv1")
    # The first flash is enough.
    leave_s = np.append(one.flight.leave_s[:-1], one.flight.leave_s[0])
    one = replace(one, flight=replace(one.flight, leave_s=leave_s))
    assert one.n_frames < 50
    folders = [shoot(one, tmp_path / str(n), processes=n) for n in (1, 2)]
    for path in sorted(folders[0].iterdir()):
        assert path.read_bytes() == (folders[1] / path.name).read_bytes()


def test_a_flight_that_is_there_is_left(night: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in night.iterdir()}
    shoot(tiny(), night.parent)
    assert {path: path.stat().st_mtime_ns for path in night.iterdir()} == before


def test_a_cell_with_a_board_is_not_flown() -> None:
    simulation = plan(TEN["plain"], TINY).simulation
    board = replace(simulation, cell=replace(simulation.cell, board=object()))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="z0f9 is shot with a board"):
        plan_night(board, NightFootage())


def test_ten_nights_are_unlike_each_other() -> None:
    films = {name: plan(night, TINY) for name, night in TEN.items()}
    assert len({(one.simulation.lens, one.simulation.cell.name) for one in films.values()}) == 10
    counts = {
        name: (len(one.truth().flash_point), len(one.readings.stop)) for name, one in films.items()
    }
    assert counts.pop("missed") == (23, 24)
    assert counts.pop("extra") == (25, 24)
    assert set(counts.values()) == {(24, 24)}
