"""How well two records of the same agree, where a file of lens metadata has two.

A camera's own columns and the lens's packets, or the table of frames and the static file beside it,
are both lengths: they are compared frame by frame. The counts of an encoder have no unit: all that
can be said is whether they move when the length does, and whether one follows the other later.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.lens_metadata import Channel, LensMetadata
from influx_wrap.model.words import counted

MOST_LAG = 12
"""Frames by which one record may follow the other, to be noticed."""
LEAST_MOVES = 8
"""Frames with movement without which nothing is said of a lag."""


@dataclass(frozen=True)
class Agreement:
    """Of two records of the same length.

    n_both      frames with both
    n_infinite  of them, frames where one is at infinity and the other is not
    median      difference in mm or m in the middle; NaN if none can be taken
    worst       and the largest
    frame       in which it is
    percent     the largest difference relative to the record that is used
    """

    n_both: int
    n_infinite: int
    median: float
    worst: float
    frame: int
    percent: float


@dataclass(frozen=True)
class Following:
    """Of a length and the counts of an encoder.

    n_both    frames with both
    together  steps from frame to frame at which both moved
    alone     steps at which only the length moved, and only the encoder
    lag       frames after which the length follows the encoder best; None if it cannot be told
    """

    n_both: int
    together: int
    alone: tuple[int, int]
    lag: int | None


def describe_channels(metadata: LensMetadata) -> tuple[str, ...]:
    """A sentence for every second record in the metadata."""
    said = []
    for channel in metadata.channels:
        values = metadata.lfl_mm if channel.quantity == "LFL" else metadata.fd_m
        if channel.is_counts:
            said.append(_following_sentence(channel, follow(metadata.frame, values, channel)))
        else:
            said.append(_agreement_sentence(channel, agree(metadata.frame, values, channel)))
    return tuple(said)


def agree(frame: IntArray, values: FloatArray, channel: Channel) -> Agreement:
    """How far a second record of lengths is from the values (n,) of frames (n,) that are used."""
    both = ~(np.isnan(values) | np.isnan(channel.values))
    one_infinite = both & (np.isinf(values) != np.isinf(channel.values))
    finite = both & np.isfinite(values) & np.isfinite(channel.values)
    n_both, n_infinite = int(both.sum()), int(one_infinite.sum())
    if not finite.any():
        worst = 0.0 if n_both > n_infinite else np.nan
        return Agreement(n_both, n_infinite, worst, worst, -1, worst)
    apart = np.abs(channel.values[finite] - values[finite])
    k = int(np.argmax(apart))
    percent = 100 * (apart[k] / values[finite][k])
    number = int(frame[finite][k])
    return Agreement(
        n_both, n_infinite, float(np.median(apart)), float(apart[k]), number, float(percent)
    )


def follow(frame: IntArray, values: FloatArray, channel: Channel) -> Following:
    """Whether the values (n,) of frames (n,) move as the counts of an encoder do."""
    with np.errstate(over="ignore"):
        position = np.log(values) if channel.quantity == "LFL" else 1 / values
    both = np.isfinite(position) & ~np.isnan(channel.values)
    position, counts = position[both], channel.values[both]
    next_to = np.diff(frame[both]) == 1
    steps, turns = np.diff(position) * next_to, np.diff(counts) * next_to
    moved, turned = steps != 0, turns != 0
    return Following(
        int(both.sum()),
        int((moved & turned).sum()),
        (int((moved & ~turned).sum()), int((turned & ~moved).sum())),
        _lag(steps, turns) if min(moved.sum(), turned.sum()) >= LEAST_MOVES else None,
    )


def _lag(steps: FloatArray, turns: FloatArray) -> int | None:
    """By how many frames one movement (n,) follows the other, at the highest correlation.

    None if no shift explains at least half of the movement.
    """

    def alike(shift: int) -> float:
        late = steps[max(shift, 0) : len(steps) + min(shift, 0)]
        early = turns[max(-shift, 0) : len(turns) - max(shift, 0)]
        size = np.sqrt((late @ late) * (early @ early))
        return float(abs(late @ early) / size) if size > 0 else 0.0

    most = min(MOST_LAG, len(steps) // 2)
    # Of equally good shifts the least.
    shifts = sorted(range(-most, most + 1), key=abs)
    best = max(shifts, key=alike)
    return best if alike(best) ** 2 >= 0.5 else None


def _agreement_sentence(channel: Channel, found: Agreement) -> str:
    unit, what = ("mm" if channel.quantity == "LFL" else "m"), channel.quantity
    start = f"{what} is told twice: {channel.used!r} is used, {channel.name!r} is not. "
    if found.n_both == 0:
        return f"{start}No frame has both."
    frames = counted(found.n_both, "frame")
    if found.n_infinite:
        start += f"In {found.n_infinite} of {frames} only one of them is infinite. "
        if not found.worst > 0:
            return start.rstrip()
    if found.worst == 0:
        return f"{start}They are the same in {frames}."
    return (
        f"{start}In {frames} they differ by {found.median:.3g} {unit} in the middle, and by "
        f"{found.worst:.3g} {unit} ({found.percent:.2g} %) at most, in frame {found.frame}."
    )


def _following_sentence(channel: Channel, found: Following) -> str:
    start = f"{channel.used!r} ({channel.quantity}) beside the encoder {channel.name!r}: "
    if found.n_both == 0:
        return f"{start}no frame has both."
    length_alone, encoder_alone = found.alone
    if found.together + length_alone + encoder_alone == 0:
        return f"{start}both stand still in all {counted(found.n_both, 'frame')}."
    words = (
        f"{start}from frame to frame both move {found.together} times, only the length "
        f"{length_alone} times, only the encoder {encoder_alone} times."
    )
    if found.lag:
        later, sooner = ("later", "") if found.lag > 0 else ("sooner", "-")
        words += (
            f" The length follows best {counted(abs(found.lag), 'frame')} {later}: if the encoder "
            f"is in time with the pictures, that is --delay {sooner}{abs(found.lag)}."
        )
    return words
