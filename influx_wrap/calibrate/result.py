"""What a calibration returns, and how it fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from influx_wrap.calibrate.recipe import Recipe
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import project
from influx_wrap.model.result import CalibrationResult, Failure


class CalibrationError(RuntimeError):
    """A calibration that found no answer: at which stage, why, and what to try."""

    def __init__(self, stage: str, reason: str, advice: str) -> None:
        super().__init__(f"{stage}: {reason}. {advice}")
        self.stage = stage
        self.reason = reason
        self.advice = advice

    def __reduce__(self) -> tuple[type[CalibrationError], tuple[str, str, str]]:
        return type(self), (self.stage, self.reason, self.advice)

    @property
    def failure(self) -> Failure:
        """The same as a record has it."""
        return Failure(self.stage, self.reason, self.advice)


@dataclass(frozen=True, eq=False, kw_only=True)
class Calibration(CalibrationResult):
    """A calibration just made: its result, what it was asked for, and where the views are.

    poses  (V, 12) from the target to camera space: rotation matrix row by row, translation in
           the target's unit; of views that were not used, where they were at the start
    """

    recipe: Recipe
    seed: int
    poses: FloatArray

    def project(self, points: ArrayLike) -> FloatArray:
        """Pixels (..., 2) of points (..., 3) in camera space; NaN where the camera sees none."""
        return project(self.intrinsics, points)[0]

    def undistort(self, picture: NDArray[Any]) -> NDArray[Any]:
        """The picture (H, W) or (H, W, 3) as a pinhole camera with the same fx, fy, cx, cy sees it.

        Example:
            straight = fit.undistort(cv2.imread("frame.png"))
        """
        fx, fy, cx, cy, *distortion = self.intrinsics.array.tolist()
        matrix = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
        return np.asarray(cv2.undistort(picture, matrix, np.array(distortion)))
