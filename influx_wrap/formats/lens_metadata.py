"""What the lens reported with every frame of a clip: ``frame,lfl_mm,fd_m``.

A CSV file with that header and one line per frame. Frames are counted from 0 and may
be left out, but not come twice; an FD of ``inf`` is a lens focused at infinity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from influx_wrap.errors import InputError
from influx_wrap.formats.files import read_text, write_text
from influx_wrap.model.intrinsics import FloatArray

COLUMNS = ("frame", "lfl_mm", "fd_m")


@dataclass(frozen=True, eq=False)
class LensMetadata:
    """Lens focal length and focus distance (n,) of frames (n,), in increasing order."""

    frame: NDArray[np.int64]
    lfl_mm: FloatArray
    fd_m: FloatArray


def read_lens_metadata(path: Path) -> LensMetadata:
    """Read the CSV file; its lines may come in any order of frames."""
    lines = read_text(path).splitlines()
    if not lines or tuple(name.strip() for name in lines[0].split(",")) != COLUMNS:
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
        frame = _frame(where, values[0])
        if frame in rows:
            raise InputError(f"{where}: frame {frame} has had a line already.")
        lfl_mm = _positive(where, "lfl_mm", values[1])
        if math.isinf(lfl_mm):
            raise InputError(f"{where}: lfl_mm must be finite, got {values[1]}.")
        rows[frame] = lfl_mm, _positive(where, "fd_m", values[2])
    if not rows:
        raise InputError(f"{path} has no frame: it needs a line {','.join(COLUMNS)} for each.")
    frames = sorted(rows)
    lfl, fd = np.array([rows[frame] for frame in frames]).T
    return LensMetadata(np.array(frames), lfl, fd)


def write_lens_metadata(path: Path, metadata: LensMetadata) -> None:
    """Write the CSV file."""
    rows = zip(
        metadata.frame.tolist(), metadata.lfl_mm.tolist(), metadata.fd_m.tolist(), strict=True
    )
    lines = [",".join(COLUMNS), *(f"{frame},{lfl!r},{fd!r}" for frame, lfl, fd in rows)]
    write_text(path, "\n".join(lines) + "\n")


def _frame(where: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise InputError(f"{where}: frame {text!r} is not a number of a frame, counted from 0.")
    return int(text)


def _positive(where: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        problem = f"{name} is missing." if not text else f"{name} {text!r} is not a number."
        raise InputError(f"{where}: {problem}") from None
    if not value > 0:
        raise InputError(f"{where}: {name} must be above 0, got {text}.")
    return value
