"""``influx-calib board``: a board to print, and the target.yaml that describes it."""

from __future__ import annotations

import math
import re
from pathlib import Path

import click
from rich.console import Console

from influx_wrap.cli.options import PATH, catalogue_option, count_option, number_option
from influx_wrap.cli.tables import answers, print_written
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.sheet import DEFAULT_DPI, Sheet
from influx_wrap.model.target import AprilGrid, Checkerboard
from influx_wrap.plan.boards import (
    COLS,
    ROWS,
    SPACING,
    TAG_OF_LONG_SIDE,
    looks_the_same_upside_down,
    squares_on_sheet,
    tags_on_sheet,
)
from influx_wrap.run.print_board import print_board


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
@click.option("--checkerboard", is_flag=True, help="Squares instead of tags.")
@number_option(
    "--square-mm",
    None,
    "Width of a checkerboard's square.",
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
    tag_size_mm: float | None,
    spacing: float | None,
    checkerboard: bool,
    square_mm: float | None,
    dpi: float | None,
    out: Path,
    target: Path | None,
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
    """
    board = load_catalogue(catalogue).boards.get(size)
    size_mm = (board.width_mm, board.height_mm) if board else _size_mm(size)
    if dpi is not None and out.suffix.lower() != ".png":
        raise InputError(f"--dpi is for a PNG, but {out} is none: leave it out.")
    printed: AprilGrid | Checkerboard
    if checkerboard:
        _refuse("--checkerboard", {"--tag-size-mm": tag_size_mm, "--spacing": spacing})
        printed = squares_on_sheet(size_mm, rows=rows, cols=cols, square_mm=square_mm)
    else:
        _refuse("a board of tags", {"--square-mm": square_mm})
        printed = tags_on_sheet(
            size_mm, board, rows=rows, cols=cols, tag_size_mm=tag_size_mm, spacing=spacing
        )
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
        drawing=Console(stderr=True).status(f"drawing {out.name}"),
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


def _refuse(what: str, options: dict[str, float | None]) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(f"{name} means nothing for {what}: leave it out.")
