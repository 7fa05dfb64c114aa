"""What is known of videos, as CSV: a column ``video``, and others by which they are grouped."""

from __future__ import annotations

import csv
import io
from collections.abc import Container
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.formats.files import read_text


def read_video_groups(path: Path, videos: Container[str]) -> dict[str, dict[str, str]]:
    """``{column: {video: value}}``; empty cells are left out. ``videos`` are those there are."""
    rows = csv.DictReader(io.StringIO(read_text(path)))
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
