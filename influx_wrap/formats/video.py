"""Pictures to a video file.

The grey pictures become the luma plane as they are, in full range and without a
conversion, which is what ``observe.frames`` reads back. H.264 is written so that
compression moves the corners of a sharp frame by less than 0.02 px, and quickly rather
than small: slower presets smooth the grain away, and with it some of an edge. FFV1 in
Matroska is lossless, and larger.

Colour pictures, blue first, become H.264 with BT.709's matrix in full range, its colour at
half the resolution, as cameras record it; or FFV1 in RGB, byte by byte what they were.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from fractions import Fraction
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from influx_wrap.errors import InputError, install_line
from influx_wrap.model.words import size_text

if TYPE_CHECKING:
    from av import VideoFrame

SUFFIXES = {"h264": ".mp4", "ffv1": ".mkv"}
"""What can be written, and the ending of its files."""

_CONTAINERS = {"h264": "mp4", "ffv1": "matroska"}
# Matroska's writer gives every file a random number unless told not to.
_CONTAINER_OPTIONS: dict[str, dict[str, str]] = {"h264": {}, "ffv1": {"fflags": "+bitexact"}}
_ENCODERS = {"h264": "libx264", "ffv1": "ffv1"}
_LAYOUTS = {"h264": "yuv420p", "ffv1": "gray"}
_COLOUR_LAYOUTS = {"h264": "yuv420p", "ffv1": "bgr0"}
_OPTIONS = {
    "h264": {"crf": "10", "preset": "ultrafast", "tune": "grain"},
    "ffv1": {"level": "3", "slices": "4"},
}
# A light is larger than a corner: it need not be kept so well, and the file is a quarter.
_COLOUR_OPTIONS = _OPTIONS | {"h264": {"crf": "18", "preset": "ultrafast"}}
_FULL_RANGE = 2
_BT709 = 1


def check_codec(codec: str, image_size: tuple[int, int]) -> None:
    """Refuse pictures of (width, height) that ``codec`` cannot take, or a missing PyAV."""
    import_av("a video needs PyAV to be written")
    width, height = image_size
    if codec == "h264" and (width % 2 or height % 2):
        raise InputError(
            f"H.264 needs an even number of pixels each way, the pictures have "
            f"{size_text(image_size)}; use the codec ffv1."
        )


def write_video(
    path: Path, pictures: Iterable[NDArray[np.uint8]], fps: int | Fraction, codec: str
) -> None:
    """Encode pictures of one size, grey (H, W) or in colour (H, W, 3), blue first; ``path`` is
    the old file or the complete new one."""
    av = import_av("a video needs PyAV to be written")
    pictures = iter(pictures)
    first = next(pictures, None)
    if first is None:
        raise InputError(f"{path} would have no frame: a video needs a picture.")
    height, width = first.shape[:2]
    check_codec(codec, (width, height))
    is_colour = first.ndim == 3
    layout = (_COLOUR_LAYOUTS if is_colour else _LAYOUTS)[codec]
    options = (_COLOUR_OPTIONS if is_colour else _OPTIONS)[codec]
    as_frame = _as_colour_frame if is_colour else _as_frame
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            with av.open(
                str(temporary),
                "w",
                format=_CONTAINERS[codec],
                container_options=_CONTAINER_OPTIONS[codec],
            ) as container:
                stream = container.add_stream(_ENCODERS[codec], rate=fps, options=options)
                stream.width, stream.height = width, height
                stream.pix_fmt = layout
                stream.codec_context.color_range = _FULL_RANGE
                if is_colour and layout == "yuv420p":
                    stream.codec_context.colorspace = _BT709
                    stream.codec_context.color_primaries = _BT709
                    stream.codec_context.color_trc = _BT709
                for number, picture in enumerate(chain([first], pictures)):
                    frame = as_frame(av, picture, layout)
                    frame.pts, frame.time_base = number, 1 / Fraction(fps)
                    container.mux(stream.encode(frame))
                container.mux(stream.encode(None))
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except (av.FFmpegError, OSError) as error:
        problem = str(getattr(error, "strerror", None) or error).rstrip(".")
        raise InputError(f"{path} cannot be written: {problem}.") from None


def _as_frame(av: ModuleType, picture: NDArray[np.uint8], layout: str) -> VideoFrame:
    """A frame whose luma is ``picture`` and whose colour, if it has any, is grey."""
    height, width = picture.shape
    frame: VideoFrame = av.VideoFrame(width, height, layout)
    frame.color_range = _FULL_RANGE
    luma, *colours = (
        np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)
        for plane in frame.planes
    )
    luma[:height, :width] = picture
    for colour in colours:
        colour[:] = 128
    return frame


def _as_colour_frame(av: ModuleType, picture: NDArray[np.uint8], layout: str) -> VideoFrame:
    """A frame of a picture (H, W, 3)."""
    if layout == "yuv420p":
        frame: VideoFrame = av.VideoFrame.from_ndarray(picture, "bgr24")
        return frame.reformat(format=layout, dst_colorspace=_BT709, dst_color_range=_FULL_RANGE)
    height, width = picture.shape[:2]
    frame = av.VideoFrame(width, height, layout)
    frame.color_range = _FULL_RANGE
    (plane,) = frame.planes
    pixels = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)
    pixels[:height, : 4 * width].reshape(height, width, 4)[..., :3] = picture
    return frame


def import_av(need: str) -> ModuleType:
    """PyAV, which only videos need; ``need`` says what for, as in "a video needs PyAV to be
    written"."""
    try:
        import av
    except ImportError:
        raise InputError(f"{need}: {install_line('video')}.") from None
    # FFmpeg's log stays off: with PyAV's callback installed, reading has been seen to hang.
    av.logging.set_level(None)
    return av
