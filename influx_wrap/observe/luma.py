"""A grey frame as the decoder left it: looked at in a small picture, converted only on request.

To convert a picture of ten bits, or to copy one of eight, takes as long as to look at it. Most
frames of a video are looked at in a reduced picture of the board's surroundings alone, which is
made from the decoder's own memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from influx_wrap.model.arrays import Picture

Window = tuple[slice, slice]
"""Rows and columns of a full picture."""


@dataclass(frozen=True, eq=False)
class Luma:
    """The luma plane of a frame.

    plane  (H, W) of 8 or 16 bits; may be the memory of a decoder
    shift  by how many bits a value of 16 bits is to be moved up to fill them; 0 if it does
    white  the value that is white in an 8-bit picture: 255, or the top of the plane's scale
    """

    plane: NDArray[Any]
    shift: int
    white: float

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        return self.plane.shape[1], self.plane.shape[0]

    def picture(self) -> Picture:
        """(H, W) of 8 or 16 bits, those of 16 on their full scale; may be the plane itself."""
        if self.shift:
            return np.left_shift(self.plane, self.shift)
        return np.ascontiguousarray(self.plane)

    def small(self, scale: int, window: Window) -> NDArray[np.uint8]:
        """(h, w) of 8 bits, a ``window`` in which ``scale`` x ``scale`` pixels, a power of two,
        have become one, their mean."""
        part = self.plane[window]
        while scale > 1 and min(part.shape) >= 2:
            rows, cols = part.shape[0] // 2, part.shape[1] // 2
            # Halving is what OpenCV has fast code for.
            part = cv2.resize(
                part[: 2 * rows, : 2 * cols], (cols, rows), interpolation=cv2.INTER_AREA
            )
            scale //= 2
        if part.dtype != np.uint8:
            part = cv2.convertScaleAbs(part, alpha=255 / self.white)
        return np.ascontiguousarray(part)


def luma_of(picture: Picture) -> Luma:
    """A picture that was read or made; one of 16 bits may use a part of them only."""
    white = 255.0 if picture.dtype == np.uint8 else float(max(int(picture.max()), 1))
    return Luma(picture, 0, white)
