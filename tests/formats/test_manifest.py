"""Manifests of videos: read back as written, faults named."""

import json
from pathlib import Path

import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.manifest import Video, read_manifest, write_manifest


def test_round_trip(tmp_path: Path) -> None:
    videos = {"b": Video(10, "val"), "a": Video(7, "test"), "c": Video(1)}
    write_manifest(tmp_path / "m.json", videos)
    values = json.loads((tmp_path / "m.json").read_text())
    assert values["b"] == {"frame_count": 10, "split": "val"}
    assert values["c"] == {"frame_count": 1}
    found = read_manifest(tmp_path / "m.json")
    assert found == videos
    assert list(found) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "names no video"),
        ("[]", "a mapping of keys"),
        ('{"a": 7}', "a must be a mapping"),
        ('{"a": {}}', "a: frame_count is missing"),
        ('{"a": {"frame_count": 0}}', "at least 1"),
        ('{"a": {"frame_count": 1.5}}', "whole number"),
        ('{"a": {"frame_count": 1, "split": "train"}}', "split must be val or test"),
        ('{"a": {"frame_count": 1', "line 1: this is not JSON"),
    ],
)
def test_faults(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(InputError, match=words):
        read_manifest(tmp_path / "m.json")
