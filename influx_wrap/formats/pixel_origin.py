"""Where pixel coordinates count from: the centre of the top-left pixel here, its corner there.

The InFlux release, and the methods that follow it, take the top-left pixel's corner for (0, 0),
so that cx and cy are larger by half a pixel than ours.
"""

from __future__ import annotations

from influx_wrap.model.arrays import FloatArray

CORNER_PX = 0.5


def to_corner(values: FloatArray) -> FloatArray:
    """Cameras (n, P), cx and cy third and fourth, counted from the top-left pixel's corner."""
    return _shifted(values, CORNER_PX)


def from_corner(values: FloatArray) -> FloatArray:
    """Cameras (n, P) of a file that counts from the corner, counted from the pixel's centre."""
    return _shifted(values, -CORNER_PX)


def _shifted(values: FloatArray, px: float) -> FloatArray:
    shifted = values.copy()
    shifted[..., 2:4] += px
    return shifted
