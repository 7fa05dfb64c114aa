"""Frames of bags, and excerpts of recordings."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats import rosbag
from influx_wrap.formats.rosbag import write_bag
from influx_wrap.observe.bags import BagFrames, Excerpt
from influx_wrap.observe.frames import TruncatedInput
from influx_wrap.observe.sources import open_frames

TOPIC = "/cam0/image_raw"
N, PERIOD_NS = 20, 100_000_000


def grey(index: int) -> np.ndarray:
    return np.full((4, 6), index, np.uint8)


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """Two seconds at 10 Hz, each picture as grey as its number."""
    path = tmp_path / "x.bag"
    times = [5_000_000_000 + PERIOD_NS * index for index in range(N)]
    write_bag(path, "ros1", ((TOPIC, time, grey(i)) for i, time in enumerate(times)))
    return path


def values(source: BagFrames | Excerpt, *span: int) -> list[tuple[int, int]]:
    return [(index, int(picture[0, 0])) for index, picture in source.frames(*span)]


def test_all_and_from_any_frame(bag: Path) -> None:
    source = BagFrames(bag, TOPIC)
    assert (source.image_size, source.n_frames) == ((6, 4), N)
    assert values(source) == [(i, i) for i in range(N)]
    assert values(source, 15, 18) == [(15, 15), (16, 16), (17, 17)]
    assert source.times_ns()[3] == 5_300_000_000


def test_seconds_and_frequency(bag: Path) -> None:
    source = BagFrames(bag, TOPIC, from_to_s=(0.5, 1.2))
    assert [value for _, value in values(source)] == list(range(5, 13))
    assert source.n_frames is None
    assert source.times_ns()[0] == 5_500_000_000
    assert [value for _, value in values(BagFrames(bag, TOPIC, freq_hz=5))] == list(range(0, N, 2))
    every_third = BagFrames(bag, TOPIC, from_to_s=(0.1, 9), freq_hz=4)
    assert values(every_third) == [(k, 1 + 3 * k) for k in range(7)]
    with pytest.raises(InputError, match="no picture between 3 and 4 s"):
        BagFrames(bag, TOPIC, from_to_s=(3, 4))


@pytest.mark.parametrize("kind", ["ros1", "sqlite3"])
def test_times_are_those_of_the_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: rosbag.Kind
) -> None:
    """As Kalibr counts them; recorded were these pictures at another pace."""
    writer = rosbag.Writer1 if kind == "ros1" else rosbag.Writer2
    write = writer.write
    monkeypatch.setattr(writer, "write", lambda bag, to, at, data: write(bag, to, 3 * at, data))
    path = tmp_path / ("y.bag" if kind == "ros1" else "y")
    times = [5_000_000_000 + PERIOD_NS * index for index in range(N)]
    write_bag(path, kind, ((TOPIC, time, grey(i)) for i, time in enumerate(times)))
    source = BagFrames(path, TOPIC, from_to_s=(0.5, 1.2))
    assert [value for _, value in values(source)] == list(range(5, 13))
    assert source.times_ns()[0] == 5_500_000_000


def test_damage_in_the_middle(bag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = BagFrames(bag, TOPIC)
    whole = rosbag.Reader1.messages

    def broken(*arguments, **options):  # type: ignore[no-untyped-def]
        for index, entry in enumerate(whole(*arguments, **options)):
            if index == 3:
                raise AssertionError
            yield entry

    monkeypatch.setattr(rosbag.Reader1, "messages", broken)
    frames = source.frames()
    assert [next(frames)[0] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(TruncatedInput, match="frames 0 to 2 are readable") as caught:
        next(frames)
    assert caught.value.n_read == 3


def test_pictures_of_two_sizes(tmp_path: Path) -> None:
    pictures = [np.zeros((4, 6), np.uint8), np.zeros((4, 8), np.uint8)]
    write_bag(tmp_path / "b", "mcap", ((TOPIC, 1 + i, p) for i, p in enumerate(pictures)))
    with pytest.raises(InputError, match="frame 1 has 8 x 4 pixels"):
        list(BagFrames(tmp_path / "b", TOPIC).frames())


def test_excerpt(tmp_path: Path) -> None:
    for index in range(6):
        cv2.imwrite(str(tmp_path / f"{index}.png"), grey(10 * index))
    excerpt = Excerpt(open_frames(tmp_path), 2, 5)
    assert excerpt.n_frames == 3
    assert values(excerpt) == [(0, 20), (1, 30), (2, 40)]
    assert values(excerpt, 1, 9) == [(1, 30), (2, 40)]
    assert Excerpt(open_frames(tmp_path), 4, 100).n_frames == 2
    with pytest.raises(InputError, match="no frames from 7"):
        Excerpt(open_frames(tmp_path), 7, 9)
