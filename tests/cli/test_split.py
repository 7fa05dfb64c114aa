"""``split``: a manifest in, a manifest with validation and test out."""

import json
from pathlib import Path

from tests.cli.conftest import Invoke, assert_mistake


def test_split(invoke: Invoke, tmp_path: Path) -> None:
    manifest, out = tmp_path / "videos.json", tmp_path / "manifest.json"
    videos = {f"v{k}": {"frame_count": 100 + 7 * k} for k in range(40)}
    manifest.write_text(json.dumps(videos))
    result = invoke("split", manifest, "--out", out)
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text())
    assert {name: video["frame_count"] for name, video in found.items()} == {
        name: video["frame_count"] for name, video in videos.items()
    }
    share = sum(v["frame_count"] for v in found.values() if v["split"] == "val")
    total = sum(v["frame_count"] for v in found.values())
    assert abs(share / total - 0.15) < 0.001
    assert f"{share} of {total} frames" in result.stdout
    first = out.read_bytes()
    assert invoke("split", out, "--out", out, "--seed", 0).exit_code == 0
    assert out.read_bytes() == first
    assert invoke("split", manifest, "--out", out, "--seed", 1).exit_code == 0
    assert out.read_bytes() != first


def test_mistakes(invoke: Invoke, tmp_path: Path) -> None:
    manifest, out = tmp_path / "videos.json", tmp_path / "manifest.json"
    manifest.write_text('{"a": {"frame_count": 5}, "b": {"frame_count": 5}}')
    assert_mistake(invoke("split", manifest, "--out", out, "--val", 1.5), "between 0 and 1")
    assert_mistake(invoke("split", manifest, "--out", out, "--val", 0), "not above 0")
    assert_mistake(invoke("split", tmp_path / "no.json", "--out", out), "does not exist")
    manifest.write_text('{"a": {"frame_count": 5}}')
    assert_mistake(invoke("split", manifest, "--out", out), "at least two")
    assert not out.exists()
