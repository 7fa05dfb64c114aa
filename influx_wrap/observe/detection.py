"""What a detector says about one picture, whatever the target."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray, FloatArray

BORDER_PX = 4.0
"""Corners nearer to the picture's edge are not used, as in Kalibr."""


class AmbiguousPicture(InputError):
    """A picture shows the target, or a part of it, more than once."""


@dataclass(frozen=True, eq=False)
class Detection:
    """Corners of one picture.

    uv          (T, 2) pixels, centres at integers; NaN where not found
    confidence  (T,) from 0 to 1: how well the picture around the point agrees with what is
                printed there; 0 where not found
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


def reduced(image: np.ndarray, scale: int) -> np.ndarray:
    """A picture (H // scale, W // scale), each pixel the mean of ``scale`` by ``scale``; one
    that is too small for that as it is."""
    if scale == 1 or min(image.shape) < scale:
        return image
    size = (image.shape[1] // scale, image.shape[0] // scale)
    cropped = image[: size[1] * scale, : size[0] * scale]
    return np.asarray(cv2.resize(cropped, size, interpolation=cv2.INTER_AREA))


def full_size(uv: FloatArray, scale: int) -> FloatArray:
    """Pixels (..., 2) of a picture that was ``reduced`` in the full one."""
    # Pixel centres of the reduced picture lie between those of the full one.
    return np.asarray(uv * scale + (scale - 1) / 2)


def grey_values(image: np.ndarray, uv: FloatArray) -> FloatArray:
    """(n, m) of a picture (H, W) at pixels (n, m, 2), interpolated; the edge's beyond it."""
    if uv.size == 0:
        return np.zeros(uv.shape[:-1])
    at = uv.astype(np.float32)
    values = cv2.remap(
        image, at[..., 0], at[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    return np.asarray(values, dtype=float)


def inside_picture(uv: FloatArray, image: np.ndarray) -> BoolArray:
    """(...) which pixels (..., 2) lie in a picture (H, W), not too near to its edge."""
    last = np.array(image.shape[::-1]) - 1
    return np.asarray(((uv >= BORDER_PX) & (uv <= last - BORDER_PX)).all(axis=-1))
