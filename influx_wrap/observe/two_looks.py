"""A video's frames, looked at twice: all of them cheaply, those that can become views exactly.

The first look says where the board is in every frame and how far it has moved since the one before
(``tracking``). Corners are measured, as exactly as in a search of every frame, in one frame of
each few in a row only, that in which the board is slowest. These are the candidates of
``keyframes``: a pose that is held lasts half a second, which is a dozen frames that all show the
same, and a hand that never rests is slow for some frames when it turns.

Frames are looked at in stretches. What is found in a stretch depends on its frames alone, and
where stretches begin depends on the video alone, so that the answer is the same whoever does the
work and however often he was stopped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice

import cv2
import numpy as np
from numpy.typing import NDArray

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.target import BoardTarget
from influx_wrap.observe.detection import Detection, nothing_found
from influx_wrap.observe.detectors import detect_usable
from influx_wrap.observe.frames import FrameSource
from influx_wrap.observe.journal import Found
from influx_wrap.observe.luma import Luma
from influx_wrap.observe.tracking import BoardPlace, Tracker

STRETCH_FRAMES, SHORT_STRETCH_FRAMES = 192, 64
"""Least length of a stretch, and of one in a short video, which is divided into about"""
STRETCHES = 16
"""stretches, so that no process waits long for another's last one."""

MAP_POINTS = 40
"""So many points say where the board's plane is, to a pixel or so."""

THUMBNAIL_WIDTH_PX = 320

MOST_IN_GROUP = 4
"""Of so many frames in a row that show the board the slowest is a candidate; of fewer in a video
that has less than"""
GROUPS = 140
"""times as many frames: what is waved for some seconds has no views to spare."""
SAME_POSE = 1 / 150
"""In parts of the picture's diagonal."""
LONG_REST, LATER_GROUPS = 8, 5
"""After so many candidates of one pose only one group in a few has another one."""


def divide(source: FrameSource) -> list[tuple[int, int | None]] | None:
    """(first frame, frame behind the last) of the stretches of a video, the last one's end None.

    They begin where reading can begin. None for a video that can be read from its beginning only,
    or is a single stretch.
    """
    least = (source.n_frames or 0) // STRETCHES
    least = min(max(least, SHORT_STRETCH_FRAMES), STRETCH_FRAMES)
    starts = [0]
    for entry in source.entries() or []:
        if entry >= starts[-1] + least:
            starts.append(entry)
    return list(zip(starts, [*starts[1:], None], strict=True)) if len(starts) > 1 else None


def bounds(
    divided: list[tuple[int, int | None]] | None,
) -> Iterator[tuple[int, int | None]]:
    """The stretches that ``divide`` says, or else some of one length without end."""
    if divided is not None:
        yield from divided
        return
    for start in count(0, STRETCH_FRAMES):
        yield start, start + STRETCH_FRAMES


def frames_in_group(n_frames: int | None) -> int:
    """Of how many frames in a row of a video with ``n_frames``, if that is known, one is a
    candidate."""
    return MOST_IN_GROUP if n_frames is None else min(max(n_frames // GROUPS, 1), MOST_IN_GROUP)


def look_at_all(
    frames: Iterator[tuple[int, Luma]],
    divided: list[tuple[int, int | None]] | None,
    target: BoardTarget,
    image_size: tuple[int, int],
    in_group: int,
    *,
    every_frame: bool,
) -> Iterator[Found]:
    """What is found in all frames of a video, one by one: see ``look_through``."""
    for start, stop in bounds(divided):
        some = frames if stop is None else islice(frames, stop - start)
        n_frames = 0
        for found in look_through(some, target, image_size, in_group, every_frame=every_frame):
            n_frames += 1
            yield found
        if stop is None or n_frames < stop - start:
            return


def look_through(
    frames: Iterable[tuple[int, Luma]],
    target: BoardTarget,
    image_size: tuple[int, int],
    in_group: int,
    *,
    every_frame: bool,
) -> Iterator[Found]:
    """What is found in each of the ``frames`` of a stretch; of ``in_group`` in a row one is a
    candidate.

    ``homography`` (3, 3), ``step_px`` and ``is_candidate`` are those of ``Looks``. ``uv`` (T, 2)
    and ``confidence`` (T,) are NaN and 0 where corners were not measured; with ``every_frame`` they
    are in all frames. ``ambiguous`` is a frame that shows more targets than one. ``thumbnail`` is
    a JPEG of a candidate, empty of others.
    """
    tracker = Tracker(target, image_size)
    chooser = _Chooser(SAME_POSE * math.hypot(*image_size))
    waiting: list[_Looked] = []
    for _, frame in frames:
        looked = _Looked(frame, tracker.next(frame), tracker.is_ambiguous)
        if waiting and (looked.place is None or len(waiting) == in_group):
            yield from _measured(waiting, looked, tracker, chooser, target, every_frame)
            waiting = []
        waiting.append(looked)
        if looked.place is None:
            yield from _measured(waiting, None, tracker, chooser, target, every_frame)
            waiting = []
    yield from _measured(waiting, None, tracker, chooser, target, every_frame)


@dataclass(frozen=True, eq=False)
class _Looked:
    """A frame, and what a first look at it says."""

    frame: Luma
    place: BoardPlace | None
    is_ambiguous: bool

    @property
    def step_px(self) -> float:
        return math.nan if self.place is None else self.place.step_px


def _measured(
    group: list[_Looked],
    after: _Looked | None,
    tracker: Tracker,
    chooser: _Chooser,
    target: BoardTarget,
    every_frame: bool,
) -> Iterator[Found]:
    """What is found in the frames of a group; ``after`` it comes a frame that shows the board."""
    chosen = None
    if group and group[0].place is not None:
        after_px = math.nan if after is None else after.step_px
        chosen = chooser.candidate([one.step_px for one in group], after_px)
    for number, looked in enumerate(group):
        seen: Detection | None = nothing_found(len(target.points))
        is_ambiguous, place = looked.is_ambiguous, looked.place
        if number == chosen and place is not None:
            seen = tracker.measure(looked.frame, place)
            is_ambiguous = seen is None
            place = place if seen is None else tracker.settled(place, seen)
        elif every_frame:
            seen = detect_usable(target, looked.frame.picture())
            is_ambiguous = seen is None
        seen = seen or nothing_found(len(target.points))
        yield {
            "homography": _homography(target, place),
            "step_px": np.array(math.nan if place is None else place.step_px),
            "is_candidate": np.array(number == chosen),
            "uv": seen.uv,
            "confidence": seen.confidence,
            "ambiguous": np.array(is_ambiguous),
            "thumbnail": _thumbnail(looked.frame) if number == chosen else np.empty(0, np.uint8),
        }


def _homography(target: BoardTarget, place: BoardPlace | None) -> FloatArray:
    """(3, 3) the board's plane to pixels; NaN if it is not known."""
    fitted = None
    if place is not None:
        some = slice(None, None, -(-len(place.points) // MAP_POINTS))
        fitted, _ = cv2.findHomography(target.points[place.points[some], :2], place.uv[some])
    return np.full((3, 3), np.nan) if fitted is None else np.asarray(fitted)


def _thumbnail(frame: Luma) -> NDArray[np.uint8]:
    """A JPEG of a picture that is about ``THUMBNAIL_WIDTH_PX`` wide."""
    width, height = frame.size
    scale = 1
    while width / (2 * scale) >= THUMBNAIL_WIDTH_PX:
        scale *= 2
    small = frame.small(scale, (slice(0, height), slice(0, width)))
    return np.asarray(cv2.imencode(".jpg", small)[1]).ravel()


class _Chooser:
    """Which frame of a group is a candidate."""

    def __init__(self, same_pose_px: float) -> None:
        self._same_pose_px = same_pose_px
        self._moved_px = 0.0
        self._n_groups = 0

    def candidate(self, steps_px: list[float], after_px: float) -> int | None:
        """The number of the slowest frame of a group in which the board moves by ``steps_px``
        before each, and by ``after_px`` after the last. None late in a long rest."""
        before, after = np.array(steps_px), np.array([*steps_px[1:], after_px])
        self._moved_px += float(np.nansum(before))
        if self._moved_px > self._same_pose_px or np.isnan(before).any():
            self._n_groups, self._moved_px = 0, 0.0
        self._n_groups += 1
        if self._n_groups > LONG_REST and self._n_groups % LATER_GROUPS:
            return None
        speed = np.fmin(before, after)
        return int(np.argmin(np.where(np.isnan(speed), np.inf, speed)))
