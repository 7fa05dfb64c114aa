"""What is written of a flight: its mission, its match, and the experiment that it becomes.

The match is ``pairs.csv`` for people and ``match.json`` for programs. The experiment is a point
cloud, scaled into the unit sphere, seen in one view.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.flight.match import MatchedFlight, position_covariance_m2
from influx_wrap.formats.experiment import FILES, write_experiment
from influx_wrap.formats.files import check_writable, make_folder, write_json
from influx_wrap.formats.mission import write_kml, write_plan
from influx_wrap.formats.pairs import PAIRS, write_pairs
from influx_wrap.formats.recording_truth import FlightTruth
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.experiment import Setting
from influx_wrap.model.flashes import Readings
from influx_wrap.model.flight import Mission
from influx_wrap.model.hardware import Camera
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import PointCloud
from influx_wrap.model.truth import Truth

MATCH = "match.json"


def write_mission_files(mission: Mission, out: Path) -> tuple[Path, ...]:
    """Write the plan ``out``, and map and figure beside it: all of them, or none.

    Returns where they are, the plan first.
    """
    from influx_wrap.report.flight_figure import draw_flight  # matplotlib is slow to load

    figure, chart = out.with_suffix(".png"), out.with_suffix(".kml")
    paths = (out, chart, figure)
    for path in reversed(paths):
        check_writable(path)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.stem}.") as name:
        folder = Path(name)
        draw_flight(mission, folder / figure.name)
        write_kml(folder / chart.name, mission)
        write_plan(folder / out.name, mission)
        for path in reversed(paths):
            (folder / path.name).replace(path)
    return paths


def write_match(folder: Path, matched: MatchedFlight) -> None:
    """Write ``pairs.csv`` and ``match.json``: what goes with what, and how sure that is."""
    make_folder(folder)
    write_pairs(folder / PAIRS, _pair_rows(matched))
    clock = matched.clock
    ids = matched.readings.ids
    write_json(
        folder / MATCH,
        {
            "verdict": matched.verdict,
            "questions": matched.questions,
            "flashes": len(matched.flashes.frames),
            "readings": len(ids),
            "pairs": len(matched.usable),
            "flashes_without_reading": [
                int(matched.flashes.frames[i]) for i in matched.lone_flashes
            ],
            "readings_without_flash": [ids[j] for j in matched.lone_readings],
            "outlying_readings": [
                ids[j] for j in matched.pairs.readings[matched.outlying].tolist()
            ],
            "clock_offset_s": None if clock is None else clock.offset_s,
            "clock_drift_ppm": None if clock is None else 1e6 * clock.drift,
            "time_rms_s": matched.time_rms_s,
            "rms_px": matched.rms_px,
            "rivals": [
                {"clock_offset_s": offset, "pairs": n, "rms_px": rms}
                for offset, n, rms in matched.rivals
            ],
        },
    )


def _pair_rows(matched: MatchedFlight) -> list[dict[str, object]]:
    readings, pairs = matched.readings, matched.pairs
    rows: list[tuple[float, dict[str, object]]] = []
    for k in range(len(pairs)):
        residual = float(matched.residual_px[k])
        remarks = [
            text
            for flags, text in (
                (matched.outlying, "outlying"),
                (matched.poor, "poor position"),
                (matched.disputed, "disputed"),
            )
            if flags[k]
        ]
        row = _reading_fields(readings, int(pairs.readings[k])) | {
            "frame": int(pairs.frames[k]),
            "u": f"{pairs.uv[k, 0]:.3f}",
            "v": f"{pairs.uv[k, 1]:.3f}",
            "rule": int(pairs.rule[k]),
            "time_error_ms": f"{1e3 * matched.time_error_s[k]:.1f}",
            "residual_px": f"{residual:.3f}" if math.isfinite(residual) else None,
            "remark": "; ".join(remarks),
        }
        rows.append((float(pairs.frames[k]), row))
    for i in matched.lone_flashes:
        flashes = matched.flashes
        row = {
            "frame": int(flashes.frames[i]),
            "u": f"{flashes.uv[i, 0]:.3f}",
            "v": f"{flashes.uv[i, 1]:.3f}",
            "rule": int(flashes.rule[i]),
            "remark": "no reading",
        }
        rows.append((float(flashes.frames[i]), row))
    for j in matched.lone_readings:
        video_s = 0.0 if matched.clock is None else float(matched.clock.video_s(readings.time_s[j]))
        remark = {"remark": "no flash"}
        rows.append((video_s * matched.flashes.fps, _reading_fields(readings, j) | remark))
    return [row for _, row in sorted(rows, key=lambda one: one[0])]


def _reading_fields(readings: Readings, j: int) -> dict[str, object]:
    x, y, z = (f"{value:.4f}" for value in readings.xyz_m[j].tolist())
    time_s = f"{readings.time_s[j]:.3f}"
    return {"reading": readings.ids[j], "time_s": time_s, "x_m": x, "y_m": y, "z_m": z}


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
