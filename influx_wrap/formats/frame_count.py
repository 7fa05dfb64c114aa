"""Which frame of a clip each row of its metadata belongs to, by row and by timecode.

Rows follow each other as frames do, unless the program that wrote them left some out or wrote
some twice. The timecodes show that, but not whether the clip's pictures have the same gap. If the
clip is known to be as long as its timecodes run, rows are put where their timecodes say; if not,
they are counted as they come, and a sentence says what the timecodes do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from influx_wrap.model.arrays import IntArray
from influx_wrap.model.lens_metadata import ReportedClip
from influx_wrap.model.words import counted

MOST_LISTED = 3
_USUAL_RATES = (24, 25, 30, 48, 50, 60, 100, 120)
_TIMECODE = re.compile(r"([0-9]{1,2})[:.]([0-9]{2})[:.]([0-9]{2})([:;.,])([0-9]{2,3})")


def place_rows(codes: Sequence[str], clip: ReportedClip) -> tuple[IntArray, IntArray, list[str]]:
    """Rows that are used (m,), their frames (m,), and what is to be said of timecodes (n,)."""
    n = len(codes)
    every = np.arange(n)
    counts = frame_counts(codes, clip.fps)
    if counts is None or n < 2:
        return every, every, []
    steps = np.diff(counts)
    if (steps == 1).all():
        return every, every, []
    if not steps.any():
        return every, every, ["All lines have the same timecode: frames are counted by lines."]
    said = _irregular(codes, steps)
    offsets = counts - counts[0]
    _, first = np.unique(offsets, return_index=True)
    if (steps >= 0).all() and clip.n_frames is not None and offsets[-1] + 1 == clip.n_frames:
        if len(first) < n:
            said.append("Of lines with the same timecode the first is used.")
        said.append(
            f"The clip has {counted(clip.n_frames, 'frame')}, as many as its timecodes run: lines "
            "are put where their timecodes say."
        )
        return first, offsets[first], said
    why = "" if clip.n_frames is None else f" (the clip has {counted(clip.n_frames, 'frame')})"
    said.append(
        f"Frames are counted by lines all the same{why}: if the clip's pictures do not jump there, "
        "frames after it have the metadata of others."
    )
    return every, every, said


def frame_counts(codes: Sequence[str], fps: float | None) -> IntArray | None:
    """(n,) frames since midnight by timecodes; None if they cannot be read.

    A second has as many as can be seen where the next begins; else ``fps``, or the usual rate.
    """
    found = [_TIMECODE.fullmatch(code.strip()) for code in codes]
    if not found or not all(found):
        return None
    parts = np.array([[int(m[k]) for k in (1, 2, 3, 5)] for m in found if m is not None])
    rate = _rate(parts, fps)
    hours, minutes, seconds, frames = parts.T
    counts = ((hours * 60 + minutes) * 60 + seconds) * rate + frames
    if any(m is not None and m[4] in ";," for m in found) and rate % 30 == 0:
        # Two numbers (four at 60 frames a second) are skipped every minute but the tenth.
        total = hours * 60 + minutes
        counts = counts - rate // 15 * (total - total // 10)
    # Past midnight the count begins again.
    day = 24 * 3600 * rate
    return np.asarray(counts + day * np.cumsum(np.diff(counts, prepend=counts[0]) < -day // 2))


def timecode_notes(codes: Sequence[str], fps: float | None) -> list[str]:
    """What is to be said of the timecodes (n,) of rows whose frames are numbered besides."""
    counts = frame_counts(codes, fps)
    return [] if counts is None else _irregular(codes, np.diff(counts))


def _rate(parts: IntArray, fps: float | None) -> int:
    """How many frames a second of timecodes (n, 4) has."""
    most = int(parts[:, 3].max()) + 1
    last = parts[:-1][(np.diff(parts[:, 2]) % 60 == 1) & (parts[1:, 3] == 0), 3]
    if len(last) and last.max() + 1 == most and most in _USUAL_RATES:
        return most
    if fps is not None and most <= round(min(fps, 1000)):
        return round(min(fps, 1000))
    return next((usual for usual in _USUAL_RATES if usual >= most), most)


def _irregular(codes: Sequence[str], steps: IntArray) -> list[str]:
    """What timecodes do that do not count up by one."""
    kinds = (
        ("jump ahead", steps > 1, int((steps[steps > 1] - 1).sum())),
        ("come twice", steps == 0, 0),
        ("go back", steps < 0, 0),
    )
    said = []
    for word, which, missing in kinds:
        places = np.flatnonzero(which)
        if len(places) == 0:
            continue
        shown = [f"{codes[k]} to {codes[k + 1]}" for k in places[:MOST_LISTED].tolist()]
        if word == "come twice":
            shown = [codes[k] for k in places[:MOST_LISTED].tolist()]
        more = f" and {len(places) - MOST_LISTED} more" if len(places) > MOST_LISTED else ""
        lacking = f", {counted(missing, 'frame')} missing" if missing else ""
        said.append(f"Timecodes {word} ({', '.join(shown)}{more}{lacking}).")
    return said
