"""``predict``: videos in, a submission out, whatever the method does in between."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import cv2
import numpy as np
import pytest

from influx_wrap.formats.groundtruth import read_ground_truth, write_ground_truth
from influx_wrap.formats.lens_metadata import write_lens_metadata
from influx_wrap.formats.submission import read_submission
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.predict.run import METHODS
from tests.cli.conftest import Invoke, assert_mistake, command_line
from tests.predict.scenes import SIZE, write_frames, write_zoom
from tests.predict.standins import RUNNER, write_runner

N = 6


@pytest.fixture
def videos(tmp_path: Path) -> list[Path]:
    """Three folders of frames."""
    return [write_frames(tmp_path / name, N) for name in "abc"]


def failing_once(tmp_path: Path) -> Path:
    """A runner that dies on the second video, the first time it sees it."""
    text = f"""
import os
INSTALL = ""
SETTINGS = {{}}
videos = 0
def load(settings):
    with open({str(tmp_path / "starts")!r}, "a") as file:
        file.write("x")
    def predict(path):
        global videos
        videos += path.endswith("000000.png")
        marker = {str(tmp_path / "marker")!r}
        if videos == 2 and not os.path.exists(marker):
            open(marker, "w").close()
            os.write(2, b"that was too much\\n")
            os._exit(9)
        return {{"fx": 100, "fy": 101, "cx": 8, "cy": 6}}
    return predict
"""
    return write_runner(tmp_path / "mine.py", text)


def test_one_video_fails_and_is_tried_again(
    videos: list[Path], tmp_path: Path, invoke: Invoke
) -> None:
    out = tmp_path / "out.json"
    arguments = ("predict", *videos, "--method", failing_once(tmp_path), "--out", out)
    result = invoke(*arguments)
    assert result.exit_code == 1, result.output
    assert "a: 6 of 6 frames" in result.stdout
    assert "c: 6 of 6 frames" in result.stdout
    assert "video b: none of its frames has an answer" in result.stderr
    assert "exit code 9, saying 'that was too much'" in result.stderr
    log = tmp_path / "out.json.logs" / "a.log"
    assert str(log) in result.stderr
    assert "too much" in log.read_text()
    predictions = read_submission(out)
    assert (predictions.method, predictions.kind) == ("mine", "rad-tan")
    assert list(predictions.videos) == ["a", "b", "c"]
    counts = [int(video.answered.sum()) for video in predictions.videos.values()]
    assert counts == [N, 0, N]
    assert predictions.videos["a"].values[0].tolist() == [100, 101, 7.5, 5.5, 0, 0, 0, 0]
    # As the file has it, for whoever reads it otherwise.
    first = json.loads(out.read_text())["a"]["0"]
    assert (first["cx"], first["cy"]) == (8, 6)
    assert json.loads(out.read_text())["b"]["5"]["fx"] is None

    again = invoke(*arguments)
    assert again.exit_code == 0, again.output
    assert "a: 6 of 6 frames (there already)" in again.stdout
    assert "b: 6 of 6 frames\n" in again.stdout
    counts = [int(video.answered.sum()) for video in read_submission(out).videos.values()]
    assert counts == [N] * 3
    assert (tmp_path / "starts").read_text() == "xxx"
    assert not list(tmp_path.glob(".out*"))


def test_other_settings_are_other_work(videos: list[Path], tmp_path: Path, invoke: Invoke) -> None:
    # Frame 3 of b is damaged, so that something fails and the journal stays.
    (videos[1] / "3.png").write_bytes(b"\x89PNG nothing")
    cv2.imwrite(str(videos[1] / "4.png"), np.zeros((5, 5, 3), np.uint8))
    (videos[2] / "0.png").write_bytes(b"")
    runner = write_runner(tmp_path / "mine.py", RUNNER)
    out = tmp_path / "out.json"
    arguments = ("predict", *videos, "--method", runner, "--out", out)
    first = invoke(*arguments)
    assert first.exit_code == 1
    # What is readable of b counts; of c nothing is.
    assert "b: 3 of 3 frames" in first.stdout
    assert "frames 0 to 2 are readable" in first.stderr
    assert "no frame is readable: 0.png is damaged" in first.stderr
    answered = {name: video.answered.sum() for name, video in read_submission(out).videos.items()}
    assert answered == {"a": 6, "b": 3, "c": 0}
    assert "a: 6 of 6 frames (there already)" in invoke(*arguments).stdout
    other = invoke(*arguments, "--set", "focal_px=300")
    assert "a: 6 of 6 frames\n" in other.stdout
    assert read_submission(out).videos["a"].values[0, 0] == 300
    # Another picture is another video.
    cv2.imwrite(str(videos[0] / "0.png"), np.full((12, 16, 3), 77, np.uint8))
    assert "a: 6 of 6 frames\n" in invoke(*arguments).stdout


def test_jobs_do_not_change_the_answer(videos: list[Path], tmp_path: Path, invoke: Invoke) -> None:
    runner = write_runner(tmp_path / "mine.py", RUNNER)
    files = []
    for jobs in (1, 3):
        out = tmp_path / f"{jobs}.json"
        result = invoke("predict", *videos, "--method", runner, "--out", out, "--jobs", jobs)
        assert result.exit_code == 0, result.output
        files.append(out.read_bytes())
    assert files[0] == files[1]


def test_interrupted(videos: list[Path], tmp_path: Path) -> None:
    text = RUNNER.replace(
        'print("looking at", path)',
        f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "        time.sleep(100)",
    )
    runner = write_runner(tmp_path / "mine.py", text)
    out = tmp_path / "out.json"
    command = command_line("predict", *videos, "--method", runner, "--out", out, "--jobs", 2)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr == "Interrupted. Resume with the same command.\n"
    assert not out.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_trivial_methods(videos: list[Path], tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "out.json"
    assert invoke("predict", *videos, "--method", "constant", "--out", out).exit_code == 0
    assert read_submission(out).videos["c"].values[:, 0].tolist() == [1.2 * 16] * N
    frames = np.arange(N)
    metadata = LensMetadata(frames, np.full(N, 28.25), np.full(N, 2.0))
    write_lens_metadata(tmp_path / "lens.csv", metadata)
    options = ("--method", "metadata", "--metadata", tmp_path / "lens.csv", "--out", out)
    result = invoke("predict", videos[0], *options)
    assert result.exit_code == 0, result.output
    # 28.25 mm is the width of the sensor.
    assert read_submission(out).videos["a"].values[:, 0] == pytest.approx(16)
    intrinsics = np.tile([1000.0, 1010, 800, 600, -0.1, 0.01, 0.001, 0], (N, 1))
    truth = GroundTruth(metadata, intrinsics, np.ones(N, dtype=bool))
    write_ground_truth(tmp_path / "gt.json", truth)
    known = {"a": json.loads((tmp_path / "gt.json").read_text())}
    (tmp_path / "gt_validation.json").write_text(json.dumps(known))
    for file in ("gt.json", "gt_validation.json"):
        options = ("--method", "perfect", "--truth", tmp_path / file, "--out", out)
        result = invoke("predict", videos[0], *options)
        assert result.exit_code == 0, result.output
        np.testing.assert_allclose(read_submission(out).videos["a"].values, intrinsics)
    assert not (tmp_path / "out.json.logs").exists()
    missing = invoke("predict", f"other={videos[0]}", *options)
    assert_mistake(missing, "has no video other")
    np.testing.assert_allclose(read_ground_truth(tmp_path / "gt.json").intrinsics, intrinsics)


def test_names(videos: list[Path], tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "out.json"
    method = ("--method", "constant", "--out", out)
    assert invoke("predict", f"first={videos[0]}", videos[0], *method).exit_code == 0
    assert list(read_submission(out).videos) == ["first", "a"]
    assert_mistake(invoke("predict", videos[0], videos[0], *method), "would both be video a")
    assert_mistake(invoke("predict", f"={videos[0]}", *method), "before = is missing")
    assert_mistake(invoke("predict", tmp_path / "none.mp4", *method), "none.mp4 does not exist")


def test_mistakes(videos: list[Path], tmp_path: Path, invoke: Invoke) -> None:
    out = tmp_path / "out.json"

    def predict(*options: object) -> object:
        return invoke("predict", videos[0], "--out", out, *options)

    for options, words in (
        (("--method", "magic"), "no method magic; the methods are constant"),
        (("--method", tmp_path / "none.py"), "none.py does not exist"),
        (("--method", "colmap", "--set", "radius=3"), "colmap has no setting radius"),
        (("--method", "constant", "--stride", "2"), "looks at no frame"),
        (("--method", "metadata"), "needs a --metadata file for each of the 1"),
        (("--method", "colmap", "--metadata", "x.csv"), "--metadata is for the method metadata"),
        (("--method", "noisy"), "--truth is for"),
        (("--method", "constant", "--truth", "x.json"), "--truth is for"),
        (("--method", "geocalib", "--run-option", "--gpus=all"), "give its --image"),
        (("--method", "geocalib", "--python", tmp_path / "none"), "cannot be started"),
        (("--method", "geocalib"), "geocalib is not installed in"),
        (("--method", "constant", "--camera", "pinhole"), "pinhole"),
        (("--method", "constant", "--timeout-s", "0"), "not above 0"),
        (("--method", "geocalib", "--set", "camera_model=simple_divisional"), "is one of pinhole"),
        ((), "needs a video, --method and --out. The methods: influx-calib predict --list"),
    ):
        result = predict(*options)
        assert_mistake(result, words)
    assert not out.exists()
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(b"film")
    result = invoke("predict", clip, "--method", "constant", "--out", clip)
    assert_mistake(result, "would replace what is read")
    assert clip.read_bytes() == b"film"
    assert_mistake(
        invoke("predict", videos[0], "--method", "constant", "--out", tmp_path / "no" / "out.json"),
        "cannot be written",
    )


def test_colmap_on_a_zoom(tmp_path: Path, invoke: Invoke) -> None:
    """The real one: it registers frames, and finds their focal lengths."""
    focal_px = write_zoom(tmp_path / "zoom")
    out = tmp_path / "colmap.json"
    settings = ("max_features=400", "min_model_size=3")
    options = [word for text in settings for word in ("--set", text)]
    result = invoke(
        "predict", tmp_path / "zoom", "--method", "colmap", "--stride", 1, *options, "--out", out
    )
    assert result.exit_code == 0, result.output
    found = read_submission(out).videos["zoom"]
    answered = found.answered
    assert answered.sum() >= 6
    values = found.values[answered]
    assert values[:, 0] == pytest.approx(focal_px[answered], rel=0.03)
    assert values[:, 2:4] == pytest.approx(np.tile((np.array(SIZE) - 1) / 2, (len(values), 1)))
    assert "Feature extraction" in (tmp_path / "colmap.json.logs" / "zoom.log").read_text()


def test_colmap_without_structure(tmp_path: Path, invoke: Invoke) -> None:
    """Nothing to see is no fault: there is no answer."""
    videos = [write_frames(tmp_path / "plain", 12), write_frames(tmp_path / "single", 1)]
    out = tmp_path / "out.json"
    result = invoke("predict", *videos, "--method", "colmap", "--out", out)
    assert result.exit_code == 0, result.output
    assert "plain: 0 of 12 frames" in result.stdout
    assert "single: 0 of 1 frames" in result.stdout
    assert not read_submission(out).videos["plain"].answered.any()


def test_help_names_this_interpreter(invoke: Invoke) -> None:
    result = invoke("predict", "--help")
    assert "influx-calib predict clip.mov --method colmap" in result.stdout
    assert sys.executable not in result.stdout


def test_list(tmp_path: Path, invoke: Invoke) -> None:
    listed = invoke("predict", "--list")
    assert listed.exit_code == 0, listed.output
    blocks = dict(block.strip().split("  ", 1) for block in listed.stdout.split("\n\n"))
    assert tuple(blocks) == METHODS
    assert "installed" in blocks["colmap"].splitlines()[0]
    assert "pip install" not in blocks["colmap"]
    assert blocks["anycalib"].startswith("(mei, rad-tan)  missing: anycalib, torch\n")
    assert "pip install torch numpy pillow git+https://" in blocks["anycalib"]
    assert "weights=depth-anything/DA3-LARGE-1.1" in blocks["depth-anything-3"]
    # A copy of a repository is looked into, and nothing of it is run.
    copy = tmp_path / "copy"
    (copy / "WildCamera").mkdir(parents=True)
    (copy / "WildCamera" / "__init__.py").write_text("raise SystemExit")
    arguments = ("predict", "--list", "--method", "wildcamera", "--set", f"repository={copy}")
    assert "missing: torch\n" in invoke(*arguments).stdout
    assert_mistake(invoke("predict", "--list", "--method", "magic"), "no method magic")
    assert_mistake(invoke("predict", "--list", "--set", "a=b"), "only with --method")
    assert_mistake(invoke("predict", "--list", "--python", tmp_path / "no"), "cannot be started")
    assert_mistake(invoke("predict", "--list", "--python", "false"), "is no Python")


def test_a_method_of_ones_own(tmp_path: Path, invoke: Invoke) -> None:
    """As the page says: the template as it is, then one with a camera that it finds itself."""
    frames = write_frames(tmp_path / "a", 2)
    mine, out = tmp_path / "mine.py", tmp_path / "out.json"
    assert invoke("predict", "--template", mine).exit_code == 0
    assert_mistake(invoke("predict", "--template", mine), "exists already")
    assert_mistake(invoke("predict", "--template", tmp_path / "mine.txt"), "not end in .py")
    assert invoke("predict", frames, "--method", mine, "--out", out).exit_code == 0
    found = read_submission(out).videos["a"].values
    assert found.tolist() == [[1.2 * 16, 1.2 * 16, 7.5, 5.5, 0, 0, 0, 0]] * 2
    # Now with a package of its own, another camera, and a setting to choose it.
    text = mine.read_text()
    for old, new in (
        ("My method: what it is, in a line", "Brightness: fx from the picture"),
        ("import struct", "import struct\n\n    import brightness"),
        ('"focal_ratio": 1.2,', '"focal_ratio": 1.2, "camera_model": "round",'),
        ("\n\ndef load", '\nKIND = {"flat": "rad-tan", "round": "mei"}\n\n\ndef load'),
        ('"fx": focal_px', '"xi": 0.5, "fx": focal_px + brightness.of(path)'),
    ):
        assert old in text
        text = text.replace(old, new, 1)
    mine.write_text(text)
    lacking = invoke("predict", frames, "--method", mine, "--out", out)
    assert_mistake(lacking, "mine is not installed in", "brightness", "My method needs")
    listed = invoke("predict", "--list", "--method", mine).stdout
    assert listed.startswith("mine  (mei, rad-tan)  missing: brightness\n    Brightness: fx from")
    interpreter = tmp_path / "python"
    interpreter.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    interpreter.chmod(0o755)
    (tmp_path / "brightness.py").write_text(
        "import cv2\ndef of(path): return float(cv2.imread(path).mean())\n"
    )
    arguments = ("--method", mine, "--python", interpreter)
    assert "installed\n" in invoke("predict", "--list", *arguments).stdout
    result = invoke("predict", frames, *arguments, "--out", out)
    assert result.exit_code == 0, result.output
    predictions = read_submission(out)
    assert predictions.kind == "mei"
    assert predictions.videos["a"].values.tolist() == [
        [19.2 + i, 19.2, 7.5, 5.5, 0.5] for i in (0, 1)
    ]
    other = (*arguments, "--set", "camera_model=square")
    assert_mistake(invoke("predict", frames, *other, "--out", out), "camera_model is one of flat")
