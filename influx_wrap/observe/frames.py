"""Frames of a recording, one after the other: videos, folders of pictures, ARRIRAW clips.

A source yields (index, picture) and holds one picture at a time, so that memory does not
grow with the length. It can be read again and from any frame, and a frame has the same
index each time: frames are counted as decoded, never guessed from a time.

Pictures are grey, as the sensor recorded them: the luma plane of a video is taken as it
is, without a conversion (its range, 16..235 or 0..255, does not move a corner), and
rotation flags are ignored. 8 bits stay ``uint8``; more bits become ``uint16`` scaled to the
full range, so that 65535 is the top of the scale whether a recording has 10, 12 or 16.

A recording that ends early or is damaged yields what can be trusted; ``TruncatedInput``
follows in place of the regular end and says how far the recording is readable.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from influx_wrap.errors import InputError
from influx_wrap.formats.files import reading

if TYPE_CHECKING:
    from av import Packet, VideoFormat, VideoFrame
    from av.container import InputContainer
    from av.video.stream import VideoStream

Picture: TypeAlias = NDArray[np.uint8] | NDArray[np.uint16]

PICTURES = (".tif", ".tiff", ".png", ".jpg", ".jpeg")
ARRI = (".ari", ".arx", ".mxf")


class TruncatedInput(InputError):
    """A recording ended early; its first ``n_read`` frames are good."""

    def __init__(self, path: Path, n_read: int, problem: str) -> None:
        readable = f"frames 0 to {n_read - 1} are readable" if n_read else "no frame is readable"
        super().__init__(
            f"{path}: {readable}, then {problem}. "
            "Copy the recording again, or go on with the readable part."
        )
        self.n_read = n_read


class FrameSource(ABC):
    """A recording.

    path        file or folder
    image_size  (width, height) in pixels
    n_frames    number of frames the recording claims to have; None if it does not say
    """

    path: Path
    image_size: tuple[int, int]
    n_frames: int | None

    def frames(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, Picture]]:
        """(index, (H, W) grey picture) of the frames from ``start`` up to before ``stop``.

        Raises ``TruncatedInput`` at the end of what is readable, if that lies before
        ``stop`` and is not the regular end.
        """
        if start < 0:
            raise InputError(f"{self.path}: frames are counted from 0, got {start}.")
        if stop is not None and stop <= start:
            return iter(())
        return islice(self._frames(start), None if stop is None else stop - start)

    @abstractmethod
    def _frames(self, start: int) -> Iterator[tuple[int, Picture]]:
        """(index, picture) of all frames from ``start`` on."""

    def _check_size(self, index: int, name: str, size: tuple[int, int]) -> None:
        if size != self.image_size:
            width, height = self.image_size
            raise InputError(
                f"{self.path}, frame {index}{name} has {size[0]} x {size[1]} pixels, the frames "
                f"before it {width} x {height}: a recording needs one size."
            )


def open_frames(path: Path) -> FrameSource:
    """The frames of a video file, a folder of pictures, or an ARRIRAW file or folder."""
    if path.is_dir():
        return _open_folder(path)
    with reading(path):
        path.open("rb").close()
    try:
        return _Video(path)
    except InputError:
        if path.suffix.lower() not in ARRI:
            raise
    return _Arriraw(path)


def _open_folder(path: Path) -> FrameSource:
    with reading(path):
        files = [file for file in path.iterdir() if not file.name.startswith(".")]
    pictures = [file for file in files if file.suffix.lower() in PICTURES]
    if pictures:
        return _Pictures(path, pictures)
    if any(file.suffix.lower() in ARRI for file in files):
        return _Arriraw(path)
    raise InputError(f"{path} holds no pictures: {', '.join(PICTURES)} files are needed.")


class _Pictures(FrameSource):
    """A folder with one picture per frame, in the order a person would give them."""

    def __init__(self, path: Path, files: list[Path]) -> None:
        self.path = path
        self.n_frames = len(files)
        self._files = sorted(files, key=_natural_key)
        first = self._read(0)
        self.image_size = (first.shape[1], first.shape[0])

    def _frames(self, start: int) -> Iterator[tuple[int, Picture]]:
        for index in range(start, len(self._files)):
            picture = self._read(index)
            name = f" ({self._files[index].name})"
            self._check_size(index, name, (picture.shape[1], picture.shape[0]))
            yield index, picture

    def _read(self, index: int) -> Picture:
        file = self._files[index]
        with reading(file):
            data = file.read_bytes()
        flags = cv2.IMREAD_ANYDEPTH | cv2.IMREAD_GRAYSCALE | cv2.IMREAD_IGNORE_ORIENTATION
        picture = None
        if _is_whole(data):
            try:
                picture = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
            except cv2.error:
                picture = None
        if picture is None:
            raise TruncatedInput(self.path, index, f"{file.name} is damaged or not a picture")
        if picture.dtype not in (np.uint8, np.uint16):
            raise InputError(f"{file} has {picture.dtype} pixels; 8 or 16 bits are needed.")
        return cast(Picture, picture)


def _natural_key(path: Path) -> tuple[list[tuple[int, str]], str]:
    """Sorts frame2 before frame10."""
    parts = re.findall(r"\d+|\D+", path.name.lower())
    return [(int(p), "") if p.isdecimal() else (-1, p) for p in parts], path.name


def _is_whole(data: bytes) -> bool:
    """False for a JPEG or PNG without its end, of which OpenCV would make up the rest."""
    if data.startswith(b"\xff\xd8"):
        start_of_scan, end_of_image = data.rfind(b"\xff\xda"), data.rfind(b"\xff\xd9")
        return 0 < start_of_scan < end_of_image
    if data.startswith(b"\x89PNG"):
        return b"IEND\xaeB`\x82" in data[-4096:]
    return len(data) > 0


class _Video(FrameSource):
    """Whatever FFmpeg decodes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._opened() as (_, stream):
            self.image_size = (stream.width, stream.height)
            self.n_frames = stream.frames or None
        try:
            next(self._frames(0))
        except StopIteration:
            raise InputError(f"{path} has no video frame.") from None

    @contextmanager
    def _opened(self) -> Iterator[tuple[InputContainer, VideoStream]]:
        av = _import_av(self.path)
        try:
            container = av.open(str(self.path), metadata_errors="replace")
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
            yield container, stream

    def _frames(self, start: int) -> Iterator[tuple[int, Picture]]:
        with self._opened() as (container, stream):
            progress = _Progress(self.path)
            for frame in self._decoded(container, stream, progress, start):
                index = progress.n_frames
                self._check_size(index, "", (frame.width, frame.height))
                if index >= start:
                    yield index, _grey(frame)
                progress.n_frames += 1

    def _decoded(
        self,
        container: InputContainer,
        stream: VideoStream,
        progress: _Progress,
        start: int,
    ) -> Iterator[VideoFrame]:
        """The frames in order; those before ``start`` may be left out if counted."""
        av = _import_av(self.path)
        skip = start if stream.codec_context.codec.intra_only else 0
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


class _Progress:
    """How far a video was read, and whether it ended where it says it does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_frames = 0
        self._n_packets = 0
        self._end = 0
        self._damaged = False

    def count(self, packet: Packet[VideoStream]) -> None:
        """Take note of a packet."""
        self._n_packets += 1
        self._damaged |= packet.is_corrupt
        if packet.pts is not None:
            self._end = max(self._end, packet.pts + (packet.duration or 0))

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


def _promised_seconds(container: InputContainer, stream: VideoStream) -> float | None:
    """Length that a Matroska or MXF header states; None where FFmpeg would only estimate."""
    if "mxf" in container.format.name and stream.duration and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    if "matroska" in container.format.name:
        match = re.match(r"(\d+):(\d+):(\d+\.?\d*)", stream.metadata.get("DURATION", ""))
        if match:
            hours, minutes, seconds = (float(part) for part in match.groups())
            return 3600 * hours + 60 * minutes + seconds
        if container.duration and len(container.streams) == 1:
            return container.duration / 1e6
    return None


def _grey(frame: VideoFrame) -> Picture:
    """(H, W) luma of a frame, full-scale ``uint16`` if it has more than 8 bits."""
    layout = frame.format
    deep = max(part.bits for part in layout.components) > 8
    if not _has_luma_plane(layout):
        frame, shift = frame.reformat(format="gray16le" if deep else "gray"), 0
    else:
        # P010 and its like keep their bits at the top already.
        shift = 0 if layout.name.startswith("p") else 16 - layout.components[0].bits
    plane = frame.planes[0]
    rows = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)[: frame.height]
    if not deep:
        return rows[:, : frame.width].copy()
    return np.left_shift(rows[:, : 2 * frame.width].view("<u2"), shift)


def _has_luma_plane(layout: VideoFormat) -> bool:
    """True if plane 0 is nothing but luma, in an order of bytes that numpy can take."""
    first, others = layout.components[0], layout.components[1:]
    packed = any(part.plane == first.plane for part in others)
    return first.is_luma and not packed and not layout.is_big_endian and first.bits >= 8


def _import_av(path: Path) -> ModuleType:
    """PyAV, which only videos need."""
    try:
        import av
    except ImportError:
        raise InputError(
            f"{path} needs PyAV to be read as a video: pip install 'influx_wrap[video]'."
        ) from None
    # FFmpeg's log stays off: with PyAV's callback installed, reading has been seen to hang.
    av.logging.set_level(None)
    return av


def _complaint(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error).rstrip(".")


class _Arriraw(FrameSource):
    """An ARRIRAW clip, developed by ARRI's own tool into a temporary folder of TIFFs.

    The folder is removed together with the source.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        tool = shutil.which("art-cmd")
        if tool is None:
            raise InputError(
                f"{path} cannot be decoded by FFmpeg. If it is an ARRIRAW clip, install art-cmd, "
                "the command line version of the ARRI Reference Tool (www.arri.com, Learn & Help, "
                "Tools), and put it on the PATH."
            )
        self._temporary = tempfile.TemporaryDirectory(prefix="influx-art-")
        folder = Path(self._temporary.name)
        done = subprocess.run(
            [
                *(tool, "process", "--input", str(path)),
                *("--target-colorspace", "Rec.709/D65/BT.1886"),
                *("--output", str(folder / "%07d.tiff")),
            ],
            capture_output=True,
            text=True,
            errors="replace",
        )
        files = [file for file in folder.iterdir() if file.suffix.lower() in PICTURES]
        if not files:
            lines = (done.stderr or done.stdout).strip().splitlines()
            said = lines[-1] if lines else "nothing"
            raise InputError(f"{path}: art-cmd made no frame of it (it said: {said}).")
        self._pictures = _Pictures(folder, files)
        self._failed = done.returncode != 0
        self.image_size = self._pictures.image_size
        self.n_frames = None if self._failed else len(files)

    def _frames(self, start: int) -> Iterator[tuple[int, Picture]]:
        n_read = start
        try:
            for index, picture in self._pictures.frames(start):
                n_read = index + 1
                yield index, picture
        except TruncatedInput as error:
            raise TruncatedInput(self.path, error.n_read, "art-cmd wrote a damaged frame") from None
        if self._failed:
            raise TruncatedInput(self.path, n_read, "art-cmd stopped with an error")
