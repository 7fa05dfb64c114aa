"""ROS bags: pictures of one topic in, pictures of several topics out, without ROS.

ROS 1 bags are files; ROS 2 bags are folders with a ``metadata.yaml`` and SQLite or MCAP
files, or one such file by itself. Only ``sensor_msgs/Image`` and ``CompressedImage`` are
looked at, whose layout has never changed, so what else a bag holds does not matter.

Pictures come one at a time and grey, as calibration wants them: 8 bits stay ``uint8``, 16 bits
``uint16``. Times are those at which messages were recorded, in nanoseconds.
"""

from __future__ import annotations

import bz2
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import apsw
import cv2
import numpy as np
from lz4.frame import LZ4FrameDecompressor
from rosbags.interfaces import Connection
from rosbags.rosbag1 import Reader as Reader1
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag1 import reader as rosbag1
from rosbags.rosbag2 import Reader as Reader2
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.rosbag2 import storage_mcap as mcap
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.store import Typestore

from influx_wrap.errors import InputError
from influx_wrap.formats.files import excerpt, read_text, reading
from influx_wrap.formats.pictures import DAMAGED, UnusablePicture, decode_picture
from influx_wrap.formats.yaml_text import parse_yaml_text
from influx_wrap.model.arrays import Picture
from influx_wrap.model.words import size_text

Kind: TypeAlias = Literal["ros1", "sqlite3", "mcap"]

IMAGE, COMPRESSED = "sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"
ROS2_FILES = (".db3", ".mcap")
DESCRIPTION = "metadata.yaml"
MAX_TIME_NS = (2**31 - 1) * 10**9
"""ROS 2 counts seconds in 32 bits with a sign."""

_TO_GREY: dict[str, tuple[str, int, int | None]] = {
    "mono8": ("u1", 1, None),
    "8UC1": ("u1", 1, None),
    "mono16": ("u2", 1, None),
    "16UC1": ("u2", 1, None),
    "bgr8": ("u1", 3, cv2.COLOR_BGR2GRAY),
    "8UC3": ("u1", 3, cv2.COLOR_BGR2GRAY),
    "rgb8": ("u1", 3, cv2.COLOR_RGB2GRAY),
}
"""Encodings: type of a sample, samples per pixel, OpenCV's conversion."""

STAMP_OFFSET = 4
MOST_CHUNK_BYTES = 1 << 28
"""Of a part of a bag that is packed as one, unpacked; writers begin another after some MiB."""
MOST_DESCRIBED = 20_000
"""Values in a ROS 2 bag's description, some ten for each of its topics."""


class DamagedBag(InputError):
    """A bag cannot be read, or not to its end."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"{path} is not a whole bag: {problem}. Copy it again; what a killed recorder left "
            "is mended with rosbag reindex or ros2 bag reindex."
        )
        self.problem = problem


@dataclass(frozen=True)
class BagPicture:
    """A message with a picture, decoded when it is asked for; ``time_ns`` is when it came."""

    time_ns: int
    where: str
    raw: bytes
    msgtype: str
    is_ros1: bool

    @property
    def stamp_ns(self) -> int:
        """When the picture was taken, by its header; when it came, if that does not say."""
        # In both versions of ROS the stamp stands behind the first four bytes.
        if len(self.raw) < STAMP_OFFSET + 8:
            return self.time_ns
        order = ">" if not self.is_ros1 and self.raw[1] == 0 else "<"
        seconds, nanoseconds = struct.unpack_from(f"{order}II", self.raw, STAMP_OFFSET)
        return int(seconds * 10**9 + nanoseconds) or self.time_ns

    def grey(self) -> Picture:
        """(H, W), 8 or 16 bits."""
        store = _message_types(self.is_ros1)
        read = store.deserialize_ros1 if self.is_ros1 else store.deserialize_cdr
        try:
            message: Any = read(self.raw, self.msgtype)
        except Exception:
            # The reader of messages takes their bytes on trust and fails in many ways.
            raise InputError(f"{self.where} is damaged.") from None
        if self.msgtype == COMPRESSED:
            return _decompressed(message, self.where)
        return _image(message, self.where)


@dataclass(frozen=True)
class ImageTopic:
    """A topic with pictures in a bag: ``n_messages`` of them."""

    path: Path
    topic: str
    n_messages: int

    def pictures(self) -> Iterator[BagPicture]:
        """All pictures in the order of their times, one in memory at a time."""
        with _opened(self.path) as reader:
            connections = [c for c in reader.connections if c.topic == self.topic]
            messages = reader.messages(connections)
            index = 0
            while True:
                try:
                    connection, time_ns, raw = next(messages)
                except StopIteration:
                    return
                except Exception as error:
                    # As above: whatever the reader stumbles over, the bag is at fault.
                    raise DamagedBag(self.path, _complaint(error)) from None
                where = f"{self.path}, {self.topic}, message {index}"
                is_ros1 = isinstance(reader, Reader1)
                yield BagPicture(time_ns, where, bytes(raw), connection.msgtype, is_ros1)
                index += 1


def image_topic(path: Path, topic: str) -> ImageTopic:
    """The pictures of ``topic``; refuses a bag without it, or without a picture on it."""
    with _opened(path) as reader:
        found = [c for c in reader.connections if c.topic == topic]
        if not found:
            known = sorted({str(c.topic) for c in reader.connections if _has_pictures(c)})
            there = (
                f"pictures are on {', '.join(known)}" if known else "it has no topic of pictures"
            )
            raise InputError(f"{path} has no topic {topic}: {there}.")
        for connection in found:
            if not _has_pictures(connection):
                raise InputError(
                    f"{path}: {topic} holds {connection.msgtype}, not pictures: "
                    "sensor_msgs/Image or CompressedImage is needed."
                )
        counts = [connection.msgcount for connection in found]
        if not all(type(count) is int for count in counts):
            raise DamagedBag(path, f"its description has no number of messages on {topic}")
        n_messages = sum(counts)
    if n_messages == 0:
        raise InputError(f"{path}: there is no message on {topic}: record again.")
    return ImageTopic(path, topic, n_messages)


def write_bag(path: Path, kind: Kind, pictures: Iterable[tuple[str, int, Picture]]) -> None:
    """Write a bag of (topic, time in ns, grey picture), one picture in memory at a time.

    ``path`` must not exist yet; it appears when all of it is there.
    """
    if path.exists():
        raise InputError(f"{path} exists already: remove it, or give another name.")
    if kind == "ros1" and path.suffix != ".bag":
        raise InputError(f"{path}: a ROS 1 bag's name ends in .bag; ROS 2 is chosen with --ros2.")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
            unfinished = Path(folder) / path.name
            _write(unfinished, kind, pictures)
            unfinished.rename(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from None
    except apsw.Error as error:
        raise InputError(f"{path} cannot be written: {_complaint(error)}.") from None


def _write(path: Path, kind: Kind, pictures: Iterable[tuple[str, int, Picture]]) -> None:
    store = _message_types(kind == "ros1")
    types: dict[str, Any] = dict(store.types)
    image, header, time = (
        types[name] for name in (IMAGE, "std_msgs/msg/Header", "builtin_interfaces/msg/Time")
    )
    serialize = store.serialize_ros1 if kind == "ros1" else store.serialize_cdr
    connections: dict[str, Connection] = {}
    counts: dict[str, int] = {}
    with _writer(path, kind) as writer:
        for topic, time_ns, grey in pictures:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, IMAGE, typestore=store)
            seconds, nanoseconds = divmod(time_ns, 10**9)
            sequence = {"seq": counts.get(topic, 0)} if kind == "ros1" else {}
            counts[topic] = counts.get(topic, 0) + 1
            message = image(
                header=header(
                    stamp=time(sec=seconds, nanosec=nanoseconds),
                    frame_id=topic.strip("/").split("/")[0],
                    **sequence,
                ),
                height=grey.shape[0],
                width=grey.shape[1],
                encoding="mono8" if grey.dtype == np.uint8 else "mono16",
                is_bigendian=0,
                step=grey.shape[1] * grey.itemsize,
                data=np.ascontiguousarray(grey)
                .astype(grey.dtype.newbyteorder("<"))
                .view("u1")
                .ravel(),
            )
            writer.write(connections[topic], time_ns, serialize(message, IMAGE))


def _writer(path: Path, kind: Kind) -> Writer1 | Writer2:
    if kind == "ros1":
        return Writer1(path)
    plugin = StoragePlugin.SQLITE3 if kind == "sqlite3" else StoragePlugin.MCAP
    return Writer2(path, version=8, storage_plugin=plugin)


@contextmanager
def _opened(path: Path) -> Iterator[Reader1 | Reader2]:
    if not path.is_dir():
        with reading(path):
            path.open("rb").close()
    is_ros2 = path.is_dir() or path.suffix in ROS2_FILES
    if path.is_dir() and (path / DESCRIPTION).exists():
        # What the reader takes minutes for is refused before.
        where = path / DESCRIPTION
        parse_yaml_text(read_text(where), str(where), most_values=MOST_DESCRIBED)
    try:
        reader: Reader1 | Reader2 = Reader2(path) if is_ros2 else Reader1(path)
        reader.open()
    except Exception as error:
        # Readers take a bag's bytes on trust and fail in many ways.
        raise DamagedBag(path, _complaint(error)) from None
    try:
        yield reader
    finally:
        # One whose description is damaged may fail at that, too.
        with suppress(Exception):
            reader.close()


def _bounded(make: Callable[[], Any]) -> Callable[..., bytes]:
    """A decompressor that ends where its data are too many to be a part of a bag."""

    def decompress(data: bytes, *_: int) -> bytes:
        worker = make()
        unpacked: bytes = worker.decompress(data, MOST_CHUNK_BYTES)
        if not worker.eof:
            raise ValueError(
                f"a chunk is cut off, or unpacks to more than {MOST_CHUNK_BYTES >> 20} MiB"
            )
        return unpacked

    return decompress


# The readers themselves unpack whatever there is: a megabyte may become many gigabytes.
rosbag1.decompressors["bz2"] = _bounded(bz2.BZ2Decompressor)
rosbag1.decompressors["lz4"] = _bounded(LZ4FrameDecompressor)
mcap.DECOMPRESSORS["lz4"] = _bounded(LZ4FrameDecompressor)
mcap.DECOMPRESSORS["zstd"] = _bounded(cast(Any, mcap).zstd.ZstdDecompressor)


@lru_cache
def _message_types(is_ros1: bool) -> Typestore:
    return get_typestore(Stores.ROS1_NOETIC if is_ros1 else Stores.ROS2_HUMBLE)


def _complaint(error: Exception) -> str:
    """What a reader said, as part of a sentence."""
    return str(error).strip().splitlines()[0].rstrip(".") if str(error) else type(error).__name__


def _has_pictures(connection: Connection) -> bool:
    return connection.msgtype in (IMAGE, COMPRESSED)


def _image(message: Any, where: str) -> Picture:
    if message.encoding not in _TO_GREY:
        raise InputError(
            f"{where} has the encoding {message.encoding!r}; known are {', '.join(_TO_GREY)}."
        )
    kind, channels, conversion = _TO_GREY[message.encoding]
    dtype = np.dtype(kind).newbyteorder(">" if message.is_bigendian else "<")
    height, width, step = message.height, message.width, message.step
    row_bytes = width * channels * dtype.itemsize
    if min(height, width) < 1 or step < row_bytes or len(message.data) < height * step:
        raise InputError(
            f"{where} is damaged: {len(message.data)} bytes are no picture of "
            f"{size_text((width, height))}."
        )
    rows = np.asarray(message.data, np.uint8)[: height * step].reshape(height, step)
    pixels = np.ascontiguousarray(rows[:, :row_bytes]).view(dtype)
    if conversion is not None:
        return cast(Picture, cv2.cvtColor(pixels.reshape(height, width, channels), conversion))
    native: Picture = pixels.astype(dtype.newbyteorder("="), copy=False)
    return native


def _decompressed(message: Any, where: str) -> Picture:
    try:
        return cast(Picture, decode_picture(message.data, where))
    except UnusablePicture as error:
        if error.why != DAMAGED:
            raise
        raise InputError(
            f"{where} is no JPEG or PNG picture ({excerpt(message.format)}), or is damaged."
        ) from None
