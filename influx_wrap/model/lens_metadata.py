"""What the lens reported with every frame of a clip."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.rig import ReportedRig


@dataclass(frozen=True)
class ReportedClip:
    """How long a clip is and how fast it was filmed by its metadata; None where they do not say."""

    n_frames: int | None = None
    fps: float | None = None


@dataclass(frozen=True, eq=False)
class Channel:
    """A second record of LFL or FD beside the one that is used.

    quantity   LFL or FD
    used       what the file calls the record that is used
    name       what it calls this one
    values     (n,) in mm or m, or counts of an encoder; NaN where there is none
    is_counts  whether they are an encoder's counts, which have no unit
    """

    quantity: str
    used: str
    name: str
    values: FloatArray
    is_counts: bool = False


@dataclass(frozen=True, eq=False)
class LensMetadata:
    """Lens focal length and focus distance (n,) of frames (n,), in increasing order.

    A value that the lens did not tell is NaN; a lens focused at infinity has an infinite FD.
    ``rig`` is which lens and camera the metadata say they are of, ``clip`` how long the clip is,
    ``channels`` are further records of the same values, and ``notes`` what a reader must know of
    how the file was understood, a sentence each.
    """

    frame: IntArray
    lfl_mm: FloatArray
    fd_m: FloatArray
    rig: ReportedRig = field(default_factory=ReportedRig)
    clip: ReportedClip = field(default_factory=ReportedClip)
    channels: tuple[Channel, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def told(self) -> BoolArray:
        """(n,) frames with both values."""
        return np.asarray(~(np.isnan(self.lfl_mm) | np.isnan(self.fd_m)))

    def some(self, chosen: BoolArray | IntArray) -> LensMetadata:
        """The frames chosen (n,), by a mask or by their places in order."""
        return replace(
            self,
            frame=self.frame[chosen],
            lfl_mm=self.lfl_mm[chosen],
            fd_m=self.fd_m[chosen],
            channels=tuple(
                replace(channel, values=channel.values[chosen]) for channel in self.channels
            ),
        )
