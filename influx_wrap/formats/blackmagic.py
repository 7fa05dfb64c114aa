"""The text that Blackmagic RAW's sample program writes of a clip's metadata.

A heading ``Clip Metadata``, then a line ``key: value`` for each; and the same below a heading
``Frame 12 Metadata`` for each frame, with ``focal_length: 50mm`` and ``distance: 991mm``. Of a
distance between two bounds (``700mm to 750mm``) the middle in 1 / FD is taken.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.lens_text import make_rig, middle_fd, parsed_fd, parsed_lfl
from influx_wrap.model.lens_metadata import LensMetadata, ReportedClip

_HEADING = re.compile(r"(?:(Clip)|Frame\s+([0-9]{1,9}))\s+Metadata\s*:?", re.IGNORECASE)
_LINE = re.compile(r"([A-Za-z0-9_ ]+?)\s*:\s*(.*)")
_SPAN = re.compile(r"\s+(?:to|-|\u2013)\s+")
LFL_KEYS, FD_KEYS = ("focal_length",), ("distance", "focus_distance")


def is_blackmagic(text: str) -> bool:
    """Whether a text has such a heading near its beginning."""
    lines = text[:20_000].splitlines()
    return any(_HEADING.fullmatch(line.strip()) for line in lines)


def read_blackmagic(path: Path, text: str) -> LensMetadata:
    """LFL and FD of all frames that have a heading."""
    clip: dict[str, str] = {}
    frames: dict[int, dict[str, tuple[int, str]]] = {}
    current: dict[str, tuple[int, str]] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if heading := _HEADING.fullmatch(line):
            current = None
            if heading[2] is not None:
                frame = int(heading[2])
                if frame in frames:
                    raise InputError(f"{path}, line {number}: frame {frame} has come already.")
                current = frames[frame] = {}
        elif found := _LINE.fullmatch(line):
            if current is None:
                clip.setdefault(found[1].casefold(), found[2].strip())
            else:
                current.setdefault(found[1].casefold(), (number, found[2].strip()))
    if not frames:
        raise InputError(f"{path} has no frame: only what is said of the whole clip.")
    order = sorted(frames)
    values = [
        (
            _value(path, frames[frame], LFL_KEYS, is_fd=False),
            _value(path, frames[frame], FD_KEYS, is_fd=True),
        )
        for frame in order
    ]
    lfl_mm, fd_m = np.array(values, dtype=float).T
    rig = make_rig(
        [clip.get("lens_type")], [clip.get("camera_type")], [_pair(clip.get("crop_size", ""))]
    )
    rates = {frames[frame].get("sensor_rate", (0, ""))[1] for frame in order}
    shot = _ratio(rates.pop()) if len(rates) == 1 else None
    rate = _fixed_point(clip.get("format_frame_rate", "")) or shot
    notes = (f"{path.name} tells of frame {order[0]} alone.",) if len(order) == 1 else ()
    numbers = np.array(order, dtype=np.int64)
    return LensMetadata(numbers, lfl_mm, fd_m, rig, ReportedClip(fps=rate), notes=notes)


def _value(
    path: Path, lines: dict[str, tuple[int, str]], keys: tuple[str, ...], *, is_fd: bool
) -> float:
    """LFL in mm or FD in m of a frame; NaN if none of the keys is there."""
    for key in keys:
        if key in lines:
            number, text = lines[key]
            where = f"{path}, line {number}"
            if not is_fd:
                return parsed_lfl(where, key, text)
            bounds = [parsed_fd(where, key, bound, None) for bound in _SPAN.split(text, maxsplit=1)]
            return middle_fd(*bounds) if len(bounds) == 2 else bounds[0]
    return math.nan


def _pair(text: str) -> list[str]:
    """Width and height from ``5120,4272,``."""
    sides = [side.strip() for side in text.split(",") if side.strip()]
    return sides if len(sides) == 2 else ["", ""]


def _ratio(text: str) -> float | None:
    """Frames a second from ``48,1,``."""
    parts = _pair(text)
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        return None
    number, divisor = map(int, parts)
    return number / divisor if number and divisor else None


def _fixed_point(text: str) -> float | None:
    """Frames a second from ``1572864``, in units of 1 / 65536."""
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        return None
    return int(text) / 65536 or None
