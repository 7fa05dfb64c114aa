"""What was kept of a recording: counts over time, corners over the picture, a contact sheet.

The contact sheet is put together picture by picture, as they come out of a decoder: only
the sheet itself is in memory. Its greys are coarse, so that noise does not fill the file.
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
from influx_wrap.formats.files import write_bytes
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.observe.coverage import MIN_VIEWS, Coverage
from influx_wrap.observe.detection import as_8_bit
from influx_wrap.report.grid import save_figure
from influx_wrap.report.style import (
    FAILED_STYLE,
    MARK,
    MISSING_STYLE,
    QUIET,
    SERIES,
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
LABEL_PX, GAP_PX = 18, 6
_PAPER, _INK, _ORANGE_BGR = 255, 40, (0, 94, 213)


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
    axes.set_xlim(-0.5, width - 0.5)
    axes.set_ylim(height - 0.5, -0.5)
    axes.set_aspect("equal")
    axes.set_xlabel("u (px)")
    axes.set_ylabel("v (px)")
    axes.spines[:].set(visible=True, color=QUIET)
    axes.set_title(
        f"{len(u)} corners of {len(uv)} views cover {100 * coverage.share:.0f} % of the picture\n"
        f"hatched: fewer than {MIN_VIEWS} views have corners there"
    )
    save_figure(figure, path)


def draw_contact_sheet(
    pictures: Iterable[tuple[int, NDArray[np.uint8] | NDArray[np.uint16]]],
    corners: Mapping[int, FloatArray],
    path: Path,
) -> list[int]:
    """Write a PNG with a thumbnail of each frame in ``corners``; returns those never seen.

    pictures  (frame, grey picture (H, W)), in any order; each is dropped once it is drawn
    corners   by frame, pixels (n, 2) of the corners found in it
    """
    frames = sorted(corners)
    sheet: _Sheet | None = None
    missing = set(frames)
    for frame, picture in pictures:
        if frame not in missing:
            continue
        if sheet is None:
            sheet = _Sheet(len(frames), picture.shape[1], picture.shape[0])
        sheet.place(frames.index(frame), frame, as_8_bit(picture), corners[frame])
        missing.discard(frame)
    if sheet is None:
        raise InputError(f"{path}: there is no picture to draw a contact sheet of.")
    done, data = cv2.imencode(".png", sheet.canvas)
    if not done:
        raise InputError(f"{path}: the contact sheet cannot be made a PNG.")
    write_bytes(path, data.tobytes())
    return sorted(missing)


class _Sheet:
    """A canvas (H, W, 3) in OpenCV's order of colours, with a slot for each of n thumbnails."""

    def __init__(self, n: int, width_px: int, height_px: int) -> None:
        aspect = height_px / width_px
        wanted = math.sqrt(SHEET_PIXELS / (n * aspect))
        self.width = int(np.clip(wanted, *THUMBNAIL_WIDTH_PX))
        self.height = max(round(self.width * aspect), 1)
        self.cols = min(n, max(SHEET_WIDTH_PX // (self.width + GAP_PX), 1))
        rows = math.ceil(n / self.cols)
        size = (
            rows * (self.height + LABEL_PX + GAP_PX) + GAP_PX,
            self.cols * (self.width + GAP_PX) + GAP_PX,
        )
        self.canvas = np.full((*size, 3), _PAPER, dtype=np.uint8)

    def place(self, slot: int, frame: int, picture: NDArray[np.uint8], corners: FloatArray) -> None:
        """Draw a picture, its corners and its label."""
        row, col = divmod(slot, self.cols)
        top = GAP_PX + row * (self.height + LABEL_PX + GAP_PX)
        left = GAP_PX + col * (self.width + GAP_PX)
        small = cv2.resize(picture, (self.width, self.height), interpolation=cv2.INTER_AREA)
        small = small // GREY_STEP * GREY_STEP + GREY_STEP // 2
        thumbnail = cv2.cvtColor(small, cv2.COLOR_GRAY2BGR)
        scale = np.array([self.width / picture.shape[1], self.height / picture.shape[0]])
        for u, v in np.floor((corners + 0.5) * scale).astype(int).tolist():
            cv2.circle(thumbnail, (u, v), 1, _ORANGE_BGR, cv2.FILLED)
        self.canvas[top : top + self.height, left : left + self.width] = thumbnail
        label = f"{frame}: {len(corners)} corners"
        place = (left, top + self.height + LABEL_PX - 5)
        font, grey = cv2.FONT_HERSHEY_SIMPLEX, (_INK, _INK, _INK)
        cv2.putText(self.canvas, label, place, font, 0.42, grey, 1, cv2.LINE_AA)
