"""The page on which a person decides about a flight's flashes: ``review.html``.

One card for every flash and every reading without one, in the order of time, with the
picture at full resolution around the centre and a cross on it. What the page needs is in
it, pictures included: it works from a laptop in a field. Saving hands out ``review.csv``
(``formats.pairs``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.formats.files import write_text
from influx_wrap.formats.pairs import REVIEW, REVIEW_COLUMNS, ReviewRow
from influx_wrap.model.arrays import Picture
from influx_wrap.observe.frames import FrameSource
from influx_wrap.report.page import jpeg_url, page

CROP_PX, WIDE_CROP_PX = 192, 448
WHOLE_WIDTH_PX = 960
CROP_QUALITY, WHOLE_QUALITY = 95, 80


@dataclass(frozen=True)
class Card:
    """One row of the review as it is shown.

    note    what is the matter with it; empty if nothing is
    frames  the frames to choose from
    wide    whether the LED has yet to be found: shows more, and the whole picture
    guess   where the LED is expected; it is no centre until a person puts one there
    """

    row: ReviewRow
    note: str
    frames: tuple[int, ...]
    wide: bool
    guess: tuple[float, float] | None


def write_review_page(
    path: Path,
    cards: Sequence[Card],
    readings: Sequence[str],
    source: FrameSource,
    *,
    title: str,
    progress: Progress,
) -> None:
    """Write the page; ``source`` is the video in colour, ``progress`` hears of the
    pictures read."""
    wanted: dict[int, list[int]] = {}
    for number, card in enumerate(cards):
        for frame in card.frames:
            wanted.setdefault(frame, []).append(number)
    shown: list[list[dict[str, object]]] = [[] for _ in cards]
    progress(0, len(wanted))
    for done, (frame, picture) in enumerate(source.at(wanted), start=1):
        for number in wanted[frame]:
            shown[number].append(_shown(frame, picture, cards[number]))
        progress(done, len(wanted))
    data = {
        "columns": REVIEW_COLUMNS,
        "file": REVIEW,
        "size": source.image_size,
        "readings": list(readings),
        "cards": [
            {
                "flash": card.row.flash or "",
                "reading": card.row.reading or "",
                "frame": card.row.frame,
                "uv": card.row.uv,
                "guess": card.guess,
                "action": card.row.action.value,
                "note": card.note,
                "pictures": pictures,
            }
            for card, pictures in zip(cards, shown, strict=True)
        ],
        "title": title,
    }
    write_text(path, page("review", f"{title}: LED review", data))


def _shown(frame: int, picture: Picture, card: Card) -> dict[str, object]:
    """The parts of a frame that a card shows, as the page takes them."""
    crop = None
    middle = card.row.uv or card.guess
    if middle is not None:
        side = WIDE_CROP_PX if card.wide else CROP_PX
        left, top, piece = _cut(picture, middle, side)
        size = {"width": piece.shape[1], "height": piece.shape[0]}
        crop = {"left": left, "top": top, **size, "src": _data_url(piece, CROP_QUALITY)}
    whole = None
    if card.wide or crop is None:
        height, width = picture.shape[:2]
        scale = min(1.0, WHOLE_WIDTH_PX / width)
        size_px = (round(width * scale), round(height * scale))
        small = cv2.resize(picture, size_px, interpolation=cv2.INTER_AREA)
        whole = {"src": _data_url(np.asarray(small, np.uint8), WHOLE_QUALITY)}
    return {"frame": frame, "crop": crop, "whole": whole}


def _cut(picture: Picture, uv: tuple[float, float], side: int) -> tuple[int, int, Picture]:
    """First column, first row and pixels of a square about ``uv``, moved into the picture."""
    height, width = picture.shape[:2]
    left = int(np.clip(round(uv[0]) - side // 2, 0, max(width - side, 0)))
    top = int(np.clip(round(uv[1]) - side // 2, 0, max(height - side, 0)))
    return left, top, picture[top : top + side, left : left + side]


def _data_url(picture: Picture, quality: int) -> str:
    done, data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not done:
        raise InputError("a picture of the review page cannot be made a JPEG.")
    return jpeg_url(data.tobytes())
