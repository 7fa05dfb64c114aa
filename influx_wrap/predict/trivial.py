"""Methods that look at no picture: two that people use today, and two for tests.

``constant`` takes the same focal length for all frames and the picture's middle as principal
point: COLMAP's and others' first guess. ``metadata`` takes the lens focal length (LFL) for the
camera's (CFL), which ignores that focusing changes it. ``perfect`` and ``noisy`` hand out the
truth.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.intrinsics import NAMES, image_centre
from influx_wrap.model.predictions import VideoPredictions
from influx_wrap.predict.predictor import (
    Footage,
    Predicted,
    Predictor,
    SettingValue,
    all_frames,
    typed_settings,
)


@dataclass(frozen=True)
class Constant(Predictor):
    """The same focal length for all frames, in widths of the picture."""

    focal_ratio: float
    name = "constant"
    settings: ClassVar[Mapping[str, SettingValue]] = {"focal_ratio": 1.2}

    def __post_init__(self) -> None:
        if not 0 < self.focal_ratio < math.inf:
            raise InputError(f"constant: focal_ratio must be above 0, got {self.focal_ratio:g}.")

    def predict(self, footage: Footage, progress: Progress) -> Predicted:
        focal_px = self.focal_ratio * footage.source.image_size[0]
        return Predicted(all_frames(_centred(footage, np.full(footage.count(), focal_px))))


@dataclass(frozen=True)
class Metadata(Predictor):
    """The lens's focal length (LFL) taken for the camera's, on a sensor of the given width."""

    sensor_width_mm: float
    name = "metadata"

    def predict(self, footage: Footage, progress: Progress) -> Predicted:
        if footage.metadata is None:
            raise InputError(f"video {footage.name}: the method metadata needs --metadata.")
        n = footage.count()
        frame, lfl_mm = footage.metadata.frame, footage.metadata.lfl_mm
        inside = frame < n
        focal_px = np.full(n, np.nan)
        focal_px[frame[inside]] = lfl_mm[inside]
        focal_px *= footage.source.image_size[0] / self.sensor_width_mm
        warnings = []
        if not inside.all():
            warnings.append(
                f"the metadata list {int((~inside).sum())} frames beyond the {n} of the video."
            )
        untold = int(np.isnan(focal_px).sum())
        if untold:
            warnings.append(f"{untold} of {n} frames have no focal length in the metadata.")
        return Predicted(all_frames(_centred(footage, focal_px)), tuple(warnings))


@dataclass(frozen=True)
class Perfect(Predictor):
    """The truth."""

    name = "perfect"
    settings: ClassVar[Mapping[str, SettingValue]] = {}

    def predict(self, footage: Footage, progress: Progress) -> Predicted:
        truth = _truth(self.name, footage)
        return Predicted(VideoPredictions(truth.metadata.frame, truth.intrinsics))


@dataclass(frozen=True)
class Noisy(Predictor):
    """The truth with a relative error of fx and of fy, and some frames missing.

    sigma    standard deviation of the logarithm of both focal lengths, independently
    missing  share of the frames without an answer
    """

    sigma: float
    missing: float
    seed: int
    name = "noisy"
    settings: ClassVar[Mapping[str, SettingValue]] = {"sigma": 0.05, "missing": 0.1, "seed": 0}

    def __post_init__(self) -> None:
        if not (0 <= self.sigma < math.inf and 0 <= self.missing <= 1 and self.seed >= 0):
            raise InputError("noisy: sigma and seed are at least 0, missing is from 0 to 1.")

    def predict(self, footage: Footage, progress: Progress) -> Predicted:
        truth = _truth(self.name, footage)
        # The same for a video whichever others there are.
        rng = np.random.default_rng([self.seed, zlib.crc32(footage.name.encode())])
        values = truth.intrinsics.copy()
        values[:, :2] *= np.exp(rng.normal(0, self.sigma, (len(values), 2)))
        values[rng.random(len(values)) < self.missing] = np.nan
        return Predicted(VideoPredictions(truth.metadata.frame, values))


def make_trivial(
    name: str, given: Mapping[str, str], sensor_width_mm: float
) -> Constant | Metadata | Perfect | Noisy:
    """The method of that name, one of ``TRIVIAL``, with some settings replaced."""
    if name == Metadata.name:
        typed_settings(name, {}, given)
        return Metadata(sensor_width_mm)
    method = {kind.name: kind for kind in (Constant, Perfect, Noisy)}[name]
    return method(**typed_settings(name, method.settings, given))  # type: ignore[arg-type]


TRIVIAL: dict[str, type[Predictor]] = {
    kind.name: kind for kind in (Constant, Metadata, Perfect, Noisy)
}


def _centred(footage: Footage, focal_px: FloatArray) -> FloatArray:
    """(n, 8) of focal lengths (n,), without distortion; NaN where there is no focal length."""
    values = np.zeros((len(focal_px), len(NAMES)))
    values[:, :2] = focal_px[:, None]
    values[:, 2:4] = image_centre(footage.source.image_size)
    values[np.isnan(focal_px)] = np.nan
    return values


def _truth(name: str, footage: Footage) -> GroundTruth:
    if footage.truth is None:
        raise InputError(f"video {footage.name}: the method {name} needs --truth.")
    return footage.truth
