"""Lens metadata in tables: of RED, Canon and Sony, and of any program that names its columns.

Most need no reader of their own, since columns are found by name and unit (``lens_columns``). The
per-frame CSV of Sony's tools is such a table; it calls the lens by a number, whose name is in the
XML file that the camera writes beside the clip (``sony``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.formats.canon import POSITION_KEY, is_canon_static, read_canon_frames
from influx_wrap.formats.lens_columns import (
    fd_columns,
    lfl_columns,
    numbered_frames,
    settings_by_row,
)
from influx_wrap.formats.lens_table import Column, MetadataTable, read_metadata_table
from influx_wrap.formats.lens_text import read_any_text
from influx_wrap.formats.red import (
    COOKE_KEY,
    is_red_frames,
    is_red_static,
    read_red_frames,
    read_red_static,
)
from influx_wrap.formats.sony import read_sony_xml, sony_xml_beside
from influx_wrap.model.lens_metadata import LensMetadata, ReportedClip


def read_frames_table(
    path: Path, text: str, known: ReportedClip | None = None
) -> LensMetadata | None:
    """LFL and FD of the frames that a table lists; None if the text is no such table.

    ``known`` is how long the clip's pictures are, if somebody looked.
    """
    table = read_metadata_table(str(path), text, _has_settings)
    if table is None:
        static = read_metadata_table(str(path), text, is_canon_static)
        if static is not None:
            raise InputError(
                f"{path} is Canon's static file, which tells neither LFL nor FD: give the "
                "per-frame file, whose name ends in _Frames.csv."
            )
        return None
    if is_red_static(table.columns):
        return read_red_static(table, path)
    if table.find(POSITION_KEY) and not table.find(COOKE_KEY):
        return read_canon_frames(table, path, known)
    if is_red_frames(table.columns):
        return read_red_frames(table, path, known)
    return _sony_or_other(table, path, known)


def _has_settings(columns: Sequence[Column]) -> bool:
    """Whether columns tell LFL, and FD or at least where the focus ring is."""
    has_fd = fd_columns(columns) or any(column.key == POSITION_KEY for column in columns)
    return bool(lfl_columns(columns) and has_fd)


def _sony_or_other(table: MetadataTable, path: Path, known: ReportedClip | None) -> LensMetadata:
    xml = sony_xml_beside(path)
    if xml is None:
        return numbered_frames(table, settings_by_row(table, None), known)
    beside = read_sony_xml(xml, read_any_text(xml))
    said = f"Lens, camera, size and length are also those of {xml.name} beside it."
    return numbered_frames(table, settings_by_row(table, replace(beside, notes=(said,))), known)
