"""One walk through a submission's file, which checks every rule of the benchmark on the way.

The file streams by: the memory this takes is that of the videos' names. A fault is named with
its place: line and byte, video, frame and key.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.json_stream import BareConstant, JsonStream
from influx_wrap.formats.manifest import Video
from influx_wrap.model.predictions import MEI, PARAMETERS, RAD_TAN
from influx_wrap.model.words import counted

METADATA = "submission_metadata"
METHOD, KIND, VERSION = "method_name", "intrinsics_type", "version"
VERSIONS = ("influx", "influx_pp_real", "all")
MAX_VIDEOS, MAX_FRAMES = 100_000, 10_000_000
"""Videos of a data set and frames of a video: more than there can be, so that memory is bounded
where there is no manifest to say."""
MANIFESTS = {VERSIONS[0]: 1, VERSIONS[1]: 1, VERSIONS[2]: 2}
"""How many manifests list the videos of a version: ``all`` has those of both others."""
MOST_METHOD = 100
_METHOD_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.json")
_TRUTH = "intrinsics_gt"
_PLAIN_NUMBER = re.compile(r"0|[1-9][0-9]*")
_LONGEST_NAME, _LONGEST_SHOWN = 1000, 60

_Row = tuple[str, int, tuple[float, ...] | None]
JsonObject = tuple[tuple[str, Any], ...]


class SubmissionScan:
    """One walk through a submission, fault by fault.

    ``report`` gets every fault: it raises it, or notes it so that the walk goes on behind the
    value at fault. What is not JSON always ends the walk.

    for_upload   whether the names of file and method have to be those that the benchmark takes
    n_manifests  of how many manifests the videos of ``manifest`` are; None: any number will do
    """

    def __init__(
        self,
        path: Path,
        stream: JsonStream,
        manifest: Mapping[str, Video] | None,
        report: Callable[[InputError], None],
        *,
        for_upload: bool = False,
        n_manifests: int | None = None,
    ) -> None:
        self._path, self._stream, self._manifest, self._report = path, stream, manifest, report
        self._for_upload, self._n_manifests = for_upload, n_manifests
        self.n_there = 0
        """Frames of the manifest that have come."""
        self._about: tuple[str, str, str] | None = None
        self._has_metadata = False
        self._kind, self._kind_is_from = "", ""
        self.parameters: tuple[str, ...] = ()
        # By frame number, the number of the video in which it came last. Memory is taken for
        # what is written to only.
        self._came = np.zeros(MAX_FRAMES, dtype=np.int32)
        self._n_videos = 0

    def about(self) -> tuple[str, str, str]:
        """Method, kind and version."""
        assert self._about is not None
        return self._about

    def rows(self) -> Iterator[_Row]:
        """(video, frame, numbers) of each frame in the file's order; None without a prediction."""
        stream = self._stream
        if not stream.begins_object():
            raise InputError(f"{self._path}: a submission is one JSON object, {{...}}.")
        names: set[str] = set()
        if self._for_upload and (problem := file_name_problem(self._path)):
            self._fault(problem)
        for name in stream.members():
            if name == METADATA:
                self._read_metadata()
                continue
            where = f"{stream.place()}: video {quoted(name)}"
            is_first = name not in names
            if not is_first:
                self._fault(f"{where} comes twice.")
            elif not is_name(name):
                self._fault(f"{where} is not a name of 1 to {_LONGEST_NAME} characters.")
            elif self._manifest is not None and name not in self._manifest:
                self._fault(f"{where} is not in the manifest, or of another split.")
            names.add(name)
            if len(names) > MAX_VIDEOS:
                raise InputError(f"{where} is one too many: {MAX_VIDEOS} videos are the most.")
            yield from self._video(name, where, is_first)
        stream.end()
        if not self._has_metadata:
            self._fault(f"{self._path}: {METADATA} is missing.")
        if not names:
            self._fault(f"{self._path} has no video.")
        for name, video in (self._manifest or {}).items():
            if name not in names:
                missing = f"{self._path}: video {quoted(name)} of the manifest is missing"
                self._fault(f"{missing}, {counted(video.frame_count, 'frame')}.")

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
        if not isinstance(method, str) or not is_name(method):
            self._fault(f"{where}: {METHOD} must be a name, got {_described(method)}.")
        elif self._for_upload and (problem := method_problem(method)):
            self._fault(f"{where}: {METHOD} {problem}")
        for key, value, allowed in ((KIND, kind, tuple(PARAMETERS)), (VERSION, version, VERSIONS)):
            if value not in allowed:
                wanted = " or ".join(allowed)
                self._fault(f"{where}: {key} must be {wanted}, got {_described(value)}.")
        if version in VERSIONS and self._n_manifests not in (None, MANIFESTS[version]):
            self._fault(f"{where}: {manifests_problem(version, self._n_manifests or 0)}")
        if kind not in tuple(PARAMETERS):
            return
        self._about = method, kind, version
        if self._kind not in ("", kind):
            self._fault(f"{where}: {KIND} is {kind}, but {self._kind_is_from} says {self._kind}.")
        self._set_kind(kind, METADATA)

    def _set_kind(self, kind: str, source: str) -> None:
        self._kind, self._kind_is_from, self.parameters = kind, source, PARAMETERS[kind]

    def _video(self, name: str, where: str, is_first: bool) -> Iterator[_Row]:
        stream = self._stream
        if not stream.begins_object():
            self._fault(f"{where} must be an object of frames, got {_described(stream.value())}.")
            return
        video = self._manifest.get(name) if self._manifest is not None else None
        self._n_videos += 1
        came, this, n_frames = self._came, self._n_videos, 0
        for key in stream.members():
            frame = self._frame_number(name, key, video)
            if frame is not None:
                if came[frame] == this:
                    self._fault(f"{self._where(name, key)} comes twice.")
                else:
                    n_frames += 1
                came[frame] = this
            values = self._numbers(name, key)
            if frame is not None:
                yield name, frame, values
        if video is not None and is_first:
            self.n_there += n_frames
        if video is not None and n_frames < video.frame_count:
            missing = int(np.argmax(came[: video.frame_count] != this))
            others = video.frame_count - n_frames - 1
            rest = f" and {counted(others, 'other')}" if others else ""
            self._fault(f"{where} lacks frame {missing}{rest}; the manifest has {_frames(video)}.")
        elif not n_frames:
            self._fault(f"{where} has no frame.")

    def _where(self, name: str, key: str) -> str:
        """The place of the key or value that was taken last."""
        return f"{self._stream.place()}: video {quoted(name)}, frame {_shown_number(key)}"

    def _frame_number(self, name: str, key: str, video: Video | None) -> int | None:
        if not _PLAIN_NUMBER.fullmatch(key):
            where = self._where(name, key)
            truth = " This is the truth of a clip." if key.startswith(_TRUTH) else ""
            self._fault(f"{where} is not a plain number such as 0 or 12.{truth}")
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
            place = f"video {quoted(name)}, frame {_shown_number(key)}"
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

    def _sorted(self, name: str, key: str, pairs: JsonObject) -> tuple[Any, ...] | None:
        where = self._where(name, key)
        for kind, parameters in PARAMETERS.items():
            if kind != self._kind and {pair[0] for pair in pairs} == set(parameters):
                self._fault(
                    f"{where} is a {kind} camera, but {self._kind_is_from} says {self._kind}."
                )
                return None
        return self._by_key(where, pairs, self.parameters)

    def _by_key(
        self, where: str, pairs: JsonObject, wanted: tuple[str, ...]
    ) -> tuple[Any, ...] | None:
        """The values in the order of the keys ``wanted``, each of which must be there once."""
        values: dict[str, Any] = {}
        for key, value in pairs:
            if key not in wanted:
                known = ", ".join(wanted)
                self._fault(f"{where}: {quoted(key)} is not known here; the keys are {known}.")
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


def is_name(text: str) -> bool:
    """Whether it is a name, and one that can be written down: lone surrogates cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return bool(text.strip()) and len(text) <= _LONGEST_NAME


def method_problem(method: str) -> str:
    """What the benchmark would say against a method's name; empty if nothing."""
    if len(method) <= MOST_METHOD and _METHOD_NAME.fullmatch(method):
        return ""
    return (
        f"must be 1 to {MOST_METHOD} of the letters A to Z, digits, _ and -, and not begin with "
        f"-, got {_described(method)}: the benchmark takes no other."
    )


def file_name_problem(path: Path) -> str:
    """What the benchmark would say against the name of a submission's file; empty if nothing."""
    if _FILE_NAME.fullmatch(path.name):
        return ""
    return (
        f"{path}: the name of a submission's file has letters A to Z, digits, _, - and ., begins "
        "with none of - and ., and ends in .json: the benchmark takes no other. Rename it."
    )


def manifests_problem(version: str, given: int) -> str:
    """That a version's videos are those of another number of manifests than given."""
    wanted = counted(MANIFESTS[version], "manifest")
    advice = (
        f"give --manifest {MANIFESTS[version]} times, once for each of "
        f"{' and '.join(VERSIONS[:2])}."
        if version == VERSIONS[2]
        else f"a submission to both is version {VERSIONS[2]}."
    )
    count = f"{given} is" if given == 1 else f"{given} are"
    return f"version {version} has the videos of {wanted}, and {count} given: {advice}"


def _frames(video: Video) -> str:
    n = video.frame_count
    return "1 frame, 0" if n == 1 else f"{n} frames, 0 to {n - 1}"


def quoted(text: str) -> str:
    """Foreign text for a message: in quotes, on one line, not too long."""
    if len(text) > _LONGEST_SHOWN:
        text = text[:_LONGEST_SHOWN] + "..."
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _shown_number(key: str) -> str:
    plain = _PLAIN_NUMBER.fullmatch(key) and len(key) <= _LONGEST_SHOWN
    return key if plain else quoted(key)


def _described(value: object) -> str:
    """A JSON value for a message."""
    match value:
        case BareConstant():
            return f"{value.name}, which JSON does not have"
        case str():
            return f"the text {quoted(value)}"
        case None | bool():
            return json.dumps(value)
        case float():
            return f"{value:g}" if math.isfinite(value) else "one too large to be read"
        case tuple():
            return "an object"
        case _:
            return "a list"
