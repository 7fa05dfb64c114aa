"""What the lens reported with every frame of a clip, from whichever file tells it.

``read_metadata`` recognises by their content the formats of ``FORMATS``: the cameras' own
(``arri``, ``sony``, ``camera_tables``, ``blackmagic``), OpenTrackIO (``opentrackio_samples``),
what exiftool says (``exiftool``), any table whose columns name LFL and FD with their units, and
- the InFlux release's ``per_frame_metadata.json``: ``{"frames": {"<id>": {"focal_length_mm",
  "focus_distance_m"}}}``, beside which other keys may stand,
- our own CSV file with the header ``frame,lfl_mm,fd_m`` and one line per frame. Frames are
  counted from 0 and may be left out, but not come twice; an FD of ``inf`` is a lens focused
  at infinity, and an empty value one that the lens did not tell.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats import arri
from influx_wrap.formats.blackmagic import is_blackmagic, read_blackmagic
from influx_wrap.formats.camera_tables import read_frames_table
from influx_wrap.formats.exiftool import is_exiftool, read_exiftool
from influx_wrap.formats.files import Record, read_json, read_text, reading, write_text
from influx_wrap.formats.json_text import parse_json_text
from influx_wrap.formats.lens_table import read_metadata_table
from influx_wrap.formats.lens_text import (
    INCH_M,
    NOT_TOLD,
    make_rig,
    quoted_text,
    read_any_text,
    short_text,
)
from influx_wrap.formats.opentrackio_samples import (
    is_sample,
    read_sample_folder,
    read_samples,
    sample_lines,
)
from influx_wrap.formats.sony import check_has_lens, is_sony_xml, read_sony_xml
from influx_wrap.model.lens_metadata import LensMetadata as LensMetadata
from influx_wrap.model.lens_metadata import ReportedClip
from influx_wrap.model.rig import ReportedRig
from influx_wrap.model.words import counted

COLUMNS = ("frame", "lfl_mm", "fd_m")
LFL_KEY, FD_KEY = "focal_length_mm", "focus_distance_m"
INFLUX_SETS = {
    "clipBasedMetadataSets": "clipMetadata",
    "descriptiveMetadataSets": "descriptiveMetadata",
}
MINUS_ONE_M = (-1.0, -1e-3, -1e-3 * INCH_M)
"""The camera's -1 for infinity after it was taken for metres, millimetres or thousandths of an
inch: all are found in files that were converted without a thought of it."""


@dataclass(frozen=True)
class MetadataFormat:
    """A kind of file that ``read_metadata`` reads, for people: what it is and what it tells."""

    name: str
    file: str
    tells: str


FORMATS = (
    MetadataFormat("ARRI", "art-cmd export: JSON", "LFL, FD, lens, camera, size"),
    MetadataFormat("ARRI", "Meta Extract: CSV with tabs", "LFL, FD, lens, camera, size, encoders"),
    MetadataFormat(
        "Sony", "CSV per frame, XML beside it", "LFL, FD, lens, camera; XML: size, length"
    ),
    MetadataFormat("Sony", "XML alone", "setting of the first frame, if the lens talks"),
    MetadataFormat("RED", "REDline --printMeta 5: CSV", "LFL, FD, Cooke /i packets"),
    MetadataFormat(
        "RED", "REDline --printMeta 3: CSV", "first frame; beside it: lens, camera, size"
    ),
    MetadataFormat("Canon", "..._Frames.csv", "LFL; FD only if the file has a distance"),
    MetadataFormat("Blackmagic", "text of the RAW SDK", "LFL, FD, lens, camera, size"),
    MetadataFormat("OpenTrackIO", "JSON, lines or a folder", "LFL, FD, lens, camera, size"),
    MetadataFormat("exiftool", "-j of photographs", "LFL, FD, lens, camera, size"),
    MetadataFormat("exiftool", "-j -ee -G3 of a video", "LFL, FD of every sample"),
    MetadataFormat("InFlux", "per_frame_metadata.json", "LFL, FD, lens, camera, size"),
    MetadataFormat("tables", "tabs, commas or semicolons", "columns named with their units"),
    MetadataFormat("our own", "CSV: frame,lfl_mm,fd_m", "LFL, FD"),
)


def read_metadata(path: Path, clip: ReportedClip | None = None) -> LensMetadata:
    """LFL and FD of all frames that a file lists; NaN where the lens told nothing.

    ``clip`` is how long the clip's pictures are, if they are at hand, which decides between the
    lines of a table and its timecodes.
    """
    if path.is_dir():
        return _with_length(read_sample_folder(path))
    text = read_any_text(path)
    start = text.lstrip()[:1]
    if start in ("{", "["):
        return _with_length(_json_metadata(path, text))
    if is_sony_xml(text):
        return _with_length(check_has_lens(path, read_sony_xml(path, text)))
    lines = text.splitlines()
    if lines and _is_header(lines[0]):
        return _csv_metadata(path, lines, with_missing=True)
    if is_blackmagic(text):
        return _with_length(read_blackmagic(path, text))
    table = read_metadata_table(str(path), text, arri.is_meta_extract)
    found = read_frames_table(path, text, clip) if table is None else None
    if table is not None:
        found = arri.meta_extract_metadata(table, clip)
    if found is None:
        raise InputError(
            f"{path} is no lens metadata known here. influx-calib annotate --list-formats lists "
            f"what is; anybody's table will do with the header {','.join(COLUMNS)}."
        )
    return _with_length(found)


def read_reported_rig(path: Path) -> ReportedRig:
    """Which lens and camera a file of lens metadata names, whatever else it says."""
    if _is_json(path):
        return arri.art_rig(read_json(path, bare_nan=True))
    return ReportedRig()


def read_lens_metadata(path: Path) -> LensMetadata:
    """Read our CSV file, in which every value must be told."""
    return _csv_metadata(path, read_text(path).splitlines(), with_missing=False)


def write_lens_metadata(path: Path, metadata: LensMetadata) -> None:
    """Write our CSV file."""
    columns = [
        ["" if math.isnan(value) else repr(value) for value in values.tolist()]
        for values in (metadata.lfl_mm, metadata.fd_m)
    ]
    rows = zip(metadata.frame.tolist(), *columns, strict=True)
    lines = [",".join(COLUMNS), *(f"{frame},{lfl},{fd}" for frame, lfl, fd in rows)]
    write_text(path, "\n".join(lines) + "\n")


def _json_metadata(path: Path, text: str) -> LensMetadata:
    """What a JSON file tells, or one with a JSON object per line."""
    lines = sample_lines(path, text) if text.lstrip().startswith("{") else None
    if lines is not None:
        return read_samples(path, lines)
    value = parse_json_text(text.encode(), str(path), bare_nan=True)
    if is_sample(value):
        return read_samples(path, [(str(path), value)])
    if isinstance(value, list) and is_exiftool(value):
        return read_exiftool(path, value)
    if isinstance(value, list) and value and all(map(is_sample, value)):
        return read_samples(path, [(f"{path}: [{k}]", one) for k, one in enumerate(value)])
    if isinstance(value, dict):
        file = Record(str(path), value)
        if arri.FRAMES in value:
            return arri.art_metadata(file)
        if "frames" in value:
            return _influx_metadata(file)
    raise InputError(
        f"{path} is JSON, but neither of the ARRI Reference Tool ({arri.FRAMES}) nor InFlux's "
        "per-frame metadata (frames), nor OpenTrackIO, nor of exiftool -j."
    )


def _with_length(metadata: LensMetadata) -> LensMetadata:
    """With a note if the clip has more frames, or fewer, than the file lists by its own account."""
    stated, listed = metadata.clip.n_frames, int(metadata.frame[-1]) + 1
    if stated is None or stated == listed or len(metadata.frame) == 1:
        return metadata
    said = (
        f"The clip has {counted(stated, 'frame')} by its metadata, which list "
        f"{counted(listed, 'frame')}: is the file of another take, or not complete?"
    )
    return replace(metadata, notes=(*metadata.notes, said))


def frame_number(where: str, text: str) -> int:
    """The number of a frame, counted from 0, from its text."""
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise InputError(
            f"{where}: frame {quoted_text(text)} is not a number of a frame, counted from 0."
        )
    return int(text)


def lens_setting(where: str, entry: Mapping[str, object]) -> tuple[float, float]:
    """LFL in mm and FD in m as InFlux's files write them; NaN where there is none.

    Infinity may be JSON's invention ``Infinity``, the text ``inf``, or a -1 of the camera.
    """
    values = []
    for key in (LFL_KEY, FD_KEY):
        value = entry.get(key)
        value = math.nan if value is None else math.inf if value == "inf" else value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{where}: {key} must be a number, got {value!r}.")
        if abs(value) > sys.float_info.max:
            # Also a whole number, which Python refuses to take for an infinite one.
            value = math.inf if value > 0 else -math.inf
        if value < 0 and key == FD_KEY and any(math.isclose(value, one) for one in MINUS_ONE_M):
            value = math.inf
        if value <= 0 or (key == LFL_KEY and math.isinf(value)):
            raise InputError(f"{where}: {key} must be above 0, and a focal length finite.")
        values.append(float(value))
    return values[0], values[1]


def as_metadata(rows: Mapping[int, tuple[float, float]]) -> LensMetadata:
    """From LFL and FD by frame, in any order."""
    frames = sorted(rows)
    lfl, fd = np.array([rows[frame] for frame in frames], dtype=float).reshape(-1, 2).T
    return LensMetadata(np.array(frames, dtype=np.int64), lfl, fd)


def _influx_metadata(file: Record) -> LensMetadata:
    frames = file.record("frames")
    rows: dict[int, tuple[float, float]] = {}
    for key, entry in frames.values.items():
        number = frame_number(frames.where, key)
        if number in rows:
            raise frames.fault(key, "is a frame that has come already.")
        if not isinstance(entry, dict):
            raise frames.fault(key, "must be a mapping.")
        rows[number] = lens_setting(f"{frames.where}: {key}", entry)
    if not rows:
        raise frames.fault("frames", "has no frame.")
    return replace(as_metadata(rows), rig=_influx_rig(file))


def _influx_rig(file: Record) -> ReportedRig:
    """What was kept of ARRI's sets, and the name that the authors gave the lens."""
    sets = {ours: file.values.get(theirs) for ours, theirs in INFLUX_SETS.items()}
    rig = arri.art_rig(Record(file.where, sets))
    named = make_rig([file.values.get("lens"), *rig.lens_models], [], [])
    return replace(rig, lens_models=named.lens_models)


def _is_json(path: Path) -> bool:
    """Whether a file begins as a JSON object does."""
    with reading(path), path.open(encoding="utf-8-sig") as file:
        return file.read(1000).lstrip().startswith("{")


def _is_header(line: str) -> bool:
    return tuple(name.strip() for name in line.split(",")) == COLUMNS


def _csv_metadata(path: Path, lines: Sequence[str], *, with_missing: bool) -> LensMetadata:
    """Our CSV file; its lines may come in any order of frames."""
    if not lines or not _is_header(lines[0]):
        raise InputError(f"{path}, line 1: the header {','.join(COLUMNS)} is needed.")
    rows: dict[int, tuple[float, float]] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        values = [value.strip() for value in line.split(",")]
        if len(values) != len(COLUMNS):
            raise InputError(
                f"{where}: {len(values)} values instead of {len(COLUMNS)} ({','.join(COLUMNS)})."
            )
        frame = frame_number(where, values[0])
        if frame in rows:
            raise InputError(f"{where}: frame {frame} has had a line already.")
        lfl_mm, fd_m = (
            math.nan if with_missing and text in NOT_TOLD else _positive(where, name, text)
            for name, text in zip(COLUMNS[1:], values[1:], strict=True)
        )
        if math.isinf(lfl_mm):
            raise InputError(f"{where}: lfl_mm must be finite, got {short_text(values[1])}.")
        rows[frame] = lfl_mm, fd_m
    if not rows:
        raise InputError(f"{path} has no frame: it needs a line {','.join(COLUMNS)} for each.")
    return as_metadata(rows)


def _positive(where: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        problem = (
            f"{name} is missing." if not text else f"{name} {quoted_text(text)} is not a number."
        )
        raise InputError(f"{where}: {problem}") from None
    if not value > 0:
        raise InputError(f"{where}: {name} must be above 0, got {short_text(text)}.")
    return value
