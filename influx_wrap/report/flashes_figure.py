"""A contact sheet of the LED's flashes: the surroundings of each, enlarged, its centre marked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from influx_wrap.model.flashes import Flashes
from influx_wrap.report.contact_sheet import ContactSheet

FLASH_TILE_PX, TILES_A_ROW = 240, 6
GAP_PX = 8
LEAST_SHOWN_PX = 40
"""A small LED is shown with this many pixels around it each way in all."""

SHOWN_AXES = 2.5
"""Width of what is shown, in major axes of the LED."""

_MISSING = 225
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
    sheet = ContactSheet(
        len(flashes.frames), TILES_A_ROW, (FLASH_TILE_PX, FLASH_TILE_PX),
        label_px=20, baseline_px=6, gap_px=GAP_PX, text_scale=0.45,
    )  # fmt: skip
    missing = set(flashes.frames.tolist())
    for frame, picture in _with_blanks(pictures, missing):
        for index in np.flatnonzero(flashes.frames == frame).tolist():
            tile = _MISSING if picture is None else _tile(picture, flashes, index)
            sheet.place(index, tile, f"{index}: frame {frame}, rule {flashes.rule[index]}")
    sheet.write(path)
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
    """(H, W, 3) of a tile: the LED in the middle, to the pixel; a cross open where it is."""
    u, v = flashes.uv[index].tolist()
    shown = max(SHOWN_AXES * float(flashes.radii_px[index, 0]), LEAST_SHOWN_PX)
    scale = FLASH_TILE_PX / shown
    # Of the tile's pixels, which have their centres at integers too, the middle shows (u, v).
    middle = (FLASH_TILE_PX - 1) / 2
    to_tile = np.array([[scale, 0, middle - scale * u], [0, scale, middle - scale * v]])
    tile = cv2.warpAffine(picture, to_tile, (FLASH_TILE_PX, FLASH_TILE_PX), flags=cv2.INTER_NEAREST)
    centre = round(middle)
    for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        begin = (centre + dx * _MARK_GAP_PX, centre + dy * _MARK_GAP_PX)
        end = (centre + dx * _MARK_PX, centre + dy * _MARK_PX)
        cv2.line(tile, begin, end, _MARK_BGR, 1)
    return np.asarray(tile, dtype=np.uint8)
