"""What became of a flight's flashes and readings: ``pairs.csv``, and a person's ``review.csv``.

``pairs.csv`` has a row for every reading and for every flash without one, in the order of
time. ``review.csv`` is for a person to change, in the review page or in any editor:

    flash    the flash as it was detected, by its first frame; empty if none was
    reading  the reading it belongs to, by its id; empty if there is none
    frame    the frame in which the centre is
    u, v     the LED's centre in it, pixel (0, 0) being a pixel's centre
    action   use, leave (out), or undecided

A centre that is not where it was detected is one set by hand.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.formats.files import read_text, write_text
from influx_wrap.model.flashes import Flashes, Readings
from influx_wrap.model.words import size_text

PAIRS, REVIEW = "pairs.csv", "review.csv"
PAIR_COLUMNS = (
    "reading", "time_s", "x_m", "y_m", "z_m", "frame", "u", "v", "rule", "time_error_ms",
    "residual_px", "remark",
)  # fmt: skip
REVIEW_COLUMNS = ("flash", "reading", "frame", "u", "v", "action")


class Action(StrEnum):
    """What is to be done with a row of the review."""

    USE = "use"
    LEAVE = "leave"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class ReviewRow:
    """One row; None where a field is empty. ``line`` is where it stands in its file."""

    flash: str | None
    reading: str | None
    frame: int | None
    uv: tuple[float, float] | None
    action: Action
    line: int = 0


def flash_names(flashes: Flashes) -> tuple[str, ...]:
    """A name for each flash: its first frame, and a number where two begin together."""
    names: list[str] = []
    for frame in flashes.frames.tolist():
        before = sum(name.partition(".")[0] == str(frame) for name in names)
        names.append(f"{frame}.{before + 1}" if before else str(frame))
    return tuple(names)


def write_pairs(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write ``pairs.csv``; a row has the keys of ``PAIR_COLUMNS``, None is an empty field."""
    text = io.StringIO()
    writer = csv.DictWriter(text, PAIR_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def write_review(path: Path, rows: Sequence[ReviewRow]) -> None:
    """Write ``review.csv``."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(REVIEW_COLUMNS)
    for row in rows:
        u, v = ("", "") if row.uv is None else (f"{row.uv[0]:.3f}", f"{row.uv[1]:.3f}")
        frame = "" if row.frame is None else row.frame
        writer.writerow([row.flash or "", row.reading or "", frame, u, v, row.action.value])
    write_text(path, text.getvalue())


def read_review(path: Path, flashes: Flashes, readings: Readings) -> list[ReviewRow]:
    """Read a review of these flashes and readings, each row checked.

    Every flash must have its row: a review of other detections is none of these. Rows to
    be used need a reading, which no other row may use, and a centre in the picture; in the
    order of the readings their frames must increase.
    """
    lines = csv.reader(io.StringIO(read_text(path), newline=""))
    rows: list[ReviewRow] = []
    header = False
    try:
        for values in lines:
            if not any(value.strip() for value in values):
                continue
            if header:
                rows.append(_row(path, lines.line_num, values, flashes, readings))
                continue
            if tuple(value.strip() for value in values) != REVIEW_COLUMNS:
                wanted = ",".join(REVIEW_COLUMNS)
                raise InputError(f"{path}, line {lines.line_num}: the header must be {wanted}.")
            header = True
    except csv.Error as error:
        raise InputError(f"{path}, line {lines.line_num}: this is not CSV ({error}).") from None
    if not header:
        raise InputError(f"{path} is empty; remove it, and make a new one with --review.")
    _check_flashes(path, rows, flashes)
    _check_used(path, rows, readings)
    return rows


def _row(
    path: Path, line: int, values: Sequence[str], flashes: Flashes, readings: Readings
) -> ReviewRow:
    def fault(problem: str) -> InputError:
        return InputError(f"{path}, line {line}: {problem}")

    if len(values) != len(REVIEW_COLUMNS):
        wanted = ",".join(REVIEW_COLUMNS)
        raise fault(f"{len(values)} values instead of {len(REVIEW_COLUMNS)} ({wanted}).")
    flash, reading, frame_text, u_text, v_text, action_text = (value.strip() for value in values)
    if action_text not in [action.value for action in Action]:
        known = ", ".join(action.value for action in Action)
        raise fault(f"action {action_text!r} is none of {known}.")
    action = Action(action_text)
    if reading and reading not in readings.ids:
        raise fault(f"there is no reading {reading!r} in this flight.")
    frame = None
    if frame_text:
        if not frame_text.isascii() or not frame_text.isdigit():
            raise fault(f"frame {frame_text!r} is not a whole number.")
        # More digits than any video has frames are not worth to be converted.
        frame = int(frame_text[:18])
        if frame >= flashes.n_frames:
            raise fault(f"frame {frame} is not in the video, which has {flashes.n_frames}.")
    uv = None
    if u_text or v_text:
        try:
            uv = float(u_text), float(v_text)
        except ValueError:
            raise fault(f"the centre {u_text!r}, {v_text!r} is not two numbers.") from None
        width, height = flashes.image_size
        inside = -0.5 <= uv[0] <= width - 0.5 and -0.5 <= uv[1] <= height - 0.5
        if not (all(map(math.isfinite, uv)) and inside):
            size = size_text(flashes.image_size)
            raise fault(f"the centre {u_text}, {v_text} is outside the {size} picture.")
    if action is Action.USE:
        missing = [("a reading", not reading), ("a frame", frame is None), ("u and v", uv is None)]
        if any(is_missing for _, is_missing in missing):
            what = " and ".join(name for name, is_missing in missing if is_missing)
            raise fault(f"to be used, it needs {what}.")
    return ReviewRow(flash or None, reading or None, frame, uv, action, line)


def _check_flashes(path: Path, rows: Sequence[ReviewRow], flashes: Flashes) -> None:
    names = flash_names(flashes)
    seen: dict[str, int] = {}
    for row in rows:
        if row.flash is None:
            continue
        if row.flash not in names:
            raise InputError(
                f"{path}, line {row.line}: no flash was detected in frame {row.flash}. If this "
                "is the review of an earlier detection, remove it; for a centre of your own, "
                "leave flash empty."
            )
        if row.flash in seen:
            raise InputError(
                f"{path}, line {row.line}: flash {row.flash} has a row already, line "
                f"{seen[row.flash]}."
            )
        seen[row.flash] = row.line
    for name in names:
        if name not in seen:
            raise InputError(
                f"{path} has no row for flash {name}: to leave it out, write a row with the "
                "action leave. If this is the review of an earlier detection, remove it."
            )


def _check_used(path: Path, rows: Sequence[ReviewRow], readings: Readings) -> None:
    used: dict[str, ReviewRow] = {}
    for row in rows:
        if row.action is not Action.USE or row.reading is None:
            continue
        if row.reading in used:
            raise InputError(
                f"{path}, line {row.line}: reading {row.reading} is used already, line "
                f"{used[row.reading].line}; it has one flash."
            )
        used[row.reading] = row
    in_time = [used[name] for name in readings.ids if name in used]
    for before, after in pairwise(in_time):
        if before.frame is not None and after.frame is not None and after.frame <= before.frame:
            raise InputError(
                f"{path}, line {after.line}: reading {after.reading} is later than "
                f"{before.reading}, but frame {after.frame} is not later than {before.frame}."
            )
