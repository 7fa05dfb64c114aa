"""What a method predicts for a data set, as the InFlux benchmark takes it.

``{"submission_metadata": {"method_name", "intrinsics_type": "rad-tan" | "mei", "version":
"influx" | "influx_pp_real" | "all"}, video: {"0": {fx, fy, cx, cy, k1, k2, p1, p2}}}``, for mei
cameras ``{fx, fy, cx, cy, xi}``. Numbers are finite or null; a frame with a null, be it one, is
one without a prediction. As in all of the release's files the origin of pixels is the top-left
pixel's corner, so cx and cy are larger by 0.5 than here. A file has at most 200 MiB.

Every rule is checked while the file streams by: the memory this takes is that of the videos'
names. The first fault is named with its place: line and byte, video, frame and key.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from influx_wrap.compute.progress import Advance
from influx_wrap.errors import InputError
from influx_wrap.formats.files import writing
from influx_wrap.formats.json_stream import MIB, Constant, JsonStream, open_json, too_large
from influx_wrap.formats.manifest import Video
from influx_wrap.model.predictions import MEI, PARAMETERS, RAD_TAN, Predictions, VideoPredictions
from influx_wrap.model.words import counted

METADATA = "submission_metadata"
METHOD, KIND, VERSION = "method_name", "intrinsics_type", "version"
VERSIONS = ("influx", "influx_pp_real", "all")
MAX_BYTES = 200 * MIB
MAX_VIDEOS, MAX_FRAMES = 100_000, 10_000_000
"""Videos of a data set and frames of a video: more than there can be, so that memory is bounded
where there is no manifest to say."""
_TO_CORNER_PX = 0.5
_PLAIN_NUMBER = re.compile(r"0|[1-9][0-9]*")
_LONGEST_NAME, _LONGEST_SHOWN = 1000, 60

Row = tuple[str, int, tuple[float, ...] | None]
Pairs = tuple[tuple[str, Any], ...]


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


def validate_submission(
    path: Path, manifest: Mapping[str, Video] | None = None, progress: Advance = lambda _: None
) -> SubmissionSummary:
    """Check a submission by every rule; the error names the first place that breaks one.

    manifest  the videos it must contain, all of them, each with all frames
    progress  hears how many bytes more are read
    """
    frames: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    with open_json(path, MAX_BYTES, progress) as stream:
        scan = _Scan(path, stream, manifest, _raise)
        for video, _, values in scan.rows():
            frames[video] += 1
            predicted[video] += values is not None
    videos = {name: VideoSummary(n, predicted[name]) for name, n in frames.items()}
    return SubmissionSummary(*scan.about(), videos)


def summarise(predictions: Predictions) -> SubmissionSummary:
    """What predictions contain, as ``validate_submission`` says it of a file."""
    videos = {
        name: VideoSummary(len(video.frames), int(video.answered.sum()))
        for name, video in predictions.videos.items()
    }
    return SubmissionSummary(predictions.method, predictions.kind, predictions.version, videos)


def find_faults(
    path: Path,
    manifest: Mapping[str, Video] | None = None,
    most: int = 50,
    progress: Advance = lambda _: None,
) -> list[str]:
    """The first faults of a submission in the order of the file; none if it is valid."""
    faults: list[str] = []

    def note(fault: InputError) -> None:
        faults.append(str(fault))
        if len(faults) == most:
            raise _Enough

    try:
        with open_json(path, MAX_BYTES, progress) as stream:
            for _ in _Scan(path, stream, manifest, note).rows():
                pass
    except _Enough:
        pass
    except InputError as error:
        # Where it is not JSON there is no telling what the rest would be.
        faults.append(str(error))
    return faults


def read_submission(
    path: Path, manifest: Mapping[str, Video] | None = None, progress: Advance = lambda _: None
) -> Predictions:
    """Read a submission, checked by every rule, with pixel (0, 0) a pixel's centre.

    Without a manifest it may be of any videos and of some of their frames.
    """
    columns: dict[str, tuple[array[int], array[float]]] = {}
    nothing: tuple[float, ...] = ()
    with open_json(path, MAX_BYTES, progress) as stream:
        scan = _Scan(path, stream, manifest, _raise)
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
    if not _is_name(predictions.method):
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
            values = video.values.copy()
            values[:, 2:4] += _TO_CORNER_PX
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


def make_template(
    manifest: Mapping[str, Video], method: str, kind: str, version: str
) -> Predictions:
    """All frames of all videos, without predictions."""
    n = len(PARAMETERS[kind])
    n_frames = sum(video.frame_count for video in manifest.values())
    if n_frames * len(_frame_text(PARAMETERS[kind], "null")) > MAX_BYTES:
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
            raise InputError(f"video {_shown(name)} is not in the template.")
        blank = videos[name]
        unknown = ~np.isin(video.frames, blank.frames)
        if unknown.any():
            frame = video.frames[unknown][0]
            raise InputError(f"video {_shown(name)}, frame {frame} is not in the template.")
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


class _Enough(Exception):
    pass


class _Seen:
    """Frame numbers that have come: a byte for each, in pages made when they are needed."""

    def __init__(self) -> None:
        self.count = 0
        self._pages: dict[int, bytearray] = {}

    def add(self, frame: int) -> bool:
        """Whether it is the first time."""
        page = self._pages.get(frame >> 12)
        if page is None:
            page = self._pages[frame >> 12] = bytearray(1 << 12)
        if page[frame & 0xFFF]:
            return False
        page[frame & 0xFFF] = 1
        self.count += 1
        return True

    def __contains__(self, frame: int) -> bool:
        page = self._pages.get(frame >> 12)
        return page is not None and bool(page[frame & 0xFFF])


class _Scan:
    """One walk through a submission, fault by fault.

    ``report`` gets every fault: it raises it, or notes it so that the walk goes on behind the
    value at fault. What is not JSON always ends the walk.
    """

    def __init__(
        self,
        path: Path,
        stream: JsonStream,
        manifest: Mapping[str, Video] | None,
        report: Callable[[InputError], None],
    ) -> None:
        self._path, self._stream, self._manifest, self._report = path, stream, manifest, report
        self._about: tuple[str, str, str] | None = None
        self._has_metadata = False
        self._kind, self._kind_is_from = "", ""
        self.parameters: tuple[str, ...] = ()

    def about(self) -> tuple[str, str, str]:
        """Method, kind and version."""
        assert self._about is not None
        return self._about

    def rows(self) -> Iterator[Row]:
        """(video, frame, numbers) of each frame in the file's order; None without a prediction."""
        stream = self._stream
        if not stream.begins_object():
            raise InputError(f"{self._path}: a submission is one JSON object, {{...}}.")
        names: set[str] = set()
        for name in stream.members():
            if name == METADATA:
                self._read_metadata()
                continue
            where = f"{stream.place()}: video {_shown(name)}"
            if name in names:
                self._fault(f"{where} comes twice.")
            elif not _is_name(name):
                self._fault(f"{where} is not a name of 1 to {_LONGEST_NAME} characters.")
            elif self._manifest is not None and name not in self._manifest:
                self._fault(f"{where} is not in the manifest.")
            names.add(name)
            if len(names) > MAX_VIDEOS:
                raise InputError(f"{where} is one too many: {MAX_VIDEOS} videos are the most.")
            yield from self._video(name, where)
        stream.end()
        if not self._has_metadata:
            self._fault(f"{self._path}: {METADATA} is missing.")
        if not names:
            self._fault(f"{self._path} has no video.")
        for name in self._manifest or ():
            if name not in names:
                self._fault(f"{self._path}: video {_shown(name)} of the manifest is missing.")

    def _fault(self, sentence: str) -> None:
        self._report(InputError(sentence))

    def _read_metadata(self) -> None:
        where = f"{self._stream.place()}: {METADATA}"
        if self._has_metadata:
            self._fault(f"{where} comes twice.")
        self._has_metadata = True
        pairs = self._stream.value()
        if not isinstance(pairs, tuple):
            self._fault(f"{where} must be an object, got {_described(pairs)}.")
            return
        values = self._by_key(where, pairs, (METHOD, KIND, VERSION))
        if values is None:
            return
        method, kind, version = values
        if not isinstance(method, str) or not _is_name(method):
            self._fault(f"{where}: {METHOD} must be a name, got {_described(method)}.")
        for key, value, allowed in ((KIND, kind, tuple(PARAMETERS)), (VERSION, version, VERSIONS)):
            if value not in allowed:
                wanted = " or ".join(allowed)
                self._fault(f"{where}: {key} must be {wanted}, got {_described(value)}.")
        if kind not in tuple(PARAMETERS):
            return
        self._about = method, kind, version
        if self._kind not in ("", kind):
            self._fault(f"{where}: {KIND} is {kind}, but {self._kind_is_from} says {self._kind}.")
        self._set_kind(kind, METADATA)

    def _set_kind(self, kind: str, source: str) -> None:
        self._kind, self._kind_is_from, self.parameters = kind, source, PARAMETERS[kind]

    def _video(self, name: str, where: str) -> Iterator[Row]:
        stream = self._stream
        if not stream.begins_object():
            self._fault(f"{where} must be an object of frames, got {_described(stream.value())}.")
            return
        video = self._manifest.get(name) if self._manifest is not None else None
        seen = _Seen()
        for key in stream.members():
            frame = self._frame_number(name, key, video)
            if frame is not None and not seen.add(frame):
                self._fault(f"{self._where(name, key)} comes twice.")
            values = self._numbers(name, key)
            if frame is not None:
                yield name, frame, values
        if video is not None and seen.count < video.frame_count:
            missing = next(frame for frame in range(video.frame_count) if frame not in seen)
            self._fault(f"{where} lacks frame {missing}; the manifest has {_frames(video)}.")
        elif not seen.count:
            self._fault(f"{where} has no frame.")

    def _where(self, name: str, key: str) -> str:
        """The place of the key or value that was taken last."""
        return f"{self._stream.place()}: video {_shown(name)}, frame {_shown_number(key)}"

    def _frame_number(self, name: str, key: str, video: Video | None) -> int | None:
        if not _PLAIN_NUMBER.fullmatch(key):
            self._fault(f"{self._where(name, key)} is not a plain number such as 0 or 12.")
            return None
        # The length comes first: Python converts a limited number of digits only.
        if len(key) > len(str(MAX_FRAMES)) or int(key) >= MAX_FRAMES:
            self._fault(f"{self._where(name, key)} is too large for the number of a frame.")
            return None
        if video is not None and int(key) >= video.frame_count:
            self._fault(
                f"{self._where(name, key)} is beyond the video; the manifest has {_frames(video)}."
            )
            return None
        return int(key)

    def _numbers(self, name: str, key: str) -> tuple[float, ...] | None:
        """The frame that comes next, in the order of ``parameters``."""
        pairs = self._stream.value()
        if not isinstance(pairs, tuple):
            where = self._where(name, key)
            self._fault(f"{where} must be an object of parameters, got {_described(pairs)}.")
            return None
        keys, values = zip(*pairs, strict=True) if pairs else ((), ())
        if not self._kind:
            # The metadata may come last; until then all frames are to be like the first.
            place = f"video {_shown(name)}, frame {_shown_number(key)}"
            self._set_kind(MEI if "xi" in keys else RAD_TAN, place)
        if keys != self.parameters:
            in_order = self._sorted(name, key, pairs)
            if in_order is None:
                return None
            values = in_order
        types = set(map(type, values))
        if types == {float} and all(map(math.isfinite, values)) and min(values[:2]) > 0:
            return values
        if types == {NoneType}:
            return None
        self._check_numbers(name, key, values)
        return None

    def _sorted(self, name: str, key: str, pairs: Pairs) -> tuple[Any, ...] | None:
        where = self._where(name, key)
        for kind, parameters in PARAMETERS.items():
            if kind != self._kind and {pair[0] for pair in pairs} == set(parameters):
                self._fault(
                    f"{where} is a {kind} camera, but {self._kind_is_from} says {self._kind}."
                )
                return None
        return self._by_key(where, pairs, self.parameters)

    def _by_key(self, where: str, pairs: Pairs, wanted: tuple[str, ...]) -> tuple[Any, ...] | None:
        """The values in the order of the keys ``wanted``, each of which must be there once."""
        values: dict[str, Any] = {}
        for key, value in pairs:
            if key not in wanted:
                known = ", ".join(wanted)
                self._fault(f"{where}: {_shown(key)} is not known here; the keys are {known}.")
                return None
            if key in values:
                self._fault(f"{where}: {key} comes twice.")
                return None
            values[key] = value
        for key in wanted:
            if key not in values:
                self._fault(f"{where}: {key} is missing.")
                return None
        return tuple(values[key] for key in wanted)

    def _check_numbers(self, name: str, key: str, values: tuple[object, ...]) -> None:
        """Report the first value that is neither null nor a number that may be there."""
        for parameter, value in zip(self.parameters, values, strict=True):
            if value is None:
                continue
            if not isinstance(value, float) or not math.isfinite(value):
                problem = f"must be a finite number or null, got {_described(value)}"
            elif parameter in ("fx", "fy") and value <= 0:
                problem = f"must be above 0, got {value!r}"
            else:
                continue
            self._fault(f"{self._where(name, key)}: {parameter} {problem}.")
            return


def _raise(fault: InputError) -> None:
    raise fault


def _video_predictions(frames: array[int], numbers: array[float]) -> VideoPredictions:
    numbers_of = np.frombuffer(frames, dtype=np.int64)
    values = np.frombuffer(numbers, dtype=float).reshape(len(frames), -1)
    order = np.argsort(numbers_of)
    values = values[order]
    values[:, 2:4] -= _TO_CORNER_PX
    return VideoPredictions(numbers_of[order], values)


def _frame_text(names: tuple[str, ...], value: str) -> str:
    return '"%d": {' + ", ".join(f'"{name}": {value}' for name in names) + "}"


def _check_video(name: str, video: VideoPredictions) -> None:
    where = f"video {_shown(name)}"
    if not _is_name(name) or name == METADATA:
        raise InputError(f"{where}: this cannot be the name of a video.")
    if not len(video.frames):
        raise InputError(f"{where} has no frame.")
    if video.frames[0] < 0 or video.frames[-1] >= MAX_FRAMES:
        raise InputError(f"{where}: frames are numbered from 0 to {MAX_FRAMES - 1}.")
    wrong = video.answered & (video.values[:, :2] <= 0).any(axis=1)
    if wrong.any():
        frame = video.frames[wrong][0]
        raise InputError(f"{where}, frame {frame}: fx and fy must be above 0.")


def _is_name(text: str) -> bool:
    """Whether it is a name, and one that can be written down: lone surrogates cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return bool(text.strip()) and len(text) <= _LONGEST_NAME


def _frames(video: Video) -> str:
    n = video.frame_count
    numbers = "0" if n == 1 else f"0 to {n - 1}"
    return f"{counted(n, 'frame')}, {numbers}"


def _shown(text: str) -> str:
    """Foreign text for a message: in quotes, on one line, not too long."""
    if len(text) > _LONGEST_SHOWN:
        text = text[:_LONGEST_SHOWN] + "..."
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _shown_number(key: str) -> str:
    plain = _PLAIN_NUMBER.fullmatch(key) and len(key) <= _LONGEST_SHOWN
    return key if plain else _shown(key)


def _described(value: object) -> str:
    """A JSON value for a message."""
    match value:
        case Constant():
            return f"{value.name}, which JSON does not have"
        case str():
            return f"the text {_shown(value)}"
        case None | bool():
            return json.dumps(value)
        case float():
            return f"{value:g}" if math.isfinite(value) else "one too large to be read"
        case tuple():
            return "an object"
        case _:
            return "a list"
