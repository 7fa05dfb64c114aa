"""The videos of a data set: ``{video: {"frame_count": n, "split": "val" | "test"}}``.

As in the InFlux release; a manifest whose videos are yet to be split has no ``split``. What else
is known of them is a CSV: a column ``video``, and others by which they are grouped.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.formats.files import read_json, read_text, write_json

VALIDATION, TEST = "val", "test"


@dataclass(frozen=True)
class Video:
    """A video's number of frames, and its split: ``val``, ``test`` or None."""

    frame_count: int
    split: str | None = None


def read_manifest(path: Path) -> dict[str, Video]:
    """Read the videos, in the file's order."""
    file = read_json(path)
    videos = {}
    for name in file.values:
        record = file.record(name)
        record.check_keys(("frame_count",), ("split",))
        split = record.values.get("split")
        if split is not None and split not in (VALIDATION, TEST):
            raise record.fault("split", f"must be {VALIDATION} or {TEST}, got {split!r}.")
        videos[name] = Video(
            record.integer("frame_count", at_least=1), None if split is None else str(split)
        )
    if not videos:
        raise InputError(f"{path} names no video.")
    return videos


def write_manifest(path: Path, videos: Mapping[str, Video]) -> None:
    """Write the videos in the given order."""
    values: dict[str, object] = {}
    for name, video in videos.items():
        split = {} if video.split is None else {"split": video.split}
        values[name] = {"frame_count": video.frame_count, **split}
    write_json(path, values)


def read_video_groups(path: Path, videos: Container[str]) -> dict[str, dict[str, str]]:
    """``{column: {video: value}}``; empty cells are left out. ``videos`` are those there are."""
    try:
        return _video_groups(path, csv.DictReader(io.StringIO(read_text(path))), videos)
    except csv.Error as error:
        raise InputError(f"{path}: this is not CSV ({error}).") from None


def _video_groups(
    path: Path, rows: csv.DictReader[str], videos: Container[str]
) -> dict[str, dict[str, str]]:
    columns = list(rows.fieldnames or ())
    if "video" not in columns or len(set(columns)) < max(len(columns), 2):
        raise InputError(f"{path}: a header with video and at least one other column is needed.")
    groups: dict[str, dict[str, str]] = {name: {} for name in columns if name != "video"}
    seen: set[str] = set()
    for row in rows:
        where = f"{path}, line {rows.line_num}"
        if None in row or None in row.values():
            raise InputError(f"{where}: {len(columns)} values are needed.")
        video = row["video"]
        if video not in videos:
            raise InputError(f"{where}: there is no truth of video {video!r}.")
        if video in seen:
            raise InputError(f"{where}: video {video!r} has come already.")
        seen.add(video)
        for name, values in groups.items():
            if row[name].strip():
                values[video] = row[name].strip()
    return groups
