"""Canon's metadata: a CSV with a line per frame, and a static one beside it.

The focal length is a fraction. ``FocusPosition`` is the bits of a float in hexadecimal: where the
focus ring is, which is no distance, and none is made of it. The static file tells the size of the
pictures and how long the clip lasts.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from influx_wrap.formats.lens_columns import (
    check_single_row,
    numbered_frames,
    settings_by_row,
    static_beside,
    table_rig,
)
from influx_wrap.formats.lens_table import Column, MetadataTable
from influx_wrap.model.lens_metadata import LensMetadata, ReportedClip

POSITION_KEY = "focusposition"


def read_canon_frames(table: MetadataTable, path: Path, known: ReportedClip | None) -> LensMetadata:
    beside = static_beside(path, "Canon", is_canon_static, read_canon_static)
    metadata = numbered_frames(table, settings_by_row(table, beside), known)
    notes = list(metadata.notes)
    column = table.find(POSITION_KEY)
    if np.isnan(metadata.fd_m).all() and column is not None:
        positions = [_float_of_bits(cell) for cell in table.cells(column)]
        told = [f"{position:g}" for position in sorted(positions) if math.isfinite(position)]
        span = f" ({' to '.join(dict.fromkeys((told[0], told[-1])))})" if told else ""
        notes.append(
            f"{column.name} is where the focus ring stands{span}, not a distance, and the file has "
            "no other: FD is missing. Where it was measured or noted, give a CSV file with the "
            "header frame,lfl_mm,fd_m."
        )
    return replace(metadata, notes=tuple(notes))


def _float_of_bits(text: str) -> float:
    """A float from its bits in hexadecimal; NaN of anything else."""
    if not re.fullmatch(r"(?:0x)?[0-9a-fA-F]{8}", text.strip()):
        return math.nan
    (value,) = struct.unpack(">f", bytes.fromhex(text.strip()[-8:]))
    return float(value)


def is_canon_static(columns: Sequence[Column]) -> bool:
    return {"lenssqueezefactor", "timescale", "duration"} <= {column.key for column in columns}


def read_canon_static(table: MetadataTable, path: Path) -> LensMetadata:
    """What is there of lens, camera and size; neither LFL nor FD are."""
    check_single_row(table)
    notes = []
    scale, duration = (table.cells(table.find(key))[0] for key in ("timescale", "duration"))
    if all(text.isascii() and text.isdigit() and len(text) < 16 for text in (scale, duration)):
        seconds = int(duration) / int(scale) if int(scale) else 0.0
        if seconds:
            notes.append(f"The clip lasts {seconds:.2f} s by {path.name}.")
    nothing = np.full(1, np.nan)
    return LensMetadata(
        np.zeros(1, dtype=np.int64), nothing, nothing, table_rig(table), notes=tuple(notes)
    )
