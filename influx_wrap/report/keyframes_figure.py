"""What was kept of a recording: counts over time, corners over the picture, a contact sheet.

The greys of the contact sheet are coarse, so that noise does not fill the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import cv2
import numpy as np
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.observe.coverage import MIN_VIEWS, Coverage
from influx_wrap.observe.detection import as_8_bit
from influx_wrap.report.contact_sheet import ContactSheet
from influx_wrap.report.grid import save_figure
from influx_wrap.report.style import (
    FAILED_STYLE,
    MARK,
    MISSING_STYLE,
    QUIET,
    SERIES,
    frame_picture,
    new_figure,
    styled,
)

CHOSEN_COLOUR = SERIES[1]
MAX_DRAWN = 4000
"""Columns of a plot of counts; more frames than that are drawn by their largest and least."""

SHEET_PIXELS = 3e6
THUMBNAIL_WIDTH_PX = (120, 320)
SHEET_WIDTH_PX = 2000
GREY_STEP = 8
_SHEET_GAP_PX = 6
_LETTER_PX = 8
_ORANGE_BGR = (0, 94, 213)


@styled
def draw_detections(counts: ArrayLike, frames: ArrayLike, complete: int, path: Path) -> None:
    """Write the number of corners over all frames, the chosen ``frames`` marked.

    counts    (F,) corners of every frame
    complete  corners of the whole board
    """
    strengths, chosen = np.asarray(counts), np.asarray(frames, dtype=np.int64)
    figure = new_figure(float(np.clip(len(strengths) / 80, 9, 24)), 3.6)
    axes = figure.add_subplot()
    at, low, high = _envelope(strengths)
    axes.fill_between(at, low, high, color=QUIET, alpha=0.35, linewidth=0, step="mid")
    axes.step(at, high, where="mid", color=QUIET, linewidth=0.8, label="all frames")
    axes.plot(
        chosen,
        strengths[chosen],
        marker="v",
        markersize=float(np.clip(900 / max(len(chosen), 1), 3, 7)),
        color=CHOSEN_COLOUR,
        linestyle="",
        label=f"{len(chosen)} chosen",
    )
    axes.axhline(complete, color=QUIET, linewidth=0.8, linestyle=":")
    axes.set_xlim(-0.5, max(len(strengths), 2) - 0.5)
    axes.set_ylim(0, 1.08 * complete)
    axes.set_xlabel("frame")
    axes.set_ylabel(f"corners found, of {complete}")
    figure.legend(loc="outside upper right", ncols=2)
    save_figure(figure, path)


def _envelope(counts: NDArray[np.int64]) -> tuple[FloatArray, NDArray[np.int64], NDArray[np.int64]]:
    """Frames, least and largest count of at most ``MAX_DRAWN`` stretches of a video."""
    starts = np.unique(np.linspace(0, len(counts), min(len(counts), MAX_DRAWN), False).astype(int))
    if len(starts) == 0:
        return np.empty(0), counts, counts
    ends = np.append(starts[1:], len(counts))
    low, high = np.minimum.reduceat(counts, starts), np.maximum.reduceat(counts, starts)
    return (starts + ends - 1) / 2, low, high


@styled
def draw_coverage(
    uv: FloatArray,
    valid: BoolArray,
    image_size: tuple[int, int],
    coverage: Coverage,
    path: Path,
) -> None:
    """Write all corners of views ``uv`` (V, T, 2) in the picture's frame.

    Cells of the picture that too few views have corners in are hatched.
    """
    width, height = image_size
    figure = new_figure(8.0, 1.2 + 7.4 * height / width)
    axes = figure.add_subplot()
    u, v = uv[valid].T
    size = float(np.clip(40000 / max(len(u), 1), 0.4, 8))
    axes.scatter(u, v, s=size, color=MARK, alpha=0.5, linewidths=0, rasterized=True)
    rows, cols = coverage.views_per_cell.shape
    cell = width / cols, height / rows
    for (row, col), n in np.ndenumerate(coverage.views_per_cell):
        corner = col * cell[0] - 0.5, row * cell[1] - 0.5
        style = FAILED_STYLE if n < MIN_VIEWS else MISSING_STYLE
        axes.add_patch(Rectangle(corner, *cell, linewidth=0.6, zorder=0.5, **style))
    frame_picture(axes, image_size, "uv")
    axes.set_title(
        f"{len(u)} corners of {len(uv)} views cover {100 * coverage.share:.0f} % of the picture\n"
        f"hatched: fewer than {MIN_VIEWS} views have corners there"
    )
    save_figure(figure, path)


def draw_contact_sheet(
    pictures: Iterable[tuple[int, NDArray[np.uint8] | NDArray[np.uint16]]],
    corners: Mapping[int, FloatArray],
    names: Mapping[int, str],
    path: Path,
) -> list[int]:
    """Write a PNG with a thumbnail of each frame in ``corners``; returns those never seen.

    pictures  (frame, grey picture (H, W)), in any order; each is dropped once it is drawn
    corners   by frame, pixels (n, 2) of the corners found in it
    names     by frame, what to call it; a long name loses its middle
    """
    frames = sorted(corners)
    sheet: ContactSheet | None = None
    missing = set(frames)
    for frame, picture in pictures:
        if frame not in missing:
            continue
        if sheet is None:
            size = _thumbnail_px(len(frames), picture.shape[0] / picture.shape[1])
            sheet = ContactSheet(
                len(frames), max(SHEET_WIDTH_PX // (size[0] + _SHEET_GAP_PX), 1), size,
                label_px=18, baseline_px=5, gap_px=_SHEET_GAP_PX, text_scale=0.42,
            )  # fmt: skip
        thumbnail = _thumbnail(as_8_bit(picture), corners[frame], size)
        count = f": {len(corners[frame])} corners"
        label = _shortened(names[frame], size[0] // _LETTER_PX - len(count)) + count
        sheet.place(frames.index(frame), thumbnail, label)
        missing.discard(frame)
    if sheet is None:
        raise InputError(f"{path}: there is no picture to draw a contact sheet of.")
    sheet.write(path)
    return sorted(missing)


def _shortened(name: str, letters: int) -> str:
    """A name of at most so many letters, but six; its end, with the number, is what differs."""
    letters = max(letters, 6)
    return name if len(name) <= letters else f"..{name[-(letters - 2) :]}"


def _thumbnail_px(n: int, aspect: float) -> tuple[int, int]:
    """Width and height of each of n thumbnails whose heights are ``aspect`` times their widths."""
    width = int(np.clip(math.sqrt(SHEET_PIXELS / (n * aspect)), *THUMBNAIL_WIDTH_PX))
    return width, max(round(width * aspect), 1)


def _thumbnail(
    picture: NDArray[np.uint8], corners: FloatArray, size: tuple[int, int]
) -> NDArray[np.uint8]:
    """(height, width, 3) of ``size`` (width, height), the picture's corners (n, 2) marked."""
    small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    small = small // GREY_STEP * GREY_STEP + GREY_STEP // 2
    thumbnail = cv2.cvtColor(small, cv2.COLOR_GRAY2BGR)
    scale = np.array(size) / picture.shape[1::-1]
    for u, v in np.floor((corners + 0.5) * scale).astype(int).tolist():
        cv2.circle(thumbnail, (u, v), 1, _ORANGE_BGR, cv2.FILLED)
    return np.asarray(thumbnail, dtype=np.uint8)
