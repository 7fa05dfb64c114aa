"""``kalibr_detect_corners``: the corners of a board in a bag or in pictures."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from influx_wrap.cli.kalibr.command_line import (
    MODEL,
    Parser,
    check_camera,
    check_span,
    finite,
    run,
)
from influx_wrap.cli.progress import watch
from influx_wrap.errors import InputError
from influx_wrap.formats.detections import PER_FRAME
from influx_wrap.formats.kalibr import COORDS, SUCCESSES, TOPIC
from influx_wrap.model.words import size_text
from influx_wrap.run.kalibr_corners import KalibrPictures, detect_corners

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
        type=finite,
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
    span = check_span(options.from_to, "--from-to")
    if options.bag is not None:
        pictures = KalibrPictures(options.bag, topic, span)
    else:
        pictures = KalibrPictures(options.frames_dir, from_to=span)
    summary, written = detect_corners(
        options.target,
        pictures,
        options.output_dir,
        options.detection_coords,
        options.detection_successes,
        watch,
    )
    size, seen = size_text(summary.image_size), int((summary.counts > 0).sum())
    print(f"{summary.n_frames} pictures of {size}, {seen} of them with corners")
    for path in written:
        print(f"written: {path}")


if __name__ == "__main__":
    raise SystemExit(main())
