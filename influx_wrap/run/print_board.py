"""A board's two files: the sheet for the printer, and the target.yaml that describes it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.formats.files import check_writable, make_folder
from influx_wrap.formats.kalibr import read_target, write_target
from influx_wrap.formats.sheet import DEFAULT_DPI, Sheet, write_book, write_sheet


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


def print_book(
    sheets: Mapping[str, Sheet],
    path: Path,
    drawing: AbstractContextManager[object] | None = None,
) -> list[Path]:
    """Write several boards, by name: pages of one PDF, or files in a folder, with a description
    of each that has its name. Returns what was written."""
    is_book = path.suffix != ""
    folder = path.parent if is_book else path
    described = {name: folder / f"{name}.yaml" for name in sheets}
    make_folder(folder)
    for one in [*([path] if is_book else []), *described.values()]:
        check_writable(one)
    for name, target_path in described.items():
        if target_path.exists() and read_target(target_path) != sheets[name].target:
            raise InputError(f"{target_path} describes another target: remove it.")
    written: list[Path] = []
    with drawing or nullcontext():
        if is_book:
            write_book(path, list(sheets.values()))
            written.append(path)
        for name, sheet in sheets.items():
            if not is_book:
                written.append(folder / f"{name}.pdf")
                write_sheet(written[-1], sheet)
            write_target(described[name], sheet.target)
            written.append(described[name])
    return written
