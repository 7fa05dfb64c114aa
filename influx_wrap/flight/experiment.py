"""The experiment of a flight: a point cloud, scaled into the unit sphere, seen in one view."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.flight.camera import position_covariance_m2
from influx_wrap.flight.matched import MatchedFlight
from influx_wrap.formats.experiment import FILES, write_experiment
from influx_wrap.formats.recording_truth import FlightTruth
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.experiment import Setting
from influx_wrap.model.hardware import Camera
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import PointCloud
from influx_wrap.model.truth import Truth


def flight_observations(matched: MatchedFlight) -> tuple[Observations, FloatArray]:
    """One view of the usable readings as a point cloud in the unit sphere; and its centre (3,)
    in the readings' metres."""
    pairs, readings = matched.usable, matched.readings
    points_m = readings.xyz_m[pairs.readings]
    centre_m = points_m.mean(axis=0)
    unit_m = float(np.linalg.norm(points_m - centre_m, axis=1).max())
    if not unit_m > 0:
        raise InputError("all readings are at one place: the drone did not move.")
    covariance = None
    if readings.covariance_m2 is not None:
        covariance = position_covariance_m2(readings)[pairs.readings] / unit_m**2
    target = PointCloud((points_m - centre_m) / unit_m, None, unit_m, covariance)
    valid = np.ones((1, len(pairs)), dtype=bool)
    return Observations(target, pairs.uv[None], valid, matched.flashes.image_size), centre_m


def write_flight_experiment(
    folder: Path,
    matched: MatchedFlight,
    setting: Setting,
    camera: Camera,
    lens_name: str,
    truth: FlightTruth | None,
) -> None:
    """Write the experiment's folder; a simulated flight's truth goes along."""
    observations, centre_m = flight_observations(matched)
    known = None if truth is None else _truth_of_pairs(truth, matched, observations, centre_m)
    write_experiment(folder, setting, camera, lens_name, observations, known)


def forget_experiment(folder: Path) -> None:
    """Remove an experiment that is no longer what the flight says."""
    try:
        for name in FILES:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}.") from None


def _truth_of_pairs(
    truth: FlightTruth, matched: MatchedFlight, observations: Observations, centre_m: FloatArray
) -> Truth:
    """The answer, with the centres' noise as it is in this footage."""
    assert isinstance(observations.target, PointCloud)
    numbers, unit_m = matched.usable.readings, observations.target.unit_m
    exact = truth.of_readings(numbers, centre_m, unit_m, 0.0)
    sigma_px = exact.spread_px(observations.uv, observations.valid)
    return truth.of_readings(numbers, centre_m, unit_m, sigma_px)
