"""RED's metadata: the CSV files that REDline writes.

The per-frame CSV (``--printMeta 5``) has distances in millimetres without saying so, and the lens's
own Cooke /i packets beside them. Lens, camera and size are in the static CSV (``--printMeta 3``),
which also tells the setting of the first frame.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from influx_wrap.formats.cooke import TENTH_INCH_MM, decode_cooke
from influx_wrap.formats.lens_columns import (
    check_single_row,
    fd_columns,
    first_setting,
    lfl_columns,
    numbered_frames,
    settings_by_row,
    static_beside,
)
from influx_wrap.formats.lens_table import Column, MetadataTable
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.lens_metadata import Channel, LensMetadata, ReportedClip
from influx_wrap.model.words import counted

COOKE_KEY = "cookemetadata"


def is_red_frames(columns: Sequence[Column]) -> bool:
    keys = {column.key for column in columns}
    return COOKE_KEY in keys or {"frameno", "accelerationx"} <= keys


def read_red_frames(table: MetadataTable, path: Path, known: ReportedClip | None) -> LensMetadata:
    beside = static_beside(path, "RED", is_red_static, read_red_static)
    metadata = _with_packets(table, settings_by_row(table, beside, fd_unit="mm"))
    return numbered_frames(table, metadata, known)


def _with_packets(table: MetadataTable, metadata: LensMetadata) -> LensMetadata:
    """With what the lens's own packets say, row by row."""
    column = table.find(COOKE_KEY)
    if column is None:
        return metadata
    cells = table.cells(column)
    packets = [decode_cooke(cell) if cell else None for cell in cells]
    broken = sum(packet is None and bool(cell) for packet, cell in zip(packets, cells, strict=True))
    notes = list(metadata.notes)
    if broken:
        notes.append(f"{counted(broken, 'Cooke /i packet')} cannot be decoded.")
    raw = np.array([math.nan if packet is None else packet.fd for packet in packets])
    lfl_mm = np.array([math.nan if packet is None else packet.lfl_mm for packet in packets])
    fd_m = 1e-3 * raw
    fd_name, lfl_name = fd_columns(table.columns)[0].name, lfl_columns(table.columns)[0].name
    if _nearer_by(TENTH_INCH_MM, fd_m, metadata.fd_m):
        fd_m = TENTH_INCH_MM * fd_m
        notes.append("The lens sends its Cooke /i packets in tenths of an inch.")
    if np.isnan(metadata.fd_m).all() and not np.isnan(fd_m).all():
        metadata = replace(metadata, fd_m=fd_m)
        notes.append(
            f"{fd_name!r} says nothing: the focus distance is that of the Cooke /i packets, "
            "taken for millimetres, which they do not state."
        )
    channels = list(metadata.channels)
    for quantity, used, values in (("LFL", lfl_name, lfl_mm), ("FD", fd_name, fd_m)):
        if not np.isnan(values).all():
            channels.append(Channel(quantity, used, column.name, values))
    return replace(metadata, channels=tuple(channels), notes=tuple(notes))


def _nearer_by(factor: float, values: FloatArray, others: FloatArray) -> bool:
    """Whether values (n,) times a factor are nearer to others (n,) than as they are."""
    both = np.isfinite(values) & np.isfinite(others)
    if not both.any():
        return False
    ratio = np.log(others[both] / values[both])
    return bool(np.median(np.abs(ratio - math.log(factor))) < np.median(np.abs(ratio)))


def is_red_static(columns: Sequence[Column]) -> bool:
    keys = {column.key for column in columns}
    return "totalframes" in keys and bool({"reelid", "cameramodelid", "lensbrand"} & keys)


def read_red_static(table: MetadataTable, path: Path) -> LensMetadata:
    """The setting of the first frame, and what the whole clip was filmed with."""
    check_single_row(table)
    row = replace(table, rows=table.rows[:1], numbers=table.numbers[:1])
    metadata = first_setting(row, path, "the per-frame CSV of REDline (--printMeta 5)")
    cells = {key: row.cells(row.find(key))[0] for key in ("lensbrand", "lensname", "totalframes")}
    brand, name = cells["lensbrand"].strip(), cells["lensname"].strip()
    if brand and name:
        rig = replace(metadata.rig, aliases=((name, f"{brand} {name}"),))
        metadata = replace(metadata, rig=rig)
    total = cells["totalframes"]
    n = int(total) if total.isascii() and total.isdigit() and len(total) < 10 else None
    return replace(metadata, clip=replace(metadata.clip, n_frames=n))
