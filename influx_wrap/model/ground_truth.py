"""The true intrinsics of a clip's frames, with what the lens told there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.lens_metadata import LensMetadata


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """The n frames of a clip.

    metadata         what the lens told, NaN where nothing
    intrinsics       (n, 8) in the order of ``NAMES``, pixel (0, 0) a pixel's centre; NaN where
                     there is no answer
    is_interpolated  (n,) False where the answer was extrapolated, or there is none
    sigma            (n, 8) standard deviations; None if they are not known
    """

    metadata: LensMetadata
    intrinsics: FloatArray
    is_interpolated: BoolArray
    sigma: FloatArray | None = None

    @property
    def answered(self) -> BoolArray:
        """(n,) frames with intrinsics."""
        return np.asarray(~np.isnan(self.intrinsics[:, 0]))
