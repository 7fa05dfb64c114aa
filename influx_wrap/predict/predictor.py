"""What every predictor is: a video in, intrinsics of its frames out, NaN where it has none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray, Picture
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.model.predictions import RAD_TAN, VideoPredictions
from influx_wrap.observe.frames import FrameSource, GreyInput, TruncatedInput
from influx_wrap.observe.sources import open_frames

SettingValue: TypeAlias = str | int | float
"""One choice of a method."""


class MethodError(Exception):
    """A method failed on a video, which costs that video and no other."""


class Footage:
    """A video, opened when it is needed, and what else is known of it.

    name      of the video in the benchmark
    metadata  what the lens reported, for the method that takes it for the truth
    truth     for the methods that only pretend to predict
    """

    def __init__(
        self,
        name: str,
        path: Path,
        metadata: LensMetadata | None = None,
        truth: GroundTruth | None = None,
    ) -> None:
        self.name = name
        self.path = path
        self.metadata = metadata
        self.truth = truth
        self._source: FrameSource | None = None

    @property
    def source(self) -> FrameSource:
        """The frames, in colour if there is any."""
        if self._source is None:
            try:
                self._source = open_frames(self.path, colour=True)
            except GreyInput:
                self._source = open_frames(self.path)
        return self._source

    def close(self) -> None:
        """Let go of the frames, and of the files a raw clip was developed into."""
        self._source = None

    def pictures(self) -> Iterator[tuple[int, Picture]]:
        """(index, picture) of all frames, 8 bits deep."""
        for index, picture in self.source.frames():
            yield index, (picture >> 8).astype(np.uint8) if picture.itemsize == 2 else picture

    def count(self) -> int:
        """The number of frames, as the recording says it or, if it does not, as read."""
        if self.source.n_frames is not None:
            return self.source.n_frames
        n = 0
        try:
            for index, _ in self.source.frames():
                n = index + 1
        except TruncatedInput as error:
            return error.n_read
        return n


@dataclass(frozen=True, eq=False)
class Predicted:
    """The answers for a video.

    warnings  sentences about what is missing, and why
    whole     False if the recording could be read in part only
    """

    answers: VideoPredictions
    warnings: tuple[str, ...] = ()
    whole: bool = True


class Predictor(ABC):
    """A method, ready for one video after the other.

    name  of the method, in results
    """

    name: str

    @property
    def kind(self) -> str:
        """Of camera, one of ``PARAMETERS``."""
        return RAD_TAN

    @abstractmethod
    def predict(self, footage: Footage, progress: Progress) -> Predicted:
        """Intrinsics of all frames; raises ``MethodError`` if there are none because of a fault."""

    def close(self) -> None:  # noqa: B027 - most have nothing open
        """No more videos will come."""


def all_frames(values: FloatArray) -> VideoPredictions:
    """Answers (n, P) for the frames 0 to n - 1."""
    return VideoPredictions(np.arange(len(values), dtype=np.int64), values)


def typed_settings(
    method: str, defaults: Mapping[str, SettingValue], given: Mapping[str, str]
) -> dict[str, SettingValue]:
    """The defaults, some replaced by texts, which must be what the default is."""
    settings = dict(defaults)
    for key, text in given.items():
        if key not in defaults:
            known = ", ".join(defaults) if defaults else "none"
            raise InputError(f"{method} has no setting {key}; its settings are: {known}.")
        kind = type(defaults[key])
        try:
            settings[key] = kind(text)
        except ValueError:
            wanted = "a whole number" if kind is int else "a number"
            raise InputError(f"{method}: {key} must be {wanted}, got {text!r}.") from None
    return settings
