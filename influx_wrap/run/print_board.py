"""A board's two files: the sheet for the printer, and the target.yaml that describes it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.formats.files import check_writable
from influx_wrap.formats.kalibr import read_target, write_target
from influx_wrap.formats.sheet import DEFAULT_DPI, Sheet, write_sheet


def print_board(
    sheet: Sheet,
    path: Path,
    target_path: Path,
    *,
    or_else: str,
    dpi: float = DEFAULT_DPI,
    drawing: AbstractContextManager[object] | None = None,
) -> None:
    """Write the sheet and its description.

    or_else  what the user can do if ``target_path`` describes another target: remove it, or ...
    drawing  is entered while the sheet is drawn
    """
    for written in (path, target_path):
        check_writable(written)
    # Another board's description must not vanish: its recordings would go wrong unnoticed.
    if target_path.exists() and read_target(target_path) != sheet.target:
        raise InputError(f"{target_path} describes another target: remove it, or {or_else}.")
    with drawing or nullcontext():
        write_sheet(path, sheet, dpi)
    write_target(target_path, sheet.target)
