"""What a simulated experiment knows about itself: its noise and its answer."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.intrinsics import Intrinsics, project
from influx_wrap.model.pose import transform
from influx_wrap.model.robust import MAD_SIGMA


@dataclass(frozen=True, slots=True)
class Noise:
    """What is done to perfect observations.

    corner_px     standard deviation of each found coordinate, Gaussian. The detector itself is
                  better: 0.006 px on rendered footage, 0.03 px if that is blurred and grainy
                  (python -m benchmarks --only detection). Real photographs leave 0.1 px and
                  more, as paper is not flat and light not even, so that is what is simulated
    outliers      fraction of the found points that are displaced
    outlier_px    longest displacement
    missing_tags  fraction of the visible tags that are not found
    bow_mm        sag of the board's middle over its rim, bent about a random axis
    rtk_ball_m    radius of the ball in which a drone's position is off, uniformly
    """

    corner_px: float = 0.1
    outliers: float = 0.0
    outlier_px: float = 30.0
    missing_tags: float = 0.0
    bow_mm: float = 0.0
    rtk_ball_m: float = 0.005

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not 0 <= value < math.inf:
                raise InputError(f"noise: {name} must be a number of at least 0, got {value:g}.")
        for name, value in (("outliers", self.outliers), ("missing_tags", self.missing_tags)):
            if value > 1:
                raise InputError(f"noise: {name} is a fraction of at most 1, got {value:g}.")


@dataclass(frozen=True, eq=False)
class Truth:
    """The answer to a simulated experiment of V views of T points.

    rotations      (V, 3, 3) and
    translations   (V, 3): poses from the target to camera space, in the target's unit
    target_points  (T, 3) where the target's points really are, in the target's unit
    bow_m          (3,) coefficients of ``bow_basis``; zero for a point cloud
    outliers       (V, T) the points that were displaced

    Projecting the posed target points with the intrinsics gives the pixels before
    noise and outliers.
    """

    intrinsics: Intrinsics
    rotations: FloatArray
    translations: FloatArray
    target_points: FloatArray
    bow_m: FloatArray
    outliers: BoolArray
    noise: Noise

    @property
    def corner_sigma_px(self) -> float:
        """Standard deviation of each coordinate of a found point."""
        return self.noise.corner_px

    def spread_px(self, uv: FloatArray, valid: BoolArray) -> float:
        """Standard deviation of each coordinate of points found at ``uv`` (V, T, 2), by the
        median of their deviations from the truth.

        A few points that are off by pixels must not make the bound on the answer a loose one.
        """
        points = transform(self.rotations, self.translations, self.target_points)
        exact, _ = project(self.intrinsics, points)
        return MAD_SIGMA * float(np.median(np.abs(uv - exact)[valid]))
