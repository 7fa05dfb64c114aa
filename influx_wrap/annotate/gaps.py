"""What is wrong with a clip's lens metadata: gaps, dropouts, impossible jumps.

A gap is a frame that is not listed, a dropout one for which the lens did not tell LFL or FD.
A jump is a change faster than a ring turns: fast servos, and hands, take about a quarter of a
second from one end of a zoom or focus ring to the other, six frames or more of a film. So an
LFL that changes by a factor of more than ``MOST_LFL_FACTOR`` from one frame to the next (a 7x
zoom crossed in under five frames), or an FD that changes by more than ``MOST_FD_DIOPTRES`` in
1 / FD (from 0.85 m to infinity in under four), was not the lens. Across missing frames the limit
grows with their number.

Nothing is mended unasked. ``fill_gaps`` interpolates over short runs of missing frames.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.lens_metadata import LensMetadata

MOST_LFL_FACTOR = 1.5
MOST_FD_DIOPTRES = 0.3

FrameRange = tuple[int, int]
"""First and last of consecutive frames."""


@dataclass(frozen=True)
class Jump:
    """A quantity, LFL in mm or FD in m, that changed too fast between two frames."""

    quantity: str
    frames: FrameRange
    values: tuple[float, float]


@dataclass(frozen=True)
class Faults:
    """What is wrong with a clip's metadata, in order of frames."""

    gaps: tuple[FrameRange, ...]
    dropouts: tuple[FrameRange, ...]
    jumps: tuple[Jump, ...]


def find_faults(metadata: LensMetadata) -> Faults:
    """Gaps, dropouts and jumps; frames are counted from 0, so one that is not there is missed."""
    listed = metadata.frame
    before = np.concatenate([[-1], listed[:-1]])
    wide = listed - before > 1
    gaps = zip((before[wide] + 1).tolist(), (listed[wide] - 1).tolist(), strict=True)
    jumps = [
        *_jumps("LFL", listed, metadata.lfl_mm, np.log(metadata.lfl_mm), math.log(MOST_LFL_FACTOR)),
        *_jumps("FD", listed, metadata.fd_m, 1 / metadata.fd_m, MOST_FD_DIOPTRES),
    ]
    return Faults(
        tuple(gaps),
        frame_ranges(listed[~metadata.told]),
        tuple(sorted(jumps, key=lambda jump: jump.frames)),
    )


def fill_gaps(metadata: LensMetadata, most_frames: int) -> LensMetadata:
    """The metadata with runs of at most ``most_frames`` missing frames interpolated.

    Linear in LFL and in 1 / FD, between the nearest frames that told each. Frames in gaps are
    added if they can be filled; longer runs, and those at a clip's ends, stay as they are.
    """
    listed = metadata.frame
    steps = np.diff(listed)
    added = [
        np.arange(listed[k] + 1, listed[k + 1])
        for k in np.flatnonzero((steps > 1) & (steps <= most_frames + 1)).tolist()
    ]
    frame = np.sort(np.concatenate([listed, *added]))
    is_listed = np.isin(frame, listed)
    lfl_mm, nearness = np.full(len(frame), np.nan), np.full(len(frame), np.nan)
    lfl_mm[is_listed], nearness[is_listed] = metadata.lfl_mm, 1 / metadata.fd_m
    was_told = ~np.isnan(nearness)
    fd_m = np.full(len(frame), np.nan)
    fd_m[is_listed] = metadata.fd_m
    with np.errstate(divide="ignore"):
        # What was told stays as it was, to the last bit.
        fd_m = np.where(was_told, fd_m, 1 / _interpolated(frame, nearness, most_frames))
    filled = LensMetadata(frame, _interpolated(frame, lfl_mm, most_frames), fd_m, metadata.rig)
    return filled.some(is_listed | filled.told)


def frame_ranges(frames: IntArray) -> tuple[FrameRange, ...]:
    """Runs of consecutive numbers among frames (n,), in increasing order."""
    if len(frames) == 0:
        return ()
    ends = np.flatnonzero(np.diff(frames) > 1)
    firsts = frames[np.concatenate([[0], ends + 1])]
    lasts = frames[np.concatenate([ends, [len(frames) - 1]])]
    return tuple(zip(firsts.tolist(), lasts.tolist(), strict=True))


def count_frames(ranges: Sequence[FrameRange]) -> int:
    """How many frames ranges have together."""
    return sum(last - first + 1 for first, last in ranges)


def _interpolated(frame: IntArray, values: FloatArray, most_frames: int) -> FloatArray:
    """Values (n,) of frames (n,) with short runs of NaN between others filled linearly."""
    told = np.flatnonzero(~np.isnan(values))
    if len(told) == 0:
        return values
    missing = np.flatnonzero(np.isnan(values))
    place = np.searchsorted(told, missing)
    inside = (place > 0) & (place < len(told))
    missing, place = missing[inside], place[inside]
    left, right = told[place - 1], told[place]
    short = frame[right] - frame[left] - 1 <= most_frames
    missing, left, right = missing[short], left[short], right[short]
    share = (frame[missing] - frame[left]) / (frame[right] - frame[left])
    result = values.copy()
    result[missing] = (1 - share) * values[left] + share * values[right]
    return result


def _jumps(
    quantity: str,
    frame: IntArray,
    values: FloatArray,
    position: FloatArray,
    most_per_frame: float,
) -> list[Jump]:
    """Where ``position`` (n,) changes by more than a limit per frame, missing ones left out."""
    told = np.flatnonzero(~np.isnan(position))
    left, right = told[:-1], told[1:]
    apart = frame[right] - frame[left]
    # Rounding must not make a jump of a change right at the limit.
    too_fast = np.abs(position[right] - position[left]) > most_per_frame * apart * (1 + 1e-9)
    return [
        Jump(
            quantity,
            (int(frame[a]), int(frame[b])),
            (float(values[a]), float(values[b])),
        )
        for a, b in zip(left[too_fast].tolist(), right[too_fast].tolist(), strict=True)
    ]
