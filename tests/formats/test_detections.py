"""The folder of a recording's detections, there and back."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.detections import DetectionSummary, read_summary, write_detections
from influx_wrap.model.target import Checkerboard

TARGET = Checkerboard(3, 2, 0.1, 0.1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    confidence = np.where(rng.uniform(size=(5, 6)) < 0.7, rng.uniform(0.1, 1, (5, 6)), 0)
    uv = np.where(confidence[..., None] > 0, rng.uniform(0, 9, (5, 6, 2)), np.nan)
    summary = DetectionSummary(
        footage=tmp_path / "footage" / "clip.mov",
        image_size=(30, 20),
        stills=False,
        n_points=6,
        counts=(confidence > 0).sum(axis=1),
        ambiguous=(3,),
        truncated="the file ends",
        made_from={"influx_wrap": "1"},
    )
    out = tmp_path / "deep" / "out"
    blocks = [(uv[:2], confidence[:2]), (uv[2:], confidence[2:])]
    write_detections(out, TARGET, summary, blocks)
    return out


def test_there_and_back(folder: Path, tmp_path: Path) -> None:
    summary = read_summary(folder)
    assert summary.footage == tmp_path / "footage" / "clip.mov"
    assert (summary.image_size, summary.n_frames, summary.n_points) == ((30, 20), 5, 6)
    assert (summary.ambiguous, summary.truncated) == ((3,), "the file ends")
    assert summary.made_from == {"influx_wrap": "1"}
    assert (dict(summary.unread), summary.names) == ({}, ())
    successes = np.loadtxt(folder / "successes.csv", delimiter=",", dtype=int)
    assert successes[:, 0].tolist() == np.repeat(np.arange(5), 6).tolist()
    np.testing.assert_array_equal(successes[:, 1].reshape(5, 6).sum(axis=1), summary.counts)
    assert np.isfinite(np.loadtxt(folder / "coords_2d.csv", delimiter=",")).all()
    per_frame = json.loads((folder / "detections_per_frame.json").read_text())
    assert list(per_frame) == ["0", "1", "2", "3", "4"]
    n = int(summary.counts[2])
    assert per_frame["2"] == {"num_detections": n, "detections_frac": n / 6}
    assert str(tmp_path) not in (folder / "detection.json").read_text()
    folder.parent.rename(tmp_path / "moved")
    assert read_summary(tmp_path / "moved" / "out").footage == summary.footage


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("format", "2", "format must be"),
        ("image_size", [30], r"image_size must be \[width, height\]"),
        ("stills", "no", "stills must be true or false"),
        ("n_frames", 6, "5 is missing"),
        ("n_frames", 4, "has more frames than the 4"),
        ("n_points", 1, "corners of a target of 1"),
        ("truncated", 5, "truncated must be text"),
    ],
)
def test_faults(folder: Path, key: str, value: object, problem: str) -> None:
    path = folder / "detection.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(InputError, match=problem):
        read_summary(folder)


def test_photographs_have_names(folder: Path) -> None:
    video = read_summary(folder)
    names = tuple(f"left{i}.jpg" for i in range(5))
    photographs = replace(video, stills=True, names=names, unread={"a.heic": "HEIC"})
    confidence = (np.arange(6) < video.counts[:, None]).astype(float)
    write_detections(folder, TARGET, photographs, [(np.zeros((5, 6, 2)), confidence)])
    again = read_summary(folder)
    assert (again.names, dict(again.unread)) == (names, {"a.heic": "HEIC"})
    write_detections(folder, TARGET, video, [(np.zeros((5, 6, 2)), confidence)])
    assert read_summary(folder).names == ()
    # A folder of an earlier version.
    path = folder / "detection.json"
    values = json.loads(path.read_text())
    del values["unread"]
    path.write_text(json.dumps(values))
    assert dict(read_summary(folder).unread) == {}


def test_a_folder_without_detections(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no detection.json.*influx-calib detect"):
        read_summary(tmp_path)
