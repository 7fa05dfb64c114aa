"""LFL, FD and frames from the columns of a table, and what a static file beside it adds.

Columns are known by what they are called once units, cases and blanks are taken away. Of several
for the same the first is used, and the others are kept as channels. Cameras that write a static
file beside the table of frames name there lens, camera, size and length of the clip.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.files import reading
from influx_wrap.formats.frame_count import place_rows, timecode_notes
from influx_wrap.formats.lens_table import Column, MetadataTable, read_metadata_table
from influx_wrap.formats.lens_text import (
    MORE_UNITS_M,
    has_decimal_comma,
    make_rig,
    parsed_fd,
    parsed_lfl,
    quoted_text,
    read_any_text,
)
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.lens_metadata import Channel, LensMetadata, ReportedClip
from influx_wrap.model.rig import ReportedRig

LFL_KEYS = ("lensfocallength", "focallength", "lenszoomactualfocallength", "actualfocallength")
FD_KEYS = (
    "lensfocusdistance",
    "focusdistance",
    "focuspositionfromimageplane",
    "focaldistance",
    "subjectdistance",
    "focusdist",
)
UNIT_KEYS = (
    "lensdistanceunit",
    "focusdistanceunit",
    "distanceunit",
    "focusdistanceunits",
    "distanceunits",
    "focusunit",
    "unit",
    "units",
)
FRAME_KEYS = ("frame", "frameno", "framenumber", "frameid", "frameindex")
TIMECODE_KEYS = ("timecode", "mastertc", "tc")
LENS_KEYS, CAMERA_KEYS = (
    ("lensmodel", "lensname", "lens", "lenstype"),
    ("cameramodel", "cameratype"),
)
SIZE_KEYS = (("framewidth", "frameheight"), ("imagewidth", "imageheight"), ("width", "height"))
RATE_KEYS = ("projectfps", "fps", "framerate", "recordfps", "sensorfps")
_NOT_TOLD_BY_CANON = re.compile(r"\s*(?:0|65535|4294967295)\s*/\s*(?:65535|4294967295|0)\s*")


def lfl_columns(columns: Sequence[Column]) -> list[Column]:
    return _columns_of(columns, LFL_KEYS, ("lfl", "zoom"))


def fd_columns(columns: Sequence[Column]) -> list[Column]:
    return _columns_of(columns, FD_KEYS, ("fd", "distance", "focus"))


def _columns_of(
    columns: Sequence[Column], keys: Sequence[str], short: Sequence[str]
) -> list[Column]:
    """Columns with one of the keys, the earlier keys first; short ones count with a unit only."""
    found = [column for key in keys for column in columns if column.key == key]
    found += [c for key in short for c in columns if c.key == key and c.unit is not None]
    return sorted(found, key=lambda c: c.unit is not None and c.unit not in MORE_UNITS_M)


def settings_by_row(
    table: MetadataTable, beside: LensMetadata | None, *, fd_unit: str | None = None
) -> LensMetadata:
    """LFL and FD of all rows; ``fd_unit`` is that of distances which state none.

    ``beside`` is what the static file beside the table says.
    """
    for_lfl, for_fd = lfl_columns(table.columns), fd_columns(table.columns)
    unit_column = table.find(*UNIT_KEYS)
    table.check_rows([for_lfl[0], *for_fd[:1], unit_column])
    units = table.cells(unit_column)
    told = [table.cells(column) for column in (for_lfl[0], *for_fd[:1])]
    comma = has_decimal_comma(table.where, (c for cells in told for c in cells), table.separator)

    def lengths(column: Column, parse: Callable[..., float], unit: str | None) -> FloatArray:
        cells = [cell.replace(",", ".") if comma else cell for cell in table.cells(column)]
        stated = units if column in for_fd else [""] * len(cells)
        return np.array(
            [
                parse(table.line(k), column.name, cell, own or column.unit or unit)
                for k, (cell, own) in enumerate(zip(cells, stated, strict=True))
            ],
            dtype=float,
        )

    lfl_mm = lengths(for_lfl[0], lfl_or_nothing, "mm")
    fd_m = np.full(len(lfl_mm), np.nan)
    if for_fd:
        fd_m = lengths(for_fd[0], parsed_fd, fd_unit)
    channels = []
    for quantity, columns, parse, unit in (
        ("LFL", for_lfl, lfl_or_nothing, "mm"),
        ("FD", for_fd, parsed_fd, fd_unit),
    ):
        for column in columns[1:]:
            values = lengths(column, _leniently(parse), unit)
            if not np.isnan(values).all():
                channels.append(Channel(quantity, columns[0].name, column.name, values))
    clip = ReportedClip() if beside is None else beside.clip
    clip = replace(clip, fps=clip.fps or table_rate(table))
    rig = table_rig(table)
    metadata = LensMetadata(np.arange(len(lfl_mm)), lfl_mm, fd_m, rig, clip, tuple(channels))
    if beside is not None:
        metadata = _with_static(metadata, beside, for_lfl, for_fd)
    return metadata


def _with_static(
    metadata: LensMetadata,
    beside: LensMetadata,
    for_lfl: Sequence[Column],
    for_fd: Sequence[Column],
) -> LensMetadata:
    """With lens, camera and size by the static file, whose setting is the first frame's."""
    channels = list(metadata.channels)
    for quantity, columns, value in (
        ("LFL", for_lfl, beside.lfl_mm[0]),
        ("FD", for_fd, beside.fd_m[0]),
    ):
        if columns and not math.isnan(value):
            values = np.full(len(metadata.frame), np.nan)
            values[0] = value
            channels.append(Channel(quantity, columns[0].name, "the static file", values))
    rig, static = metadata.rig, beside.rig
    known = {name for group in static.aliases for name in group} if static.lens_models else set()
    return replace(
        metadata,
        rig=ReportedRig(
            tuple(
                dict.fromkeys(
                    (*static.lens_models, *(n for n in rig.lens_models if n not in known))
                )
            ),
            tuple(dict.fromkeys((*static.camera_models, *rig.camera_models))),
            tuple(dict.fromkeys((*static.image_sizes, *rig.image_sizes))),
            static.aliases,
        ),
        channels=tuple(channels),
        notes=(*beside.notes, *metadata.notes),
    )


def numbered_frames(
    table: MetadataTable, metadata: LensMetadata, known: ReportedClip | None
) -> LensMetadata:
    """With the numbers of frames: the table's own, by timecode, or by row."""
    codes = table.cells(table.find(*TIMECODE_KEYS))
    column = table.find(*FRAME_KEYS)
    fps = metadata.clip.fps
    if column is None:
        n = (known.n_frames if known else None) or metadata.clip.n_frames
        rows, frames, said = place_rows(codes, ReportedClip(n, fps))
        chosen = metadata.some(rows)
    else:
        numbers = np.array([_frame(table.line(k), c) for k, c in enumerate(table.cells(column))])
        rows = np.argsort(numbers, kind="stable")
        frames = numbers[rows]
        twice = rows[1:][np.diff(frames) == 0]
        if len(twice):
            k = int(twice.min())
            raise InputError(f"{table.line(k)}: frame {numbers[k]} has had a line already.")
        said, chosen = timecode_notes(codes, fps), metadata.some(rows)
    return replace(chosen, frame=frames, notes=(*metadata.notes, *said))


def _frame(where: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 15:
        raise InputError(
            f"{where}: frame {quoted_text(text)} is not a number of a frame, counted from 0."
        )
    return int(text)


def table_rig(table: MetadataTable) -> ReportedRig:
    """Lens, camera and size of pictures as the columns say."""
    lenses, cameras = table.cells(table.find(*LENS_KEYS)), table.cells(table.find(*CAMERA_KEYS))
    sizes: set[tuple[str, str]] = set()
    for sides in SIZE_KEYS:
        width, height = table.find(sides[0]), table.find(sides[1])
        if width is not None and height is not None:
            sizes = set(zip(table.cells(width), table.cells(height), strict=True))
            break
    return make_rig(lenses, cameras, sorted(sizes))


def table_rate(table: MetadataTable) -> float | None:
    """Frames a second as the columns say, if all rows say the same."""
    told = set(table.cells(table.find(*RATE_KEYS)))
    try:
        (rate,) = map(float, told)
    except ValueError:
        return None
    return rate if 0 < rate < math.inf else None


def lfl_or_nothing(where: str, name: str, text: str, unit: str | None) -> float:
    """A focal length; NaN where all bits are set, which is how Canon writes that it is unknown."""
    return math.nan if _NOT_TOLD_BY_CANON.fullmatch(text) else parsed_lfl(where, name, text, unit)


def _leniently(parse: Callable[..., float]) -> Callable[..., float]:
    """The same, but NaN for what is no length: a second record must not stop the first."""

    def lenient(*given: object) -> float:
        try:
            return parse(*given)
        except InputError:
            return math.nan

    return lenient


def first_setting(row: MetadataTable, path: Path, rest: str) -> LensMetadata:
    """A table's only row as the setting of a clip's first frame."""
    values = {}
    for quantity, columns, parse in (
        ("LFL", lfl_columns(row.columns), lfl_or_nothing),
        ("FD", fd_columns(row.columns), parsed_fd),
    ):
        told = [(column, row.cells(column)[0]) for column in columns]
        column, text = next(((c, cell) for c, cell in told if cell), (None, ""))
        name = quantity if column is None else column.name
        unit = "mm" if column is None or column.unit is None else column.unit
        values[quantity] = parse(row.line(0), name, text, unit)
    return LensMetadata(
        np.zeros(1, dtype=np.int64),
        np.array([values["LFL"]]),
        np.array([values["FD"]]),
        table_rig(row),
        ReportedClip(fps=table_rate(row)),
        notes=(
            f"{path.name} tells the setting of a clip once: it is taken for that of its first "
            f"frame only. Of all frames tells {rest}.",
        ),
    )


def static_beside(
    path: Path,
    maker: str,
    is_it: Callable[[Sequence[Column]], bool],
    read: Callable[[MetadataTable, Path], LensMetadata],
) -> LensMetadata | None:
    """What the static file says whose name has "static" for "frames"; None if there is none."""
    name = re.sub(
        r"frames(?=[^a-zA-Z]*\.[^.]*$)",
        lambda found: {"F": "Static", "f": "static"}[found[0][0]],
        path.name,
        flags=re.IGNORECASE,
    )
    if name == path.name:
        return None
    with reading(path.parent):
        files = sorted(f for f in path.parent.iterdir() if f.name.casefold() == name.casefold())
    static = next((file for file in files if file.is_file()), None)
    if static is None:
        return None
    table = read_metadata_table(str(static), read_any_text(static), is_it)
    if table is None:
        raise InputError(
            f"{static} should be {maker}'s static file of the clip, by its name, but is not. Move "
            "it away, or export it again."
        )
    said = f"Lens, camera and size are those of {static.name} beside it."
    found = read(table, static)
    kept = found.notes if maker == "Canon" else ()
    return replace(found, notes=(said, *kept))


def check_single_row(table: MetadataTable) -> None:
    """Refuse a static file of no clip, or of several."""
    if len(table.rows) != 1:
        raise InputError(
            f"{table.where} is a file with a line for a clip, and has {len(table.rows)} of them: "
            "it must be one."
        )
