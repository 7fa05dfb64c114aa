"""``influx-calib board``: a board to print, and the target.yaml that describes it."""

from __future__ import annotations

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
    MIN_WHITE_MM,
    PAPERS_MM,
    ROWS,
    SPACING,
    TAG_OF_LONG_SIDE,
    looks_the_same_upside_down,
    paper_mm,
    square_that_fits_mm,
    squares_on_sheet,
    tags_on_sheet,
    too_small,
)
from influx_wrap.run.print_board import print_board, print_book

DICTIONARY, MARKER_OF_SQUARE = "DICT_5X5_250", 0.75


@click.command("board")
@click.argument("sizes", nargs=-1, metavar="[SIZE]...")
@click.option(
    "--paper",
    metavar="NAME",
    help=f"Sheet to print on: {', '.join(PAPERS_MM)}, or millimetres such as 420x297.",
)
@count_option(
    "--rows", None, "Rows of tags or squares.", at_least=1, shown=f"the board's, or {ROWS}"
)
@count_option(
    "--cols", None, "Columns of tags or squares.", at_least=1, shown=f"the board's, or {COLS}"
)
@number_option(
    "--tag-size-mm",
    None,
    "Width of a tag, in mm.",
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
    "Width of a tag's black border, in cells: 2 in Kalibr, 1 in other programs.",
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
    "Width of a ChArUco board's marker, in mm.",
    above=0,
    shown=f"{MARKER_OF_SQUARE:.0%} of a square",
)
@click.option("--legacy", is_flag=True, help="A ChArUco board as OpenCV before 4.6 has it.")
@number_option(
    "--square-mm",
    None,
    "Width of a square of a checkerboard or ChArUco board, in mm.",
    above=0,
    shown="what leaves a margin of one square",
)
@number_option(
    "--dpi", None, "Resolution of a PNG, in pixels per inch.", above=0, shown=f"{DEFAULT_DPI:g}"
)
@number_option(
    "--distance-m",
    None,
    "Greatest distance to the board, in metres; with --fx-px.",
    above=0,
    shown=False,
)
@number_option(
    "--fx-px",
    None,
    "Focal length in pixels; warns if the board is too small to be seen.",
    above=0,
    shown=False,
)
@click.option(
    "--out",
    type=PATH,
    required=True,
    help="The sheet: .pdf, .svg or .png. For several boards a .pdf with a page for each, or a "
    "folder.",
)
@click.option(
    "--target",
    type=PATH,
    show_default="target.yaml beside the sheet",
    help="Where the description for the calibration goes.",
)
@catalogue_option
def command(
    catalogue: Path | None,
    sizes: tuple[str, ...],
    paper: str | None,
    rows: int | None,
    cols: int | None,
    distance_m: float | None,
    fx_px: float | None,
    dpi: float | None,
    out: Path,
    target: Path | None,
    **options: Any,
) -> None:
    """A board to print, true to scale, and the target.yaml that describes it.

    SIZE is the sheet's width and height in millimetres, such as 800x600, or the name of
    a board in the catalogue, which --paper prints on another sheet. Without SIZE the pattern
    is chosen for the --paper. Print at 100 %, without fitting to the page, and measure
    the rulers in the margin afterwards.

    Several boards are described by a file each, named after the board.

    \b
    Example:
      influx-calib board --paper A3 --out a3.pdf
      influx-calib board 800x600 --out board.pdf
      influx-calib board 297x210 --rows 5 --cols 8 --out a4.svg
      influx-calib board 400x300 200x150 --out boards.pdf
      influx-calib board --paper A2 --checkerboard --rows 8 --cols 11 --out checker.pdf
      influx-calib board --paper A4 --charuco --rows 5 --cols 8 --dictionary 4X4_50 --out a4.pdf
    """
    if dpi is not None and out.suffix.lower() != ".png":
        raise InputError(f"--dpi is for a PNG, but {out} is none: leave it out.")
    if (distance_m is None) != (fx_px is None):
        raise InputError("--distance-m and --fx-px are given together, or neither of them.")
    sheets = _sheets(sizes, paper, catalogue, rows, cols, options)
    drawing = spinner(f"drawing {out.name}")
    if len(sheets) == 1 and out.suffix:
        (sheet,) = sheets.values()
        described = target or out.with_name("target.yaml")
        if described == out:
            raise InputError(f"--out and --target are both {out}: give two files.")
        print_board(
            sheet, out, described,
            or_else=f"add --target {out.with_suffix('.yaml')}",
            dpi=dpi or DEFAULT_DPI, drawing=drawing,
        )  # fmt: skip
        written = [out, described]
    else:
        if target is not None:
            raise InputError("--target is for one board: several are described by a file each.")
        written = print_book(sheets, out, drawing)
    for sheet in sheets.values():
        answers().print(sheet.title, soft_wrap=True)
        _say(sheet, None if distance_m is None or fx_px is None else (distance_m, fx_px))
    for path in written:
        print_written(path)


def _sheets(
    sizes: tuple[str, ...],
    paper: str | None,
    catalogue: Path | None,
    rows: int | None,
    cols: int | None,
    options: dict[str, Any],
) -> dict[str, Sheet]:
    """Sheets by the names of their boards."""
    if not sizes and paper is None:
        raise InputError("which board? Give a size, such as 400x300, or --paper A3.")
    boards = load_catalogue(catalogue).boards
    sheet_mm = None if paper is None else paper_mm(paper)
    sheets: dict[str, Sheet] = {}
    for size in sizes or (str(paper),):
        board = boards.get(size)
        if paper is not None and sizes and board is None:
            raise InputError(
                f"{size} is not a board of the catalogue, and --paper says the size already: "
                "leave one of them out."
            )
        own_mm = (board.width_mm, board.height_mm) if board else _size_mm(size)
        if size in sheets:
            raise InputError(f"{size} is named twice.")
        printed = _printed(own_mm, board, rows, cols, options)
        sheets[size] = Sheet(*(sheet_mm or own_mm), printed)
    return sheets


def _say(sheet: Sheet, seen: tuple[float, float] | None) -> None:
    """What is wrong with a board, or may be."""
    printed = sheet.target
    if isinstance(printed, Checkerboard) and looks_the_same_upside_down(printed):
        answers().print(
            "It looks the same upside down: with an odd number of rows and an even one of "
            "columns, or the reverse, it would not."
        )
    faults = too_small(printed, seen)
    white_mm = min(sheet.margins_mm)
    if white_mm < MIN_WHITE_MM and (sheet.width_mm, sheet.height_mm) in PAPERS_MM.values():
        faults.append(
            f"{white_mm:.2g} mm of white at the edge, where many printers need {MIN_WHITE_MM:g}: "
            "take smaller tags or squares"
        )
    for fault in faults:
        click.echo(f"Warning: {fault}.", err=True)


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
    """(width, height) from ``800x600`` or ``A3``."""
    try:
        return paper_mm(text)
    except InputError:
        raise InputError(
            f"{text!r} is neither a size in millimetres, such as 800x600, nor a sheet, such as "
            "A3, nor a board of the catalogue: influx-calib catalogue list names those."
        ) from None


def _refuse(what: str, options: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        if options[name] not in (None, False):
            option = "--" + name.replace("_", "-")
            raise InputError(f"{option} means nothing for {what}: leave it out.")
