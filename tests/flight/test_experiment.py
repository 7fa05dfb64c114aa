"""A matched flight becomes a point cloud that calibrates to the truth."""

from pathlib import Path

import numpy as np
import pytest

from influx_wrap.calibrate.calibrator import calibrate
from influx_wrap.calibrate.recipe import recipe_named
from influx_wrap.flight.files import write_flight_experiment
from influx_wrap.formats.experiment import read_experiment
from influx_wrap.formats.recording_truth import FlightTruth
from influx_wrap.model.experiment import Setting
from influx_wrap.model.flight import hover_points_m
from influx_wrap.model.hardware import Camera
from influx_wrap.model.target import PointCloud
from tests.flight.flown import (
    FD_M,
    FOCAL_PX,
    LFL_MM,
    PIXEL_UM,
    SENSOR_MM,
    SIGMA_M,
    SIZE,
    TRUTH,
    Flown,
    fly,
    match,
    order,
)

CAMERA = Camera("small", 28.25, 18.17, *SIZE)
SETTING = Setting("z2f9", "drone", LFL_MM, FD_M)


def test_experiment(tmp_path: Path) -> None:
    """The cloud is in the unit sphere, and calibrates to the truth with its covariance."""
    flown = fly(17)
    matched = match(flown)
    write_flight_experiment(tmp_path, matched, SETTING, CAMERA, "canon17", None)
    stored = read_experiment(tmp_path)
    target = stored.observations.target
    assert isinstance(target, PointCloud)
    assert np.allclose(target.points.mean(axis=0), 0)
    assert np.linalg.norm(target.points, axis=1).max() == pytest.approx(1)
    metres = target.points * target.unit_m
    given = flown.readings.xyz_m - flown.readings.xyz_m.mean(axis=0)
    assert np.allclose(metres, given, atol=1e-9)
    assert target.point_covariance is not None
    sigma_m = np.sqrt(target.point_covariance[0, 0, 0]) * target.unit_m
    assert sigma_m == pytest.approx(SIGMA_M, rel=1e-2)
    answer = calibrate(stored.observations, recipe_named("batch"), focal_px=FOCAL_PX)
    deviation = (answer.intrinsics.array - TRUTH.array) / answer.sigma
    assert np.abs(deviation).max() < 4
    assert (stored.lfl_mm, stored.fd_m, stored.target_name) == (LFL_MM, FD_M, "drone")


def test_truth_goes_along(tmp_path: Path) -> None:
    """Seen with the true camera, the true points are where the LED was."""
    flown = fly(18, rtk_m=0.0)
    matched = match(flown)
    rotation, translation = _true_pose(flown)
    exact_m = flown.readings.xyz_m @ rotation.T + translation
    truth = FlightTruth(
        TRUTH, 0.005, np.zeros((24, 3)), np.arange(24), np.zeros(24), np.arange(24),
        flown.flashes.frames, flown.flashes.uv, np.ones(24), np.arange(24), np.arange(24),
        exact_m, rotation, translation, 0.0, 0.0,
    )  # fmt: skip
    write_flight_experiment(tmp_path, matched, SETTING, CAMERA, "canon17", truth)
    stored = read_experiment(tmp_path)
    assert stored.truth is not None
    assert stored.truth.intrinsics == TRUTH
    assert stored.truth.corner_sigma_px == pytest.approx(0.2, rel=0.5)


def _true_pose(flown: Flown) -> tuple[np.ndarray, np.ndarray]:
    """From the readings' frame to camera space: the rotation that aligns the points."""
    camera_m = hover_points_m(1e-3 * TRUTH.fx * PIXEL_UM, FD_M, SENSOR_MM)[order()]
    a = flown.readings.xyz_m - flown.readings.xyz_m.mean(axis=0)
    b = camera_m - camera_m.mean(axis=0)
    u, _, vt = np.linalg.svd(b.T @ a)
    rotation = u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt
    return rotation, camera_m.mean(axis=0) - rotation @ flown.readings.xyz_m.mean(axis=0)
