"""A video's frames, looked at twice: all of them cheaply, those that can become views exactly.

The first look says where the board is in every frame and how far it has moved since the one before
(``tracking``). Corners are measured, as exactly as in a search of every frame, only where the
board is at rest or slow, and there in one frame of a few: rests last half a second, which is a
dozen frames that all show the same. These are the candidates of ``keyframes``.

Frames are looked at in stretches. What is found in a stretch depends on its frames alone, and
where stretches begin depends on the video alone, so that the answer is the same whoever does the
work and however often he was stopped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import count, islice

import cv2
import numpy as np
from numpy.typing import NDArray

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.target import BoardTarget
from influx_wrap.observe.detection import nothing_found
from influx_wrap.observe.detectors import detect_usable
from influx_wrap.observe.frames import FrameSource
from influx_wrap.observe.journal import Found
from influx_wrap.observe.luma import Luma
from influx_wrap.observe.tracking import Place, Tracker

STRETCH_FRAMES = 192
"""Least length of a stretch."""
WASTE = 0.07
"""Most that is decoded in vain to reach a stretch's first frame, as a share of its length."""

MAP_POINTS = 40
"""So many points say where the board's plane is, to a pixel or so."""

THUMBNAIL_WIDTH_PX = 320

# Speeds in parts of the picture's diagonal per frame, and how often corners are then measured.
AT_REST, SLOW = 1.5 / 1000, 1 / 250
EVERY_AT_REST, EVERY_SLOW, EVERY_FAST = 5, 2, 4
ANOTHER_POSE = 1 / 150
LONG_REST, EVERY_LONG_REST = 8, 24
"""After so many candidates of one pose they come in so many frames."""


def divide(source: FrameSource) -> list[tuple[int, int | None]] | None:
    """(first frame, frame behind the last) of the stretches of a video, the last one's end None.

    Where reading can begin at some frames only, stretches begin soon behind these. None for a
    video that can be read from its beginning only, or is a single stretch.
    """
    n, known = source.n_frames or 0, np.array(source.entries() or [0])
    starts, least = [0], STRETCH_FRAMES
    while starts[-1] + least < n and len(known) > 1:
        start = starts[-1] + least
        waste = start - int(known[np.searchsorted(known, start, side="right") - 1])
        if waste > WASTE * (start - starts[-1]):
            least += STRETCH_FRAMES
            continue
        starts.append(start)
        least = STRETCH_FRAMES
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


def look_at_all(
    frames: Iterator[tuple[int, Luma]],
    divided: list[tuple[int, int | None]] | None,
    target: BoardTarget,
    image_size: tuple[int, int],
    *,
    every_frame: bool,
) -> Iterator[Found]:
    """What is found in all frames of a video, one by one: see ``look_through``."""
    for start, stop in bounds(divided):
        some = frames if stop is None else islice(frames, stop - start)
        n_frames = 0
        for found in look_through(some, target, image_size, every_frame=every_frame):
            n_frames += 1
            yield found
        if stop is None or n_frames < stop - start:
            return


def look_through(
    frames: Iterable[tuple[int, Luma]],
    target: BoardTarget,
    image_size: tuple[int, int],
    *,
    every_frame: bool,
) -> Iterator[Found]:
    """What is found in each of the ``frames`` of a stretch.

    ``homography`` (3, 3), ``step_px`` and ``is_candidate`` are those of ``Looks``. ``uv`` (T, 2)
    and ``confidence`` (T,) are NaN and 0 where corners were not measured; with ``every_frame`` they
    are in all frames. ``ambiguous`` is a frame that shows more targets than one. ``thumbnail`` is
    a JPEG of a candidate, empty of others.
    """
    tracker = Tracker(target, image_size)
    pace = _Pace(math.hypot(*image_size))
    nothing = nothing_found(len(target.points))
    for _, frame in frames:
        place = tracker.next(frame)
        is_candidate = place is not None and pace.is_due(place)
        is_ambiguous, seen = tracker.is_ambiguous, nothing
        if is_candidate:
            measured = tracker.measure(frame)
            is_ambiguous, seen = measured is None, measured or nothing
        elif every_frame:
            measured = detect_usable(target, frame.picture())
            is_ambiguous, seen = measured is None, measured or nothing
        yield {
            "homography": _homography(target, place),
            "step_px": np.array(math.nan if place is None else place.step_px),
            "is_candidate": np.array(is_candidate),
            "uv": seen.uv,
            "confidence": seen.confidence,
            "ambiguous": np.array(is_ambiguous),
            "thumbnail": _thumbnail(frame) if is_candidate else np.empty(0, np.uint8),
        }


def _homography(target: BoardTarget, place: Place | None) -> FloatArray:
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


class _Pace:
    """When the next frame is due whose corners are measured."""

    def __init__(self, diagonal_px: float) -> None:
        self._diagonal_px = diagonal_px
        self._since = EVERY_FAST
        self._moved_px = 0.0
        self._n_of_pose = 0

    def is_due(self, place: Place) -> bool:
        """Whether the frame after the last one is."""
        self._since += 1
        # Who was not seen in the frame before is not known to be slow.
        step_px = math.inf if math.isnan(place.step_px) else place.step_px
        step = step_px / self._diagonal_px
        self._moved_px += step_px
        is_new = self._moved_px > ANOTHER_POSE * self._diagonal_px
        if is_new:
            self._n_of_pose = 0
        if step > AT_REST:
            is_like_last = self._moved_px < ANOTHER_POSE / 2 * self._diagonal_px
            every = EVERY_FAST if is_like_last or step > SLOW else EVERY_SLOW
        elif is_new:
            every = 1
        else:
            every = EVERY_AT_REST if self._n_of_pose < LONG_REST else EVERY_LONG_REST
        if self._since < every:
            return False
        self._since, self._moved_px = 0, 0.0
        self._n_of_pose += 1
        return True
