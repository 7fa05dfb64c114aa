"""What a method predicts for a data set, as the InFlux benchmark takes it.

``{"submission_metadata": {"method_name", "intrinsics_type": "rad-tan" | "mei", "version":
"influx" | "influx_pp_real" | "all"}, video: {"0": {fx, fy, cx, cy, k1, k2, p1, p2}}}``, for mei
cameras ``{fx, fy, cx, cy, xi}``. Numbers are finite or null; a frame with a null, be it one, is
one without a prediction. As in all of the release's files the origin of pixels is the top-left
pixel's corner, so cx and cy are larger by 0.5 than here. A file has at most 200 MiB.

Every rule is checked while the file streams by (``submission_scan``).
"""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from influx_wrap.compute.progress import Progress, no_progress
from influx_wrap.errors import InputError
from influx_wrap.formats.files import writing
from influx_wrap.formats.json_stream import MIB, open_json, too_large
from influx_wrap.formats.manifest import Video
from influx_wrap.formats.pixel_origin import from_corner, to_corner
from influx_wrap.formats.submission_scan import (
    KIND,
    MAX_FRAMES,
    MAX_VIDEOS,
    METADATA,
    METHOD,
    VERSION,
    VERSIONS,
    SubmissionScan,
    file_name_problem,
    is_name,
    method_problem,
    quoted,
)
from influx_wrap.model.predictions import PARAMETERS, Predictions, VideoPredictions

MAX_BYTES = 200 * MIB


@dataclass(frozen=True)
class VideoSummary:
    """How many frames a video has, and how many of them a prediction."""

    frames: int
    predicted: int


@dataclass(frozen=True)
class SubmissionSummary:
    """What a valid submission contains."""

    method: str
    kind: str
    version: str
    videos: Mapping[str, VideoSummary]

    @property
    def frames(self) -> int:
        """Of all videos."""
        return sum(video.frames for video in self.videos.values())

    @property
    def predicted(self) -> int:
        """Frames with a prediction, of all videos."""
        return sum(video.predicted for video in self.videos.values())


@dataclass(frozen=True)
class SubmissionCheck:
    """What checking a submission has found.

    faults   the first ones in the order of the file, a sentence each; none if it is valid
    missing  frames of the manifest that are not in it, and of how many; None where the file could
             not be read to its end, or without a manifest
    summary  what a valid submission contains, None of another
    """

    faults: tuple[str, ...]
    missing: tuple[int, int] | None
    summary: SubmissionSummary | None


def validate_submission(
    path: Path, manifest: Mapping[str, Video] | None = None, progress: Progress = no_progress
) -> SubmissionSummary:
    """Check a submission by every rule; the error names the first place that breaks one.

    manifest  the videos it must contain, all of them, each with all frames
    progress  hears of bytes
    """
    check = check_submission(path, manifest, most=1, progress=progress)
    if check.summary is None:
        raise InputError(check.faults[0])
    return check.summary


def check_submission(
    path: Path,
    manifest: Mapping[str, Video] | None = None,
    *,
    n_manifests: int | None = None,
    most: int = 50,
    progress: Progress = no_progress,
) -> SubmissionCheck:
    """Check a submission by every rule, to its end.

    manifest     the videos it must contain, all of them, each with all frames
    n_manifests  of how many manifests they are, which must be those of its version; None: any
    most         faults that are kept
    progress     hears of bytes
    """
    faults: list[str] = []
    frames: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    missing = None

    def note(fault: InputError) -> None:
        if len(faults) < most:
            faults.append(str(fault))

    try:
        with open_json(path, MAX_BYTES, progress) as stream:
            scan = SubmissionScan(
                path, stream, manifest, note, for_upload=True, n_manifests=n_manifests
            )
            for video, _, values in scan.rows():
                frames[video] += 1
                predicted[video] += values is not None
    except InputError as error:
        # Where it is not JSON there is no telling what the rest would be.
        note(error)
    else:
        if manifest is not None:
            wanted = sum(video.frame_count for video in manifest.values())
            missing = wanted - scan.n_there, wanted
    if faults:
        return SubmissionCheck(tuple(faults), missing, None)
    videos = {name: VideoSummary(n, predicted[name]) for name, n in frames.items()}
    return SubmissionCheck((), missing, SubmissionSummary(*scan.about(), videos))


def summarise(predictions: Predictions) -> SubmissionSummary:
    """What predictions contain, as ``validate_submission`` says it of a file."""
    videos = {
        name: VideoSummary(len(video.frames), int(video.answered.sum()))
        for name, video in predictions.videos.items()
    }
    return SubmissionSummary(predictions.method, predictions.kind, predictions.version, videos)


def submission_faults(
    path: Path,
    manifest: Mapping[str, Video] | None = None,
    most: int = 50,
    progress: Progress = no_progress,
) -> list[str]:
    """The first faults of a submission in the order of the file; none if it is valid."""
    return list(check_submission(path, manifest, most=most, progress=progress).faults)


def check_upload_names(path: Path, method: str) -> None:
    """Refuse names of a submission's file and method that the benchmark would not take."""
    if problem := file_name_problem(path):
        raise InputError(problem)
    if is_name(method) and (problem := method_problem(method)):
        raise InputError(f"the name of the method {problem}")


def read_submission(
    path: Path, manifest: Mapping[str, Video] | None = None, progress: Progress = no_progress
) -> Predictions:
    """Read a submission, checked by every rule, with pixel (0, 0) a pixel's centre.

    Without a manifest it may be of any videos and of some of their frames.
    """
    columns: dict[str, tuple[array[int], array[float]]] = {}
    nothing: tuple[float, ...] = ()
    with open_json(path, MAX_BYTES, progress) as stream:
        scan = SubmissionScan(path, stream, manifest, _raise)
        for video, frame, values in scan.rows():
            if video not in columns:
                columns[video] = array("q"), array("d")
                nothing = (math.nan,) * len(scan.parameters)
            frames, numbers = columns[video]
            frames.append(frame)
            numbers.extend(values or nothing)
    method, kind, version = scan.about()
    videos = {}
    for name in list(columns):
        frames, numbers = columns.pop(name)
        videos[name] = _video_predictions(frames, numbers)
    return Predictions(method, kind, version, videos)


def write_submission(path: Path, predictions: Predictions) -> None:
    """Write a submission; predictions that no submission may contain are refused."""
    if not is_name(predictions.method):
        raise InputError("a submission needs the name of its method.")
    if predictions.version not in VERSIONS:
        raise InputError(f"{VERSION} must be {' or '.join(VERSIONS)}.")
    if not 0 < len(predictions.videos) <= MAX_VIDEOS:
        raise InputError(f"a submission has 1 to {MAX_VIDEOS} videos.")
    about = {METHOD: predictions.method, KIND: predictions.kind, VERSION: predictions.version}
    names = PARAMETERS[predictions.kind]
    # Formatted by hand: there are 10^5 frames with the same keys.
    answer, blank = _frame_text(names, "%r"), _frame_text(names, "null")
    with writing(path) as file:
        file.write(f"{{\n{json.dumps(METADATA)}: {json.dumps(about, ensure_ascii=False)}".encode())
        for name, video in predictions.videos.items():
            _check_video(name, video)
            values = to_corner(video.values)
            file.write(f",\n{json.dumps(name, ensure_ascii=False)}: {{\n".encode())
            separator = ""
            for frame, numbers, is_answered in zip(
                video.frames.tolist(), values, video.answered.tolist(), strict=True
            ):
                text = answer % (frame, *numbers.tolist()) if is_answered else blank % frame
                file.write((separator + text).encode())
                separator = ",\n"
            file.write(b"\n}")
        file.write(b"\n}\n")
        if file.tell() > MAX_BYTES:
            raise too_large(path, file.tell(), MAX_BYTES)


def _raise(fault: InputError) -> None:
    raise fault


def _video_predictions(frames: array[int], numbers: array[float]) -> VideoPredictions:
    numbers_of = np.frombuffer(frames, dtype=np.int64)
    values = np.frombuffer(numbers, dtype=float).reshape(len(frames), -1)
    order = np.argsort(numbers_of)
    return VideoPredictions(numbers_of[order], from_corner(values[order]))


def blank_bytes(kind: str, n_frames: int) -> int:
    """A lower bound for the size of a submission without predictions."""
    return n_frames * len(_frame_text(PARAMETERS[kind], "null"))


def _frame_text(names: tuple[str, ...], value: str) -> str:
    return '"%d": {' + ", ".join(f'"{name}": {value}' for name in names) + "}"


def _check_video(name: str, video: VideoPredictions) -> None:
    where = f"video {quoted(name)}"
    if not is_name(name) or name == METADATA:
        raise InputError(f"{where}: this cannot be the name of a video.")
    if not len(video.frames):
        raise InputError(f"{where} has no frame.")
    if video.frames[0] < 0 or video.frames[-1] >= MAX_FRAMES:
        raise InputError(f"{where}: frames are numbered from 0 to {MAX_FRAMES - 1}.")
    wrong = video.answered & (video.values[:, :2] <= 0).any(axis=1)
    if wrong.any():
        frame = video.frames[wrong][0]
        raise InputError(f"{where}, frame {frame}: fx and fy must be above 0.")
