"""Where a picture may have the corner of four squares, two of them dark."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from influx_wrap.compute.jit import jit

RING_PX = 5
RING = ((0, -5), (2, -5), (4, -4), (5, -2), (5, 0), (5, 2), (4, 4), (2, 5))
"""Half of a ring of 16 pixels (x, y); the other half lies opposite."""


@jit
def crossing_response(image: NDArray[np.uint8], least: int) -> NDArray[np.int16]:
    """(H, W) how much the ring around each pixel of a picture (H, W) looks like four squares.

    Opposite pixels of the ring are alike there (their differences are subtracted), those a
    quarter turn apart differ (added), and the mean of the ring is the grey value in the middle
    (what it differs is subtracted). An edge, a line or a dot has no positive answer. 0 where no
    quarter turn makes a difference of ``least`` grey values.
    """
    height, width = image.shape
    response = np.zeros((height, width), np.int16)
    for y in range(RING_PX, height - RING_PX):
        for x in range(RING_PX, width - RING_PX):
            q0 = np.int32(image[y - 5, x]) + np.int32(image[y + 5, x])
            q4 = np.int32(image[y, x + 5]) + np.int32(image[y, x - 5])
            q2 = np.int32(image[y - 4, x + 4]) + np.int32(image[y + 4, x - 4])
            q6 = np.int32(image[y + 4, x + 4]) + np.int32(image[y - 4, x - 4])
            upright, oblique = abs(q0 - q4), abs(q2 - q6)
            if max(upright, oblique) < 2 * least:
                continue
            turned, opposite, total = upright + oblique, np.int32(0), np.int32(0)
            for k in range(8):
                across, down = RING[k]
                one = np.int32(image[y + down, x + across])
                other = np.int32(image[y - down, x - across])
                opposite += abs(one - other)
                total += one + other
            for k in (1, 3):
                a0, d0 = RING[k]
                a1, d1 = RING[k + 4]
                first = np.int32(image[y + d0, x + a0]) + np.int32(image[y - d0, x - a0])
                second = np.int32(image[y + d1, x + a1]) + np.int32(image[y - d1, x - a1])
                turned += abs(first - second)
            middle = np.int32(image[y, x]) + np.int32(image[y - 1, x]) + np.int32(image[y + 1, x])
            middle += np.int32(image[y, x - 1]) + np.int32(image[y, x + 1])
            score = turned - opposite - abs(total - 16 * middle // 5)
            if score > 0:
                response[y, x] = score
    return response
