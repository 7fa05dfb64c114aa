"""Which flash of the video belongs to which reading of the drone's receiver, and how sure that is.

The times propose which belong together (``observe.pairing``), a camera fitted to the pairs
confirms or contradicts it (``calibrate.one_view``), and where anything is left over or in
doubt a person decides: by a review (``review``), or by accepting the proposal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from influx_wrap.calibrate.one_view import OneView, fit_one_view
from influx_wrap.errors import InputError
from influx_wrap.formats.pairs import PAIRS
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.flashes import Flashes, Readings
from influx_wrap.observe.pairing import Clock, Match, MatchVerdict, Misfit, Pairing, match_times

MIN_PAIRS = 12
"""Fewer are not calibrated with, unless a person says so."""

NAMED = 4
"""How many questions a sentence lists."""

LED_SIGMA_PX = 0.5
"""How well the centre of the LED is known, before anything is known of the footage."""

ASSUMED_SIGMA_M = 0.02
"""How well a position is known that does not say so: an RTK receiver's usual word."""

LEAST_SIGMA_M = 1e-4
POOR_SIGMA_M, POOR_RATIO = 0.05, 5.0
"""A position is poor if it is known less well than this, and than this times most others."""


class CameraFit:
    """Fits a camera to readings (P,) seen at uv (P, 2); metres about ``centre_m``."""

    def __init__(
        self, image_size: tuple[int, int], readings: Readings, focal_px: float | None
    ) -> None:
        self.centre_m = readings.xyz_m.mean(axis=0)
        self._points_m = readings.xyz_m - self.centre_m
        self._sigma_m = position_sigma_m(readings)
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


def position_covariance_m2(readings: Readings) -> FloatArray:
    """(R, 3, 3) of the positions: assumed where it is not known, never singular."""
    covariance = np.tile(ASSUMED_SIGMA_M**2 * np.eye(3), (len(readings.ids), 1, 1))
    if readings.covariance_m2 is not None:
        known = np.isfinite(readings.covariance_m2).all(axis=(1, 2))
        covariance[known] = readings.covariance_m2[known]
    symmetric = (covariance + np.swapaxes(covariance, 1, 2)) / 2
    result: FloatArray = symmetric + LEAST_SIGMA_M**2 * np.eye(3)
    return result


def position_sigma_m(readings: Readings) -> FloatArray:
    """(R,) standard deviation of a coordinate."""
    covariance = position_covariance_m2(readings)
    result: FloatArray = np.sqrt(np.trace(covariance, axis1=1, axis2=2) / 3)
    return result


def is_poor(readings: Readings) -> BoolArray:
    """(R,) positions that are known much less well than the others."""
    sigma_m = position_sigma_m(readings)
    return (sigma_m > POOR_SIGMA_M) & (sigma_m > POOR_RATIO * np.median(sigma_m))


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
            sigma_m = float(position_sigma_m(self.readings)[self.pairs.readings[k]])
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

    def too_few(self, min_pairs: int = MIN_PAIRS) -> str | None:
        """The sentence that says that there are too few pairs to calibrate with; None if not."""
        n = len(self.usable)
        if n >= min_pairs:
            return None
        return (
            f"only {n} of {len(self.flashes.frames)} flashes and {len(self.readings.ids)} "
            f"readings belong together, {min_pairs} are needed. Are they of one flight?"
        )


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
    if verdict is MatchVerdict.CERTAIN and (poor.any() or view is None):
        verdict = MatchVerdict.PROPOSED
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
