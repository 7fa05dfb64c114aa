"""The videos of a data set: ``{video: {"frame_count": n, "split": "val" | "test"}}``.

As in the InFlux release; a manifest whose videos are yet to be split has no ``split``. Other keys
of a video are left alone. A submission to both parts of the benchmark has the videos of two
manifests. What else is known of videos is a CSV: a column ``video``, and others by which they are
grouped.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.formats.files import MOST_TEXT_BYTES, read_json, read_text, write_json
from influx_wrap.formats.json_stream import open_json

VALIDATION, TEST = "val", "test"


@dataclass(frozen=True)
class Video:
    """A video's number of frames, and its split: ``val``, ``test`` or None."""

    frame_count: int
    split: str | None = None


def read_manifest(path: Path) -> dict[str, Video]:
    """Read the videos, in the file's order."""
    file = read_json(path)
    _refuse_twice(path)
    videos = {}
    for name in file.values:
        record = file.record(name)
        if not name.strip():
            raise InputError(f"{path}: video {name!r} has no name.")
        split = record.values.get("split")
        if split is not None and split not in (VALIDATION, TEST):
            raise record.fault("split", f"must be {VALIDATION} or {TEST}, got {split!r}.")
        videos[name] = Video(
            record.integer("frame_count", at_least=1), None if split is None else str(split)
        )
    if not videos:
        raise InputError(f"{path} names no video.")
    return videos


def read_manifests(paths: Sequence[Path], split: str | None) -> dict[str, Video]:
    """The videos of a split, or all of them, of several manifests; there must be some, and none
    may be in two of them."""
    chosen: dict[str, Video] = {}
    whose: dict[str, Path] = {}
    for path in paths:
        videos = read_manifest(path)
        unsplit = [name for name, video in videos.items() if video.split is None]
        if split is not None and 0 < len(unsplit) < len(videos):
            raise InputError(
                f"{path}: video {unsplit[0]!r} has no split, while others have one: write "
                f"{VALIDATION} or {TEST}, or choose all."
            )
        for name, video in videos.items():
            if split not in (None, video.split):
                continue
            if name in whose:
                raise InputError(
                    f"{path}: video {name!r} is in {whose[name]} as well: give each manifest once, "
                    "and none that has videos of another."
                )
            chosen[name], whose[name] = video, path
    if not chosen:
        names, have = " and ".join(map(str, paths)), "has" if len(paths) == 1 else "have"
        raise InputError(f"{names} {have} no video whose split is {split}. Choose another --split.")
    return chosen


def write_manifest(path: Path, videos: Mapping[str, Video]) -> None:
    """Write the videos in the given order."""
    values: dict[str, object] = {}
    for name, video in videos.items():
        split = {} if video.split is None else {"split": video.split}
        values[name] = {"frame_count": video.frame_count, **split}
    write_json(path, values)


def _refuse_twice(path: Path) -> None:
    """Refuse a name that comes twice, of which JSON readers keep the last."""
    names: set[str] = set()
    with open_json(path, MOST_TEXT_BYTES) as stream:
        stream.begins_object()
        for name in stream.members():
            stream.value()
            if name in names:
                raise InputError(f"{path}: video {name!r} comes twice.")
            names.add(name)


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
