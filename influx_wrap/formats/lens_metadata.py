"""What the lens reported with every frame of a clip, from whichever file tells it.

``read_metadata`` recognises by their content
- the ARRI Reference Tool's JSON and ARRI Meta Extract's CSV (``arri``),
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
from dataclasses import replace
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats import arri
from influx_wrap.formats.files import Record, read_json, read_text, reading, write_text
from influx_wrap.model.lens_metadata import LensMetadata as LensMetadata
from influx_wrap.model.rig import ReportedRig

COLUMNS = ("frame", "lfl_mm", "fd_m")
LFL_KEY, FD_KEY = "focal_length_mm", "focus_distance_m"
INFLUX_SETS = {
    "clipBasedMetadataSets": "clipMetadata",
    "descriptiveMetadataSets": "descriptiveMetadata",
}
MINUS_ONE_M = (-1.0, -1e-3, -1e-3 * arri.INCH_M)
"""The camera's -1 for infinity after it was taken for metres, millimetres or thousandths of an
inch: all are found in files that were converted without a thought of it."""


def read_metadata(path: Path) -> LensMetadata:
    """LFL and FD of all frames that a file lists; NaN where the lens told nothing."""
    if _is_json(path):
        file = read_json(path, bare_nan=True)
        if arri.FRAMES in file.values:
            return arri.art_metadata(file)
        if "frames" in file.values:
            return _influx_metadata(file)
        raise InputError(
            f"{path} is JSON, but neither of the ARRI Reference Tool ({arri.FRAMES}) nor InFlux's "
            "per-frame metadata (frames)."
        )
    lines = read_text(path).splitlines()
    if lines and arri.is_meta_extract(lines[0]):
        return arri.meta_extract_metadata(path, lines)
    if not lines or not _is_header(lines[0]):
        raise InputError(
            f"{path} is no lens metadata known here: give the ARRI Reference Tool's JSON, ARRI "
            "Meta Extract's CSV, InFlux's per_frame_metadata.json, or a CSV file with the header "
            f"{','.join(COLUMNS)}."
        )
    return _csv_metadata(path, lines, with_missing=True)


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


def frame_number(where: str, text: str) -> int:
    """The number of a frame, counted from 0, from its text."""
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise InputError(f"{where}: frame {text!r} is not a number of a frame, counted from 0.")
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
    named = arri.make_rig([file.values.get("lens"), *rig.lens_models], [], [])
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
            math.nan if with_missing and text in arri.NOT_TOLD else _positive(where, name, text)
            for name, text in zip(COLUMNS[1:], values[1:], strict=True)
        )
        if math.isinf(lfl_mm):
            raise InputError(f"{where}: lfl_mm must be finite, got {values[1]}.")
        rows[frame] = lfl_mm, fd_m
    if not rows:
        raise InputError(f"{path} has no frame: it needs a line {','.join(COLUMNS)} for each.")
    return as_metadata(rows)


def _positive(where: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        problem = f"{name} is missing." if not text else f"{name} {text!r} is not a number."
        raise InputError(f"{where}: {problem}") from None
    if not value > 0:
        raise InputError(f"{where}: {name} must be above 0, got {text}.")
    return value
