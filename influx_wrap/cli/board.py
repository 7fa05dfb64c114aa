"""``influx-calib board``: a board to print, and the target.yaml that describes it."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import click

from influx_wrap.cli.options import PATH, catalogue_option, count_option, number_option
from influx_wrap.cli.progress import spinner
from influx_wrap.cli.tables import answers, print_written
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.charuco import charuco_board
from influx_wrap.formats.sheet import DEFAULT_DPI, PrintableTarget, Sheet
from influx_wrap.model.hardware import Board
from influx_wrap.model.target import Checkerboard
from influx_wrap.plan.boards import (
    COLS,
    ROWS,
    SPACING,
    TAG_OF_LONG_SIDE,
    looks_the_same_upside_down,
    square_that_fits_mm,
    squares_on_sheet,
    tags_on_sheet,
)
from influx_wrap.run.print_board import print_board

DICTIONARY, MARKER_OF_SQUARE = "DICT_5X5_250", 0.75


@click.command("board")
@click.argument("size")
@count_option(
    "--rows", None, "Rows of tags or squares.", at_least=1, shown=f"the board's, or {ROWS}"
)
@count_option(
    "--cols", None, "Columns of tags or squares.", at_least=1, shown=f"the board's, or {COLS}"
)
@number_option(
    "--tag-size-mm",
    None,
    "Width of a tag.",
    above=0,
    shown=f"the board's, or {TAG_OF_LONG_SIDE:.0%} of the long side",
)
@number_option(
    "--spacing",
    None,
    "Gap between tags, in tag widths.",
    above=0,
    shown=f"the board's, or {SPACING:g}",
)
@count_option(
    "--border",
    None,
    "Cells of a tag's border: 1 as other programs than Kalibr have it.",
    at_least=1,
    shown="2",
)
@click.option("--checkerboard", is_flag=True, help="Squares instead of tags.")
@click.option("--charuco", is_flag=True, help="Squares with markers in the white ones.")
@click.option(
    "--dictionary",
    show_default=DICTIONARY,
    help="Markers of a ChArUco board, as OpenCV names them.",
)
@number_option(
    "--marker-mm",
    None,
    "Width of a ChArUco board's marker.",
    above=0,
    shown=f"{MARKER_OF_SQUARE:.0%} of a square",
)
@click.option("--legacy", is_flag=True, help="A ChArUco board as OpenCV before 4.6 has it.")
@number_option(
    "--square-mm",
    None,
    "Width of a square of a checkerboard or ChArUco board.",
    above=0,
    shown="what leaves a margin of one square",
)
@number_option("--dpi", None, "Resolution of a PNG.", above=0, shown=f"{DEFAULT_DPI:g}")
@click.option("--out", type=PATH, required=True, help="The sheet: .pdf, .svg or .png.")
@click.option(
    "--target",
    type=PATH,
    show_default="target.yaml beside the sheet",
    help="Where the description for the calibration goes.",
)
@catalogue_option
def command(
    catalogue: Path | None,
    size: str,
    rows: int | None,
    cols: int | None,
    dpi: float | None,
    out: Path,
    target: Path | None,
    **options: Any,
) -> None:
    """A board to print, true to scale, and the target.yaml that describes it.

    SIZE is the sheet's width and height in millimetres, such as 800x600, or the name of
    a board in the catalogue. Print at 100 %, without fitting to the page, and measure
    the rulers in the margin afterwards.

    \b
    Example:
      influx-calib board 800x600 --out board.pdf
      influx-calib board 297x210 --rows 5 --cols 8 --out a4.svg
      influx-calib board 800x600 --checkerboard --rows 8 --cols 11 --out checker.pdf
      influx-calib board 297x210 --charuco --rows 5 --cols 8 --dictionary 4X4_50 --out a4.pdf
    """
    board = load_catalogue(catalogue).boards.get(size)
    size_mm = (board.width_mm, board.height_mm) if board else _size_mm(size)
    if dpi is not None and out.suffix.lower() != ".png":
        raise InputError(f"--dpi is for a PNG, but {out} is none: leave it out.")
    printed = _printed(size_mm, board, rows, cols, options)
    sheet = Sheet(*size_mm, printed)
    described = target or out.with_name("target.yaml")
    if described == out:
        raise InputError(f"--out and --target are both {out}: give two files.")
    print_board(
        sheet,
        out,
        described,
        or_else="write elsewhere with --target",
        dpi=dpi or DEFAULT_DPI,
        drawing=spinner(f"drawing {out.name}"),
    )
    console = answers()
    console.print(sheet.title, soft_wrap=True)
    if isinstance(printed, Checkerboard) and looks_the_same_upside_down(printed):
        console.print(
            "It looks the same upside down: with an odd number of rows and an even one of "
            "columns, or the reverse, it would not."
        )
    for path in (out, described):
        print_written(path)


_TAGS = ("tag_size_mm", "spacing", "border")
_MARKERS = ("dictionary", "marker_mm", "legacy")


def _printed(
    size_mm: tuple[float, float],
    board: Board | None,
    rows: int | None,
    cols: int | None,
    options: dict[str, Any],
) -> PrintableTarget:
    """What goes on the sheet; ``options`` are those that only some kinds of board have."""
    square_mm = options["square_mm"]
    if options["checkerboard"] and options["charuco"]:
        raise InputError("--checkerboard and --charuco are two kinds of board: leave one out.")
    if options["checkerboard"]:
        _refuse("--checkerboard", options, (*_TAGS, *_MARKERS))
        return squares_on_sheet(size_mm, rows=rows, cols=cols, square_mm=square_mm)
    if options["charuco"]:
        _refuse("--charuco", options, _TAGS)
        rows, cols = rows or ROWS, cols or COLS
        square_mm = square_mm or square_that_fits_mm(size_mm, rows, cols)
        marker_mm = options["marker_mm"] or MARKER_OF_SQUARE * square_mm
        dictionary = options["dictionary"] or DICTIONARY
        return charuco_board(
            cols, rows, square_mm / 1e3, marker_mm / 1e3, dictionary, legacy=options["legacy"]
        )
    _refuse("a board of tags", options, ("square_mm", *_MARKERS))
    return tags_on_sheet(
        size_mm,
        board,
        rows=rows,
        cols=cols,
        tag_size_mm=options["tag_size_mm"],
        spacing=options["spacing"],
        border_cells=options["border"],
    )


def _size_mm(text: str) -> tuple[float, float]:
    """(width, height) from ``800x600``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)[xX](\d+(?:\.\d+)?)", text)
    size = (float(match[1]), float(match[2])) if match else (0.0, 0.0)
    if not min(size) > 0 or math.isinf(max(size)):
        raise InputError(
            f"{text!r} is neither a size in millimetres, such as 800x600, nor a board of the "
            "catalogue."
        )
    return size


def _refuse(what: str, options: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        if options[name] not in (None, False):
            option = "--" + name.replace("_", "-")
            raise InputError(f"{option} means nothing for {what}: leave it out.")
