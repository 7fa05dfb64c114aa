"""Lens metadata in tables: of any program that names its columns, of RED, Canon and Sony.

Most need no reader of their own, since columns are found by name and unit (``lens_table``). What
is particular:

- RED's per-frame CSV (REDline, ``--printMeta 5``) has distances in millimetres without saying so,
  and the lens's own Cooke /i packets beside them. Lens, camera and size are in the static CSV
  (``--printMeta 3``).
- Canon's per-frame CSV has the focal length as a fraction and a ``FocusPosition``, the bits of a
  float in hexadecimal: where the focus ring is, which is no distance.
- Sony's per-frame CSV calls the lens by a number; its name, and the length of the clip, are in the
  XML file that the camera writes beside the clip (``sony``).

A static file is looked for beside the per-frame one, under the name that the camera's tools give.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.cooke import TENTH_INCH_MM, decode_cooke
from influx_wrap.formats.frame_count import place_rows, timecode_notes
from influx_wrap.formats.lens_table import Column, LensTable, read_lens_table
from influx_wrap.formats.lens_text import (
    MORE_UNITS_M,
    has_decimal_comma,
    make_rig,
    parsed_fd,
    parsed_lfl,
    read_any_text,
)
from influx_wrap.formats.sony import read_sony_xml, sony_xml_beside
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.lens_metadata import Channel, LensMetadata, ReportedClip
from influx_wrap.model.rig import ReportedRig
from influx_wrap.model.words import counted

LFL_KEYS = ("lensfocallength", "focallength", "lenszoomactualfocallength", "actualfocallength")
FD_KEYS = (
    "lensfocusdistance",
    "focusdistance",
    "focuspositionfromimageplane",
    "focaldistance",
    "subjectdistance",
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
COOKE_KEY, POSITION_KEY = "cookemetadata", "focusposition"
_NOT_TOLD_BY_CANON = re.compile(r"\s*(?:0|65535|4294967295)\s*/\s*(?:65535|4294967295|0)\s*")


def read_frames_table(
    path: Path, text: str, known: ReportedClip | None = None
) -> LensMetadata | None:
    """LFL and FD of the frames that a table lists; None if the text is no such table.

    ``known`` is how long the clip's pictures are, if somebody looked.
    """
    table = read_lens_table(str(path), text, _has_settings)
    if table is None:
        static = read_lens_table(str(path), text, _is_canon_static)
        if static is not None:
            raise InputError(
                f"{path} is Canon's static file, which tells neither LFL nor FD: give the "
                "per-frame file, whose name ends in _Frames.csv."
            )
        return None
    if _is_red_static(table.columns):
        return _red_static(table, path)
    if table.find(POSITION_KEY) and not table.find(COOKE_KEY):
        return _canon_frames(table, path, known)
    if _is_red_frames(table.columns):
        return _red_frames(table, path, known)
    return _sony_or_other(table, path, known)


def _has_settings(columns: Sequence[Column]) -> bool:
    """Whether columns tell LFL, and FD or at least where the focus ring is."""
    has_fd = _fd_columns(columns) or any(column.key == POSITION_KEY for column in columns)
    return bool(_lfl_columns(columns) and has_fd)


def _lfl_columns(columns: Sequence[Column]) -> list[Column]:
    return _columns_of(columns, LFL_KEYS, ("lfl",))


def _fd_columns(columns: Sequence[Column]) -> list[Column]:
    return _columns_of(columns, FD_KEYS, ("fd", "distance"))


def _columns_of(
    columns: Sequence[Column], keys: Sequence[str], short: Sequence[str]
) -> list[Column]:
    """Columns with one of the keys, the earlier keys first; short ones count with a unit only."""
    found = [column for key in keys for column in columns if column.key == key]
    found += [c for key in short for c in columns if c.key == key and c.unit is not None]
    return sorted(found, key=lambda c: c.unit is not None and c.unit not in MORE_UNITS_M)


def _by_row(
    table: LensTable, beside: LensMetadata | None, *, fd_unit: str | None = None
) -> LensMetadata:
    """LFL and FD of all rows; ``fd_unit`` is that of distances which state none.

    ``beside`` is what the static file beside the table says.
    """
    lfl_columns, fd_columns = _lfl_columns(table.columns), _fd_columns(table.columns)
    unit_column = table.find(*UNIT_KEYS)
    table.check_rows([lfl_columns[0], *fd_columns[:1], unit_column])
    units = table.cells(unit_column)
    told = [table.cells(column) for column in (*lfl_columns[:1], *fd_columns[:1])]
    comma = has_decimal_comma(table.where, (c for cells in told for c in cells), table.separator)

    def lengths(column: Column, parse: Callable[..., float], unit: str | None) -> FloatArray:
        cells = [cell.replace(",", ".") if comma else cell for cell in table.cells(column)]
        stated = units if column in fd_columns else [""] * len(cells)
        return np.array(
            [
                parse(table.line(k), column.name, cell, own or column.unit or unit)
                for k, (cell, own) in enumerate(zip(cells, stated, strict=True))
            ],
            dtype=float,
        )

    lfl_mm = lengths(lfl_columns[0], _lfl_or_nothing, "mm")
    fd_m = np.full(len(lfl_mm), np.nan)
    if fd_columns:
        fd_m = lengths(fd_columns[0], parsed_fd, fd_unit)
    channels = []
    for quantity, columns, parse, unit in (
        ("LFL", lfl_columns, _lfl_or_nothing, "mm"),
        ("FD", fd_columns, parsed_fd, fd_unit),
    ):
        for column in columns[1:]:
            values = lengths(column, _leniently(parse), unit)
            if not np.isnan(values).all():
                channels.append(Channel(quantity, columns[0].name, column.name, values))
    clip = ReportedClip() if beside is None else beside.clip
    clip = replace(clip, fps=clip.fps or _rate(table))
    rig = _rig(table)
    metadata = LensMetadata(np.arange(len(lfl_mm)), lfl_mm, fd_m, rig, clip, tuple(channels))
    if beside is not None:
        metadata = _with_static(metadata, beside, lfl_columns, fd_columns)
    return metadata


def _with_static(
    metadata: LensMetadata,
    beside: LensMetadata,
    lfl_columns: Sequence[Column],
    fd_columns: Sequence[Column],
) -> LensMetadata:
    """With lens, camera and size by the static file, whose setting is the first frame's."""
    channels = list(metadata.channels)
    for quantity, columns, value in (
        ("LFL", lfl_columns, beside.lfl_mm[0]),
        ("FD", fd_columns, beside.fd_m[0]),
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


def _numbered(table: LensTable, metadata: LensMetadata, known: ReportedClip | None) -> LensMetadata:
    """With the numbers of frames: the table's own, by timecode, or by row."""
    codes = table.cells(table.find(*TIMECODE_KEYS))
    column = table.find(*FRAME_KEYS)
    fps = metadata.clip.fps
    if column is None:
        n = metadata.clip.n_frames if known is None else known.n_frames
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
        shown = f"{text[:20]}..." if len(text) > 20 else text
        raise InputError(f"{where}: frame {shown!r} is not a number of a frame, counted from 0.")
    return int(text)


def _rig(table: LensTable) -> ReportedRig:
    """Lens, camera and size of pictures as the columns say."""
    lenses, cameras = table.cells(table.find(*LENS_KEYS)), table.cells(table.find(*CAMERA_KEYS))
    sizes: set[tuple[str, str]] = set()
    for sides in SIZE_KEYS:
        width, height = table.find(sides[0]), table.find(sides[1])
        if width is not None and height is not None:
            sizes = set(zip(table.cells(width), table.cells(height), strict=True))
            break
    return make_rig(lenses, cameras, sorted(sizes))


def _rate(table: LensTable) -> float | None:
    """Frames a second as the columns say, if all rows say the same."""
    told = set(table.cells(table.find(*RATE_KEYS)))
    try:
        (rate,) = map(float, told)
    except ValueError:
        return None
    return rate if 0 < rate < math.inf else None


def _lfl_or_nothing(where: str, name: str, text: str, unit: str | None) -> float:
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


# RED


def _is_red_frames(columns: Sequence[Column]) -> bool:
    keys = {column.key for column in columns}
    return COOKE_KEY in keys or {"frameno", "accelerationx"} <= keys


def _red_frames(table: LensTable, path: Path, known: ReportedClip | None) -> LensMetadata:
    beside = _static_beside(path, "RED", _is_red_static, _red_static)
    metadata = _with_packets(table, _by_row(table, beside, fd_unit="mm"))
    return _numbered(table, metadata, known)


def _with_packets(table: LensTable, metadata: LensMetadata) -> LensMetadata:
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
    fd_name, lfl_name = _fd_columns(table.columns)[0].name, _lfl_columns(table.columns)[0].name
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


def _is_red_static(columns: Sequence[Column]) -> bool:
    keys = {column.key for column in columns}
    return "totalframes" in keys and bool({"reelid", "cameramodelid", "lensbrand"} & keys)


def _red_static(table: LensTable, path: Path) -> LensMetadata:
    """The setting of the first frame, and what the whole clip was filmed with."""
    _check_single(table)
    row = replace(table, rows=table.rows[:1], numbers=table.numbers[:1])
    metadata = _first_setting(row, path, "the per-frame CSV of REDline (--printMeta 5)")
    cells = {key: row.cells(row.find(key))[0] for key in ("lensbrand", "lensname", "totalframes")}
    brand, name = cells["lensbrand"].strip(), cells["lensname"].strip()
    if brand and name:
        rig = replace(metadata.rig, aliases=((name, f"{brand} {name}"),))
        metadata = replace(metadata, rig=rig)
    total = cells["totalframes"]
    n = int(total) if total.isascii() and total.isdigit() and len(total) < 10 else None
    return replace(metadata, clip=replace(metadata.clip, n_frames=n))


def _first_setting(row: LensTable, path: Path, rest: str) -> LensMetadata:
    """A table's only row as the setting of a clip's first frame."""
    values = {}
    for quantity, columns, parse in (
        ("LFL", _lfl_columns(row.columns), _lfl_or_nothing),
        ("FD", _fd_columns(row.columns), parsed_fd),
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
        _rig(row),
        ReportedClip(fps=_rate(row)),
        notes=(
            f"{path.name} tells the setting of a clip once: it is taken for that of its first "
            f"frame only. Of all frames tells {rest}.",
        ),
    )


# Canon


def _canon_frames(table: LensTable, path: Path, known: ReportedClip | None) -> LensMetadata:
    beside = _static_beside(path, "Canon", _is_canon_static, _canon_static)
    metadata = _numbered(table, _by_row(table, beside), known)
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


def _is_canon_static(columns: Sequence[Column]) -> bool:
    return {"lenssqueezefactor", "timescale", "duration"} <= {column.key for column in columns}


def _canon_static(table: LensTable, path: Path) -> LensMetadata:
    """What is there of lens, camera and size; neither LFL nor FD are."""
    _check_single(table)
    notes = []
    scale, duration = (table.cells(table.find(key))[0] for key in ("timescale", "duration"))
    if all(text.isascii() and text.isdigit() and len(text) < 16 for text in (scale, duration)):
        seconds = int(duration) / int(scale) if int(scale) else 0.0
        notes.append(f"The clip lasts {seconds:.2f} s by {path.name}.") if seconds else None
    nothing = np.full(1, np.nan)
    return LensMetadata(
        np.zeros(1, dtype=np.int64), nothing, nothing, _rig(table), notes=tuple(notes)
    )


# Sony, and everybody else


def _sony_or_other(table: LensTable, path: Path, known: ReportedClip | None) -> LensMetadata:
    xml = sony_xml_beside(path)
    if xml is None:
        return _numbered(table, _by_row(table, None), known)
    beside = read_sony_xml(xml, read_any_text(xml))
    said = f"Lens, camera, size and length are also those of {xml.name} beside it."
    return _numbered(table, _by_row(table, replace(beside, notes=(said,))), known)


# What is beside a table


def _static_beside(
    path: Path,
    maker: str,
    is_it: Callable[[Sequence[Column]], bool],
    read: Callable[[LensTable, Path], LensMetadata],
) -> LensMetadata | None:
    """What the static file says whose name has "static" for "frames"; None if there is none."""
    name = re.sub(
        r"frames(?=[^a-zA-Z]*\.[^.]*$)",
        lambda found: {"F": "Static", "f": "static"}[found[0][0]],
        path.name,
        flags=re.IGNORECASE,
    )
    static = path.with_name(name)
    if name == path.name or not static.is_file():
        return None
    table = read_lens_table(str(static), read_any_text(static), is_it)
    if table is None:
        raise InputError(
            f"{static} should be {maker}'s static file of the clip, by its name, but is not. Move "
            "it away, or export it again."
        )
    said = f"Lens, camera and size are those of {static.name} beside it."
    found = read(table, static)
    kept = found.notes if maker == "Canon" else ()
    return replace(found, notes=(said, *kept))


def _check_single(table: LensTable) -> None:
    """Refuse a static file of no clip, or of several."""
    if len(table.rows) != 1:
        raise InputError(
            f"{table.where} is a file with a line for a clip, and has {len(table.rows)} of them: "
            "it must be one."
        )
