"""The true intrinsics of a clip's frames, with what the lens told there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.model.rig import FilmedWith

MOST_OFF_CENTRE = 0.2
"""No camera has its principal point farther off the middle, as a share of width or height. That of
pictures scaled to half their size, the usual mistake, is off by a quarter."""


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """The n frames of a clip.

    metadata         what the lens told, NaN where nothing
    intrinsics       (n, 8) in the order of ``NAMES``, pixel (0, 0) a pixel's centre; NaN where
                     there is no answer
    is_interpolated  (n,) False where the answer was extrapolated, or there is none
    sigma            (n, 8) standard deviations, NaN where they are not known; None if none is
    filmed_with      lens, camera and picture size; None if they are not known
    """

    metadata: LensMetadata
    intrinsics: FloatArray
    is_interpolated: BoolArray
    sigma: FloatArray | None = None
    filmed_with: FilmedWith | None = None

    @property
    def answered(self) -> BoolArray:
        """(n,) frames with intrinsics."""
        return np.asarray(~np.isnan(self.intrinsics[:, 0]))

    @property
    def principal_point(self) -> FloatArray:
        """(2,) median over the frames with intrinsics; NaN if there are none."""
        points = self.intrinsics[self.answered, 2:4]
        return np.median(points, axis=0) if len(points) else np.full(2, np.nan)

    def share_off_centre(self, image_size: tuple[int, int]) -> float:
        """How far the principal point is off the middle of pictures of this size, as a share of
        their width or height, whichever is more; 0 if there is none."""
        off = np.abs((self.principal_point + 0.5) / np.array(image_size) - 0.5)
        return float(np.nan_to_num(off.max()))
