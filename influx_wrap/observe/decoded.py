"""Pixels of the frames that FFmpeg decodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np

from influx_wrap.model.arrays import Picture
from influx_wrap.observe.luma import Luma

if TYPE_CHECKING:
    from av import VideoFormat, VideoFrame

HD_ROWS = 720


def luma_of_frame(frame: VideoFrame) -> Luma:
    """The luma plane of a frame, in the decoder's memory if it has one."""
    layout = frame.format
    bits = max(part.bits for part in layout.components)
    if not _has_luma_plane(layout):
        frame, bits, shift = frame.reformat(format="gray16le" if bits > 8 else "gray"), 16, 0
    else:
        # P010 and its like keep their bits at the top already.
        shift = 0 if layout.name.startswith("p") else 16 - layout.components[0].bits
    deep = frame.format.components[0].bits > 8
    plane = frame.planes[0]
    rows = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)[: frame.height]
    if not deep:
        return Luma(rows[:, : frame.width], 0, 255.0)
    return Luma(rows[:, : 2 * frame.width].view("<u2"), shift, float(0xFFFF >> shift))


def grey_picture(frame: VideoFrame) -> Picture:
    """(H, W) luma of a frame, full-scale ``uint16`` if it has more than 8 bits."""
    return luma_of_frame(frame).picture().copy()


def colour_converter() -> Callable[[VideoFrame], Picture]:
    """What makes (H, W, 3) ``uint8`` of a video's frames: blue, green, red in full range."""
    from av.video.reformatter import Colorspace, VideoReformatter

    reformatter = VideoReformatter()

    def convert(frame: VideoFrame) -> Picture:
        # A video that does not state its matrix has, by custom, that of its resolution.
        unstated = Colorspace.ITU709 if frame.height >= HD_ROWS else Colorspace.ITU601
        stated = frame.colorspace not in _UNSTATED
        matrix = frame.colorspace if stated else unstated
        converted = reformatter.reformat(frame, format="bgr24", src_colorspace=matrix, threads=1)
        return cast(Picture, converted.to_ndarray())

    return convert


# FFmpeg's numbers of "no matrix, these are red, green and blue" and of "unknown".
_UNSTATED = (0, 2)


def is_grey(layout: VideoFormat) -> bool:
    """True if frames have no colour at all; "pal8" and Bayer patterns have."""
    return layout.name.startswith(("gray", "mono", "ya"))


def _has_luma_plane(layout: VideoFormat) -> bool:
    """True if plane 0 is nothing but luma, in an order of bytes that numpy can take."""
    first, others = layout.components[0], layout.components[1:]
    packed = any(part.plane == first.plane for part in others)
    return first.is_luma and not packed and not layout.is_big_endian and first.bits >= 8
