"""A stretch of a video, as whoever looks at it gets it, and what he gives back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from influx_wrap.model.target import BoardTarget
from influx_wrap.observe.frames import FrameSource, TruncatedInput
from influx_wrap.observe.journal import Found, use_one_thread
from influx_wrap.observe.luma import Luma
from influx_wrap.observe.two_looks import look_through


@dataclass(frozen=True, eq=False)
class Stretch:
    """Frames of a video in a row, and what to do with them: ``start`` to before ``stop``, or to
    the end of the video. ``in_group`` as in ``look_through``."""

    index: int
    start: int
    stop: int | None
    source: FrameSource
    target: BoardTarget
    in_group: int
    every_frame: bool


@dataclass(frozen=True, eq=False)
class SeenStretch:
    """What was found in a stretch of n frames: arrays by name, the first axis is the frames'.

    damage  how many frames of the whole video are readable, and why not more; None if this
            stretch is whole
    """

    n_frames: int
    found: Found
    damage: tuple[int, str] | None


def look_at_stretch(stretch: Stretch) -> SeenStretch | Exception:
    """What a worker does."""
    use_one_thread()
    try:
        return look_at(stretch, stretch.source.lumas(stretch.start, stretch.stop))
    except Exception as error:
        return error


def look_at(stretch: Stretch, frames: Iterable[tuple[int, Luma]]) -> SeenStretch:
    """What is found in the ``frames`` of a stretch, as far as they are readable."""
    found, damage = [], None
    looks = look_through(
        frames, stretch.target, stretch.source.image_size, stretch.in_group,
        every_frame=stretch.every_frame,
    )  # fmt: skip
    try:
        for one in looks:
            found.append(one)
    except TruncatedInput as error:
        damage = error.n_read, error.problem
    n_points = len(stretch.target.points)
    empty = {
        "homography": np.empty((0, 3, 3)),
        "step_px": np.empty(0),
        "is_candidate": np.empty(0, bool),
        "uv": np.empty((0, n_points, 2)),
        "confidence": np.empty((0, n_points)),
        "ambiguous": np.empty(0, bool),
    }
    arrays = {
        name: np.stack([one[name] for one in found]) if found else array
        for name, array in empty.items()
    }
    longest = max((len(one["thumbnail"]) for one in found), default=0)
    arrays["thumbnail"] = np.zeros((len(found), longest), np.uint8)
    for row, one in zip(arrays["thumbnail"], found, strict=True):
        row[: len(one["thumbnail"])] = one["thumbnail"]
    return SeenStretch(len(found), arrays, damage)
