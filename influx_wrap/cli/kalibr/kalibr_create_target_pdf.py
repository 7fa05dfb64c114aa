"""``kalibr_create_target_pdf``: a board to print, true to scale."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from influx_wrap.cli.kalibr.command_line import Parser, count, positive, run
from influx_wrap.errors import InputError
from influx_wrap.formats.sheet import Sheet
from influx_wrap.model.target import AprilGrid, Checkerboard
from influx_wrap.plan.boards import sheet_around_mm
from influx_wrap.run.print_board import print_board

NAME = "kalibr_create_target_pdf"
NX, NY, TAG_SIZE_M, TAG_SPACING, SQUARE_M = 6, 7, 0.08, 0.3, 0.05
"""What Kalibr draws unless told otherwise."""
FAMILY = "t36h11"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    return run(_work, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        NAME,
        "Write NAME.pdf, a board on a sheet just large enough for it, and NAME.yaml, which "
        "describes it. Print at 100 %.",
        f"{NAME} --type apriltag --nx 6 --ny 6 --tsize 0.08 --tspace 0.3 board",
    )
    parser.add_argument("name", nargs="?", default="target", metavar="NAME", help="of the files")
    parser.add_argument(
        "--type", required=True, choices=("apriltag", "checkerboard"), help="what is on the board"
    )
    parser.add_argument(
        "--nx", type=count, default=NX, help=f"tags, or inner corners, per row ({NX})"
    )
    parser.add_argument(
        "--ny", type=count, default=NY, help=f"tags, or inner corners, per column ({NY})"
    )
    parser.add_argument(
        "--tsize", type=positive, metavar="M", help=f"a tag's width in metres ({TAG_SIZE_M:g})"
    )
    parser.add_argument(
        "--tspace",
        type=positive,
        metavar="SHARE",
        help=f"gap between tags, in tag widths ({TAG_SPACING:g})",
    )
    for option, side in (("--csx", "width"), ("--csy", "height")):
        parser.add_argument(
            option, type=positive, metavar="M", help=f"a square's {side} in metres ({SQUARE_M:g})"
        )
    parser.add_argument("--tfam", default=FAMILY, metavar="NAME", help=f"{FAMILY}, the only one")
    for option in ("--eps", "--skip-ids"):
        parser.add_argument(option, nargs="?", const=True, help="not available")
    return parser


def _work(arguments: Sequence[str]) -> None:
    options = _parser().parse_args(arguments)
    target = _target(options)
    stem = options.name.removesuffix(".pdf")
    sheet_path, target_path = Path(f"{stem}.pdf"), Path(f"{stem}.yaml")
    sheet = Sheet(*sheet_around_mm(target), target)
    print_board(sheet, sheet_path, target_path, or_else="rename it")
    print(sheet.title)
    for path in (sheet_path, target_path):
        print(f"written: {path}")


def _target(options: argparse.Namespace) -> AprilGrid | Checkerboard:
    if options.tfam != FAMILY:
        raise InputError(f"--tfam {options.tfam} is not available; the only family is {FAMILY}.")
    if options.eps or options.skip_ids:
        option = "--eps" if options.eps else "--skip-ids"
        raise InputError(f"{option} is not available: leave it out; the board is written as PDF.")
    squares = {"--csx": options.csx, "--csy": options.csy}
    tags = {"--tsize": options.tsize, "--tspace": options.tspace}
    for name, value in (squares if options.type == "apriltag" else tags).items():
        if value is not None:
            raise InputError(f"{name} means nothing for --type {options.type}: leave it out.")
    if options.type == "apriltag":
        return AprilGrid(
            options.nx, options.ny, options.tsize or TAG_SIZE_M, options.tspace or TAG_SPACING
        )
    return Checkerboard(options.nx, options.ny, options.csx or SQUARE_M, options.csy or SQUARE_M)


if __name__ == "__main__":
    raise SystemExit(main())
