"""``annotate --preview``: real videos, written, and decoded again by PyAV."""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from influx_wrap.annotate import preview as previews
from influx_wrap.formats.lut import write_table
from influx_wrap.formats.video import write_video
from influx_wrap.report.preview import CELLS_ACROSS, COLOURS, Standing
from tests.cli.conftest import Invoke, assert_mistake
from tests.lut.lenses import fitted_table

TABLE_SIZE = (3424, 2202)
SIZE = (428, 276)
GREY = 128


@pytest.fixture(scope="module")
def lut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lut") / "lut.json"
    write_table(path, fitted_table("canon17"))
    return path


def flat(n: int, size: tuple[int, int] = SIZE) -> Iterator[NDArray[np.uint8]]:
    for _ in range(n):
        yield np.full((size[1], size[0], 3), GREY, dtype=np.uint8)


def metadata(folder: Path, *lines: str) -> Path:
    path = folder / "clip.csv"
    path.write_text("\n".join(["frame,lfl_mm,fd_m", *lines]) + "\n")
    return path


def decoded(path: Path) -> list[NDArray[np.uint8]]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="bgr24") for frame in container.decode(video=0)]


def write_at_rate(path: Path, n: int, rate: Fraction) -> Path:
    """Written by PyAV alone."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=rate, options={"preset": "ultrafast"})
        stream.width, stream.height = SIZE
        for picture in flat(n):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "bgr24")))
        container.mux(stream.encode(None))
    return path


@pytest.mark.parametrize("rate", [Fraction(24000, 1001), Fraction(25)])
def test_as_many_frames_as_fast(invoke: Invoke, tmp_path: Path, lut: Path, rate: Fraction) -> None:
    video = write_at_rate(tmp_path / "clip.mov", 5, rate)
    clip = metadata(tmp_path, *(f"{k},35,2.4" for k in range(5)))
    out, preview = tmp_path / "gt.json", tmp_path / "p.mp4"
    result = invoke(
        "annotate", clip, "--lut", lut, "--out", out, "--video", video, "--preview", preview
    )
    assert result.exit_code == 0, result.output
    assert f"written: {preview} (5 frames, 428 x 276)" in result.stdout
    assert "warning" not in result.stderr
    assert "428 x 276 pixels, the table 3424 x 2202" in result.stderr
    with av.open(str(preview)) as container:
        stream = container.streams.video[0]
        assert stream.average_rate == rate
        assert (stream.width, stream.height) == SIZE
        assert stream.codec_context.name == "h264"
    assert len(decoded(preview)) == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("clip.csv", "clip.mov", "gt.json", "p.mp4"),
    ]
    # The ground truth is what it is without a preview.
    alone = tmp_path / "alone.json"
    invoke("annotate", clip, "--lut", lut, "--out", alone)
    assert alone.read_bytes() == out.read_bytes()


@pytest.mark.parametrize("width", [428, 320])
def test_the_grid_is_where_opencv_sees_it(
    invoke: Invoke, tmp_path: Path, lut: Path, width: int
) -> None:
    """From the JSON, whose origin is a corner, to the pixels of a scaled preview."""
    video, preview, out = (tmp_path / name for name in ("clip.mkv", "p.mkv", "gt.json"))
    write_video(video, flat(2), 24, "ffv1")
    clip = metadata(tmp_path, "0,17,3", "1,100,3")
    arguments = ("--video", video, "--preview", preview, "--preview-width", width)
    assert invoke("annotate", clip, "--lut", lut, "--out", out, *arguments).exit_code == 0
    found = json.loads(out.read_text())
    for k, picture in enumerate(decoded(preview)):
        height, width_found = picture.shape[:2]
        assert width_found == width
        assert height % 2 == 0
        scale = np.array([width, height]) / TABLE_SIZE
        true = found[str(k)]["intrinsics_gt"]
        focal = scale * (true["fx"], true["fy"])
        middle = scale * (true["cx"], true["cy"]) - 0.5
        matrix = np.array([[focal[0], 0, middle[0]], [0, focal[1], middle[1]], [0, 0, 1]])
        coefficients = np.array([true[name] for name in ("k1", "k2", "p1", "p2")])
        cell = width / CELLS_ACROSS
        halves = np.arange(-9, 10) / 2
        x, y = np.meshgrid(halves, halves / 2)
        rays = np.stack([x * cell / focal[0], y * cell / focal[1], np.ones_like(x)], -1)
        uv, _ = cv2.projectPoints(
            rays.reshape(-1, 3), np.zeros(3), np.zeros(3), matrix, coefficients
        )
        cols, rows = np.round(uv.reshape(-1, 2)).astype(int).T
        on_line = ((x % 1 == 0) | (y % 1 == 0)).ravel()
        away = ((x % 1 == 0.5) & (y % 1 == 0.5)).ravel()
        off_plate = (cols > width / 2) | (rows > height / 2)
        off_plate &= (abs(x) + abs(y)).ravel() > 0.6
        drawn = (np.abs(picture.astype(int) - GREY) > 3).any(axis=2)[rows, cols]
        assert drawn[on_line & off_plate].all()
        assert not drawn[away & off_plate].any()


def test_every_frame_says_where_it_stands(invoke: Invoke, tmp_path: Path, lut: Path) -> None:
    """And frames that either side lacks are named."""
    video, preview, out = (tmp_path / name for name in ("clip.mkv", "p.mkv", "gt.csv"))
    size = (856, 550)
    write_video(video, flat(9, size), 24, "ffv1")
    lines = ("0,35,2.4", "1,36,inf", "2,16,2", "3,120,0.3", "4,,2", "6,35,", "7,35,2")
    clip = metadata(tmp_path, *lines)
    arguments = (clip, "--lut", lut, "--out", out, "--video", video, "--preview", preview)
    result = invoke("annotate", *arguments)
    assert result.exit_code == 0, result.output
    assert "1 frame (8) of the video after the last that the metadata list." in result.stderr
    expected = [
        Standing.INTERPOLATED,
        Standing.EXTRAPOLATED,
        Standing.LFL_OUTSIDE,
        Standing.UNUSABLE,
        *(3 * [Standing.NO_METADATA]),
        Standing.INTERPOLATED,
        Standing.NO_METADATA,
    ]
    pictures = decoded(preview)
    assert len(pictures) == 9
    for picture, standing in zip(pictures, expected, strict=True):
        mark = picture[20:34, 20:31]
        colours = {tuple(pixel) for pixel in mark.reshape(-1, 3).tolist()}
        assert {c for c in COLOURS.values() if c in colours} == {COLOURS[standing]}
        has_grid = (picture[300:] != GREY).any()
        assert has_grid == (standing in (Standing.INTERPOLATED, Standing.EXTRAPOLATED))
    # Filled: the grid is there.
    result = invoke("annotate", *arguments, "--fill-gaps", 2)
    assert result.exit_code == 0
    filled = [bool((picture[300:] != GREY).any()) for picture in decoded(preview)]
    assert filled[6:] == [True, True, False]
    write_video(video, flat(3, size), 24, "ffv1")
    result = invoke("annotate", *arguments)
    assert "4 frames (3-4, 6-7) of the metadata that the video does not have." in result.stderr
    assert len(decoded(preview)) == 3


def test_grey_pictures_in_a_folder(invoke: Invoke, tmp_path: Path, lut: Path) -> None:
    folder, preview = tmp_path / "frames", tmp_path / "p.mp4"
    folder.mkdir()
    for k in range(2):
        cv2.imwrite(str(folder / f"{k}.png"), np.full(SIZE[::-1], GREY << 8, np.uint16))
    clip = metadata(tmp_path, "0,35,2.4", "1,35,2.4")
    arguments = ("--out", tmp_path / "gt.json", "--video", folder, "--preview", preview)
    result = invoke("annotate", clip, "--lut", lut, *arguments)
    assert result.exit_code == 0, result.output
    assert "states no frame rate: the preview has 24 frames a second." in result.stderr
    (first, _) = decoded(preview)
    assert abs(int(np.median(first[200:])) - GREY) < 5


def test_a_truncated_video_is_shown_as_far_as_it_goes(
    invoke: Invoke, tmp_path: Path, lut: Path
) -> None:
    video, preview = tmp_path / "clip.mkv", tmp_path / "p.mp4"
    rng = np.random.default_rng(0)
    noise = (rng.integers(0, 256, (SIZE[1], SIZE[0], 3), dtype=np.uint8) for _ in range(12))
    write_video(video, noise, 24, "ffv1")
    video.write_bytes(video.read_bytes()[: video.stat().st_size // 2])
    clip = metadata(tmp_path, *(f"{k},35,2.4" for k in range(12)))
    arguments = ("--out", tmp_path / "gt.json", "--video", video, "--preview", preview)
    result = invoke("annotate", clip, "--lut", lut, *arguments)
    assert result.exit_code == 0, result.output
    n = len(decoded(preview))
    assert 0 < n < 12
    assert f"readable part: {video}: frames 0 to {n - 1} are readable" in result.stderr
    assert f"({n}-11) of the metadata that the video does not have." in result.stderr


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_nothing_half_written(
    invoke: Invoke,
    tmp_path: Path,
    lut: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: type[BaseException] | BaseException,
) -> None:
    video, preview, out = (tmp_path / name for name in ("clip.mp4", "p.mp4", "gt.json"))
    write_video(video, flat(6), 24, "h264")
    clip = metadata(tmp_path, *(f"{k},35,2.4" for k in range(6)))
    calls = []

    def draw(*_: object) -> None:
        calls.append(1)
        if len(calls) == 4:
            raise failure

    monkeypatch.setattr(previews, "draw_note", draw)
    preview.write_bytes(b"an earlier one")
    arguments = ("--out", out, "--video", video, "--preview", preview)
    result = invoke("annotate", clip, "--lut", lut, *arguments)
    if failure is KeyboardInterrupt:
        assert result.exit_code == 130
    else:
        assert result.exit_code == 2
        assert f"{preview} cannot be written: No space left on device." in result.stderr
    assert preview.read_bytes() == b"an earlier one"
    assert len(json.loads(out.read_text())) == 6
    assert len(list(tmp_path.iterdir())) == 4


def test_mistakes(invoke: Invoke, tmp_path: Path, lut: Path) -> None:
    video, out, preview = (tmp_path / name for name in ("clip.mp4", "gt.json", "p.mp4"))
    write_video(video, flat(2), 24, "h264")
    clip = metadata(tmp_path, "0,35,2.4", "1,35,2.4")

    def refused(*arguments: object, words: str) -> None:
        result = invoke("annotate", clip, "--lut", lut, "--out", out, *arguments)
        assert_mistake(result, words)
        assert not out.exists()
        assert not preview.exists()

    refused("--preview", preview, words="--preview needs the clip to draw on")
    refused("--preview-width", 640, words="--preview-width is for --preview only")
    both = ("--video", video, "--preview")
    refused(*both, video, words="would replace what is read")
    refused(*both, out, words="is --out as well")
    refused(*both, tmp_path / "p.gif", words="use .mp4 or .mkv")
    refused(*both, tmp_path / "p", words="use .mp4 or .mkv")
    refused(*both, tmp_path / "no" / "p.mp4", words="cannot be written")
    refused(*both, preview, "--preview-width", 10, words="160")
    refused("--video", tmp_path / "no.mp4", "--preview", preview, words="does not exist")
    whole = video.read_bytes()
    for content, words in ((b"", "not a video"), (whole[: len(whole) // 3], "not a video")):
        video.write_bytes(content)
        refused(*both, preview, words=words)
    write_video(video, flat(2, (640, 360)), 24, "h264")
    refused(*both, preview, words="640 x 360 pixels, the table is of pictures with 3424 x 2202")
    command = ("annotate", clip, "--lut", lut, "--out", video, *both, preview)
    assert_mistake(invoke(*command), "would replace")
