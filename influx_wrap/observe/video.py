"""Videos, by FFmpeg."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.pictures import check_pixels
from influx_wrap.formats.video import import_av
from influx_wrap.model.arrays import Picture
from influx_wrap.observe.decoded import colour_converter, grey_picture, is_grey, luma_of_frame
from influx_wrap.observe.frames import FrameSource, GreyInput, TruncatedInput
from influx_wrap.observe.luma import Luma

if TYPE_CHECKING:
    from av import Packet, VideoFrame
    from av.codec.hwaccel import HWAccel
    from av.container import InputContainer
    from av.index import IndexEntry
    from av.video.stream import VideoStream

AUTO, SOFTWARE = "auto", "software"
"""Decoders: hardware if there is any that knows the codec, and none."""
UNCOUNTED_STEP = 24
"""Every how many frames a sample is taken of a video that does not say how many it has."""


class VideoFile(FrameSource):
    """Whatever FFmpeg decodes, in software or by hardware, ``decoder`` being its name for it."""

    def __init__(self, path: Path, colour: bool, decoder: str = SOFTWARE) -> None:
        self.path = path
        self.colour = colour
        self._threads = 0
        self._is_strict = True
        with self._opened() as (container, stream):
            self.image_size = (stream.width, stream.height)
            check_pixels(self.image_size, str(path))
            self.n_frames = stream.frames or None
            self.seconds = None if stream.frames else _promised_seconds(container, stream)
            rate = stream.average_rate or stream.guessed_rate
            self.fps = float(rate) if rate else None
            if colour and is_grey(stream.format):
                raise GreyInput(path)
        try:
            self._check_beginning()
        except TruncatedInput:
            # A clip cut out of a longer one may begin with a picture that others before it
            # belong to; FFmpeg gets over that if it need not be strict.
            self._is_strict = False
            self._check_beginning()
        if decoder != SOFTWARE:
            self._settle_decoder(decoder)

    def _settle_decoder(self, wanted: str) -> None:
        """Take the hardware that decodes the first frame."""
        from av.codec.hwaccel import hwdevices_available

        known = hwdevices_available()
        for name in known if wanted == AUTO else [wanted]:
            self.decoder = name
            # FFmpeg says what it lacks in many ways, from which nobody learns more.
            with suppress(InputError, RuntimeError, OSError):
                self._check_beginning()
                return
        self.decoder = None
        if wanted != AUTO:
            raise InputError(
                f"{self.path} cannot be decoded by {wanted}: this machine has no such hardware, or "
                f"it does not know the codec. FFmpeg here could use {', '.join(known) or 'none'}; "
                f"--decoder {AUTO} takes what is there, {SOFTWARE} always works."
            )

    def _check_beginning(self) -> None:
        try:
            next(self._frames(0, 1))
        except StopIteration:
            raise InputError(f"{self.path} has no video frame.") from None

    @contextmanager
    def _opened(self) -> Iterator[tuple[InputContainer, VideoStream]]:
        av = _import_av(self.path)
        try:
            container = av.open(
                str(self.path), metadata_errors="replace", hwaccel=_accelerator(self.decoder)
            )
        except (av.FFmpegError, ValueError) as error:
            raise InputError(
                f"{self.path} is not a video FFmpeg can read, or is damaged at its beginning "
                f"({_complaint(error)})."
            ) from None
        with container:
            if not container.streams.video:
                raise InputError(f"{self.path} has no video stream.")
            stream = container.streams.video[0]
            if stream.codec_context is None or stream.width == 0:
                raise InputError(f"{self.path} has a video stream that FFmpeg cannot decode.")
            stream.thread_type = "AUTO"
            stream.codec_context.thread_count = self._threads
            if self._is_strict:
                # What fails a check is an error, not something to be made up.
                stream.codec_context.options = {"err_detect": "crccheck+explode"}
            yield container, stream

    def _frames(self, start: int, stop: int | None) -> Iterator[tuple[int, Picture]]:
        picture = colour_converter() if self.colour else grey_picture
        for index, frame in self._raw_frames(start):
            yield index, picture(frame)

    def lumas(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, Luma]]:
        n = None if stop is None else stop - start
        for index, frame in islice(self._raw_frames(start), n):
            yield index, luma_of_frame(frame)

    def _raw_frames(self, start: int) -> Iterator[tuple[int, VideoFrame]]:
        first = self.keyframe_before(start) if start else None
        with self._opened() as (container, stream):
            progress = _Progress(self.path)
            if first is not None:
                container.seek(first.time, stream=stream)
                progress.skip(first.index)
            for frame in self._decoded(container, stream, progress, start):
                index = progress.n_frames
                self._check_size(index, (frame.width, frame.height))
                if index >= start:
                    yield index, frame
                progress.n_frames += 1

    def samples(self, n: int) -> Iterator[Picture]:
        """About ``n`` pictures spread over the video, as far as it is readable.

        Those at which reading can begin are quick to reach; if they are too few, as in a
        short clip, all of it is read.
        """
        seen: set[int | None] = {None}
        with self._opened() as (container, stream):
            av = _import_av(self.path)
            picture = colour_converter() if self.colour else grey_picture
            begin, length = stream.start_time or 0, stream.duration
            if length is None and container.duration is not None and stream.time_base:
                length = int(container.duration / av.time_base / stream.time_base)
            for time in np.linspace(begin, begin + length, n, endpoint=False) if length else ():
                try:
                    container.seek(int(time), stream=stream)
                    frame = next(container.decode(stream))
                except (av.FFmpegError, StopIteration):
                    continue
                if frame.pts not in seen and not frame.is_corrupt:
                    yield picture(frame)
                    seen.add(frame.pts)
        if len(seen) > n // 2:
            return
        step = max(self.n_frames // n, 1) if self.n_frames else UNCOUNTED_STEP
        with suppress(TruncatedInput):
            yield from (picture for index, picture in self.frames() if index % step == 0)

    def at(self, indices: Iterable[int]) -> Iterator[tuple[int, Picture]]:
        """(index, picture) of some frames in their order, as far as they are readable.

        Those that are reached from the same keyframe are read in one go.
        """
        runs: dict[Keyframe | None, list[int]] = {}
        for index in sorted(indices):
            runs.setdefault(self.keyframe_before(index), []).append(index)
        with suppress(TruncatedInput):
            for wanted in runs.values():
                for index, picture in self.frames(wanted[0], wanted[-1] + 1):
                    if index in wanted:
                        yield index, picture

    def for_one_core(self) -> VideoFile:
        one = copy(self)
        one._threads = 1
        return one

    def entries(self) -> list[int] | None:
        with self._opened() as (container, stream):
            indexed = _indexed_frames(container, stream)
        keys = [i for i, entry in enumerate(indexed) if entry.is_keyframe]
        # Of one encoder all keyframes are alike, so the first after the beginning is tried alone.
        if len(keys) < 2 or self.keyframe_before(keys[1]) is None:
            return None
        return keys

    def keyframe_after(self, stop: int) -> float:
        """The first frame from ``stop`` on at which reading can begin, infinity for none."""
        with self._opened() as (container, stream):
            indexed = _indexed_frames(container, stream)
        keys = (i for i, entry in enumerate(indexed) if entry.is_keyframe and i >= stop)
        return next(keys, math.inf)

    def keyframe_before(self, start: int) -> Keyframe | None:
        """The last frame up to ``start`` at which reading can begin; None for frame 0.

        An MP4 or MOV file has an index of all frames in the order of decoding. The number
        of a keyframe in it is the frame's, if no picture decoded after it is shown before.
        """
        av = _import_av(self.path)
        with self._opened() as (container, stream):
            entries = _indexed_frames(container, stream)
            keys = [i for i, entry in enumerate(entries) if entry.is_keyframe]
            index = max((i for i in keys if i <= start), default=0)
            if index == 0:
                return None
            length = min((i for i in keys if i > index), default=len(entries)) - index
            try:
                first = next(container.demux(stream))
                # A file is searched by the time of showing; all keyframes wait equally long.
                wait = (first.pts or 0) - (first.dts or 0)
                time = entries[index].timestamp + wait
                container.seek(time, stream=stream)
                packets = islice(container.demux(stream), length)
                times = [(packet.pts, packet.dts) for packet in packets]
            except av.FFmpegError:
                return None
            shown = [pts for pts, _ in times if pts is not None]
            if len(shown) < length or times[0] != (time, time - wait) or min(shown) < time:
                return None
            return Keyframe(index, time)

    def _decoded(
        self,
        container: InputContainer,
        stream: VideoStream,
        progress: _Progress,
        start: int,
    ) -> Iterator[VideoFrame]:
        """The frames in order; those before ``start`` may be left out if counted."""
        av = _import_av(self.path)
        codec = stream.codec_context.codec
        skip = start - progress.n_frames if codec.intra_only else 0
        try:
            for packet in container.demux(stream):
                if packet.size == 0:
                    continue
                progress.count(packet)
                if packet.is_corrupt:
                    break
                if skip > 0 and not packet.is_discard:
                    skip -= 1
                    progress.n_frames += 1
                    continue
                if codec.name == "ffv1" and not progress.is_sound_ffv1(bytes(packet)):
                    raise progress.stopped("the picture is damaged")
                yield from progress.checked(packet.decode())
        except av.FFmpegError as error:
            raise progress.stopped(f"FFmpeg reports {_complaint(error)}") from None
        yield from self._rest(stream, progress)
        progress.check_end(container, stream)

    def _rest(self, stream: VideoStream, progress: _Progress) -> Iterator[VideoFrame]:
        """The frames the decoder still holds when the file has ended."""
        av = _import_av(self.path)
        try:
            yield from progress.checked(stream.decode(None))
        except av.EOFError:
            return
        except av.FFmpegError as error:
            raise progress.stopped(f"FFmpeg reports {_complaint(error)}") from None


def _accelerator(decoder: str | None) -> HWAccel | None:
    if decoder is None:
        return None
    from av.codec.hwaccel import HWAccel

    return HWAccel(device_type=decoder, allow_software_fallback=False)


def _indexed_frames(container: InputContainer, stream: VideoStream) -> list[IndexEntry]:
    """The index of all frames in the order of decoding; empty if the file has none."""
    entries = list(getattr(stream, "index_entries", ()))
    indexed = "mp4" in container.format.name and len(entries) == stream.frames
    return entries if indexed and not any(entry.is_discard for entry in entries) else []


@dataclass(frozen=True)
class Keyframe:
    """A frame's index, and when it is shown, in the stream's unit."""

    index: int
    time: int


class _Progress:
    """How far a video was read, and whether it ended where it says it does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_frames = 0
        self._n_packets = 0
        self._end = 0
        self._damaged = False
        self._has_checksums: bool | None = None

    def skip(self, n_frames: int) -> None:
        """Take note of frames that were jumped over."""
        self.n_frames = self._n_packets = n_frames

    def count(self, packet: Packet[VideoStream]) -> None:
        """Take note of a packet."""
        self._n_packets += 1
        self._damaged |= packet.is_corrupt
        if packet.pts is not None:
            self._end = max(self._end, packet.pts + (packet.duration or 0))

    def is_sound_ffv1(self, packet: bytes) -> bool:
        """False if a recording with checksums has a picture that does not match its own.

        FFmpeg sees that too, but makes up the picture from the one before.
        """
        sound = _ffv1_checksums_match(packet)
        if self._has_checksums is None:
            self._has_checksums = sound
        return sound or not self._has_checksums

    def checked(self, frames: list[VideoFrame]) -> Iterator[VideoFrame]:
        """The frames up to the first that the decoder had to make up in part."""
        for frame in frames:
            if frame.is_corrupt:
                raise self.stopped("the picture is damaged")
            yield frame

    def check_end(self, container: InputContainer, stream: VideoStream) -> None:
        """Refuse the end of the file if the container promises more.

        Packets are counted, not frames: an edit list hides frames that are there.
        """
        if self._damaged:
            raise self.stopped("the file ends in the middle of a frame")
        if self._n_packets < stream.frames:
            raise self.stopped(f"the file ends, although it announces {stream.frames} frames")
        promised_s = _promised_seconds(container, stream)
        rate = stream.average_rate
        if promised_s is not None and stream.time_base is not None and rate:
            begin_s = float((stream.start_time or 0) * stream.time_base)
            missing_s = promised_s - float(self._end * stream.time_base) + min(begin_s, 0)
            if missing_s > 2 / float(rate):
                raise self.stopped(f"the file ends {missing_s:.2f} s before its announced end")

    def stopped(self, problem: str) -> TruncatedInput:
        """The error that says how far the video was readable."""
        return TruncatedInput(self.path, self.n_frames, problem)


# zlib's CRC takes the bits of a byte from the other end than FFV1's.
_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def _ffv1_checksums_match(packet: bytes) -> bool:
    """Whether a picture consists of slices whose checksums are right.

    A slice ends with its length (3 bytes), a status (1) and what makes its CRC zero (4).
    """
    end = len(packet)
    while end >= 8:
        start = end - 8 - int.from_bytes(packet[end - 8 : end - 5], "big")
        if start < 0:
            return False
        if zlib.crc32(packet[start:end].translate(_MIRRORED), 0xFFFFFFFF) != 0xFFFFFFFF:
            return False
        end = start
    return end == 0


def _promised_seconds(container: InputContainer, stream: VideoStream) -> float | None:
    """Length that a Matroska or MXF header states; None where FFmpeg would only estimate."""
    if "mxf" in container.format.name and stream.duration and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    if "matroska" in container.format.name:
        match = re.match(
            r"(\d{1,9}):(\d{1,9}):(\d{1,9}(?:\.\d*)?)", stream.metadata.get("DURATION", "")
        )
        if match:
            hours, minutes, seconds = (float(part) for part in match.groups())
            return 3600 * hours + 60 * minutes + seconds
        if container.duration and len(container.streams) == 1:
            return container.duration / 1e6
    return None


def _import_av(path: Path) -> ModuleType:
    return import_av(f"{path} needs PyAV to be read as a video")


def _complaint(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error).rstrip(".")
