"""How tags or markers that were read one by one are laid out: in how many columns.

Ids run row by row, so a number of columns says where each id lies on its board. The right number
is the one for which one homography takes all of them to where they are in the picture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np

from influx_wrap.model.arrays import FloatArray, IntArray

MAX_COLS = 60
MIN_READ = 4
MAX_OFF = 0.2
LEAD = 3.0
"""How far tags may lie off their places on average, in distances from tag to tag, and how many
times farther they must lie with any other number of columns."""

PlaceOf = Callable[[IntArray, int], FloatArray]
"""Places (n, 2) of ids (n,) on a board with so many columns: x right and y up or down."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Columns of a board, how far its tags are off (in distances), and (3, 3) its plane."""

    cols: int
    off: float
    homography: FloatArray


def grid_place(ids: IntArray, cols: int) -> FloatArray:
    """Of an AprilGrid: every place has a tag; y up."""
    return np.stack([ids % cols, ids // cols], axis=1).astype(float)


def charuco_place(ids: IntArray, cols: int) -> FloatArray:
    """Of a ChArUco board: every other square has a marker, the top left has none; y down."""
    return _every_other(ids, cols, first=1)


def legacy_place(ids: IntArray, cols: int) -> FloatArray:
    """Of a ChArUco board whose top left square has a marker; y down."""
    return _every_other(ids, cols, first=0)


def _every_other(ids: IntArray, cols: int, first: int) -> FloatArray:
    # Squares in reading order; with an odd number of columns every second one has a marker.
    if cols % 2:
        row, col = np.divmod(2 * ids + first, cols)
    else:
        row, half = np.divmod(ids, cols // 2)
        col = 2 * half + (row + first) % 2
    return np.stack([col, row], axis=1).astype(float)


def find_layout(ids: IntArray, centres: FloatArray, place: PlaceOf) -> Layout | None:
    """The layout of ids (n,) with centres (n, 2) in a picture; None if no one fits alone."""
    if len(ids) < MIN_READ:
        return None
    layouts = []
    for cols in range(2, min(MAX_COLS, int(ids.max()) + 2) + 1):
        places = place(ids, cols)
        if min(np.ptp(places, axis=0)) < 1:
            continue
        homography, _ = cv2.findHomography(places, centres, cv2.LMEDS)
        if homography is None or abs(np.linalg.det(homography)) < 1e-9:
            continue
        seen = cv2.perspectiveTransform(centres[None], np.linalg.inv(homography))[0]
        # A misread tag counts as one distance, wherever it is.
        off = float(np.minimum(np.linalg.norm(seen - places, axis=1), 1.0).mean())
        layouts.append(Layout(cols, off, np.asarray(homography, dtype=float)))
    layouts.sort(key=lambda layout: layout.off)
    if not layouts or layouts[0].off > MAX_OFF:
        return None
    if len(layouts) > 1 and layouts[1].off < LEAD * max(layouts[0].off, 0.01):
        return None
    return layouts[0]
