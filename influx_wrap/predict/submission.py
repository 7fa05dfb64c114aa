"""A submission to the benchmark, begun as a template and filled with predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.formats.json_stream import MIB
from influx_wrap.formats.manifest import Video, read_manifests
from influx_wrap.formats.submission import MAX_BYTES, blank_bytes, read_submission
from influx_wrap.formats.submission_scan import quoted
from influx_wrap.model.predictions import PARAMETERS, Predictions, VideoPredictions

ALL = "all"
Reading = Callable[[Path], AbstractContextManager[Progress]]
"""Makes of a file that is about to be read what hears how many bytes more are read."""


def videos_of_split(manifests: Sequence[Path], split: str) -> Mapping[str, Video]:
    """The manifests' videos of a split, or of ``ALL``; there must be some, each once."""
    return read_manifests(manifests, None if split == ALL else split)


def make_template(
    manifest: Mapping[str, Video], method: str, kind: str, version: str
) -> Predictions:
    """All frames of all videos, without predictions."""
    n = len(PARAMETERS[kind])
    n_frames = sum(video.frame_count for video in manifest.values())
    if blank_bytes(kind, n_frames) > MAX_BYTES:
        limit = MAX_BYTES // MIB
        raise InputError(f"{n_frames} frames are too many for a submission of at most {limit} MiB.")
    videos = {
        name: VideoPredictions(
            np.arange(video.frame_count), np.full((video.frame_count, n), np.nan)
        )
        for name, video in manifest.items()
    }
    return Predictions(method, kind, version, videos)


@dataclass(frozen=True, eq=False)
class Filled:
    """A template with answers: how many came, and how many took another one's place."""

    predictions: Predictions
    taken: int
    replaced: int


def fill(template: Predictions, predictions: Predictions) -> Filled:
    """The template with the answers of ``predictions``, which it must have the frames for.

    Method and version stay the template's. A frame without an answer takes nothing away.
    """
    if predictions.kind != template.kind:
        raise InputError(
            f"these are {predictions.kind} predictions, but the template is for {template.kind}."
        )
    videos = dict(template.videos)
    taken = replaced = 0
    for name, video in predictions.videos.items():
        if name not in videos:
            raise InputError(f"video {quoted(name)} is not in the template.")
        blank = videos[name]
        unknown = ~np.isin(video.frames, blank.frames)
        if unknown.any():
            frame = video.frames[unknown][0]
            raise InputError(f"video {quoted(name)}, frame {frame} is not in the template.")
        answered = video.answered
        rows = np.searchsorted(blank.frames, video.frames[answered])
        answers = video.values[answered]
        changed = blank.answered[rows] & (blank.values[rows] != answers).any(axis=1)
        values = blank.values.copy()
        values[rows] = answers
        videos[name] = VideoPredictions(blank.frames, values)
        taken += len(rows)
        replaced += int(changed.sum())
    filled = Predictions(template.method, template.kind, template.version, videos)
    return Filled(filled, taken, replaced)


@dataclass(frozen=True)
class Taken:
    """What a template took from a file: ``count`` answers, ``replaced`` of them for others."""

    path: Path
    count: int
    replaced: int


def fill_from_files(
    template: Path, paths: Sequence[Path], reading: Reading
) -> tuple[Predictions, list[Taken]]:
    """The template with the answers of all files, a later one's before an earlier one's."""
    predictions = _read(template, reading)
    taken = []
    for path in paths:
        more = _read(path, reading)
        try:
            filled = fill(predictions, more)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        predictions = filled.predictions
        taken.append(Taken(path, filled.taken, filled.replaced))
    return predictions, taken


def _read(path: Path, reading: Reading) -> Predictions:
    with reading(path) as progress:
        return read_submission(path, progress=progress)
