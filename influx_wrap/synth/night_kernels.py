"""The hot loops of the night's pictures: a dark frame with its grain, and the glow of lights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from influx_wrap.compute.jit import jit
from influx_wrap.model.arrays import FloatArray, IntArray


@jit
def develop_dark(
    level: NDArray[np.uint16],
    sigma: NDArray[np.uint8],
    grain: NDArray[np.int8],
    start: IntArray,
    out: NDArray[np.uint8],
) -> None:
    """A frame of bytes (H, N) from its levels (H, N) in 1/256 and their noise (H, N) in 1/8.

    Row v takes its grain, in 1/32 of a standard deviation, from ``start[v]`` on.
    """
    height, n = level.shape
    for v in range(height):
        # Slices, not offsets in the index: only then does the compiler use SIMD.
        levels, sigmas, row = level[v], sigma[v], out[v]
        grains = grain[start[v] : start[v] + n]
        for k in range(n):
            value = np.int32(levels[k]) + np.int32(sigmas[k]) * np.int32(grains[k]) + 128
            row[k] = np.uint8(min(max(value >> 8, np.int32(0)), np.int32(255)))


@jit
def add_glows(glows: FloatArray, u0: int, v0: int, light: FloatArray) -> None:
    """Add lights to linear light (h, w, 3) whose first pixel is (u0, v0) of the picture.

    A glow (12,) is its centre u, v; m_uu, m_uv, m_vv of the form q that is 1 where it is
    half a width from the centre; the exponent of (1 + q)^-exponent; the q where it has faded
    to nothing; its brightness in blue, green and red; and how far it reaches along u and v.
    """
    height, width, _ = light.shape
    for k in range(len(glows)):
        u, v, m_uu, m_uv, m_vv, exponent, q_end = glows[k, :7]
        reach_u, reach_v = glows[k, 10], glows[k, 11]
        first_u, first_v = max(int(u - reach_u), u0), max(int(v - reach_v), v0)
        after_u = min(int(u + reach_u) + 2, u0 + width)
        after_v = min(int(v + reach_v) + 2, v0 + height)
        for row in range(first_v, after_v):
            dv = row - v
            for column in range(first_u, after_u):
                du = column - u
                q = m_uu * du * du + 2 * m_uv * du * dv + m_vv * dv * dv
                if q < q_end:
                    fade = 1 - q / q_end
                    value = fade * fade * np.exp(-exponent * np.log1p(q))
                    for channel in range(3):
                        light[row - v0, column - u0, channel] += value * glows[k, 7 + channel]
