"""A flight's two records: the LED's flashes in the video, and the receiver's positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray, IntArray

SET_BY_HAND = 0
"""The ``rule`` of a centre that a person put there."""


@dataclass(frozen=True, eq=False)
class Flashes:
    """F flashes in the order of time.

    frames       (F,) first frame of each flash, in which its centre is measured
    last_frames  (F,) last frame of each
    uv           (F, 2) centre of the LED in pixels
    radii_px     (F, 2) the fitted ellipse's major and minor axis, as the paper's rules use them
    rule         (F,) which of the paper's three rules found it, 1 to 3; 0: set by hand
    """

    frames: IntArray
    last_frames: IntArray
    uv: FloatArray
    radii_px: FloatArray
    rule: IntArray
    fps: float
    n_frames: int
    image_size: tuple[int, int]

    def __post_init__(self) -> None:
        if not 0 < self.fps < np.inf:
            raise InputError(f"a video needs a positive frame rate, got {self.fps:g}.")
        order = np.diff(self.frames)
        if len(order) and order.min() < 0:
            first = int(np.argmax(order < 0))
            raise InputError(f"flash {first + 1} is earlier than flash {first}.")
        inside = (self.frames >= 0) & (self.last_frames >= self.frames)
        if not inside.all() or (self.last_frames >= self.n_frames).any():
            raise InputError(f"a flash is outside the video's {self.n_frames} frames.")
        if not np.isfinite(self.uv).all():
            first = int(np.argmin(np.isfinite(self.uv).all(axis=1)))
            raise InputError(f"the centre of flash {first} is not a number.")

    @property
    def time_s(self) -> FloatArray:
        """(F,) when each begins, counted from the video's first frame."""
        return self.frames / self.fps


@dataclass(frozen=True, eq=False)
class Readings:
    """R positions in the order of time.

    time_s         (R,) Unix time, UTC
    xyz_m          (R, 3) Cartesian: east, north, up
    covariance_m2  (R, 3, 3) of xyz_m, NaN for those that have none; None if no reading has one
    ids            a name for each
    """

    time_s: FloatArray
    xyz_m: FloatArray
    covariance_m2: FloatArray | None
    ids: tuple[str, ...]
