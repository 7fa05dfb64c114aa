"""ARRI's metadata: the ARRI Reference Tool's JSON and ARRI Meta Extract's CSV.

In what ``art-cmd export`` writes, ``frameBasedMetadata.frames`` has an entry per frame with
its number (``frameId`` or ``frameNo``) and ``frameBasedMetadataSets``, of which "Lens State"
tells the lens focal length in micrometres and the focus distance in millimetres or in
thousandths of an inch. Meta Extract's CSV has a line per frame, with tabs between columns:
``Lens Focal Length`` in millimetres, ``Lens Focus Distance`` in ``Lens Distance Unit``.

Lens and camera are named in the sets "Lens Device" and "Camera Device", the size of the picture
is that of "Sensor State"; Meta Extract has columns for them.

In both, -1 is a focus at infinity whatever the unit. A set or a number may be null (``--`` in
the CSV), and 0 stands for a lens that does not say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.files import Record, read_json
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.model.rig import ReportedRig

FRAMES = "frameBasedMetadata"
LENS_STATE = "Lens State"
INCH_M = 0.0254

LFL_COLUMN, FD_COLUMN, UNIT_COLUMN = (
    "Lens Focal Length",
    "Lens Focus Distance",
    "Lens Distance Unit",
)
LENS_COLUMN, CAMERA_COLUMN = "Lens Model", "Camera Model"
SIZE_COLUMNS = "Image Width", "Image Height"
NOT_TOLD = ("", "--")
NO_NAME = ("-", "n/a", "n.a.", "none", "unknown")
"""What stands where a name would, in any case, beside ``NOT_TOLD``."""
INFINITE = ("inf", "infinity", "infinite", "∞")
UNITS_M = {
    **dict.fromkeys(("m", "meter", "meters", "metre", "metres", "metric"), 1.0),
    **dict.fromkeys(("mm", "millimeter", "millimeters"), 1e-3),
    **dict.fromkeys(("ft", "foot", "feet", "imperial"), 12 * INCH_M),
    **dict.fromkeys(("in", "inch", "inches"), INCH_M),
}


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
    order = sorted(found)
    lfl_mm, fd_m = np.array([found[frame] for frame in order]).reshape(-1, 2).T
    metadata = LensMetadata(np.array(order, dtype=np.int64), lfl_mm, fd_m, art_rig(file))
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


def make_rig(
    lenses: Sequence[object], cameras: Sequence[object], sizes: Sequence[Sequence[object]]
) -> ReportedRig:
    """From what stands in a file for names and sizes (width, height), whatever that is."""
    pairs = [tuple(map(_pixels, size)) for size in sizes]
    told = [(pair[0], pair[1]) for pair in pairs if min(pair) > 0]
    return ReportedRig(_names(lenses), _names(cameras), tuple(dict.fromkeys(told)))


def is_meta_extract(header: str) -> bool:
    """Whether a file's first line is that of Meta Extract's CSV."""
    columns = [name.strip() for name in header.split("\t")]
    return LFL_COLUMN in columns and FD_COLUMN in columns


def meta_extract_metadata(path: Path, lines: Sequence[str]) -> LensMetadata:
    """LFL and FD of all frames of Meta Extract's CSV, counted from its first line on."""
    columns = [name.strip() for name in lines[0].split("\t")]
    if UNIT_COLUMN not in columns:
        raise InputError(
            f"{path}, line 1: the column {UNIT_COLUMN!r} is missing, without which nobody knows "
            f"what {FD_COLUMN!r} means. Export it too."
        )
    wanted = [columns.index(name) for name in (LFL_COLUMN, FD_COLUMN, UNIT_COLUMN)]
    rows, frames = [], []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        values = line.split("\t")
        frames.append(values)
        if len(values) <= max(wanted):
            raise InputError(
                f"{where}: {len(values)} columns instead of {len(columns)}. Is the file complete?"
            )
        lfl_mm, fd, unit = (values[k].strip() for k in wanted)
        rows.append((_lfl_mm(where, lfl_mm), _fd_m(where, fd, unit)))
    if not rows:
        raise InputError(f"{path} has no frame: only the line with the names of the columns.")
    lfls, fds = np.array(rows).T
    return LensMetadata(
        np.arange(len(rows), dtype=np.int64), lfls, fds, _meta_extract_rig(columns, frames)
    )


def _meta_extract_rig(columns: Sequence[str], frames: Sequence[Sequence[str]]) -> ReportedRig:
    """What the lines (n,) of Meta Extract's CSV say, each different value once."""

    def values(name: str) -> list[str]:
        if name not in columns:
            return []
        place = columns.index(name)
        return [line[place] if place < len(line) else "" for line in frames]

    sizes = set(zip(*map(values, SIZE_COLUMNS), strict=False))
    return make_rig(values(LENS_COLUMN), values(CAMERA_COLUMN), sorted(sizes))


def _sets(sets: object) -> Iterator[tuple[object, Mapping[str, object]]]:
    """Names and payloads of metadata sets, as far as they are such."""
    for entry in sets if isinstance(sets, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("metadataSetPayload"), Mapping):
            yield entry.get("metadataSetName"), entry["metadataSetPayload"]


def _names(values: Sequence[object]) -> tuple[str, ...]:
    texts = [value.strip() for value in values if isinstance(value, str)]
    return tuple(dict.fromkeys(t for t in texts if t.lower() not in (*NOT_TOLD, *NO_NAME)))


def _pixels(value: object) -> int:
    """A whole number from a number or its text; 0 for anything else."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _number(record: Record) -> int:
    key = "frameId" if "frameId" in record.values else "frameNo"
    value = record.value(key)
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 19:
        return int(value)
    number = record.integer(key, at_least=0)
    if number >= 10**18:
        raise record.fault(key, "is too large for the number of a frame.")
    return number


def _lens_setting(record: Record) -> tuple[float, float]:
    """LFL in mm and FD in m of a frame; NaN where the lens did not tell."""
    state = _lens_state(record)
    if state is None:
        return math.nan, math.nan
    lfl_mm = 1e-3 * _told(state, "lensFocalLength")
    fd_m = 1e-3 * _told(state, "lensFocusDistanceMetric")
    if math.isnan(fd_m):
        fd_m = 1e-3 * INCH_M * _told(state, "lensFocusDistanceImperial")
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
            f"{where}: {UNIT_COLUMN} {unit!r} is not known; known: {', '.join(UNITS_M)}."
        )
    return value * UNITS_M[unit.lower()]


def _parsed(where: str, name: str, text: str) -> float:
    """A positive number, infinity for -1 or a word for it; NaN if the lens did not tell."""
    if text in NOT_TOLD:
        return math.nan
    if text.lower() in INFINITE:
        return math.inf
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{where}: {name} {text!r} is not a number.") from None
    if math.isnan(value) or (value < 0 and value != -1):
        raise InputError(f"{where}: {name} must be positive, or -1 for infinity, got {text}.")
    return math.inf if value == -1 else value or math.nan
