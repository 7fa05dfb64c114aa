"""``kalibr_bagcreater``: a bag out of folders of pictures."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from influx_wrap.cli.kalibr.command_line import Parser, note, run
from influx_wrap.cli.progress import watch
from influx_wrap.formats.rosbag import Kind
from influx_wrap.run.kalibr_bag import find_cameras, make_bag

NAME = "kalibr_bagcreater"
BAG = "output.bag"


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
        default=Path(BAG),
        metavar="BAG",
        help=f"a .bag file, or with --ros2 a folder; it must not exist yet ({BAG})",
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
    cameras = find_cameras(options.folder)
    with watch("writing") as progress:
        make_bag(options.output_bag, kind, cameras, progress)
    for camera in cameras:
        print(f"{camera.topic}: {len(camera.times_ns)} pictures")
    print(f"written: {options.output_bag}")
    if any(options.folder.glob("imu*.csv")):
        note("imu*.csv is left out: bags hold pictures only.")


if __name__ == "__main__":
    raise SystemExit(main())
