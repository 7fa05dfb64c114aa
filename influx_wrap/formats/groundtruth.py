"""Intrinsics of every frame of a clip: the InFlux release's ground-truth JSON, and CSV.

JSON: ``{"0": {"intrinsics_gt": {fx, fy, cx, cy, k1, k2, p1, p2}, "intrinsics_gt_extrapolated":
{...}, "lens_metadata": {"focal_length_mm", "focus_distance_m"}}}``, one key per frame. Where
the table had to be extrapolated, ``intrinsics_gt`` is null; where there is no answer, both
are. The metadata are those of the lens: null where it told nothing, the text ``"inf"`` for a
focus at infinity, which JSON has no number for. The release writes bare NaN instead of null,
which is read as well. As in all of the release's files the origin of pixels is the top-left
pixel's corner ("normal" in its calibration results), so cx and cy are larger by 0.5 than here.

Of ours is ``filmed_with`` in the first frame's entry: ``{"lens", "camera", "image_size",
"pixel_um", "doubts", "clip"}`` (``model.rig``). It stands there because every key of the file
itself is the number of a frame to the release's readers, while they take from an entry what they
know, as they must: the release, too, writes entries with keys of its own. It may be missing, or
stand in any entries that say the same.

CSV: one line per frame with LFL, FD, a status, intrinsics and their sigmas, empty where there is
none. It is ours: pixel (0, 0) is a pixel's centre, and the column ``pixel_origin`` says so; lens,
camera and picture size are columns, too.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Collection, Iterator
from operator import itemgetter
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import MAX_SIDE_PX
from influx_wrap.formats.files import PIXEL_ORIGIN, Record, read_json, writing
from influx_wrap.formats.lens_metadata import (
    FD_KEY,
    LFL_KEY,
    as_metadata,
    frame_number,
    lens_setting,
)
from influx_wrap.formats.pixel_origin import from_corner, to_corner
from influx_wrap.model.clip import are_cameras
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.rig import FilmedWith
from influx_wrap.model.words import counted

GT_KEY, EXTRAPOLATED_KEY = "intrinsics_gt", "intrinsics_gt_extrapolated"
METADATA_KEY, RIG_KEY = "lens_metadata", "filmed_with"
INTERPOLATED, EXTRAPOLATED, NO_ANSWER = "interpolated", "extrapolated", "none"
CSV_COLUMNS = (
    "frame", "lfl_mm", "fd_m", "status", *NAMES, *(f"sigma_{name}" for name in NAMES),
    "pixel_origin", "lens", "camera", "image_width", "image_height", "doubts",
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
    file = _truth_file(path)
    if (
        file.values
        and not _is_clip(file)
        and all(
            isinstance(entry, dict) and _is_clip(Record(path.name, entry))
            for entry in file.values.values()
        )
    ):
        first, n = next(iter(file.values)), counted(len(file.values), "video")
        raise InputError(
            f"{path}: frame {first!r} is not a number of a frame: this is the truth of {n}, by "
            'their names. Give that of one clip, {"0": ...}, which is what stands behind a name.'
        )
    return _ground_truth(file)


def read_truths(path: Path, videos: Collection[str]) -> dict[str, GroundTruth]:
    """The truth of videos: the release's validation file, ``{video: {frame: {...}}}``, or the
    JSON of one clip, which is that of the only one of ``videos``."""
    file = _truth_file(path)
    if not file.values:
        raise InputError(f"{path} has no video.")
    if not _is_clip(file):
        return {video: _ground_truth(file.record(video)) for video in file.values}
    if len(videos) != 1:
        raise InputError(
            f"{path} is the truth of one clip, and there are {len(videos)} videos "
            f"({', '.join(sorted(videos)[:3])}): give the truth of all of them, "
            '{"<video>": {"0": ...}}.'
        )
    return {next(iter(videos)): _ground_truth(file)}


def _truth_file(path: Path) -> Record:
    """The JSON of a clip or of videos; what people take for it is refused by its name."""
    if path.suffix.lower() == ".csv" and path.is_file():
        raise InputError(
            f"{path}: the truth is read from JSON, not from annotate's CSV: annotate with --out "
            "NAME.json."
        )
    file = read_json(path, bare_nan=True)
    if "submission_metadata" in file.values:
        raise InputError(f"{path} has predictions, in a submission's form, and not the truth.")
    if isinstance(kind := file.values.get("format"), str):
        raise InputError(f"{path} is no truth of a clip: by its format it is {kind[:60]!r}.")
    return file


def _is_clip(file: Record) -> bool:
    """Whether entries are those of frames, and not of videos."""
    return any(
        isinstance(entry, dict) and (GT_KEY in entry or EXTRAPOLATED_KEY in entry)
        for entry in file.values.values()
    )


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
    rig = _rig_text(truth.filmed_with)
    for frame, lfl, fd, values, is_answered, is_interpolated in rows:
        answer = intrinsics % tuple(values) if is_answered else "null"
        text = entry % (
            frame,
            answer if is_interpolated else "null",
            answer,
            "null" if lfl != lfl else repr(lfl),
            "null" if fd != fd else '"inf"' if fd == math.inf else repr(fd),
        )
        yield text[:-1] + rig + "}" if rig else text
        rig = ""


def _rig_text(rig: FilmedWith | None) -> str:
    """What is added to the first frame's entry."""
    if rig is None:
        return ""
    values = {
        "lens": rig.lens,
        "camera": rig.camera,
        "image_size": list(rig.image_size),
        "pixel_um": None if rig.pixel_um is None else list(rig.pixel_um),
        "doubts": list(rig.doubts),
        **({} if rig.clip is None else {"clip": rig.clip}),
    }
    return f', "{RIG_KEY}": {json.dumps(values, allow_nan=False)}'


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
    constant = _csv_cells(truth.filmed_with)
    for frame, setting, word, numbers in rows:
        told = ["" if value != value else repr(value) for value in setting]
        known = ["" if value != value else repr(value) for value in numbers]
        yield ",".join((str(frame), *told, word, *known, constant))


def _csv_cells(rig: FilmedWith | None) -> str:
    """The columns whose values are those of all frames."""
    cells: list[object] = [PIXEL_ORIGIN, "", "", "", "", ""]
    if rig is not None:
        cells = [PIXEL_ORIGIN, rig.lens, rig.camera, *rig.image_size, "; ".join(rig.doubts)]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


def _ground_truth(frames: Record) -> GroundTruth:
    rig: FilmedWith | None = None
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
        if entry.get(RIG_KEY) is not None:
            rig = _read_rig(Record(where, entry), rig)
        lens = entry.get(METADATA_KEY)
        settings[frame] = lens_setting(where, lens if isinstance(lens, dict) else {})
        inside = _intrinsics(where, GT_KEY, entry.get(GT_KEY))
        beyond = _intrinsics(where, EXTRAPOLATED_KEY, entry.get(EXTRAPOLATED_KEY))
        best = inside if inside is not None else beyond
        answers[frame] = nothing if best is None else best, inside is not None
    if not settings:
        raise InputError(f"{frames.where} has no frame.")
    order = sorted(settings)
    intrinsics = from_corner(np.array([answers[frame][0] for frame in order], dtype=float))
    wrong = ~are_cameras(intrinsics) & ~np.isnan(intrinsics[:, 0])
    if wrong.any():
        frame = order[int(np.argmax(wrong))]
        raise InputError(
            f"{frames.where}: {frame} has intrinsics that no camera has: focal lengths must be "
            "positive, and no number larger than a billion."
        )
    return GroundTruth(
        as_metadata(settings),
        intrinsics,
        np.array([answers[frame][1] for frame in order]),
        filmed_with=rig,
    )


def _read_rig(entry: Record, before: FilmedWith | None) -> FilmedWith:
    """What an entry says the clip was filmed with, as those before it do."""
    record = entry.record(RIG_KEY)
    pitch = record.numbers("pixel_um") if record.values.get("pixel_um") is not None else None
    if pitch is not None and (len(pitch) != 2 or min(pitch) <= 0):
        raise record.fault("pixel_um", f"must be two positive numbers, got {list(pitch)}.")
    lens, camera, clip = (
        record.text(key) if record.values.get(key) is not None else None
        for key in ("lens", "camera", "clip")
    )
    doubts = record.items("doubts") if "doubts" in record.values else []
    found = FilmedWith(
        lens,
        camera,
        _image_size(record),
        None if pitch is None else (pitch[0], pitch[1]),
        tuple(map(str, doubts)),
        clip,
    )
    if before not in (None, found):
        raise entry.fault(RIG_KEY, "says something else than in a frame before it.")
    return found


def _image_size(record: Record) -> tuple[int, int]:
    given = record.items("image_size")
    sides = [side for side in given if type(side) is int and 0 < side <= MAX_SIDE_PX]
    if len(given) != 2 or len(sides) != 2:
        raise record.fault("image_size", f"must be two whole numbers from 1 to {MAX_SIDE_PX}.")
    return sides[0], sides[1]


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
