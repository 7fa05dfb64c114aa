"""Frames out of ROS bags, and parts of recordings.

A bag is read from its beginning each time, since its pictures have no numbers of their own;
only those that are wanted are decoded. Which are wanted can be limited as Kalibr does:
to a span of seconds from the topic's first picture on, and to so many pictures per second, by the
times in the pictures' headers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.formats.rosbag import BagPicture, DamagedBag, image_topic
from influx_wrap.model.arrays import Picture
from influx_wrap.observe.frames import FrameSource, TruncatedInput

FREQUENCY_SLACK = 1e-3
"""Recorders are never exactly on time: this share of a period early is still in time."""


class BagFrames(FrameSource):
    """The pictures of a topic.

    from_to_s  first and last second wanted, counted from the topic's first picture
    freq_hz    at most so many pictures per second
    """

    def __init__(
        self,
        path: Path,
        topic: str,
        *,
        from_to_s: tuple[float, float] | None = None,
        freq_hz: float | None = None,
    ) -> None:
        self.path = path
        self._topic = image_topic(path, topic)
        self._from_to_s = from_to_s
        self._freq_hz = freq_hz
        whole = from_to_s is None and freq_hz is None
        self.n_frames = self._topic.n_messages if whole else None
        first = next(self._wanted(), None)
        if first is None:
            begin, end = from_to_s or (0.0, 0.0)
            raise InputError(
                f"{path}: {topic} has no picture between {begin:g} and {end:g} s after its first: "
                "give another --bag-from-to."
            )
        picture = first.grey()
        self.image_size = (picture.shape[1], picture.shape[0])

    def times_ns(self) -> list[int]:
        """When each frame was taken, by its header."""
        return [picture.stamp_ns for picture in self._wanted()]

    def _frames(self, start: int, stop: int | None) -> Iterator[tuple[int, Picture]]:
        index = 0
        try:
            for message in self._wanted():
                if index >= start:
                    picture = message.grey()
                    self._check_size(index, (picture.shape[1], picture.shape[0]))
                    yield index, picture
                index += 1
        except DamagedBag as error:
            raise TruncatedInput(self.path, index, error.problem) from None

    def _wanted(self) -> Iterator[BagPicture]:
        begin_s, end_s = self._from_to_s or (float("-inf"), float("inf"))
        period_s = (1 - FREQUENCY_SLACK) / self._freq_hz if self._freq_hz else 0.0
        first_ns: int | None = None
        last_s = float("-inf")
        for picture in self._topic.pictures():
            first_ns = picture.stamp_ns if first_ns is None else first_ns
            time_s = (picture.stamp_ns - first_ns) / 1e9
            if begin_s <= time_s <= end_s and time_s - last_s >= period_s:
                last_s = time_s
                yield picture


class Excerpt(FrameSource):
    """The frames ``first`` up to before ``end`` of another recording, counted from 0 again."""

    def __init__(self, source: FrameSource, first: int, end: int) -> None:
        if source.n_frames is not None:
            end = min(end, source.n_frames)
        if not 0 <= first < end:
            raise InputError(
                f"{source.path} has no frames from {first} up to before {end}; it has "
                f"{source.n_frames or 'an unknown number'}."
            )
        self.path, self.image_size = source.path, source.image_size
        self.fps, self.colour = source.fps, source.colour
        self.n_frames = end - first
        self._source, self._first, self._end = source, first, end

    def _frames(self, start: int, stop: int | None) -> Iterator[tuple[int, Picture]]:
        end = self._end if stop is None else min(self._first + stop, self._end)
        for index, picture in self._source.frames(self._first + start, end):
            yield index - self._first, picture
