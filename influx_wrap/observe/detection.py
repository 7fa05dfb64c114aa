"""What a detector says about one picture, whatever the target."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray, FloatArray


class AmbiguousPicture(InputError):
    """A picture shows the target, or a part of it, more than once."""


@dataclass(frozen=True, eq=False)
class Detection:
    """Corners of one picture.

    uv          (T, 2) pixels, centres at integers; NaN where not found
    confidence  (T,) from 0 to 1: contrast around the corner relative to the board's; 0 where
                not found
    """

    uv: FloatArray
    confidence: FloatArray

    @property
    def found(self) -> BoolArray:
        """(T,) which corners were found."""
        return self.confidence > 0


def nothing_found(n_points: int) -> Detection:
    """A picture without the target."""
    return Detection(np.full((n_points, 2), np.nan), np.zeros(n_points))


def as_8_bit(image: np.ndarray) -> np.ndarray:
    """A grey picture (H, W) of 8 or 16 bit as ``uint8``; 16 bit are scaled to their maximum."""
    if image.ndim != 2:
        raise InputError(f"a grey picture (H, W) is needed, got {image.shape}.")
    if image.dtype == np.uint16:
        return np.asarray(cv2.convertScaleAbs(image, alpha=255 / max(int(image.max()), 1)))
    if image.dtype != np.uint8:
        raise InputError(f"a picture of 8 or 16 bit is needed, got {image.dtype}.")
    return image


def cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """(...) cross products of vectors (..., 2): the signed areas they span."""
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])
