"""Which flash of a video belongs to which reading of the receiver.

The two clocks differ by a constant that nobody knows and a drift of a few parts in a
million, and both records are in the order of time. Any flash and any reading give a guess
of the constant; the guesses that bring many others together are candidates, and each is
worked out: a chain of pairs that keeps the order, leaves out what has no partner, and the
clock that fits it best.

The paper pairs the n-th with the n-th and has a person look if the counts differ. Equal
counts prove little, though: one flash missed and one light too many look the same. And
where the LED is triggered at regular intervals, the records fit as well when shifted by one.
So each candidate is also judged by how well a camera fits its pairs (``misfit``). What
is left out by the one and by the other, unpaired and outlying, is counted; a candidate wins
if all others leave out clearly more. Otherwise the match is ambiguous, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.robust import MEDIAN_LENGTH

TOLERANCE_S = 0.2
"""How far a pair may be apart once the clocks agree: half of the time between frames, half
of that between two epochs of the receiver, and what the trigger takes to arrive."""

JITTER_S = 0.05
DRIFT = 50e-6
"""How much faster one clock may go than the other (a quartz in the cold)."""

RIVAL_SHARE = 0.6
"""A candidate with this share of the best one's pairs is not impossible by its times alone."""

DECISIVE = 3
"""So many flashes and readings more must a rival leave out to be dismissed."""

OUTLIER_SIGMAS = 4.5
LARGEST_SCALE = 5.0
"""Residuals may be so many times what is expected before no camera fits."""

MAX_CANDIDATES = 25

# Leaving out two items must cost more than the worst pair within the tolerance.
_PAIR_GAIN = 1.5 * (TOLERANCE_S / JITTER_S) ** 2


class MatchVerdict(StrEnum):
    """Whether a match can be used as it is."""

    CERTAIN = "certain"
    PROPOSED = "proposed"
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True)
class Clock:
    """Reading times are (1 + drift) times those of the video, plus ``offset_s``."""

    offset_s: float
    drift: float = 0.0

    def reading_s(self, video_s: FloatArray) -> FloatArray:
        """What the receiver's clock shows."""
        return video_s * (1 + self.drift) + self.offset_s

    def video_s(self, reading_s: FloatArray) -> FloatArray:
        """When in the video that is."""
        return (reading_s - self.offset_s) / (1 + self.drift)


@dataclass(frozen=True, eq=False)
class Misfit:
    """How well one camera fits P pairs.

    residual_px  (P,) distance of each flash from where the camera sees its reading
    sigmas       (P,) the same in units of what is to be expected
    """

    residual_px: FloatArray
    sigmas: FloatArray

    @property
    def scale(self) -> float:
        """How much larger than expected most residuals are; 1 if they are not."""
        return max(1.0, float(np.median(self.sigmas) / MEDIAN_LENGTH))


MisfitFunction = Callable[[IntArray, IntArray], Misfit | None]
"""The misfit of flashes (P,) and readings (P,), by their numbers; None if no camera fits."""


@dataclass(frozen=True, eq=False)
class Pairing:
    """P pairs out of ``n_flashes`` and ``n_readings``, and what speaks for them.

    flashes, readings  (P,) increasing numbers
    time_error_s       (P,) reading minus what the clock expects
    misfit             None if no camera fits, or none was asked for
    outlying           (P,) pairs that the camera fitted to the others contradicts
    """

    flashes: IntArray
    readings: IntArray
    n_flashes: int
    n_readings: int
    clock: Clock
    time_error_s: FloatArray
    misfit: Misfit | None
    outlying: BoolArray

    @property
    def time_rms_s(self) -> float:
        """Root mean square of the time errors."""
        return float(np.sqrt(np.mean(self.time_error_s**2))) if len(self.flashes) else 0.0

    @property
    def rms_px(self) -> float | None:
        """Root mean square of the residuals, per axis, without the outlying ones."""
        if self.misfit is None or self.outlying.all():
            return None
        return float(np.sqrt(np.mean(self.misfit.residual_px[~self.outlying] ** 2) / 2))

    @property
    def n_left_out(self) -> int:
        """Flashes and readings that it has no use for."""
        n_used = len(self.flashes) - int(self.outlying.sum())
        return self.n_flashes + self.n_readings - 2 * n_used


@dataclass(frozen=True, eq=False)
class Match:
    """The most likely pairing, and those that are hardly less so."""

    verdict: MatchVerdict
    pairing: Pairing
    rivals: tuple[Pairing, ...]


def match_times(
    flash_s: FloatArray,
    reading_s: FloatArray,
    *,
    misfit: MisfitFunction | None = None,
    clock_offset_s: float | None = None,
) -> Match | None:
    """Match flashes at ``flash_s`` (F,) with readings at ``reading_s`` (R,), both increasing.

    ``clock_offset_s``, if it is known, need be right to half a second. The match is certain if
    nothing is left out and no other is possible. None if no two go together.
    """
    candidates = _candidates(flash_s, reading_s, clock_offset_s)
    if not candidates:
        return None
    if misfit is None:
        rivals = tuple(candidates[1:])
        return Match(_verdict(candidates[0], rivals), candidates[0], rivals)
    judged = [_judged(candidate, misfit) for candidate in candidates]
    fitting = [candidate for candidate in judged if candidate.misfit is not None]
    if not fitting:
        rivals = tuple(judged[1:])
        verdict = MatchVerdict.AMBIGUOUS if rivals else MatchVerdict.PROPOSED
        return Match(verdict, judged[0], rivals)
    # Where a good camera exists, a bad one that finds everything normal is no match for it.
    scale = min(one.misfit.scale for one in fitting if one.misfit is not None)
    fitting = [_with_outliers(candidate, scale) for candidate in fitting]
    fitting = [_reconsidered(candidate, flash_s, reading_s, misfit, scale) for candidate in fitting]
    best = min(fitting, key=lambda one: (one.n_left_out, one.rms_px or np.inf, one.time_rms_s))
    rivals = tuple(
        one for one in fitting if one is not best and one.n_left_out < best.n_left_out + DECISIVE
    )
    return Match(_verdict(best, rivals), best, rivals)


def _verdict(best: Pairing, rivals: Sequence[Pairing]) -> MatchVerdict:
    if rivals:
        return MatchVerdict.AMBIGUOUS
    return MatchVerdict.CERTAIN if best.n_left_out == 0 else MatchVerdict.PROPOSED


def _judged(candidate: Pairing, misfit: MisfitFunction) -> Pairing:
    """The candidate with its misfit, unless that is so large that it fits no camera."""
    found = misfit(candidate.flashes, candidate.readings)
    fits = found is not None and found.scale <= LARGEST_SCALE
    return replace(candidate, misfit=found if fits else None)


def _with_outliers(candidate: Pairing, scale: float) -> Pairing:
    assert candidate.misfit is not None
    return replace(candidate, outlying=candidate.misfit.sigmas > OUTLIER_SIGMAS * scale)


def _reconsidered(
    candidate: Pairing,
    flash_s: FloatArray,
    reading_s: FloatArray,
    misfit: MisfitFunction,
    scale: float,
) -> Pairing:
    """The candidate with other flashes in the place of outlying ones, where that fits better.

    Of two lights at about the same time, the one that is closer need not be the LED.
    """
    if not candidate.outlying.any():
        return candidate
    others = np.setdiff1d(np.arange(len(flash_s)), candidate.flashes[candidate.outlying])
    chain = _chain(flash_s[others], reading_s, candidate.clock)
    if 2 * len(chain.flashes) <= candidate.n_flashes + candidate.n_readings - candidate.n_left_out:
        return candidate
    chain = replace(chain, flashes=others[chain.flashes], n_flashes=len(flash_s))
    changed = _judged(chain, misfit)
    if changed.misfit is None:
        return candidate
    changed = _with_outliers(changed, scale)
    return changed if changed.n_left_out < candidate.n_left_out else candidate


def _candidates(
    flash_s: FloatArray, reading_s: FloatArray, clock_offset_s: float | None
) -> list[Pairing]:
    """Possible pairings, those with most pairs first."""
    found: dict[bytes, Pairing] = {}
    for offset_s in _offsets(flash_s, reading_s, clock_offset_s):
        pairing = _chain(flash_s, reading_s, Clock(offset_s))
        for _ in range(3):
            before = pairing
            clock = fit_clock(flash_s[pairing.flashes], reading_s[pairing.readings])
            pairing = _chain(flash_s, reading_s, clock)
            if _key(pairing) == _key(before):
                break
        if len(pairing.flashes):
            found.setdefault(_key(pairing), pairing)
    ranked = sorted(found.values(), key=lambda one: (-len(one.flashes), one.time_rms_s))
    return [one for one in ranked if len(one.flashes) >= RIVAL_SHARE * len(ranked[0].flashes)]


def _key(pairing: Pairing) -> bytes:
    return pairing.flashes.tobytes() + b"|" + pairing.readings.tobytes()


def _offsets(
    flash_s: FloatArray, reading_s: FloatArray, clock_offset_s: float | None
) -> list[float]:
    """Clock offsets that many pairs agree on, most first."""
    guesses = np.sort((reading_s[None, :] - flash_s[:, None]).ravel())
    if clock_offset_s is not None:
        guesses = guesses[np.abs(guesses - clock_offset_s) <= 0.5]
    offsets: list[float] = []
    most = 0
    while len(guesses) and len(offsets) < MAX_CANDIDATES:
        first = np.searchsorted(guesses, guesses - TOLERANCE_S)
        last = np.searchsorted(guesses, guesses + TOLERANCE_S, side="right")
        votes = last - first
        best = int(np.argmax(votes))
        most = max(most, int(votes[best]))
        # Half of what a rival needs: with a drift, votes are spread over more than a window.
        if votes[best] < 0.5 * RIVAL_SHARE * most:
            break
        agreeing = guesses[first[best] : last[best]]
        offsets.append(float(agreeing.mean()))
        guesses = np.delete(guesses, np.s_[first[best] : last[best]])
    return offsets


def fit_clock(video_s: FloatArray, reading_s: FloatArray) -> Clock:
    """The clock of pairs, least squares with the drift held to what clocks do."""
    middle = float(video_s.mean())
    difference = reading_s - video_s
    lever = video_s - middle
    mean = float(difference.mean())
    weight = float(lever @ lever) / JITTER_S**2 + 1 / DRIFT**2
    drift = float(lever @ (difference - mean)) / JITTER_S**2 / weight
    return Clock(mean - drift * middle, drift)


def _chain(flash_s: FloatArray, reading_s: FloatArray, clock: Clock) -> Pairing:
    """The best pairs within the tolerance that keep the order of both."""
    error = reading_s[None, :] - clock.reading_s(flash_s)[:, None]
    flash, reading = np.nonzero(np.abs(error) <= TOLERANCE_S)
    gain = _PAIR_GAIN - (error[flash, reading] / JITTER_S) ** 2
    chosen = _heaviest_chain(flash, reading, gain)
    flash, reading = flash[chosen], reading[chosen]
    return Pairing(
        flashes=flash.astype(np.int64),
        readings=reading.astype(np.int64),
        n_flashes=len(flash_s),
        n_readings=len(reading_s),
        clock=clock,
        time_error_s=error[flash, reading],
        misfit=None,
        outlying=np.zeros(len(flash), dtype=bool),
    )


def _heaviest_chain(flash: IntArray, reading: IntArray, gain: FloatArray) -> IntArray:
    """Indices of pairs increasing in both numbers with the largest sum of gains."""
    if (np.diff(flash) > 0).all() and (np.diff(reading) > 0).all():
        return np.arange(len(flash))
    total = gain.copy()
    before = np.full(len(flash), -1)
    for k in range(len(flash)):
        earlier = np.flatnonzero((flash[:k] < flash[k]) & (reading[:k] < reading[k]))
        if len(earlier):
            best = int(earlier[np.argmax(total[earlier])])
            total[k], before[k] = gain[k] + total[best], best
    chain = [int(np.argmax(total))]
    while before[chain[-1]] >= 0:
        chain.append(int(before[chain[-1]]))
    return np.array(chain[::-1])
