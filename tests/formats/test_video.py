"""Videos: every frame comes back, and what is on it stays where it was."""

from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from influx_wrap.errors import InputError
from influx_wrap.formats.video import SUFFIXES, write_video
from influx_wrap.observe.sources import open_frames

av = pytest.importorskip("av")


def noisy_pictures(n: int, size: tuple[int, int] = (96, 64)) -> NDArray[np.uint8]:
    """Blurred random blocks with a grain, levels from 0 to 255."""
    rng = np.random.default_rng(0)
    width, height = size
    blocks = rng.choice([0.0, 255.0], (n, -(-height // 8), -(-width // 8)))
    fine = np.kron(blocks, np.ones((8, 8)))[:, :height, :width]
    smooth = np.stack([cv2.GaussianBlur(picture, None, 0.7) for picture in fine])
    return np.clip(smooth + rng.normal(0, 2, smooth.shape), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("codec", list(SUFFIXES))
def test_round_trip(tmp_path: Path, codec: str) -> None:
    pictures = noisy_pictures(30)
    path = tmp_path / f"clip{SUFFIXES[codec]}"
    write_video(path, pictures, 24, codec)
    source = open_frames(path)
    assert (source.n_frames or 30, source.image_size) == (30, (96, 64))
    frames = list(source.frames())
    assert [index for index, _ in frames] == list(range(30))
    difference = np.stack([picture for _, picture in frames]).astype(float) - pictures
    assert difference.std() < (1.5 if codec == "h264" else 1e-12)
    assert abs(difference.mean()) < 0.1
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    with av.open(str(path)) as container:
        assert container.streams.video[0].average_rate == 24
        # Full range: a player shows 0 as black and 255 as white.
        assert container.streams.video[0].codec_context.color_range == 2


def coloured_pictures(n: int, size: tuple[int, int] = (96, 64)) -> NDArray[np.uint8]:
    """Smooth pictures (n, H, W, 3), every channel different from the others."""
    rng = np.random.default_rng(1)
    coarse = rng.uniform(40, 215, (n, 2, 3, 3))
    smooth = np.stack([cv2.resize(c, size, interpolation=cv2.INTER_CUBIC) for c in coarse])
    return np.clip(smooth, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("codec", list(SUFFIXES))
def test_colour_comes_back(tmp_path: Path, codec: str) -> None:
    size = (96, 64) if codec == "h264" else (95, 63)
    pictures = coloured_pictures(12, size)
    path = tmp_path / f"clip{SUFFIXES[codec]}"
    write_video(path, pictures, 24, codec)
    # OpenCV's own FFmpeg, which reads the tags for itself.
    reader = cv2.VideoCapture(str(path))
    found = []
    while (frame := reader.read()[1]) is not None:
        found.append(frame)
    difference = np.stack(found).astype(float) - pictures
    assert np.abs(difference.mean(axis=(0, 1, 2))).max() < (3 if codec == "h264" else 1e-12)
    assert difference.std() < (3 if codec == "h264" else 1e-12)
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert stream.codec_context.color_range == 2
        if codec == "h264":
            assert stream.codec_context.colorspace == 1
        frames = [frame.to_ndarray(format="bgr24") for frame in container.decode(stream)]
    difference = np.stack(frames).astype(float) - pictures
    assert np.abs(difference).max() < (25 if codec == "h264" else 1e-12)
    assert np.abs(difference.mean(axis=(0, 1, 2))).max() < (3 if codec == "h264" else 1e-12)


@pytest.mark.parametrize("codec", list(SUFFIXES))
def test_the_same_pictures_make_the_same_file(tmp_path: Path, codec: str) -> None:
    for pictures in (noisy_pictures(5), coloured_pictures(5)):
        for name in ("one", "two"):
            write_video(tmp_path / name, pictures, 24, codec)
        assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_odd_sizes(tmp_path: Path) -> None:
    pictures = noisy_pictures(2, (33, 21))
    with pytest.raises(InputError, match=r"33 x 21; use the codec ffv1"):
        write_video(tmp_path / "clip.mp4", pictures, 24, "h264")
    write_video(tmp_path / "clip.mkv", pictures, 24, "ffv1")
    found = [picture for _, picture in open_frames(tmp_path / "clip.mkv").frames()]
    np.testing.assert_array_equal(found, pictures)


def test_nothing_half_written(tmp_path: Path) -> None:
    def broken() -> Iterator[NDArray[np.uint8]]:
        yield from noisy_pictures(5)
        raise InputError("the renderer stumbled.")

    with pytest.raises(InputError, match="stumbled"):
        write_video(tmp_path / "clip.mp4", broken(), 24, "h264")
    with pytest.raises(InputError, match="needs a picture"):
        write_video(tmp_path / "clip.mp4", [], 24, "h264")
    with pytest.raises(InputError, match="cannot be written"):
        write_video(tmp_path / "missing" / "clip.mp4", noisy_pictures(2), 24, "h264")
    assert list(tmp_path.iterdir()) == []
