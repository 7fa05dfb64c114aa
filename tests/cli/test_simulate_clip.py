"""``simulate --clip``: a video, its truth, and options that would be ignored."""

import json
from pathlib import Path

import pytest

from influx_wrap.formats.groundtruth import read_truths
from influx_wrap.observe.sources import open_frames
from tests.cli.conftest import Invoke, assert_mistake

SMALL = ("--clip", "--size", "160x104", "--frames", 3, "--jobs", 1)


def test_a_clip(invoke: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "zoom"
    knobs = "--motion focus --pp-offset-px 3,-2 --breathing 0.03 --image-noise 1 --vignetting 0.2"
    arguments = ("simulate", "premista80", "--out", out, *SMALL, *knobs.split())
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    assert f"3 frames of premista80 in {out / 'zoom.mp4'}" in result.stdout
    assert open_frames(out / "zoom.mp4", colour=True).image_size == (160, 104)
    truth = read_truths(out / "gt_validation.json", ())["zoom"]
    assert (truth.intrinsics[0, 2], truth.intrinsics[0, 3]) == (79.5 + 3, 51.5 - 2)
    settings = json.loads((out / "simulation.json").read_text())
    assert settings["clip"] == {
        "n_frames": 3, "motion": "focus", "codec": "h264", "noise": 1.0, "vignetting": 0.2,
    }  # fmt: skip
    assert settings["breathing"] == 0.03
    before = (out / "zoom.mp4").stat().st_mtime_ns
    assert invoke(*arguments).exit_code == 0
    assert (out / "zoom.mp4").stat().st_mtime_ns == before
    assert_mistake(invoke(*arguments, "--seed", 1), "other settings")


def test_a_folder_with_other_things_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    result = invoke("simulate", "canon17", "--out", tmp_path, *SMALL)
    assert_mistake(result, "not empty and was not made by simulate")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--frames 5", "--frames needs --clip"),
        ("--motion zoom", "--motion needs --clip"),
        ("--size 320x206", "--size needs --clip"),
        ("--clip --cells z0f0", "--cells has no meaning for a clip"),
        ("--clip --video", "--video has no meaning for a clip"),
        ("--clip --images", "--images has no meaning for a clip"),
        ("--clip --fd-jitter 0.1", "--fd-jitter has no meaning for a clip"),
        ("--clip --no-lights", "--lights has no meaning for a clip"),
        ("--clip --blur-px 1", "--blur-px has no meaning for a clip"),
        ("--clip --frames 1", "'--frames'"),
        ("--clip --size big", "not a size such as"),
        ("--clip --motion dolly", "'--motion'"),
        ("--clip --size 1712x1101", "H.264 needs an even number of pixels"),
        ("--clip --vignetting 2", "vignetting must be from 0 to 1"),
        ("--clip --breathing 3", "breathing is a share"),
    ],
)
def test_clips_without_sense(invoke: Invoke, tmp_path: Path, options: str, words: str) -> None:
    result = invoke("simulate", "canon17", "--out", tmp_path / "sim", *options.split())
    assert_mistake(result, words)
    assert not (tmp_path / "sim").exists()
