"""``influx-calib board``: a board to print, and the target.yaml that describes it."""

from __future__ import annotations

import math
import re
from pathlib import Path

import click
from rich.console import Console

from influx_wrap.cli.options import PATH, number
from influx_wrap.cli.tables import answers, print_written
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.files import check_writable
from influx_wrap.formats.kalibr import read_target, write_target
from influx_wrap.formats.sheet import DEFAULT_DPI, Sheet, write_sheet
from influx_wrap.model.hardware import Board
from influx_wrap.model.target import AprilGrid, Checkerboard

ROWS, COLS, SPACING = 8, 11, 0.3
TAG_OF_LONG_SIDE = 0.06


@click.command("board")
@click.argument("size")
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    show_default=f"the board's, or {ROWS}",
    help="Rows of tags or squares.",
)
@click.option(
    "--cols",
    type=click.IntRange(min=1),
    show_default=f"the board's, or {COLS}",
    help="Columns of tags or squares.",
)
@click.option(
    "--tag-size-mm",
    type=number(above=0),
    metavar="NUMBER",
    show_default=f"the board's, or {TAG_OF_LONG_SIDE:.0%} of the long side",
    help="Width of a tag.",
)
@click.option(
    "--spacing",
    type=number(above=0),
    metavar="NUMBER",
    show_default=f"the board's, or {SPACING:g}",
    help="Gap between tags, in tag widths.",
)
@click.option("--checkerboard", is_flag=True, help="Squares instead of tags.")
@click.option(
    "--square-mm",
    type=number(above=0),
    metavar="NUMBER",
    show_default="what leaves a margin of one square",
    help="Width of a checkerboard's square.",
)
@click.option(
    "--dpi",
    type=number(above=0),
    metavar="NUMBER",
    show_default=f"{DEFAULT_DPI:g}",
    help="Resolution of a PNG.",
)
@click.option("--out", type=PATH, required=True, help="The sheet: .pdf, .svg or .png.")
@click.option(
    "--target",
    type=PATH,
    show_default="target.yaml beside the sheet",
    help="Where the description for the calibration goes.",
)
@click.pass_obj
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
        printed = _checkerboard(size_mm, rows or ROWS, cols or COLS, square_mm)
    else:
        _refuse("a board of tags", {"--square-mm": square_mm})
        printed = _aprilgrid(board, size_mm, rows, cols, tag_size_mm, spacing)
    sheet = Sheet(*size_mm, printed)
    described = target or out.with_name("target.yaml")
    if described == out:
        raise InputError(f"--out and --target are both {out}: give two files.")
    for path in (out, described):
        check_writable(path)
    _keep_other_target(described, printed)
    with Console(stderr=True).status(f"drawing {out.name}"):
        write_sheet(out, sheet, dpi or DEFAULT_DPI)
    write_target(described, printed)
    console = answers()
    console.print(sheet.title, soft_wrap=True)
    if isinstance(printed, Checkerboard) and (printed.rows + printed.cols) % 2 == 0:
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


def _aprilgrid(
    board: Board | None,
    size_mm: tuple[float, float],
    rows: int | None,
    cols: int | None,
    tag_size_mm: float | None,
    spacing: float | None,
) -> AprilGrid:
    """The catalogue's grid or the usual one, with what was asked for in its place."""
    usual = (
        board.grid
        if board
        else AprilGrid(COLS, ROWS, TAG_OF_LONG_SIDE * max(size_mm) / 1e3, SPACING)
    )
    return AprilGrid(
        tag_cols=cols or usual.tag_cols,
        tag_rows=rows or usual.tag_rows,
        tag_size_m=tag_size_mm / 1e3 if tag_size_mm else usual.tag_size_m,
        tag_spacing=spacing or usual.tag_spacing,
    )


def _checkerboard(
    size_mm: tuple[float, float], rows: int, cols: int, square_mm: float | None
) -> Checkerboard:
    """A checkerboard of squares; Kalibr counts the corners between them."""
    # Detectors want white around the outer squares. Down to a tenth of a millimetre.
    largest_mm = min(size_mm[0] / (cols + 2), size_mm[1] / (rows + 2))
    usual_mm = math.floor(10 * largest_mm) / 10 if largest_mm >= 0.1 else largest_mm
    square_m = (square_mm or usual_mm) / 1e3
    return Checkerboard(cols - 1, rows - 1, square_m, square_m)


def _refuse(what: str, options: dict[str, float | None]) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(f"{name} means nothing for {what}: leave it out.")


def _keep_other_target(path: Path, printed: AprilGrid | Checkerboard) -> None:
    """Another board's description must not vanish: its recordings would go wrong unnoticed."""
    if path.exists() and read_target(path) != printed:
        raise InputError(
            f"{path} describes another target: remove it, or write elsewhere with --target."
        )
