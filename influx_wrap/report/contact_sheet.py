"""A contact sheet: small pictures in rows, each with a label below it, in one PNG.

It is put together picture by picture, as they come out of a decoder: only the sheet itself is in
memory.
"""

from __future__ import annotations

import math
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import ArrayLike

from influx_wrap.errors import InputError
from influx_wrap.formats.files import write_bytes

_PAPER, _INK = 255, (40, 40, 40)


class ContactSheet:
    """A canvas (H, W, 3) in OpenCV's order of colours, with a slot for each of n tiles.

    tile_px      width and height of a tile
    label_px     height of a label, the lowest ``baseline_px`` of it below its letters
    gap_px       between tiles and around them
    """

    def __init__(
        self,
        n: int,
        cols: int,
        tile_px: tuple[int, int],
        *,
        label_px: int,
        baseline_px: int,
        gap_px: int,
        text_scale: float,
    ) -> None:
        width, height = tile_px
        self._n_cols, self._tile_px, self._gap_px = min(n, cols), tile_px, gap_px
        self._row_px, self._col_px = height + label_px + gap_px, width + gap_px
        self._text_y, self._text_scale = height + label_px - baseline_px, text_scale
        rows = math.ceil(n / cols)
        size = (rows * self._row_px + gap_px, self._n_cols * self._col_px + gap_px)
        self._canvas = np.full((*size, 3), _PAPER, dtype=np.uint8)

    def place(self, slot: int, tile: ArrayLike, label: str) -> None:
        """Put a tile (height, width, 3), or one grey for all of it, into a slot."""
        row, col = divmod(slot, self._n_cols)
        left, top = self._gap_px + col * self._col_px, self._gap_px + row * self._row_px
        width, height = self._tile_px
        self._canvas[top : top + height, left : left + width] = tile
        cv2.putText(
            self._canvas, label, (left, top + self._text_y), cv2.FONT_HERSHEY_SIMPLEX,
            self._text_scale, _INK, 1, cv2.LINE_AA,
        )  # fmt: skip

    def write(self, path: Path) -> None:
        """Write the sheet as a PNG."""
        done, data = cv2.imencode(".png", self._canvas)
        if not done:
            raise InputError(f"{path}: the contact sheet cannot be made a PNG.")
        write_bytes(path, data.tobytes())
