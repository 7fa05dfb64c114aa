"""``kalibr_detect_corners``: the corners of a board in a bag or in pictures."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from influx_wrap.cli.kalibr.command_line import (
    MODEL,
    TOPIC,
    Parser,
    check_camera,
    check_span,
    detect_with_bar,
    number,
    run,
)
from influx_wrap.errors import InputError
from influx_wrap.formats.detections import COORDS, PER_FRAME, SUCCESSES
from influx_wrap.formats.files import check_writable, make_folder, writing
from influx_wrap.formats.kalibr import read_target
from influx_wrap.observe.bags import BagFrames, Excerpt
from influx_wrap.observe.frames import FrameSource
from influx_wrap.observe.sources import open_frames

NAME = "kalibr_detect_corners"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    return run(_work, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        NAME,
        "Find the corners of a board in every picture of a bag's topic or of a folder. Writes "
        f"{COORDS}, {SUCCESSES} and {PER_FRAME}, which kalibr_calibrate_cameras reads.",
        f"{NAME} --target april.yaml --frames-dir pictures --output-dir corners",
    )
    parser.add_argument("--target", type=Path, required=True, help="description of the board")
    parser.add_argument("--models", nargs="+", default=[MODEL], help=f"{MODEL}, the only one")
    parser.add_argument("--topics", nargs="+", metavar="TOPIC", help="the bag's topic of pictures")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--bag", type=Path, help="a ROS 1 bag, or the folder of a ROS 2 bag")
    source.add_argument("--frames-dir", type=Path, metavar="DIR", help="a folder of pictures")
    parser.add_argument(
        "--output-dir", type=Path, default=Path(), metavar="DIR", help="where the files go"
    )
    for option, name in (("--detection-coords", COORDS), ("--detection-successes", SUCCESSES)):
        parser.add_argument(
            option,
            type=Path,
            default=Path(name),
            metavar="CSV",
            help=f"its name; without a folder, in --output-dir ({name})",
        )
    parser.add_argument(
        "--from-to",
        type=number,
        nargs=2,
        metavar=("A", "B"),
        help="of a bag the seconds from A to B; of pictures the numbers from A up to before B",
    )
    return parser


def _work(arguments: Sequence[str]) -> None:
    options = _parser().parse_args(arguments)
    if options.bag is not None and options.topics is None:
        raise InputError("--bag needs --topics, the topic of the pictures.")
    topic = check_camera(options.topics or [TOPIC], options.models)
    target = read_target(options.target)
    folder = options.output_dir
    make_folder(folder)
    outputs = {
        COORDS: _placed(folder, options.detection_coords),
        SUCCESSES: _placed(folder, options.detection_successes),
        PER_FRAME: folder / PER_FRAME,
    }
    if len(set(outputs.values())) < len(outputs):
        raise InputError("--detection-coords and --detection-successes need names of their own.")
    for path in outputs.values():
        check_writable(path)
    source = _source(options, topic)
    # What is found stays beside the output until all of it is there.
    with tempfile.TemporaryDirectory(prefix=".detecting.", dir=folder) as unfinished:
        summary = detect_with_bar(source, target, Path(unfinished))
        for name, path in outputs.items():
            _move(Path(unfinished) / name, path)
    width, height = summary.image_size
    seen = int((summary.counts > 0).sum())
    print(f"{summary.n_frames} pictures of {width} x {height}, {seen} of them with corners")
    for path in outputs.values():
        print(f"written: {path}")


def _placed(folder: Path, path: Path) -> Path:
    return folder / path if path.parent == Path() else path


def _move(source: Path, path: Path) -> None:
    """Move a file, also to another disk."""
    if source.stat().st_dev == path.parent.stat().st_dev:
        os.replace(source, path)
        return
    with writing(path) as file, source.open("rb") as finished:
        shutil.copyfileobj(finished, file)


def _source(options: argparse.Namespace, topic: str) -> FrameSource:
    span = check_span(options.from_to, "--from-to")
    if options.bag is not None:
        return BagFrames(options.bag, topic, from_to_s=span)
    source = open_frames(options.frames_dir)
    if span is None:
        return source
    first, end = span
    if not (first.is_integer() and end.is_integer()):
        raise InputError(f"--from-to {first:g} {end:g}: pictures are counted in whole numbers.")
    return Excerpt(source, int(first), int(end))


if __name__ == "__main__":
    raise SystemExit(main())
