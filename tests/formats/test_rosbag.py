"""Bags written and read, against rosbags' own messages and OpenCV's conversions."""

import errno
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import cv2
import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from rosbags.rosbag1 import Writer
from rosbags.typesys import Stores, get_typestore

from influx_wrap.errors import InputError
from influx_wrap.formats.rosbag import DamagedBag, Kind, image_topic, write_bag

STORE = get_typestore(Stores.ROS1_NOETIC)
TOPIC = "/cam0/image_raw"
RNG = np.random.default_rng(7)
GREYS = [RNG.integers(0, 256, (5, 7), np.uint8), RNG.integers(0, 65536, (5, 7), np.uint16)]
START_NS = 1_600_000_000_123_456_789


def bag_path(folder: Path, kind: Kind) -> Path:
    return folder / ("x.bag" if kind == "ros1" else kind)


def entries() -> Iterator[tuple[str, int, Any]]:
    for index, grey in enumerate(GREYS):
        yield TOPIC, START_NS + index, grey
        yield "/cam1/image_raw", START_NS + index, grey[::-1]


@pytest.mark.parametrize("kind", get_args(Kind))
def test_round_trip(tmp_path: Path, kind: Kind) -> None:
    path = bag_path(tmp_path, kind)
    write_bag(path, kind, entries())
    assert list(tmp_path.iterdir()) == [path]
    topic = image_topic(path, TOPIC)
    assert topic.n_messages == 2
    for _ in range(2):
        pictures = list(topic.pictures())
        assert [p.time_ns for p in pictures] == [START_NS, START_NS + 1]
        for picture, grey in zip(pictures, GREYS, strict=True):
            assert picture.grey().dtype == grey.dtype
            np.testing.assert_array_equal(picture.grey(), grey)
    last = list(image_topic(path, "/cam1/image_raw").pictures())[-1]
    np.testing.assert_array_equal(last.grey(), GREYS[1][::-1])


@pytest.mark.parametrize("kind", get_args(Kind))
def test_another_reader_understands_the_messages(tmp_path: Path, kind: Kind) -> None:
    path = bag_path(tmp_path, kind)
    write_bag(path, kind, entries())
    with AnyReader([path]) as reader:
        connections = [c for c in reader.connections if c.topic == TOPIC]
        messages: list[Any] = [
            reader.deserialize(raw, c.msgtype) for c, _, raw in reader.messages(connections)
        ]
    assert [m.encoding for m in messages] == ["mono8", "mono16"]
    assert [m.step for m in messages] == [7, 14]
    assert {(m.height, m.width, m.header.frame_id) for m in messages} == {(5, 7, "cam0")}
    stamp = messages[1].header.stamp
    assert stamp.sec * 10**9 + stamp.nanosec == START_NS + 1


def message(data: Any, encoding: str, step: int, *, big: int = 0, size: Any = (5, 7)) -> Any:
    return STORE.types["sensor_msgs/msg/Image"](
        header=_header(),
        height=size[0],
        width=size[1],
        encoding=encoding,
        is_bigendian=big,
        step=step,
        data=np.frombuffer(data, np.uint8),
    )


def compressed(data: bytes) -> Any:
    return STORE.types["sensor_msgs/msg/CompressedImage"](
        header=_header(), format="png", data=np.frombuffer(data, np.uint8)
    )


def _header() -> Any:
    time = STORE.types["builtin_interfaces/msg/Time"](sec=1, nanosec=0)
    return STORE.types["std_msgs/msg/Header"](seq=0, stamp=time, frame_id="")


def read_back(folder: Path, written: Any) -> Any:
    """A message through a ROS 1 bag of rosbags' making."""
    path = folder / "one.bag"
    path.unlink(missing_ok=True)
    kind = written.__msgtype__
    with Writer(path) as writer:
        connection = writer.add_connection(TOPIC, kind, typestore=STORE)
        writer.write(connection, 10**9, STORE.serialize_ros1(written, kind))
    (picture,) = image_topic(path, TOPIC).pictures()
    return picture.grey()


def test_encodings(tmp_path: Path) -> None:
    colour = RNG.integers(0, 256, (5, 7, 3), np.uint8)
    bgr = read_back(tmp_path, message(colour.tobytes(), "bgr8", 21))
    np.testing.assert_array_equal(bgr, cv2.cvtColor(colour, cv2.COLOR_BGR2GRAY))
    rgb = read_back(tmp_path, message(colour.tobytes(), "rgb8", 21))
    np.testing.assert_array_equal(rgb, cv2.cvtColor(colour, cv2.COLOR_RGB2GRAY))
    padded = np.pad(GREYS[0], ((0, 0), (0, 3)))
    read = read_back(tmp_path, message(padded.tobytes(), "mono8", 10))
    np.testing.assert_array_equal(read, GREYS[0])
    swapped = GREYS[1].astype(">u2").tobytes()
    read = read_back(tmp_path, message(swapped, "mono16", 14, big=1))
    np.testing.assert_array_equal(read, GREYS[1])
    for grey in GREYS:
        png = cv2.imencode(".png", grey)[1].tobytes()
        np.testing.assert_array_equal(read_back(tmp_path, compressed(png)), grey)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (message(bytes(35), "bayer_rggb8", 7), "encoding 'bayer_rggb8'"),
        (message(bytes(34), "mono8", 7), "34 bytes are no picture of 7 x 5"),
        (message(bytes(35), "mono8", 3), "no picture of 7 x 5"),
        (message(b"", "mono8", 0, size=(0, 0)), "no picture of 0 x 0"),
        (compressed(b"no picture"), "no JPEG or PNG"),
        (compressed(b""), "no JPEG or PNG"),
    ],
)
def test_messages_that_are_no_pictures(tmp_path: Path, written: Any, words: str) -> None:
    with pytest.raises(InputError, match=f"{TOPIC}, message 0 .*{words}"):
        read_back(tmp_path, written)


def test_topics(tmp_path: Path) -> None:
    path = tmp_path / "x.bag"
    with Writer(path) as writer:
        for topic, kind in (("/empty", "sensor_msgs/msg/Image"), ("/imu", "sensor_msgs/msg/Imu")):
            writer.add_connection(topic, kind, typestore=STORE)
    with pytest.raises(InputError, match=r"x\.bag has no topic /other: pictures are on /empty\."):
        image_topic(path, "/other")
    with pytest.raises(InputError, match="/imu holds sensor_msgs/msg/Imu, not pictures"):
        image_topic(path, "/imu")
    with pytest.raises(InputError, match="no message on /empty"):
        image_topic(path, "/empty")


def test_no_bag(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        image_topic(tmp_path / "none.bag", TOPIC)
    (tmp_path / "text.bag").write_text("no bag\n")
    for path in (tmp_path, tmp_path / "text.bag"):
        with pytest.raises(DamagedBag, match="is not a whole bag"):
            image_topic(path, TOPIC)


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.999])
def test_truncated(tmp_path: Path, kind: Kind, share: float) -> None:
    path = bag_path(tmp_path, kind)
    large = RNG.integers(0, 256, (100, 100), np.uint8)
    write_bag(path, kind, ((TOPIC, START_NS + i, large) for i in range(12)))
    file = path if kind == "ros1" else next(f for f in path.iterdir() if f.suffix != ".yaml")
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    with pytest.raises(InputError):
        list(image_topic(path, TOPIC).pictures())


@pytest.mark.parametrize("kind", get_args(Kind))
def test_nothing_is_left_of_a_bag_that_failed(tmp_path: Path, kind: Kind) -> None:
    def until_the_disk_is_full() -> Iterator[tuple[str, int, Any]]:
        yield from entries()
        raise OSError(errno.ENOSPC, "No space left on device")

    path = bag_path(tmp_path, kind)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        write_bag(path, kind, until_the_disk_is_full())
    assert list(tmp_path.iterdir()) == []


def test_names_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "there.bag").touch()
    with pytest.raises(InputError, match="exists already"):
        write_bag(tmp_path / "there.bag", "ros1", entries())
    with pytest.raises(InputError, match=r"ends in \.bag"):
        write_bag(tmp_path / "folder", "ros1", entries())
    with pytest.raises(InputError, match="cannot be written: No such file"):
        write_bag(tmp_path / "none" / "x.bag", "ros1", entries())


@pytest.mark.parametrize("packer", ["bz2", "lz4", "zstd"])
def test_a_chunk_that_is_a_bomb(packer: str) -> None:
    """A few kilobytes that unpack to a gigabyte are given up on the way."""
    import bz2

    from lz4.frame import LZ4FrameCompressor
    from rosbags.rosbag1.reader import decompressors
    from rosbags.rosbag2.storage_mcap import DECOMPRESSORS, zstd

    half = bytes(1 << 20)
    if packer == "lz4":
        lz4 = LZ4FrameCompressor()
        packed = lz4.begin() + b"".join(lz4.compress(half) for _ in range(300)) + lz4.flush()
    else:
        worker = bz2.BZ2Compressor(9) if packer == "bz2" else zstd.ZstdCompressor()
        packed = b"".join(worker.compress(half) for _ in range(300)) + worker.flush()
    assert len(packed) < 2_000_000
    unpack = decompressors[packer] if packer != "zstd" else lambda x: DECOMPRESSORS["zstd"](x, 0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="unpacks to more than 256 MiB"):
        unpack(packed)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10 < 900
    good = bz2.compress(b"good") if packer == "bz2" else None
    assert good is None or unpack(good) == b"good"


def test_a_description_that_takes_minutes(tmp_path: Path) -> None:
    write_bag(tmp_path / "b", "mcap", entries())
    path = tmp_path / "b" / "metadata.yaml"
    path.write_text(path.read_text() + "more: [" + "[0, 0, 0, 0], " * 20_000 + "]\n")
    start = time.process_time()
    with pytest.raises(InputError, match=r"metadata\.yaml, line \d+: there are more than 20000"):
        image_topic(tmp_path / "b", "/cam0/image_raw")
    assert time.process_time() - start < 5
