"""A clip's video with its annotation drawn on every frame.

The frames are read, drawn on and encoded one after the other, so that memory does not grow
with the clip. What is drawn is ``report.preview``'s. The picture may be smaller than the one
the table is of, as a proxy is or because the preview is made so; its intrinsics are scaled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from influx_wrap.annotate.clip import AnnotatedClip
from influx_wrap.annotate.gaps import FrameRange, frame_ranges
from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.formats.video import SUFFIXES, check_codec, write_video
from influx_wrap.model.arrays import BoolArray, IntArray, Picture
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.words import size_text
from influx_wrap.observe.frames import FrameSource, GreyInput, TruncatedInput
from influx_wrap.observe.sources import open_frames
from influx_wrap.report.preview import FrameNote, Standing, draw_note

MOST_WIDTH_PX = 1920
"""Width of a preview, unless another is asked for; none is wider than its video."""
FPS = 24
"""Of a preview of pictures, which do not say how fast they follow each other."""
FINEST_RATE = 1001
"""Denominator of the frame rates 23.976, 29.97 and 59.94."""


@dataclass(frozen=True, eq=False)
class Preview:
    """A preview about to be made.

    path        of the preview
    table_size  (width, height) of the pictures that the intrinsics are of
    image_size  (width, height) of the preview, both even
    """

    source: FrameSource
    path: Path
    table_size: tuple[int, int]
    image_size: tuple[int, int]

    @property
    def codec(self) -> str:
        """The one that files of this name have."""
        return _codecs()[self.path.suffix.lower()]

    @property
    def fps(self) -> Fraction:
        """The video's frame rate."""
        return Fraction(self.source.fps or FPS).limit_denominator(FINEST_RATE) or Fraction(FPS)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was assumed."""
        texts = []
        if self.source.image_size != self.table_size:
            texts.append(
                f"{self.source.path} has {size_text(self.source.image_size)} pixels, the table "
                f"{size_text(self.table_size)}: it is taken for the same picture in another size, "
                "and the grid is scaled. All numbers are those of the table's size."
            )
        if self.source.fps is None:
            texts.append(
                f"{self.source.path} states no frame rate: the preview has {FPS} frames a second."
            )
        return tuple(texts)


@dataclass(frozen=True)
class Previewed:
    """What became of a preview.

    n_frames         that were written
    without_numbers  frames of the video beyond the last that the metadata list
    without_picture  frames of the metadata that the video does not have
    truncated        why the video could not be read to its end; None if it could
    """

    n_frames: int
    without_numbers: tuple[FrameRange, ...]
    without_picture: tuple[FrameRange, ...]
    truncated: str | None


def plan_preview(
    video: Path, path: Path, table_size: tuple[int, int], most_width_px: int = MOST_WIDTH_PX
) -> Preview:
    """Open a video, and refuse what would not become a preview, before any work is done."""
    if path.suffix.lower() not in _codecs():
        raise InputError(
            f"--preview {path} has an ending that is none of a video which can be written: use "
            f"{' or '.join(_codecs())}."
        )
    try:
        source = open_frames(video, colour=True)
    except GreyInput:
        source = open_frames(video)
    _check_proportions(source, table_size)
    preview = Preview(source, path, table_size, _fitted(source.image_size, most_width_px))
    check_codec(preview.codec, preview.image_size)
    return preview


def write_preview(preview: Preview, clip: AnnotatedClip, progress: Progress) -> Previewed:
    """Draw and encode all frames that can be read."""
    drawing = _Drawing(preview, clip, progress)
    write_video(preview.path, drawing.pictures(), preview.fps, preview.codec)
    listed = clip.truth.metadata.frame
    last, n = int(listed[-1]), drawing.n_frames
    return Previewed(
        n,
        ((last + 1, n - 1),) if n > last + 1 else (),
        frame_ranges(listed[listed >= n]),
        drawing.truncated,
    )


class _Drawing:
    """The frames of a preview in the making, and how far it has got."""

    def __init__(self, preview: Preview, clip: AnnotatedClip, progress: Progress) -> None:
        self.n_frames = 0
        self.truncated: str | None = None
        self._preview = preview
        self._clip = clip
        self._standings = _standings(clip)
        self._filled = _within(clip.truth.metadata.frame, clip.filled)
        self._progress = progress

    def pictures(self) -> Iterator[NDArray[np.uint8]]:
        """One after the other, (H, W, 3)."""
        preview = self._preview
        try:
            for index, picture in preview.source.frames():
                small = _as_shown(picture, preview.image_size)
                draw_note(small, self._note(index), preview.table_size)
                yield small
                self.n_frames = index + 1
                self._progress(self.n_frames, preview.source.n_frames)
        except TruncatedInput as error:
            if self.n_frames == 0:
                raise
            self.truncated = str(error)

    def _note(self, index: int) -> FrameNote:
        truth = self._clip.truth
        row = int(np.searchsorted(truth.metadata.frame, index))
        if row == len(truth.metadata.frame) or truth.metadata.frame[row] != index:
            return FrameNote(index, Standing.NO_METADATA)
        camera, sigma = None, (np.nan, np.nan)
        if truth.answered[row]:
            camera = Intrinsics.from_array(truth.intrinsics[row])
            if truth.sigma is not None:
                sigma = (float(truth.sigma[row, 0]), float(truth.sigma[row, 1]))
        return FrameNote(
            index,
            self._standings[row],
            float(truth.metadata.lfl_mm[row]),
            float(truth.metadata.fd_m[row]),
            camera,
            sigma,
            is_filled=bool(self._filled[row]),
        )


def _standings(clip: AnnotatedClip) -> list[Standing]:
    """(n,) of the clip's frames."""
    truth = clip.truth
    standings = np.full(len(truth.answered), Standing.NO_METADATA, dtype=object)
    standings[truth.answered] = Standing.EXTRAPOLATED
    standings[truth.is_interpolated] = Standing.INTERPOLATED
    standings[_within(truth.metadata.frame, clip.lfl_outside)] = Standing.LFL_OUTSIDE
    standings[_within(truth.metadata.frame, clip.unusable)] = Standing.UNUSABLE
    return standings.tolist()


def _within(frame: IntArray, ranges: Sequence[FrameRange]) -> BoolArray:
    """(n,) which of the frames (n,), in increasing order, are in one of the ranges."""
    inside = np.zeros(len(frame), dtype=bool)
    for first, last in ranges:
        inside[slice(*np.searchsorted(frame, (first, last + 1)).tolist())] = True
    return inside


def _codecs() -> dict[str, str]:
    """Ending of a file to codec."""
    return {suffix: codec for codec, suffix in SUFFIXES.items()}


def _check_proportions(source: FrameSource, table_size: tuple[int, int]) -> None:
    """Refuse pictures that cannot be those of the table with another number of pixels."""
    width, height = source.image_size
    off_px = min(
        abs(height - width * table_size[1] / table_size[0]),
        abs(width - height * table_size[0] / table_size[1]),
    )
    # Half a pixel by rounding, and as much again since codecs want even numbers.
    if off_px > 1:
        raise InputError(
            f"{source.path} has {size_text(source.image_size)} pixels, the table is of pictures "
            f"with {size_text(table_size)}, which have other proportions: give the video as it was "
            "recorded, or a copy in another size that is not cropped."
        )


def _fitted(size: tuple[int, int], most_width_px: int) -> tuple[int, int]:
    """The same proportions, never larger, in even numbers."""
    width, height = size
    shown = min(width, most_width_px)
    rows = min(round(height * shown / width / 2), height // 2)
    return 2 * max(shown // 2, 1), 2 * max(rows, 1)


def _as_shown(picture: Picture, size: tuple[int, int]) -> NDArray[np.uint8]:
    """(H, W, 3) of 8 bits, which may be drawn on."""
    shown: NDArray[Any] = picture
    if shown.dtype == np.uint16:
        shown = cv2.convertScaleAbs(shown, alpha=255 / 65535)
    if (shown.shape[1], shown.shape[0]) != size:
        shown = cv2.resize(shown, size, interpolation=cv2.INTER_AREA)
    if shown.ndim == 2:
        shown = cv2.cvtColor(shown, cv2.COLOR_GRAY2BGR)
    return np.require(shown, np.uint8, ["C", "W"])
