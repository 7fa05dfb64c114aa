"""What a method says the intrinsics of videos' frames are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.intrinsics import NAMES

RAD_TAN, MEI = "rad-tan", "mei"
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    RAD_TAN: NAMES,
    MEI: ("fx", "fy", "cx", "cy", "xi"),
}
"""The kinds of camera a prediction may be, and their parameters: Brown-Conrady, or the unified
camera (Mei), which sees (X, Y, Z) at fx X / (Z + xi |XYZ|) + cx."""


@dataclass(frozen=True, eq=False)
class VideoPredictions:
    """n frames of a video.

    frames  (n,) their numbers, ascending
    values  (n, P) in the order of ``PARAMETERS``; NaN where the method has no answer
    """

    frames: IntArray
    values: FloatArray

    def __post_init__(self) -> None:
        if len(self.frames) != len(self.values) or (np.diff(self.frames) <= 0).any():
            raise InputError("predictions need a row for each frame, in ascending order.")

    @property
    def answered(self) -> BoolArray:
        """(n,) frames with an answer: all of its numbers."""
        return np.asarray(np.isfinite(self.values).all(axis=1))


@dataclass(frozen=True, eq=False)
class Predictions:
    """A method's answers; ``kind`` is one of ``PARAMETERS``, ``version`` that of the benchmark."""

    method: str
    kind: str
    version: str
    videos: Mapping[str, VideoPredictions]

    def __post_init__(self) -> None:
        if self.kind not in PARAMETERS:
            raise InputError(f"predictions are {' or '.join(PARAMETERS)}, not {self.kind!r}.")
        n = len(PARAMETERS[self.kind])
        for name, video in self.videos.items():
            if video.values.ndim != 2 or video.values.shape[1] != n:
                raise InputError(f"video {name}: a {self.kind} camera has {n} parameters.")
