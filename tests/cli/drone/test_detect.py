"""``drone detect``: a video in, flashes out, whatever happens in between."""

import subprocess
import time
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from influx_wrap.formats.flight import FLASHES, read_flashes
from influx_wrap.observe.flashes import JOURNAL
from tests.cli.conftest import Invoke, assert_mistake, command_line, execute
from tests.observe.test_flashes import film, write_film

TRUTH = {15: (40.3, 30.6), 60: (150.7, 90.2), 100: (96.5, 64.5)}
N = 150


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def write_video(path: Path, pictures: list[np.ndarray], layout: str = "yuv420p") -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=24, options={"crf": "8", "g": "12"})
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt = layout
        for picture in pictures:
            frame = av.VideoFrame.from_ndarray(picture, "bgr24").reformat(format=layout)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lamp = ((20.0, 100.0), {"gain": 30.0, "core_px": 3.0, "colour": (0.6, 0.9, 1.0)})
    return write_video(tmp_path_factory.mktemp("video") / "night.mp4", film(TRUTH, N, [lamp]))


@pytest.fixture(scope="module")
def detected(video: Path) -> Path:
    """What two processes find in the video, uninterrupted."""
    done = execute("drone", "detect", video, "--out", video.parent / "two", "--jobs", 2)
    assert done.returncode == 0, done.stderr
    (video.parent / "stdout").write_text(done.stdout)
    return video.parent / "two"


def test_files_and_table(video: Path, detected: Path) -> None:
    assert set(contents(detected)) == {FLASHES, "flashes.png", "other_lights.json"}
    stored = read_flashes(detected / FLASHES)
    assert stored.flashes.frames.tolist() == list(TRUTH)
    assert stored.footage == video
    np.testing.assert_allclose(stored.flashes.uv, list(TRUTH.values()), atol=0.2)
    said = (video.parent / "stdout").read_text()
    assert f"3 flashes in {N} frames" in said
    assert "2     100    4.167" in said
    assert "at (20, 100) is on most of the time" in said
    assert cv2.imread(str(detected / "flashes.png")) is not None


def test_killed_in_the_middle(video: Path, detected: Path) -> None:
    # On a busy machine it may end before the kill arrives; then it is tried again.
    for attempt in range(5):
        out = video.parent / f"killed{attempt}"
        command = [*command_line("drone", "detect", video, "--out", out), "--jobs", "1"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not list(out.glob(f"{JOURNAL}/*.npz")) and process.poll() is None:
            time.sleep(0.002)
        process.kill()
        process.wait()
        if (out / JOURNAL).exists() and not (out / FLASHES).exists():
            break
    assert not (out / FLASHES).exists(), "detect was not killed in the middle"
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert contents(out) == contents(detected)


def test_finished_work_is_said_again(video: Path, detected: Path, invoke: Invoke) -> None:
    before = contents(detected)
    result = invoke("drone", "detect", video, "--out", detected)
    assert result.exit_code == 0, result.output
    assert result.stdout == (video.parent / "stdout").read_text()
    assert contents(detected) == before


def test_a_truncated_video(tmp_path: Path, invoke: Invoke) -> None:
    video = write_film(tmp_path / "film", film(TRUTH, 80))
    (video / "40.png").write_bytes(b"no picture")
    result = invoke("drone", "detect", video, "--out", tmp_path / "out", "--fps", 24)
    assert result.exit_code == 1, result.output
    assert "1 flash in 40 frames" in result.stdout
    assert "was readable up to frame 39, then 40.png is damaged" in result.stderr


def test_mistakes(tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "out"
    dark = write_film(tmp_path / "dark", film({}, 8))
    assert_mistake(invoke("drone", "detect", dark, "--out", out), "--fps")
    assert_mistake(invoke("drone", "detect", dark, "--out", out, "--fps", 24), "no flash", "LED")
    assert_mistake(invoke("drone", "detect", tmp_path / "no.mp4", "--out", out), "does not exist")
    (tmp_path / "text.mp4").write_text("no video")
    assert_mistake(invoke("drone", "detect", tmp_path / "text.mp4", "--out", out), "not a video")
    grey = write_video(tmp_path / "grey.mp4", film({}, 4), "gray")
    assert_mistake(invoke("drone", "detect", grey, "--out", out), "is grey", "colour")
    (tmp_path / "empty").mkdir()
    assert_mistake(invoke("drone", "detect", tmp_path / "empty", "--out", out), "no pictures")
    for option in ("--flash-s", "--fps"):
        assert_mistake(invoke("drone", "detect", dark, "--out", out, option, "0"), option)
    assert not (out / FLASHES).exists()
