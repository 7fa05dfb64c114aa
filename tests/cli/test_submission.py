"""``influx-calib submission`` as a user meets it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke, assert_mistake

CAMERA = {"fx": 1000.0, "fy": 1001.0, "cx": 512.0, "cy": 384.0, "xi": 0.5}


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "split.json"
    videos = {"a": {"frame_count": 3, "split": "val"}, "[b]": {"frame_count": 2, "split": "test"}}
    path.write_text(json.dumps(videos))
    return path


@pytest.fixture
def blank(tmp_path: Path, invoke: Invoke, manifest: Path) -> Path:
    path = tmp_path / "blank.json"
    options = ("--manifest", manifest, "--out", path, "--method", "my [method]", "--type", "mei")
    result = invoke("submission", "template", *options)
    assert result.exit_code == 0, result.output
    assert "my [method]" in result.stdout
    return path


def predictions(path: Path, videos: dict[str, Any]) -> Path:
    about = {"method_name": "other", "intrinsics_type": "mei", "version": "all"}
    path.write_text(json.dumps({"submission_metadata": about} | videos))
    return path


def test_from_template_to_submission(
    invoke: Invoke, tmp_path: Path, manifest: Path, blank: Path
) -> None:
    first = predictions(tmp_path / "1.json", {"a": {"0": CAMERA, "2": CAMERA}})
    second = predictions(
        tmp_path / "2.json", {"[b]": {"1": CAMERA}, "a": {"2": CAMERA | {"fx": 9}}}
    )
    out = tmp_path / "sub.json"
    result = invoke("submission", "fill", blank, first, second, "--out", out)
    assert result.exit_code == 0, result.output
    assert "2.json: 2 predictions, 1 of them in place of others" in result.stdout
    assert "a: 1 of 3 frames without" in result.stdout
    assert "[b]: 1 of 2 frames without" in result.stdout
    found = json.loads(out.read_text())
    assert found["submission_metadata"]["method_name"] == "my [method]"
    assert found["submission_metadata"]["version"] == "influx"
    nothing = dict.fromkeys(CAMERA)
    assert found["a"] == {"0": CAMERA, "1": nothing, "2": CAMERA | {"fx": 9}}
    assert found["[b]"] == {"0": nothing, "1": CAMERA}
    result = invoke("submission", "validate", out, "--manifest", manifest)
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    for words in (
        "type mei",
        "videos 2",
        "frames 5",
        "prediction 3 (60.0 %)",
        "without 2 (40.0 %)",
    ):
        assert words in text
    assert "valid and complete by" in result.stdout
    # A submission can be filled further, in place.
    rest = predictions(tmp_path / "3.json", {"a": {"1": CAMERA}, "[b]": {"0": CAMERA}})
    assert invoke("submission", "fill", out, rest, "--out", out).exit_code == 0
    result = invoke("submission", "validate", out, "--all")
    assert "100.0 %" in result.stdout
    assert "frames without" not in result.stdout


def test_one_split(invoke: Invoke, tmp_path: Path, manifest: Path) -> None:
    out = tmp_path / "val.json"
    options = ("--manifest", manifest, "--method", "m", "--type", "rad-tan", "--out", out)
    assert invoke("submission", "template", *options, "--split", "val").exit_code == 0
    assert list(json.loads(out.read_text())) == ["submission_metadata", "a"]
    check = ("submission", "validate", out, "--manifest", manifest)
    assert invoke(*check, "--split", "val").exit_code == 0
    assert_mistake(invoke(*check), 'video "[b]" of the manifest is missing')
    assert_mistake(invoke(*check, "--split", "test"), 'video "a" is not in the manifest')
    assert_mistake(invoke("submission", "validate", out, "--split", "val"), "needs a --manifest")
    manifest.write_text('{"a": {"frame_count": 3}}')
    result = invoke("submission", "template", *options, "--split", "test")
    assert_mistake(result, "no video whose split is test")


def test_faults(invoke: Invoke, tmp_path: Path) -> None:
    path = predictions(tmp_path / "sub.json", {"[a]": {"0": CAMERA | {"fx": -1}, "01": CAMERA}})
    byte = path.read_text().index('{"fx"') + 1
    place = f'{path}, line 1, byte {byte}: video "[a]", frame 0: fx must be above 0, got -1.0.'
    assert_mistake(invoke("submission", "validate", path), place)
    result = invoke("submission", "validate", path, "--all")
    assert result.exit_code == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines[0] == f"Error: {place}"
    assert 'frame "01" is not a plain number' in lines[1]
    assert len(lines) == 2
    predictions(path, {"a": {str(k): {} for k in range(99)}})
    lines = invoke("submission", "validate", path, "--all").stderr.splitlines()
    assert len(lines) == 51
    assert lines[-1] == "There may be more."


def test_mistakes(invoke: Invoke, tmp_path: Path, manifest: Path, blank: Path) -> None:
    out = tmp_path / "sub.json"
    beyond = predictions(tmp_path / "p.json", {"a": {"3": CAMERA}})
    result = invoke("submission", "fill", blank, beyond, "--out", out)
    assert_mistake(result, 'p.json: video "a", frame 3 is not in the template')
    beyond.write_text("{")
    assert_mistake(invoke("submission", "fill", blank, beyond, "--out", out), "p.json, line 1")
    assert_mistake(invoke("submission", "fill", tmp_path, blank, "--out", out), "is a folder")
    nowhere = tmp_path / "none" / "sub.json"
    assert_mistake(
        invoke("submission", "fill", blank, blank, "--out", nowhere), "cannot be written"
    )
    assert_mistake(invoke("submission", "validate", out), "does not exist")
    options = ("--manifest", manifest, "--out", out, "--type", "mei")
    result = invoke("submission", "template", *options, "--method", " ")
    assert_mistake(result, "needs the name of its method")
    assert not out.exists()


@pytest.mark.parametrize("name", ["template", "validate", "fill"])
def test_examples(invoke: Invoke, name: str) -> None:
    result = invoke("submission", name, "--help")
    assert result.exit_code == 0
    assert f"influx-calib submission {name}" in result.output
