"""A bag out of folders of pictures: what ``kalibr_bagcreater`` does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from pathlib import Path

from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.formats.files import PICTURES, reading
from influx_wrap.formats.rosbag import MAX_TIME_NS, Kind, write_bag
from influx_wrap.model.arrays import Picture
from influx_wrap.observe.frames import FrameSource
from influx_wrap.observe.sources import open_frames

PERIOD_NS = 100_000_000
"""Pictures whose names are no times are this far apart: ten a second."""
MIN_TIME_DIGITS = 10
"""A number of fewer digits counts pictures; a time in nanoseconds has more."""


@dataclass(frozen=True)
class BagCamera:
    """The pictures of a topic, and when each was taken."""

    topic: str
    source: FrameSource
    times_ns: tuple[int, ...]

    def pictures(self) -> Iterator[tuple[int, str, Picture]]:
        """(time, topic, picture), one at a time."""
        for index, picture in self.source.frames():
            yield self.times_ns[index], self.topic, picture


def find_cameras(folder: Path) -> list[BagCamera]:
    """The cameras of ``folder/cam0``, ``folder/cam1`` ..., or cam0 with the folder's pictures."""
    with reading(folder):
        folders = sorted(entry for entry in folder.iterdir() if re.fullmatch(r"cam\d+", entry.name))
    if not folders:
        return [_camera("cam0", folder)]
    return [_camera(entry.name, entry) for entry in folders]


def make_bag(path: Path, kind: Kind, cameras: Sequence[BagCamera], progress: Progress) -> None:
    """Write the pictures of all cameras by their times."""
    total = sum(len(camera.times_ns) for camera in cameras)

    def in_order() -> Iterator[tuple[str, int, Picture]]:
        streams = (camera.pictures() for camera in cameras)
        in_time = merge(*streams, key=lambda item: item[:2])
        for done, (time_ns, topic, picture) in enumerate(in_time, start=1):
            yield topic, time_ns, picture
            progress(done, total)

    write_bag(path, kind, in_order())


def _camera(name: str, folder: Path) -> BagCamera:
    source = open_frames(folder)
    stems = [
        entry.stem
        for entry in folder.iterdir()
        if entry.suffix.lower() in PICTURES and not entry.name.startswith(".")
    ]
    times_ns: list[int]
    if all(stem.isdecimal() and len(stem) >= MIN_TIME_DIGITS for stem in stems):
        times_ns = sorted(int(stem) for stem in stems)
        if times_ns[-1] > MAX_TIME_NS:
            raise InputError(
                f"{folder}: {times_ns[-1]} is too late for a time in nanoseconds. Name the "
                "pictures otherwise, and they follow in the order of their names."
            )
        twice = [time for time, n in Counter(times_ns).items() if n > 1]
        if twice:
            raise InputError(f"{folder}: two pictures have the time {twice[0]}: remove one.")
    else:
        # ROS takes the time 0 for none.
        times_ns = [PERIOD_NS * (index + 1) for index in range(len(stems))]
    return BagCamera(f"/{name}/image_raw", source, tuple(times_ns))
