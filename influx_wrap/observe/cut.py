"""A stretch of a video as a file of its own, for a machine that does not see the video.

Packets are copied as they are, from the frame at which reading can begin to the one behind the
stretch at which it can begin again; so the frames decoded from them are the same, bit for bit.
"""

from __future__ import annotations

import io
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.formats.video import import_av
from influx_wrap.observe.stretches import Stretch
from influx_wrap.observe.video import VideoFile

MOST_BYTES = 1 << 29
"""Larger ones are not sent: they would have to be held in memory, here and there."""


def cut_out(stretch: Stretch) -> tuple[bytes, int] | None:
    """A Matroska file with the frames of a stretch, and how many frames it has before these.

    None if the stretch goes on to the end of the video, which only the whole file can tell to be
    there, if the packets cannot be copied, or if they are too many.
    """
    source, stop = stretch.source, stretch.stop
    if stop is None or not isinstance(source, VideoFile):
        return None
    av = import_av(f"{source.path} needs PyAV to be read as a video")
    first = source.keyframe_before(stretch.start)
    after = source.keyframe_after(stop)
    file = io.BytesIO()
    try:
        with av.open(str(source.path)) as whole, av.open(file, "w", format="matroska") as part:
            theirs = whole.streams.video[0]
            ours = part.add_stream_from_template(theirs)
            index = 0
            if first is not None:
                whole.seek(first.time, stream=theirs)
                index = first.index
            begin = index
            for packet in whole.demux(theirs):
                if packet.size == 0 or index >= after:
                    break
                if file.tell() > MOST_BYTES:
                    return None
                packet.stream = ours
                part.mux(packet)
                index += 1
    except (av.FFmpegError, ValueError):
        return None
    return file.getvalue(), stretch.start - begin


def open_cut(data: bytes, folder: Path) -> VideoFile:
    """The file that ``cut_out`` made, put into ``folder``."""
    path = folder / "stretch.mkv"
    try:
        path.write_bytes(data)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from None
    return VideoFile(path, colour=False)
