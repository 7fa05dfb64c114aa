"""What the lens reported with every frame of a clip."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.rig import ReportedRig


@dataclass(frozen=True, eq=False)
class LensMetadata:
    """Lens focal length and focus distance (n,) of frames (n,), in increasing order.

    A value that the lens did not tell is NaN; a lens focused at infinity has an infinite FD.
    ``rig`` is which lens and camera the metadata say they are of.
    """

    frame: IntArray
    lfl_mm: FloatArray
    fd_m: FloatArray
    rig: ReportedRig = field(default_factory=ReportedRig)

    @property
    def told(self) -> BoolArray:
        """(n,) frames with both values."""
        return np.asarray(~(np.isnan(self.lfl_mm) | np.isnan(self.fd_m)))

    def some(self, chosen: BoolArray) -> LensMetadata:
        """The frames chosen (n,)."""
        return LensMetadata(self.frame[chosen], self.lfl_mm[chosen], self.fd_m[chosen], self.rig)
