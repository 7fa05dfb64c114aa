"""``detect``: footage in, files out, whatever happens in between."""

import json
import subprocess
import time
from pathlib import Path

import cv2
import numpy as np
import pytest

from influx_wrap.formats.detections import read_summary
from influx_wrap.formats.kalibr import write_target
from influx_wrap.observe.footage import JOURNAL
from tests.cli.conftest import Invoke, assert_mistake, command_line, execute
from tests.clips import GRID, SIZE, picture, write_clip

N, N_HELD = 400, 25
STRETCH = 72


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clip, with the target beside it."""
    folder = tmp_path_factory.mktemp("footage")
    write_target(folder / "target.yaml", GRID)
    pictures = [picture(seed) for seed in range(4)]
    return write_clip(folder / "clip.mp4", [pictures[i // N_HELD % 4] for i in range(N)])


@pytest.fixture(scope="module")
def detected(clip: Path) -> Path:
    """What one process finds in the clip, uninterrupted."""
    done = execute(*arguments(clip, clip.parent / "one"), "--jobs", 1)
    assert done.returncode == 0, done.stderr
    (clip.parent / "stdout").write_text(done.stdout)
    return clip.parent / "one"


def arguments(clip: Path, out: Path) -> tuple[object, ...]:
    return "detect", clip, "--target", clip.parent / "target.yaml", "--out", out


def test_files_and_summary(clip: Path, detected: Path) -> None:
    assert set(contents(detected)) == {
        *("target.yaml", "coords_2d.csv", "successes.csv", "confidence.csv"),
        *("detections_per_frame.json", "detection.json", "first_look.npz"),
    }
    summary = read_summary(detected)
    assert (summary.footage, summary.n_frames, summary.stills) == (clip, N, False)
    counts = summary.counts[summary.counts > 0]
    assert counts.min() > 40
    assert N / 8 < len(counts) < N / 2, "some frames of each pose"
    said = (clip.parent / "stdout").read_text().splitlines()
    assert said[0].split() == ["frames", str(N)]
    assert said[1].split() == ["with", "corners", str(len(counts))]
    assert said[2].endswith(f"{np.median(counts):g} of 48")
    assert said[3].startswith("seconds per frame")


def test_killed_in_the_middle_of_two_processes(clip: Path, detected: Path) -> None:
    # On a busy machine detect may end before the kill arrives; then it is tried again.
    for attempt in range(5):
        out = clip.parent / f"killed{attempt}"
        command = [*command_line(*arguments(clip, out)), "--jobs", "2"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not list(out.glob(f"{JOURNAL}/*.npz")) and process.poll() is None:
            time.sleep(0.002)
        process.kill()
        process.wait()
        if (out / JOURNAL).exists() and not (out / "detection.json").exists():
            break
    assert not (out / "detection.json").exists(), "detect was not killed in the middle"
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    n_kept = int(again.stdout.split("there already")[1].split()[0])
    assert 0 < n_kept < N
    assert n_kept % STRETCH in (0, N % STRETCH)
    assert contents(out) == contents(detected)


def test_truncated_footage(clip: Path, tmp_path: Path, invoke: Invoke) -> None:
    short = write_clip(tmp_path / "short.mkv", [picture(seed) for seed in range(12)])
    short.write_bytes(short.read_bytes()[: int(0.7 * short.stat().st_size)])
    write_target(tmp_path / "target.yaml", GRID)
    result = invoke(*arguments(short, tmp_path / "out"), "--jobs", 1)
    assert result.exit_code == 1
    summary = read_summary(tmp_path / "out")
    assert summary.truncated is not None
    assert f"readable up to frame {summary.n_frames - 1}, then the file ends" in result.stderr


def test_stills(tmp_path: Path, invoke: Invoke) -> None:
    write_target(tmp_path / "target.yaml", GRID)
    folder = tmp_path / "pictures"
    folder.mkdir()
    for i in range(2):
        cv2.imwrite(str(folder / f"{i}.png"), picture(i))
    for options, stills in (((), True), (("--no-stills",), False)):
        result = invoke(*arguments(folder, tmp_path / "out"), "--jobs", 1, *options)
        assert result.exit_code == 0, result.output
        assert read_summary(tmp_path / "out").stills == stills


def test_photographs_are_called_by_their_files(tmp_path: Path, invoke: Invoke) -> None:
    write_target(tmp_path / "target.yaml", GRID)
    folder = tmp_path / "pictures"
    folder.mkdir()
    for i in range(3):
        cv2.imwrite(str(folder / f"left{i}.png"), picture(i))
    cv2.imwrite(str(folder / "grey[a].png"), np.full((SIZE[1], SIZE[0]), 120, np.uint8))
    (folder / "left1.png").write_bytes(b"broken")
    (folder / "IMG_1.HEIC").write_bytes(b"an iPhone's")
    result = invoke(*arguments(folder, tmp_path / "out"), "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert "board not found      1 (grey[a].png)" in result.stdout
    assert "not used: left1.png: damaged or not a picture." in result.stderr
    assert "not used: IMG_1.HEIC: HEIC is not read here" in result.stderr
    assert json.loads((tmp_path / "out" / "view_names.json").read_text())["1"] == "left0.png"
    assert invoke(*arguments(folder, tmp_path / "out"), "--jobs", 1).stderr.count("not used") == 2


def test_mistakes(clip: Path, tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "out"
    assert_mistake(invoke(*arguments(clip.with_name("none.mp4"), out)), "none.mp4 does not exist")
    assert_mistake(invoke(*arguments(clip, out), "--stills"), "--stills is for a folder")
    empty = tmp_path / "empty"
    empty.mkdir()
    target = ("--target", clip.parent / "target.yaml")
    assert_mistake(invoke("detect", empty, *target, "--out", out), "holds no pictures")
    cv2.imwrite(str(empty / "0.png"), np.full((100, 200), 90, np.uint8))
    result = invoke("detect", empty, *target, "--out", out, "--jobs", 1)
    assert_mistake(result, "in none of the 1 frames", "can be made out in them")
    assert not out.exists() or list(out.iterdir()) == []
    (tmp_path / "file").touch()
    result = invoke("detect", empty, *target, "--out", tmp_path / "file")
    assert_mistake(result, "cannot be made a folder")
