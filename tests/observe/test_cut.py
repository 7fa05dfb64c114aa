"""Stretches cut out of videos: the frames are those of the whole, bit for bit."""

from pathlib import Path

import av
import numpy as np
import pytest

from influx_wrap.observe.cut import cut_out, open_cut
from influx_wrap.observe.frames import FrameSource
from influx_wrap.observe.sources import open_frames
from influx_wrap.observe.stretches import Stretch
from tests.clips import GRID, write_clip

N, SIZE = 60, (96, 64)
CODECS = {
    "frames behind others": ("libx264", {"bf": "2", "g": "12", "x264-params": "open-gop=0"}),
    "one pass": ("libx264", {"bf": "0", "g": "12"}),
    "prores": ("prores_ks", {}),
}


def film(path: Path, codec: str, options: dict[str, str]) -> FrameSource:
    rng = np.random.default_rng(0)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=24, options=options)
        stream.width, stream.height = SIZE
        stream.pix_fmt = "yuv420p" if codec == "libx264" else "yuv422p10le"
        for k in range(N):
            grey = rng.integers(0, 255, SIZE[::-1], dtype=np.uint8)
            grey[:, k % SIZE[0]] = 255
            frame = av.VideoFrame.from_ndarray(grey, "gray").reformat(format=stream.pix_fmt)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return open_frames(path)


def stretch(source: FrameSource, start: int, stop: int | None) -> Stretch:
    return Stretch(0, start, stop, source, GRID, 4, every_frame=False)


@pytest.mark.parametrize("codec", CODECS)
def test_frames_of_a_cut(tmp_path: Path, codec: str) -> None:
    whole = film(tmp_path / "whole.mov", *CODECS[codec])
    every = [luma.picture() for _, luma in whole.lumas()]
    assert whole.entries() is not None
    for start, stop in ((0, 12), (12, 36), (14, 37), (47, 60)):
        (tmp_path / f"{start}").mkdir()
        cut = cut_out(stretch(whole, start, stop))
        assert cut is not None
        data, n_before = cut
        assert n_before < 12
        part = open_cut(data, tmp_path / f"{start}").for_one_core()
        lumas = part.lumas(n_before, n_before + stop - start)
        frames = [luma.picture() for _, luma in lumas]
        np.testing.assert_array_equal(frames, every[start:stop])


def test_what_is_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a video, which the whole file alone tells; what is too large; and pictures."""
    pictures = (np.full((64, 96), 3 * k, np.uint8) for k in range(N))
    source = open_frames(write_clip(tmp_path / "a.mp4", pictures))
    assert cut_out(stretch(source, 24, None)) is None
    assert cut_out(stretch(source, 24, 48)) is not None
    monkeypatch.setattr("influx_wrap.observe.cut.MOST_BYTES", 100)
    assert cut_out(stretch(source, 24, 48)) is None
