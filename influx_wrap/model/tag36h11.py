"""The tag family of Kalibr's AprilGrids: 587 tags of 6 x 6 cells, tag36h11.

Two tags differ in at least 11 cells in every orientation, hence the name. OpenCV knows the cells.
Around them Kalibr prints a black border of two cells, so a tag is 10 cells wide; other programs
print one.

On the sheet the tags stand upside down with respect to OpenCV's pictures of them:
what OpenCV calls a tag's first corner (top left) is the bottom right one here.
"""

from __future__ import annotations

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray

N_TAGS = 587
CODE_CELLS = 6
BORDER_CELLS = 2


def tag_cells(tag_id: int, border_cells: int = BORDER_CELLS) -> BoolArray:
    """Cells (n, n) of a tag with its border, 10 x 10 in Kalibr's, top row first; True is black."""
    import cv2  # for nothing but this

    if not 0 <= tag_id < N_TAGS:
        raise InputError(f"tag36h11 has ids 0 to {N_TAGS - 1}; there is no tag {tag_id}.")
    family = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_APRILTAG_36h11)
    drawn = cv2.aruco.generateImageMarker(family, tag_id, CODE_CELLS + 2)
    code = drawn[1:-1, 1:-1][::-1, ::-1] == 0
    return np.pad(code, border_cells, constant_values=True)
