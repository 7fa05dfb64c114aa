"""A contact sheet of the LED's flashes: the surroundings of each, enlarged, its centre marked.

It is put together picture by picture, as they come out of a decoder.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from influx_wrap.errors import InputError
from influx_wrap.formats.files import write_bytes
from influx_wrap.model.flashes import Flashes

TILE_PX, TILES_A_ROW = 240, 6
LABEL_PX, GAP_PX = 20, 8
LEAST_SHOWN_PX = 40
"""A small LED is shown with this many pixels around it each way in all."""

SHOWN_AXES = 2.5
"""Width of what is shown, in major axes of the LED."""

_PAPER, _INK, _MISSING = 255, 40, 225
_MARK_BGR = (255, 210, 60)
_MARK_GAP_PX, _MARK_PX = 5, 16


def draw_flashes(
    pictures: Iterable[tuple[int, NDArray[np.uint8] | NDArray[np.uint16]]],
    flashes: Flashes,
    path: Path,
) -> list[int]:
    """Write a PNG with a tile for each flash; returns the first frames that were never seen.

    pictures  (frame, picture (H, W, 3) of 8 bits), in any order, among them those in which
              the flashes begin
    """
    n = len(flashes.frames)
    rows, cols = math.ceil(n / TILES_A_ROW), min(n, TILES_A_ROW)
    size = (rows * (TILE_PX + LABEL_PX + GAP_PX) + GAP_PX, cols * (TILE_PX + GAP_PX) + GAP_PX)
    canvas = np.full((*size, 3), _PAPER, dtype=np.uint8)
    missing = set(flashes.frames.tolist())
    for frame, picture in _with_blanks(pictures, missing):
        for index in np.flatnonzero(flashes.frames == frame).tolist():
            row, col = divmod(index, TILES_A_ROW)
            top = GAP_PX + row * (TILE_PX + LABEL_PX + GAP_PX)
            left = GAP_PX + col * (TILE_PX + GAP_PX)
            tile = canvas[top : top + TILE_PX, left : left + TILE_PX]
            tile[:] = _MISSING if picture is None else _tile(picture, flashes, index)
            label = f"{index}: frame {frame}, rule {flashes.rule[index]}"
            place = (left, top + TILE_PX + LABEL_PX - 6)
            font, grey = cv2.FONT_HERSHEY_SIMPLEX, (_INK, _INK, _INK)
            cv2.putText(canvas, label, place, font, 0.45, grey, 1, cv2.LINE_AA)
    done, data = cv2.imencode(".png", canvas)
    if not done:
        raise InputError(f"{path}: the contact sheet cannot be made a PNG.")
    write_bytes(path, data.tobytes())
    return sorted(missing)


def _with_blanks(
    pictures: Iterable[tuple[int, NDArray[np.uint8] | NDArray[np.uint16]]], missing: set[int]
) -> Iterable[tuple[int, NDArray[np.uint8] | NDArray[np.uint16] | None]]:
    """The pictures, each taken out of ``missing``, then nothing for those still in it."""
    for frame, picture in pictures:
        missing.discard(frame)
        yield frame, picture
    yield from ((frame, None) for frame in sorted(missing))


def _tile(
    picture: NDArray[np.uint8] | NDArray[np.uint16], flashes: Flashes, index: int
) -> NDArray[np.uint8]:
    """(TILE_PX, TILE_PX, 3): the LED in the middle, to the pixel; a cross open where it is."""
    u, v = flashes.uv[index].tolist()
    shown = max(SHOWN_AXES * float(flashes.radii_px[index, 0]), LEAST_SHOWN_PX)
    scale = TILE_PX / shown
    # Of the tile's pixels, which have their centres at integers too, the middle shows (u, v).
    middle = (TILE_PX - 1) / 2
    to_tile = np.array([[scale, 0, middle - scale * u], [0, scale, middle - scale * v]])
    tile = cv2.warpAffine(picture, to_tile, (TILE_PX, TILE_PX), flags=cv2.INTER_NEAREST)
    centre = round(middle)
    for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        begin = (centre + dx * _MARK_GAP_PX, centre + dy * _MARK_GAP_PX)
        end = (centre + dx * _MARK_PX, centre + dy * _MARK_PX)
        cv2.line(tile, begin, end, _MARK_BGR, 1)
    return np.asarray(tile, dtype=np.uint8)
