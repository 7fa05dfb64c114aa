"""A clip's intrinsics, frame by frame: what annotating a clip gives and exports take."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.intrinsics import NAMES, Intrinsics

FOCAL_PX = (1e-3, 1e9)
MOST_PX_OR_1 = 1e9
"""Limits of what may be intrinsics at all: arithmetic holds far beyond any camera's, but not
everywhere."""
PITCH_UM = (1e-2, 1e4)


def are_cameras(intrinsics: FloatArray) -> BoolArray:
    """(n,) whether rows (n, 8) may be a camera's: finite, with positive focal lengths, and no
    number that only a mistake makes."""
    focal = intrinsics[:, :2]
    good = ((focal >= FOCAL_PX[0]) & (focal <= FOCAL_PX[1])).all(axis=1)
    return np.asarray(good & (np.abs(intrinsics) <= MOST_PX_OR_1).all(axis=1))


@dataclass(frozen=True, eq=False)
class Clip:
    """The n frames of a clip, or n settings of a lens.

    image_size  (width, height) in pixels
    pixel_um    (2,) pitch of the sensor's pixels in x and in y
    frames      (n,) frame numbers, from 0, each once
    lfl_mm      (n,) lens focal lengths
    fd_m        (n,) focus distances, infinity included
    intrinsics  (n, 8) in the order of ``NAMES``, pixel (0, 0) a pixel's centre; rows of NaN
                where there is no answer
    doubts      why image size and pitch may be those of another camera, a sentence each
    lens_name, camera_name  of what it was filmed with; None where nobody said
    """

    name: str
    image_size: tuple[int, int]
    pixel_um: tuple[float, float]
    frames: IntArray
    lfl_mm: FloatArray
    fd_m: FloatArray
    intrinsics: FloatArray
    doubts: tuple[str, ...] = ()
    lens_name: str | None = None
    camera_name: str | None = None

    def __post_init__(self) -> None:
        n = len(self.frames)
        shapes = {"frames": (n,), "lfl_mm": (n,), "fd_m": (n,), "intrinsics": (n, len(NAMES))}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise InputError(f"{name} of clip {self.name} must be of shape {shape}.")
        if min(self.image_size) <= 0 or not all(
            PITCH_UM[0] <= pitch <= PITCH_UM[1] for pitch in self.pixel_um
        ):
            raise InputError(
                f"the images and pixels of clip {self.name} must have a size, pixels one from "
                f"{PITCH_UM[0]:g} to {PITCH_UM[1]:g} um."
            )
        if n and self.frames.min() < 0:
            raise InputError(f"clip {self.name} has a frame {self.frames.min()}: count from 0.")
        numbers, count = np.unique(self.frames, return_counts=True)
        if (count > 1).any():
            again = numbers[np.argmax(count > 1)]
            raise InputError(
                f"clip {self.name} has frame {again} more than once: keep one of them."
            )
        settings = (self.lfl_mm > 0) & np.isfinite(self.lfl_mm) & (self.fd_m > 0)
        bad = ~(settings & are_cameras(self.intrinsics)) & ~np.isnan(self.intrinsics).all(axis=1)
        if bad.any():
            frame = self.frames[np.argmax(bad)]
            raise InputError(
                f"frame {frame} of clip {self.name} has intrinsics or a lens setting that no "
                "camera has: all eight must be finite, and focal lengths and distances positive."
            )

    @property
    def answered(self) -> BoolArray:
        """(n,) where there are intrinsics."""
        return np.asarray(np.isfinite(self.intrinsics).all(axis=1))

    def rows(self, rows: IntArray | BoolArray) -> Clip:
        """The clip with some of its frames, by index (m,) or where True (n,)."""
        return replace(
            self,
            frames=self.frames[rows],
            lfl_mm=self.lfl_mm[rows],
            fd_m=self.fd_m[rows],
            intrinsics=self.intrinsics[rows],
        )

    def camera(self, row: int) -> Intrinsics:
        """The intrinsics in a row."""
        return Intrinsics.from_array(self.intrinsics[row])
