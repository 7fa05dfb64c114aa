"""ARRI's metadata: what the ARRI Reference Tool exports of a clip (``art-cmd export``, JSON).

``frameBasedMetadata.frames`` has an entry per frame with its number (``frameId`` or
``frameNo``) and ``frameBasedMetadataSets``, of which "Lens State" tells the lens focal
length in micrometres and the focus distance in millimetres or in thousandths of an inch,
-1 for infinity. A set, or a number in it, may be null, and 0 stands for a lens that does
not say.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.files import Record, read_json
from influx_wrap.formats.lens_metadata import LensMetadata

LENS_STATE = "Lens State"
INCH_M = 0.0254


def read_art_metadata(path: Path) -> LensMetadata:
    """LFL and FD of the frames for which the lens told both.

    Frames are counted from the first that is listed, which is the first of the clip's
    pictures.
    """
    frames = read_json(path).record("frameBasedMetadata")
    found: dict[int, tuple[float, float]] = {}
    seen: set[int] = set()
    first = 0
    for i, entry in enumerate(frames.items("frames")):
        if not isinstance(entry, dict):
            raise frames.fault(f"frames[{i}]", "must be a mapping.")
        record = Record(f"{frames.where}: frames[{i}]", entry)
        number = _number(record)
        first = number if i == 0 else first
        if number < first or number in seen:
            raise record.fault("frameId", f"{number} comes twice, or before that of the first.")
        seen.add(number)
        setting = _lens_setting(record)
        if setting is not None:
            found[number - first] = setting
    if not found:
        raise InputError(
            f"{path} has no frame whose set {LENS_STATE!r} tells focal length and focus distance. "
            "Did the lens send data to the camera?"
        )
    order = sorted(found)
    lfl_mm, fd_m = np.array([found[frame] for frame in order]).T
    return LensMetadata(np.array(order, dtype=np.int64), lfl_mm, fd_m)


def _number(record: Record) -> int:
    key = "frameId" if "frameId" in record.values else "frameNo"
    value = record.value(key)
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return record.integer(key, at_least=0)


def _lens_setting(record: Record) -> tuple[float, float] | None:
    """LFL in mm and FD in m of a frame; None where the lens did not tell one of them."""
    for i, entry in enumerate(record.items("frameBasedMetadataSets")):
        if isinstance(entry, dict) and entry.get("metadataSetName") == LENS_STATE:
            if entry.get("metadataSetPayload") is None:
                return None
            where = f"{record.where}: frameBasedMetadataSets[{i}]"
            state = Record(where, entry).record("metadataSetPayload")
            lfl_um = _told(state, "lensFocalLength")
            fd_m = _scaled(_told(state, "lensFocusDistanceMetric"), 1e-3)
            if fd_m is None:
                fd_m = _scaled(_told(state, "lensFocusDistanceImperial"), 1e-3 * INCH_M)
            if lfl_um is None or math.isinf(lfl_um) or fd_m is None:
                return None
            return 1e-3 * lfl_um, fd_m
    return None


def _told(state: Record, key: str) -> float | None:
    """A positive number, infinity for -1; None if there is none."""
    if state.values.get(key) is None:
        return None
    value = state.number(key)
    if value < 0 and value != -1:
        raise state.fault(key, f"must be positive, or -1 for infinity, got {value:g}.")
    return math.inf if value == -1 else value or None


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else unit * value
