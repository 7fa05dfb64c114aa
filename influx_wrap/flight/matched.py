"""What goes together in a flight, how sure that is, and what a person has to decide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from influx_wrap.calibrate.one_view import OneView
from influx_wrap.flight.camera import position_sigma_m
from influx_wrap.formats.pairs import PAIRS
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.flashes import Flashes, Readings
from influx_wrap.observe.pairing import Clock

MIN_PAIRS = 12
"""Fewer are not calibrated with, unless a person says so."""

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
