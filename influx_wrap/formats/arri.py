"""ARRI's metadata: the ARRI Reference Tool's JSON and ARRI Meta Extract's CSV.

In what ``art-cmd export`` writes, ``frameBasedMetadata.frames`` has an entry per frame with
its number (``frameId`` or ``frameNo``) and ``frameBasedMetadataSets``, of which "Lens State"
tells the lens focal length in micrometres and the focus distance in millimetres or in
thousandths of an inch. Meta Extract's CSV has a line per frame, with tabs between columns:
``Lens Focal Length`` in millimetres, ``Lens Focus Distance`` in ``Lens Distance Unit``, and what
the encoders of its rings counted.

The counts of encoders stand beside them. Lens and camera are named in the sets "Lens Device" and
"Camera Device", the size of the picture is that of "Sensor State"; Meta Extract has columns for
them.

In both, -1 is a focus at infinity whatever the unit. A set or a number may be null (``--`` in
the CSV), and 0 stands for a lens that does not say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.files import Record, read_json
from influx_wrap.formats.frame_count import place_rows, timecode_notes
from influx_wrap.formats.lens_table import Column, MetadataTable
from influx_wrap.formats.lens_text import (
    INCH_M,
    INFINITE,
    NOT_TOLD,
    UNITS_M,
    check_fd,
    has_decimal_comma,
    make_rig,
    quoted_text,
    short_text,
)
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.lens_metadata import Channel, LensMetadata, ReportedClip
from influx_wrap.model.rig import ReportedRig

FRAMES = "frameBasedMetadata"
LENS_STATE = "Lens State"
LFL_KEY = "lensFocalLength"
FD_KEYS = "lensFocusDistanceMetric", "lensFocusDistanceImperial"
ENCODERS = {
    "lensScaleRawEncoderValueFocus": ("FD", FD_KEYS[0]),
    "lensMotorRawEncoderValueFocus": ("FD", FD_KEYS[0]),
    "lensScaleRawEncoderValueFl": ("LFL", LFL_KEY),
    "lensMotorRawEncoderValueFl": ("LFL", LFL_KEY),
}
"""Counts of the encoders in the lens and in the motors, and what they belong to."""
INCH_ROUNDING_M = 1e-3
"""Metres by which the same distance may differ in millimetres and in inches."""
LFL_COLUMN, FD_COLUMN, UNIT_COLUMN = (
    "Lens Focal Length",
    "Lens Focus Distance",
    "Lens Distance Unit",
)
LENS_COLUMN, CAMERA_COLUMN = "Lens Model", "Camera Model"
SIZE_COLUMNS = "Image Width", "Image Height"
RATE_COLUMN = "Project FPS"
RINGS = {"RawEncoderFocus": ("FD", FD_COLUMN), "RawEncoderFocal": ("LFL", LFL_COLUMN)}
"""What the counts of an encoder belong to, by the first word of the column's name."""


def read_art_metadata(path: Path) -> LensMetadata:
    """LFL and FD of the frames for which the lens told both, from the Reference Tool's JSON."""
    metadata = art_metadata(read_json(path, bare_nan=True))
    return metadata.some(metadata.told)


def art_metadata(file: Record) -> LensMetadata:
    """LFL and FD of all frames that the Reference Tool's JSON lists.

    Frames are counted from the first that is listed, which is the first of the clip's
    pictures.
    """
    frames = file.record(FRAMES)
    found: dict[int, tuple[float, float]] = {}
    beside: dict[int, list[float]] = {}
    first = 0
    for i, entry in enumerate(frames.items("frames")):
        if not isinstance(entry, dict):
            raise frames.fault(f"frames[{i}]", "must be a mapping.")
        record = Record(f"{frames.where}: frames[{i}]", entry)
        number = _number(record)
        first = number if i == 0 else first
        if number < first or number - first in found:
            raise record.fault("frameId", f"{number} comes twice, or before that of the first.")
        found[number - first] = _lens_setting(record)
        beside[number - first] = _second_records(record)
    order = sorted(found)
    lfl_mm, fd_m = np.array([found[frame] for frame in order]).reshape(-1, 2).T
    others = np.array([beside[frame] for frame in order]).reshape(-1, 1 + len(ENCODERS)).T
    metadata = LensMetadata(
        np.array(order, dtype=np.int64),
        lfl_mm,
        fd_m,
        art_rig(file),
        channels=tuple(_channels(fd_m, others)),
    )
    if not metadata.told.any():
        raise InputError(
            f"{file.where} has no frame whose set {LENS_STATE!r} tells focal length and focus "
            "distance. Did the lens send data to the camera?"
        )
    return metadata


def art_rig(file: Record) -> ReportedRig:
    """Lens, camera and picture size by the Reference Tool's JSON, or by what InFlux keeps of it.

    What is not as it should be says nothing: there is no setting to be had from it.
    """
    lenses, cameras, sizes = [], [], []
    for key in ("clipBasedMetadataSets", "descriptiveMetadataSets"):
        for name, payload in _sets(file.values.get(key)):
            if name == "Lens Device":
                lenses.append(payload.get("lensModel"))
            elif name == "Camera Device":
                cameras.append(payload.get("cameraModel"))
            elif name == "Sensor State":
                rectangle = payload.get("acquisitionRect")
                if isinstance(rectangle, Mapping):
                    sizes.append([rectangle.get(side) for side in ("width", "height")])
    return make_rig(lenses, cameras, sizes)


def is_meta_extract(columns: Sequence[Column]) -> bool:
    """Whether columns are those of Meta Extract's CSV."""
    return {LFL_COLUMN, FD_COLUMN} <= {column.name for column in columns}


def meta_extract_metadata(table: MetadataTable, known: ReportedClip | None = None) -> LensMetadata:
    """LFL and FD of all frames of Meta Extract's CSV, counted from its first line on.

    ``known`` is how long the clip's pictures are, if somebody looked.
    """
    columns = {column.name: column for column in reversed(table.columns)}
    if UNIT_COLUMN not in columns:
        raise InputError(
            f"{table.where}, line {table.header}: the column {UNIT_COLUMN!r} is missing, without "
            f"which nobody knows what {FD_COLUMN!r} means. Export it too."
        )
    wanted = [columns[name] for name in (LFL_COLUMN, FD_COLUMN, UNIT_COLUMN)]
    table.check_rows(wanted)
    lfls, fds, units = map(table.cells, wanted)
    if has_decimal_comma(table.where, (*lfls, *fds), table.separator):
        lfls, fds = ([cell.replace(",", ".") for cell in cells] for cells in (lfls, fds))
    told = zip(lfls, fds, units, strict=True)
    settings = [
        (_lfl_mm(table.line(k), lfl), _fd_m(table.line(k), fd, unit))
        for k, (lfl, fd, unit) in enumerate(told)
    ]
    lfl_mm, fd_m = np.array(settings).T
    sizes = set(zip(*(table.cells(columns.get(name)) for name in SIZE_COLUMNS), strict=True))
    rig = make_rig(
        table.cells(columns.get(LENS_COLUMN)),
        table.cells(columns.get(CAMERA_COLUMN)),
        sorted(sizes),
    )
    channels = tuple(_encoders(table))
    clip = ReportedClip(fps=_rate(table.cells(columns.get(RATE_COLUMN))))
    rows, frames, notes = _numbered(
        table, replace(clip, n_frames=None if known is None else known.n_frames)
    )
    metadata = LensMetadata(np.arange(len(settings)), lfl_mm, fd_m, rig, clip, channels)
    return replace(metadata.some(rows), frame=frames, notes=tuple(notes))


def _encoders(table: MetadataTable) -> Iterator[Channel]:
    """What the lens's or motor's encoders counted, as far as there are any."""
    for column in table.columns:
        ring = RINGS.get(column.name.split(" ")[0])
        if ring is None:
            continue
        counts = [
            int(cell) if cell.isascii() and cell.isdigit() and len(cell) < 16 else math.nan
            for cell in table.cells(column)
        ]
        if not np.isnan(counts).all():
            yield Channel(*ring, column.name, np.array(counts, dtype=float), is_counts=True)


def _numbered(table: MetadataTable, clip: ReportedClip) -> tuple[IntArray, IntArray, list[str]]:
    """Rows that are used and their frames, by ``Index`` if it counts up, and what is to be said."""
    codes = table.cells(table.find("mastertc"))
    index = table.cells(table.find("index"))
    if all(cell.isascii() and cell.isdigit() and len(cell) < 16 for cell in index):
        numbers = np.array(index, dtype=np.int64)
        if (np.diff(numbers) > 0).all():
            said = timecode_notes(codes, clip.fps)
            return np.arange(len(numbers)), numbers - numbers[0], said
    return place_rows(codes, clip)


def _rate(cells: Sequence[str]) -> float | None:
    """Frames a second, if all rows say the same."""
    try:
        (rate,) = map(float, set(cells))
    except ValueError:
        return None
    return rate if 0 < rate < math.inf else None


def _sets(sets: object) -> Iterator[tuple[object, Mapping[str, object]]]:
    """Names and payloads of metadata sets, as far as they are such."""
    for entry in sets if isinstance(sets, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("metadataSetPayload"), Mapping):
            yield entry.get("metadataSetName"), entry["metadataSetPayload"]


def _number(record: Record) -> int:
    key = "frameId" if "frameId" in record.values else "frameNo"
    value = record.value(key)
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 19:
        return int(value)
    number = record.integer(key, at_least=0)
    if number >= 10**18:
        raise record.fault(key, "is too large for the number of a frame.")
    return number


def _second_records(record: Record) -> list[float]:
    """A frame's imperial focus distance in metres, and the counts of its encoders; NaN where the
    lens did not tell."""
    state = _lens_state(record)
    values: Mapping[str, object] = {} if state is None else state.values
    told = [values.get(key) for key in (FD_KEYS[1], *ENCODERS)]
    inch, *counts = map(_number_or_nothing, told)
    fd_m = math.inf if inch == -1 else 1e-3 * INCH_M * inch if inch > 0 else math.nan
    return [fd_m, *(count if count >= 0 else math.nan for count in counts)]


def _number_or_nothing(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -2 < value < 1e15:
        return math.nan
    return float(value)


def _channels(fd_m: FloatArray, others: FloatArray) -> Iterator[Channel]:
    """Second records (1 + encoders, n) that say something: a distance that is not the same in
    inches, and encoders that are connected."""
    inches, *counts = others
    both = np.isfinite(fd_m) & np.isfinite(inches)
    differ = np.abs(fd_m[both] - inches[both]) > INCH_ROUNDING_M + 1e-3 * fd_m[both]
    if differ.any() or (np.isinf(fd_m) != np.isinf(inches))[~np.isnan(fd_m + inches)].any():
        yield Channel("FD", *FD_KEYS, inches)
    for (key, (quantity, used)), values in zip(ENCODERS.items(), counts, strict=True):
        if np.nansum(values) > 0:
            yield Channel(quantity, used, key, values, is_counts=True)


def _lens_setting(record: Record) -> tuple[float, float]:
    """LFL in mm and FD in m of a frame; NaN where the lens did not tell."""
    state = _lens_state(record)
    if state is None:
        return math.nan, math.nan
    lfl_mm = 1e-3 * _told(state, LFL_KEY)
    fd_m = 1e-3 * _told(state, FD_KEYS[0])
    if math.isnan(fd_m):
        fd_m = 1e-3 * INCH_M * _told(state, FD_KEYS[1])
    return math.nan if math.isinf(lfl_mm) else lfl_mm, fd_m


def _lens_state(record: Record) -> Record | None:
    """A frame's set "Lens State", of a list of sets or by its name; None if it says nothing."""
    key = "frameBasedMetadataSets"
    if isinstance(record.values.get(key), dict):
        sets = record.record(key)
        return None if sets.values.get(LENS_STATE) is None else sets.record(LENS_STATE)
    for i, entry in enumerate(record.items(key)):
        if isinstance(entry, dict) and entry.get("metadataSetName") == LENS_STATE:
            if entry.get("metadataSetPayload") is None:
                return None
            return Record(f"{record.where}: {key}[{i}]", entry).record("metadataSetPayload")
    return None


def _told(state: Record, key: str) -> float:
    """A positive number, infinity for -1; NaN if there is none."""
    if state.values.get(key) is None:
        return math.nan
    value = state.number(key)
    if value < 0 and value != -1:
        raise state.fault(key, f"must be positive, or -1 for infinity, got {value:g}.")
    return math.inf if value == -1 else value or math.nan


def _lfl_mm(where: str, text: str) -> float:
    value = _parsed(where, LFL_COLUMN, text)
    return math.nan if math.isinf(value) else value


def _fd_m(where: str, text: str, unit: str) -> float:
    value = _parsed(where, FD_COLUMN, text)
    if not math.isfinite(value):
        return value
    if unit.lower() not in UNITS_M:
        raise InputError(
            f"{where}: {UNIT_COLUMN} {quoted_text(unit)} is not known; known: {', '.join(UNITS_M)}."
        )
    metres = value * UNITS_M[unit.lower()]
    check_fd(where, FD_COLUMN, text, metres)
    return metres


def _parsed(where: str, name: str, text: str) -> float:
    """A positive number, infinity for -1 or a word for it; NaN if the lens did not tell."""
    if text in NOT_TOLD:
        return math.nan
    if text.lower() in INFINITE:
        return math.inf
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{where}: {name} {quoted_text(text)} is not a number.") from None
    if math.isnan(value) or (value < 0 and value != -1):
        raise InputError(
            f"{where}: {name} must be positive, or -1 for infinity, got {short_text(text)}."
        )
    return math.inf if value == -1 else value or math.nan
