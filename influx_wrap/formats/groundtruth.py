"""Intrinsics of every frame of a clip: the InFlux release's ground-truth JSON, and CSV.

JSON: ``{"0": {"intrinsics_gt": {fx, fy, cx, cy, k1, k2, p1, p2}, "intrinsics_gt_extrapolated":
{...}, "lens_metadata": {"focal_length_mm", "focus_distance_m"}}}``, one key per frame. Where
the table had to be extrapolated, ``intrinsics_gt`` is null; where there is no answer, both
are. The metadata are those of the lens: null where it told nothing, the text ``"inf"`` for a
focus at infinity, which JSON has no number for. The release writes bare NaN instead of null,
which is read as well. As in all of the release's files the origin of pixels is the top-left
pixel's corner ("normal" in its calibration results), so cx and cy are larger by 0.5 than here.

CSV: one line per frame with LFL, FD, a status, intrinsics and their sigmas, empty where there is
none. It is ours: pixel (0, 0) is a pixel's centre, and the column ``pixel_origin`` says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.files import PIXEL_ORIGIN, Record, read_json, writing
from influx_wrap.formats.lens_metadata import (
    FD_KEY,
    LFL_KEY,
    as_metadata,
    frame_number,
    lens_setting,
)
from influx_wrap.formats.pixel_origin import from_corner, to_corner
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.intrinsics import NAMES

GT_KEY, EXTRAPOLATED_KEY = "intrinsics_gt", "intrinsics_gt_extrapolated"
METADATA_KEY = "lens_metadata"
INTERPOLATED, EXTRAPOLATED, NO_ANSWER = "interpolated", "extrapolated", "none"
CSV_COLUMNS = (
    "frame", "lfl_mm", "fd_m", "status", *NAMES, *(f"sigma_{name}" for name in NAMES),
    "pixel_origin",
)  # fmt: skip
_LINES_AT_ONCE = 10_000
_EIGHT, _EIGHT_NAMES = itemgetter(*NAMES), frozenset(NAMES)


def write_ground_truth(path: Path, truth: GroundTruth) -> None:
    """Write the release's JSON."""
    with writing(path) as file:
        separator = "{\n"
        for block in _blocks(_json_entries(truth)):
            file.write((separator + ",\n".join(block)).encode())
            separator = ",\n"
        file.write(b"\n}\n" if separator == ",\n" else b"{}\n")


def write_ground_truth_csv(path: Path, truth: GroundTruth) -> None:
    """Write the CSV."""
    with writing(path) as file:
        file.write((",".join(CSV_COLUMNS) + "\n").encode())
        for block in _blocks(_csv_lines(truth)):
            file.write(("\n".join(block) + "\n").encode())


def read_ground_truth(path: Path) -> GroundTruth:
    """Read the JSON of one clip, with null or NaN for what there is not."""
    return _ground_truth(read_json(path))


def read_validation(path: Path) -> dict[str, GroundTruth]:
    """Read the release's validation file, ``{video: {frame: {...}}}``."""
    file = read_json(path)
    if not file.values:
        raise InputError(f"{path} has no video.")
    return {video: _ground_truth(file.record(video)) for video in file.values}


def _blocks(lines: Iterator[str]) -> Iterator[list[str]]:
    block: list[str] = []
    for line in lines:
        block.append(line)
        if len(block) == _LINES_AT_ONCE:
            yield block
            block = []
    if block:
        yield block


def _json_entries(truth: GroundTruth) -> Iterator[str]:
    # Formatted by hand: a clip has 10^5 frames with the same keys.
    intrinsics = "{" + ", ".join(f'"{name}": %r' for name in NAMES) + "}"
    entry = (
        f'"%d": {{"{GT_KEY}": %s, "{EXTRAPOLATED_KEY}": %s, '
        f'"{METADATA_KEY}": {{"{LFL_KEY}": %s, "{FD_KEY}": %s}}}}'
    )
    metadata = truth.metadata
    rows = zip(
        metadata.frame.tolist(),
        metadata.lfl_mm.tolist(),
        metadata.fd_m.tolist(),
        # Adding zero makes 0.0 of -0.0.
        (to_corner(truth.intrinsics) + 0.0).tolist(),
        truth.answered.tolist(),
        truth.is_interpolated.tolist(),
        strict=True,
    )
    for frame, lfl, fd, values, is_answered, is_interpolated in rows:
        answer = intrinsics % tuple(values) if is_answered else "null"
        yield entry % (
            frame,
            answer if is_interpolated else "null",
            answer,
            "null" if lfl != lfl else repr(lfl),
            "null" if fd != fd else '"inf"' if fd == math.inf else repr(fd),
        )


def _csv_lines(truth: GroundTruth) -> Iterator[str]:
    n = len(truth.intrinsics)
    sigma = np.full((n, len(NAMES)), np.nan) if truth.sigma is None else truth.sigma
    status = np.where(truth.answered, EXTRAPOLATED, NO_ANSWER)
    status = np.where(truth.is_interpolated, INTERPOLATED, status)
    settings = np.column_stack([truth.metadata.lfl_mm, truth.metadata.fd_m])
    rows = zip(
        truth.metadata.frame.tolist(),
        settings.tolist(),
        status.tolist(),
        np.hstack([truth.intrinsics, sigma]).tolist(),
        strict=True,
    )
    for frame, setting, word, numbers in rows:
        told = ["" if value != value else repr(value) for value in setting]
        known = ["" if value != value else repr(value) for value in numbers]
        yield ",".join((str(frame), *told, word, *known, PIXEL_ORIGIN))


def _ground_truth(frames: Record) -> GroundTruth:
    settings: dict[int, tuple[float, float]] = {}
    answers: dict[int, tuple[tuple[float, ...], bool]] = {}
    nothing = (math.nan,) * len(NAMES)
    for key, entry in frames.values.items():
        frame = frame_number(frames.where, key)
        where = f"{frames.where}: {key}"
        if frame in settings:
            raise InputError(f"{where}: this frame has come already.")
        if not isinstance(entry, dict) or (EXTRAPOLATED_KEY not in entry and GT_KEY not in entry):
            raise InputError(f"{where} must be a mapping with {GT_KEY}, {EXTRAPOLATED_KEY}.")
        lens = entry.get(METADATA_KEY)
        settings[frame] = lens_setting(where, lens if isinstance(lens, dict) else {})
        inside = _intrinsics(where, GT_KEY, entry.get(GT_KEY))
        beyond = _intrinsics(where, EXTRAPOLATED_KEY, entry.get(EXTRAPOLATED_KEY))
        best = inside if inside is not None else beyond
        answers[frame] = nothing if best is None else best, inside is not None
    if not settings:
        raise InputError(f"{frames.where} has no frame.")
    order = sorted(settings)
    return GroundTruth(
        as_metadata(settings),
        from_corner(np.array([answers[frame][0] for frame in order], dtype=float)),
        np.array([answers[frame][1] for frame in order]),
    )


def _intrinsics(where: str, key: str, entry: object) -> tuple[float, ...] | None:
    """(8,) with the file's origin; None for null, and where all numbers are NaN or null."""
    if entry is None or (isinstance(entry, float) and math.isnan(entry)):
        return None
    if not isinstance(entry, dict) or not entry.keys() >= _EIGHT_NAMES:
        raise InputError(f"{where}: {key} must have {', '.join(NAMES)}, or be null.")
    values: tuple[float | None, ...] = _EIGHT(entry)
    numbers = [math.nan if value is None else value for value in values]
    try:
        finite = sum(map(math.isfinite, numbers))
    except (TypeError, OverflowError):
        raise InputError(f"{where}: {key} must have numbers or null.") from None
    if finite == len(NAMES):
        return tuple(numbers)
    if finite or any(map(math.isinf, numbers)):
        raise InputError(f"{where}: {key} has some numbers, but not all of them are finite.")
    return None
