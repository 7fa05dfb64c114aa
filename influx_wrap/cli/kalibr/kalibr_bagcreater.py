"""``kalibr_bagcreater``: a bag out of folders of pictures."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from influx_wrap.cli.kalibr.command_line import Parser, note, run
from influx_wrap.cli.progress import progress_bar
from influx_wrap.errors import InputError
from influx_wrap.formats.files import reading
from influx_wrap.formats.rosbag import MAX_TIME_NS, Grey, Kind, write_bag
from influx_wrap.observe.frames import FrameSource
from influx_wrap.observe.sources import open_frames
from influx_wrap.observe.stills import PICTURES

NAME = "kalibr_bagcreater"
PERIOD_NS = 100_000_000
"""Pictures whose names are no times are this far apart: ten a second."""
MIN_TIME_DIGITS = 10
"""A number of fewer digits counts pictures; a time in nanoseconds has more."""


@dataclass(frozen=True)
class _Camera:
    topic: str
    source: FrameSource
    times_ns: tuple[int, ...]

    def pictures(self) -> Iterator[tuple[int, str, Grey]]:
        """(time, topic, picture), one at a time."""
        for index, picture in self.source.frames():
            yield self.times_ns[index], self.topic, picture


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    return run(_work, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        NAME,
        "Make a bag of the pictures in DIR/cam0, DIR/cam1 ... or in DIR itself (then they are "
        "cam0's). Files named by a time in nanoseconds keep it; others follow each other "
        "in the order of their names, ten a second. Pictures become grey.",
        f"{NAME} --folder pictures --output-bag cam0.bag",
    )
    parser.add_argument("--folder", type=Path, required=True, metavar="DIR", help="the pictures")
    parser.add_argument(
        "--output-bag",
        type=Path,
        required=True,
        metavar="BAG",
        help="a .bag file, or with --ros2 a folder; it must not exist yet",
    )
    parser.add_argument(
        "--ros2",
        nargs="?",
        const="sqlite3",
        choices=("sqlite3", "mcap"),
        help="a ROS 2 bag, in SQLite files unless mcap is said",
    )
    return parser


def _work(arguments: Sequence[str]) -> None:
    options = _parser().parse_args(arguments)
    kind: Kind = options.ros2 or "ros1"
    cameras = _cameras(options.folder)
    bar = progress_bar(Console(stderr=True))
    with bar:
        write_bag(options.output_bag, kind, _counted(cameras, bar))
    for camera in cameras:
        print(f"{camera.topic}: {len(camera.times_ns)} pictures")
    print(f"written: {options.output_bag}")
    if any(options.folder.glob("imu*.csv")):
        note("imu*.csv is left out: bags hold pictures only.")


def _counted(cameras: list[_Camera], bar: Progress) -> Iterator[tuple[str, int, Grey]]:
    """The pictures of all cameras by their times, counted on the bar."""
    task = bar.add_task("writing", total=sum(len(camera.times_ns) for camera in cameras))
    streams = (camera.pictures() for camera in cameras)
    for time_ns, topic, picture in merge(*streams, key=lambda item: item[:2]):
        yield topic, time_ns, picture
        bar.advance(task)


def _cameras(folder: Path) -> list[_Camera]:
    with reading(folder):
        folders = sorted(entry for entry in folder.iterdir() if re.fullmatch(r"cam\d+", entry.name))
    if not folders:
        return [_camera("cam0", folder)]
    return [_camera(entry.name, entry) for entry in folders]


def _camera(name: str, folder: Path) -> _Camera:
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
    return _Camera(f"/{name}/image_raw", source, tuple(times_ns))


if __name__ == "__main__":
    raise SystemExit(main())
