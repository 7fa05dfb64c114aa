"""A flight: flashes in the video and readings of the receiver become an experiment.

The times propose which belong together (``observe.pairing``), a camera fitted to the pairs
confirms or contradicts it (``calibrate.one_view``), and where anything is left over or in
doubt a person decides: by a review (``review``), or by accepting the proposal. What
was decided becomes a point cloud, scaled into the unit sphere, seen in one view.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from influx_wrap.calibrate.one_view import OneView, fit_one_view
from influx_wrap.errors import InputError
from influx_wrap.formats import experiment as files
from influx_wrap.formats.experiment import Setting, write_experiment
from influx_wrap.formats.files import make_folder, write_json
from influx_wrap.formats.pairs import PAIRS, write_pairs
from influx_wrap.formats.recording import FlightTruth
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.flashes import Flashes, Readings
from influx_wrap.model.hardware import Camera
from influx_wrap.model.intrinsics import project
from influx_wrap.model.observations import Observations
from influx_wrap.model.pose import transform
from influx_wrap.model.target import PointCloud
from influx_wrap.model.truth import Truth
from influx_wrap.observe.pairing import Clock, Match, Misfit, Pairing, Verdict, match_times

MATCH = "match.json"
MIN_PAIRS = 12
LED_SIGMA_PX = 0.5
"""How well the centre of the LED is known, before anything is known of the footage."""

ASSUMED_SIGMA_M = 0.02
"""How well a position is known that does not say so: an RTK receiver's usual word."""

LEAST_SIGMA_M = 1e-4
POOR_SIGMA_M, POOR_RATIO = 0.05, 5.0
"""A position is poor if it is known less well than this, and than this times most others."""

NAMED = 4
"""How many questions a sentence lists."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """P flashes with their readings, in the order of time.

    readings      (P,) numbers of the readings
    flashes       (P,) numbers of the flashes; -1: none was detected there
    frames        (P,) in which frame the centre is
    uv            (P, 2) the centre
    rule          (P,) as in ``Flashes``
    """

    readings: IntArray
    flashes: IntArray
    frames: IntArray
    uv: FloatArray
    rule: IntArray

    def __len__(self) -> int:
        return len(self.readings)

    def chosen(self, which: BoolArray) -> Pairs:
        """Some of them."""
        return Pairs(
            self.readings[which],
            self.flashes[which],
            self.frames[which],
            self.uv[which],
            self.rule[which],
        )


@dataclass(frozen=True, eq=False)
class MatchedFlight:
    """What goes together in a flight, and what a person has to decide.

    pairs         all that seem to belong together, the doubtful ones included
    verdict       ``certain``, ``proposed``, ``ambiguous``, or ``reviewed`` by a person
    clock         None if there are no two pairs to tell it
    time_error_s  (P,) reading minus what the clock expects
    camera        fitted to the pairs, in metres about ``centre_m``; None if none fits
    residual_px   (P,) distance from where that camera sees the readings, NaN without one
    outlying      (P,) those it contradicts
    poor          (P,) those whose position is known much less well than the others
    disputed      (P,) those that another pairing, hardly less likely, has otherwise
    left_out      what a person decided to leave out: numbers of flashes, and of readings
    rivals        clock offset, pairs and rms in pixels of the other likely pairings
    undecided     what a review leaves open, one clause each
    """

    flashes: Flashes
    readings: Readings
    pairs: Pairs
    verdict: str
    clock: Clock | None
    time_error_s: FloatArray
    camera: OneView | None
    centre_m: FloatArray
    residual_px: FloatArray
    outlying: BoolArray
    poor: BoolArray
    disputed: BoolArray
    left_out: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())
    rivals: tuple[tuple[float, int, float | None], ...] = ()
    undecided: tuple[str, ...] = ()

    @property
    def lone_flashes(self) -> list[int]:
        """Flashes without a reading."""
        return sorted(set(range(len(self.flashes.frames))) - set(self.pairs.flashes.tolist()))

    @property
    def lone_readings(self) -> list[int]:
        """Readings without a flash."""
        return sorted(set(range(len(self.readings.ids))) - set(self.pairs.readings.tolist()))

    @property
    def time_rms_s(self) -> float:
        """Root mean square of the time errors."""
        return float(np.sqrt(np.mean(self.time_error_s**2))) if len(self.pairs) else 0.0

    @property
    def rms_px(self) -> float | None:
        """Root mean square of the residuals that are not outlying, per axis."""
        fine = self.residual_px[~self.outlying & np.isfinite(self.residual_px)]
        return float(np.sqrt(np.mean(fine**2) / 2)) if len(fine) else None

    @property
    def usable(self) -> Pairs:
        """The pairs to calibrate with: a person's all, of a proposal those that fit."""
        everything = np.ones(len(self.pairs), dtype=bool)
        return self.pairs.chosen(everything if self.verdict == "reviewed" else ~self.outlying)

    def expected_frame(self, reading: int) -> int | None:
        """The frame a reading's flash should begin in; None if that is not in the video."""
        if self.clock is None:
            return None
        time_s = float(self.clock.video_s(self.readings.time_s[reading]))
        frame = round(time_s * self.flashes.fps)
        return frame if 0 <= frame < self.flashes.n_frames else None

    def expected_uv(self, reading: int) -> tuple[float, float] | None:
        """Where the camera sees a reading; None if that is not in the picture."""
        if self.camera is None:
            return None
        u, v = self.camera.see((self.readings.xyz_m[reading] - self.centre_m)[None])[0].tolist()
        width, height = self.flashes.image_size
        inside = -0.5 <= u <= width - 0.5 and -0.5 <= v <= height - 0.5
        return (u, v) if inside else None

    @property
    def questions(self) -> list[str]:
        """What a person must decide; nothing if the match can be used."""
        if self.verdict == "reviewed":
            return list(self.undecided)
        return [*self._about_rivals(), *self.doubts]

    @property
    def doubts(self) -> list[str]:
        """What is left over or does not fit, one clause each."""
        clauses = []
        left_flashes, left_readings = self.left_out
        for i in self.lone_flashes:
            if i not in left_flashes:
                clauses.append(f"the flash in frame {self.flashes.frames[i]} has no reading")
        for j in self.lone_readings:
            if j not in left_readings:
                clauses.append(self._about_lone_reading(j))
        for k in np.flatnonzero(self.outlying).tolist():
            clauses.append(
                f"the light in frame {self.pairs.frames[k]} is {self.residual_px[k]:.1f} px from "
                f"where reading {self._id(k)} should be seen"
            )
        for k in np.flatnonzero(self.poor).tolist():
            sigma_m = float(_sigma_m(self.readings)[self.pairs.readings[k]])
            clauses.append(
                f"reading {self._id(k)} is known to {sigma_m:.2g} m only (not a fixed solution?)"
            )
        if self.camera is None:
            clauses.append(
                "no camera fits the pairs (is the lens's setting right, are the positions?)"
            )
        return clauses

    def _id(self, pair: int) -> str:
        return self.readings.ids[self.pairs.readings[pair]]

    def _about_lone_reading(self, reading: int) -> str:
        frame = self.expected_frame(reading)
        where = "outside the video" if frame is None else f"in frame {frame}"
        expected = "" if self.clock is None else f", which should begin {where}"
        return f"reading {self.readings.ids[reading]} has no flash{expected}"

    def _about_rivals(self) -> list[str]:
        if not self.rivals or self.clock is None:
            return []
        offsets_s = [self.clock.offset_s, *(offset_s for offset_s, _, _ in self.rivals)]
        listed = " or ".join(f"{offset_s:.2f}" for offset_s in offsets_s)
        return [f"{len(offsets_s)} pairings are about equally likely (clock offsets {listed} s)"]

    def refusal(self) -> str:
        """The sentence that says why a person is needed; without what to do."""
        named, more = self.questions[:NAMED], len(self.questions) - NAMED
        listed = "; ".join(named) + (f"; and {more} more, see {PAIRS}" if more > 0 else "")
        return f"{len(self.flashes.frames)} flashes, {len(self.readings.ids)} readings: {listed}."


def match_flight(
    flashes: Flashes,
    readings: Readings,
    *,
    focal_px: float | None,
    clock_offset_s: float | None = None,
) -> MatchedFlight:
    """The most likely match; ``focal_px`` is the lens's, if its setting is known.

    Raises ``InputError`` if no two belong together.
    """
    fit = CameraFit(flashes.image_size, readings, focal_px)

    def misfit(chosen_flashes: IntArray, chosen_readings: IntArray) -> Misfit | None:
        view = fit(chosen_readings, flashes.uv[chosen_flashes])
        return None if view is None else Misfit(view.residual_px, view.sigmas)

    match = match_times(
        flashes.time_s, readings.time_s, misfit=misfit, clock_offset_s=clock_offset_s
    )
    if match is None:
        known = "" if clock_offset_s is None else f" with a clock offset of {clock_offset_s:.2f} s"
        raise InputError(
            f"none of {len(flashes.frames)} flashes belongs to any of {len(readings.ids)} "
            f"readings{known}."
        )
    return _matched(flashes, readings, match, fit)


def _matched(flashes: Flashes, readings: Readings, match: Match, fit: CameraFit) -> MatchedFlight:
    best = match.pairing
    view = None if best.misfit is None else fit(best.readings, flashes.uv[best.flashes])
    pairs = Pairs(
        best.readings,
        best.flashes,
        flashes.frames[best.flashes],
        flashes.uv[best.flashes],
        flashes.rule[best.flashes],
    )
    n = len(pairs)
    poor = is_poor(readings)[pairs.readings]
    verdict = match.verdict
    if verdict is Verdict.CERTAIN and (poor.any() or view is None):
        verdict = Verdict.PROPOSED
    return MatchedFlight(
        flashes=flashes,
        readings=readings,
        pairs=pairs,
        verdict=verdict.value,
        clock=best.clock,
        time_error_s=best.time_error_s,
        camera=view,
        centre_m=fit.centre_m,
        residual_px=np.full(n, np.nan) if best.misfit is None else best.misfit.residual_px,
        outlying=best.outlying,
        poor=poor,
        disputed=_disputed(best, match.rivals),
        rivals=tuple((one.clock.offset_s, len(one.flashes), one.rms_px) for one in match.rivals),
    )


def _disputed(best: Pairing, rivals: Sequence[Pairing]) -> BoolArray:
    """(P,) pairs that not all rivals have."""
    pairs = list(zip(best.flashes.tolist(), best.readings.tolist(), strict=True))
    others = [set(zip(r.flashes.tolist(), r.readings.tolist(), strict=True)) for r in rivals]
    return np.array([any(pair not in other for other in others) for pair in pairs], dtype=bool)


def check_enough(matched: MatchedFlight, min_pairs: int = MIN_PAIRS) -> None:
    """Refuse a match with too few pairs to calibrate."""
    n = len(matched.usable)
    if n < min_pairs:
        raise InputError(
            f"only {n} of {len(matched.flashes.frames)} flashes and {len(matched.readings.ids)} "
            f"readings belong together, {min_pairs} are needed. Are they of one flight?"
        )


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
        covariance = _covariance_m2(readings)[pairs.readings] / unit_m**2
    target = PointCloud((points_m - centre_m) / unit_m, None, unit_m, covariance)
    valid = np.ones((1, len(pairs)), dtype=bool)
    return Observations(target, pairs.uv[None], valid, matched.flashes.image_size), centre_m


def write_flight_experiment(
    folder: Path,
    matched: MatchedFlight,
    cell: Setting,
    camera: Camera,
    lens_name: str,
    truth: FlightTruth | None,
) -> None:
    """Write the experiment's folder; a simulated flight's truth goes along."""
    observations, centre_m = flight_observations(matched)
    known = None if truth is None else _truth_of_pairs(truth, matched, observations, centre_m)
    write_experiment(folder, cell, camera, lens_name, observations, known)


def forget_experiment(folder: Path) -> None:
    """Remove an experiment that is no longer what the flight says."""
    try:
        for name in (files.EXPERIMENT, files.TARGET, files.COORDS, files.SUCCESSES):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}.") from None


def _truth_of_pairs(
    truth: FlightTruth, matched: MatchedFlight, observations: Observations, centre_m: FloatArray
) -> Truth:
    """The answer, with the centres' noise as it is in this footage (see ``run.recordings``)."""
    assert isinstance(observations.target, PointCloud)
    numbers, unit_m = matched.usable.readings, observations.target.unit_m
    exact = truth.of_readings(numbers, centre_m, unit_m, 0.0)
    points = transform(exact.rotations, exact.translations, exact.target_points)
    uv, _ = project(exact.intrinsics, points)
    sigma_px = 1.4826 * float(np.median(np.abs(observations.uv - uv)))
    return truth.of_readings(numbers, centre_m, unit_m, sigma_px)


class CameraFit:
    """Fits a camera to readings (P,) seen at uv (P, 2); metres about ``centre_m``."""

    def __init__(
        self, image_size: tuple[int, int], readings: Readings, focal_px: float | None
    ) -> None:
        self.centre_m = readings.xyz_m.mean(axis=0)
        self._points_m = readings.xyz_m - self.centre_m
        self._sigma_m = _sigma_m(readings)
        self._image_size = image_size
        self._focal_px = focal_px

    def __call__(self, readings: IntArray, uv: FloatArray) -> OneView | None:
        return fit_one_view(
            self._points_m[readings],
            uv,
            self._sigma_m[readings],
            self._image_size,
            focal_px=self._focal_px,
            sigma_px=LED_SIGMA_PX,
        )


def _covariance_m2(readings: Readings) -> FloatArray:
    """(R, 3, 3): assumed where it is not known, never singular."""
    covariance = np.tile(ASSUMED_SIGMA_M**2 * np.eye(3), (len(readings.ids), 1, 1))
    if readings.covariance_m2 is not None:
        known = np.isfinite(readings.covariance_m2).all(axis=(1, 2))
        covariance[known] = readings.covariance_m2[known]
    symmetric = (covariance + np.swapaxes(covariance, 1, 2)) / 2
    result: FloatArray = symmetric + LEAST_SIGMA_M**2 * np.eye(3)
    return result


def _sigma_m(readings: Readings) -> FloatArray:
    """(R,) standard deviation of a coordinate."""
    result: FloatArray = np.sqrt(np.trace(_covariance_m2(readings), axis1=1, axis2=2) / 3)
    return result


def is_poor(readings: Readings) -> BoolArray:
    """(R,) positions that are known much less well than the others."""
    sigma_m = _sigma_m(readings)
    return (sigma_m > POOR_SIGMA_M) & (sigma_m > POOR_RATIO * np.median(sigma_m))
