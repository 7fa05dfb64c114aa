"""Ground-truth files by the standard library's readers, and read back."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.groundtruth import (
    read_ground_truth,
    read_truths,
    write_ground_truth,
    write_ground_truth_csv,
)
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.model.rig import FilmedWith

VALUES = [2000.0, 2001.0, 1711.5, 1100.5, -0.1, 1 / 3, 1e-7, -1e-5]


def refuse(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


@pytest.fixture
def truth() -> GroundTruth:
    """Interpolated, extrapolated at infinity, outside, and a frame without metadata."""
    intrinsics = np.tile(VALUES, (4, 1))
    intrinsics[2:] = math.nan
    return GroundTruth(
        LensMetadata(
            np.array([0, 1, 2, 12]),
            np.array([24.5, 24.5, 300, math.nan]),
            np.array([1 / 3, math.inf, 2, math.nan]),
        ),
        intrinsics,
        np.array([True, False, False, False]),
        np.abs(intrinsics) / 100,
    )


def test_json_as_the_release_has_it(tmp_path: Path, truth: GroundTruth) -> None:
    write_ground_truth(tmp_path / "gt.json", truth)
    found = json.loads((tmp_path / "gt.json").read_text(), parse_constant=refuse)
    assert list(found) == ["0", "1", "2", "12"]
    corner = dict(zip(NAMES, VALUES, strict=True))
    corner |= {"cx": 1712.0, "cy": 1101.0}
    assert found["0"] == {
        "intrinsics_gt": corner,
        "intrinsics_gt_extrapolated": corner,
        "lens_metadata": {"focal_length_mm": 24.5, "focus_distance_m": 1 / 3},
    }
    assert found["1"] == {
        "intrinsics_gt": None,
        "intrinsics_gt_extrapolated": corner,
        "lens_metadata": {"focal_length_mm": 24.5, "focus_distance_m": "inf"},
    }
    for frame in ("2", "12"):
        assert found[frame]["intrinsics_gt"] is None
        assert found[frame]["intrinsics_gt_extrapolated"] is None
    assert found["12"]["lens_metadata"] == {"focal_length_mm": None, "focus_distance_m": None}


def test_round_trip(tmp_path: Path, truth: GroundTruth) -> None:
    write_ground_truth(tmp_path / "gt.json", truth)
    found = read_ground_truth(tmp_path / "gt.json")
    np.testing.assert_allclose(found.intrinsics, truth.intrinsics, rtol=1e-15)
    np.testing.assert_array_equal(found.is_interpolated, truth.is_interpolated)
    np.testing.assert_array_equal(found.answered, [True, True, False, False])
    for name in ("frame", "lfl_mm", "fd_m"):
        values = getattr(found.metadata, name), getattr(truth.metadata, name)
        np.testing.assert_array_equal(*values)


def test_more_frames_than_are_written_at_once(tmp_path: Path) -> None:
    n = 20_001
    truth = GroundTruth(
        LensMetadata(np.arange(n), np.full(n, 20.0), np.linspace(1, 9, n)),
        np.tile(VALUES, (n, 1)),
        np.ones(n, dtype=bool),
    )
    write_ground_truth(tmp_path / "gt.json", truth)
    found = json.loads((tmp_path / "gt.json").read_text(), parse_constant=refuse)
    assert list(found) == [str(k) for k in range(n)]
    assert found["20000"]["lens_metadata"]["focus_distance_m"] == 9
    write_ground_truth_csv(tmp_path / "gt.csv", truth)
    assert len((tmp_path / "gt.csv").read_text().splitlines()) == n + 1


def test_csv(tmp_path: Path, truth: GroundTruth) -> None:
    write_ground_truth_csv(tmp_path / "gt.csv", truth)
    with (tmp_path / "gt.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["frame"] for row in rows] == ["0", "1", "2", "12"]
    assert [row["status"] for row in rows] == ["interpolated", "extrapolated", "none", "none"]
    assert [row["fd_m"] for row in rows] == [repr(1 / 3), "inf", "2.0", ""]
    assert {row["pixel_origin"] for row in rows} == {"center"}
    assert [float(rows[1][name]) for name in NAMES] == VALUES
    assert [float(rows[1][f"sigma_{name}"]) for name in NAMES] == pytest.approx(
        np.abs(VALUES) / 100
    )
    assert {rows[2][name] for name in (*NAMES, "sigma_fx")} == {""}


def test_the_release_writes_nan(tmp_path: Path) -> None:
    numbers = ", ".join(f'"{name}": 1.5' for name in NAMES)
    nothing = numbers.replace("1.5", "NaN")
    lens = '"lens_metadata": {"focal_length_mm": 24, "focus_distance_m": Infinity}, "other": 1'
    frames = [
        f'"{k}": {{"intrinsics_gt": {{{a}}}, "intrinsics_gt_extrapolated": {{{b}}}, {lens}}}'
        for k, (a, b) in enumerate([(nothing, nothing), (nothing, numbers), (numbers, numbers)])
    ]
    clip = "{" + ", ".join(frames) + ', "3": {"intrinsics_gt": NaN}}'
    (tmp_path / "val.json").write_text(f'{{"video_1": {clip}, "video_2": {clip}}}')
    videos = read_truths(tmp_path / "val.json", ())
    assert list(videos) == ["video_1", "video_2"]
    found = videos["video_1"]
    assert found.answered.tolist() == [False, True, True, False]
    assert found.is_interpolated.tolist() == [False, False, True, False]
    assert found.intrinsics[1].tolist() == [1.5, 1.5, 1.0, 1.0, 1.5, 1.5, 1.5, 1.5]
    assert found.metadata.fd_m[:3].tolist() == [math.inf] * 3


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ({}, "has no frame"),
        ({"x": {"intrinsics_gt": None}}, "frame 'x' is not a number"),
        ({"video": {"0": {"intrinsics_gt": None}}}, "frame 'video' is not a number"),
        ({"0": 7}, "0 must be a mapping"),
        ({"0": {}}, "must be a mapping with intrinsics_gt"),
        ({"0": {"intrinsics_gt": {"fx": 1}}}, "must have fx, fy"),
        ({"0": {"intrinsics_gt": dict.fromkeys(NAMES, "a")}}, "numbers or null"),
        ({"0": {"intrinsics_gt": {**dict.fromkeys(NAMES, 1), "p2": None}}}, "not all of them"),
        (
            {"0": {"intrinsics_gt": None, "lens_metadata": {"focal_length_mm": -4}}},
            "focal_length_mm must be above 0",
        ),
        ({"0": {"intrinsics_gt": None}, "00": {"intrinsics_gt": None}}, "has come already"),
    ],
)
def test_faults(tmp_path: Path, frames: dict[str, Any], words: str) -> None:
    (tmp_path / "gt.json").write_text(json.dumps(frames))
    with pytest.raises(InputError, match=words):
        read_ground_truth(tmp_path / "gt.json")


def test_nothing_half_written(tmp_path: Path, truth: GroundTruth) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_ground_truth(tmp_path / "none" / "gt.json", truth)
    (tmp_path / "gt.json").write_text("before")
    broken = GroundTruth(truth.metadata, truth.intrinsics, np.array([True]))
    with pytest.raises(ValueError, match="shorter"):
        write_ground_truth(tmp_path / "gt.json", broken)
    assert [path.name for path in tmp_path.iterdir()] == ["gt.json"]
    assert (tmp_path / "gt.json").read_text() == "before"


RIG = FilmedWith(
    "canon17", "mini", (3424, 2202), (8.25, 8.5), ("another lens, by its name",), "A001C003"
)


def test_what_it_was_filmed_with(tmp_path: Path, truth: GroundTruth) -> None:
    """One entry says it, and a reader that knows frames only finds nothing else."""
    file = tmp_path / "gt.json"
    write_ground_truth(file, replace(truth, filmed_with=RIG))
    entries = json.loads(file.read_text())
    assert all(key.isdigit() for key in entries)
    assert ["filmed_with" in entry for entry in entries.values()] == [True, False, False, False]
    assert read_ground_truth(file).filmed_with == RIG
    assert read_truths(file, ["film"])["film"].filmed_with == RIG
    entries["1"]["filmed_with"] = entries["0"]["filmed_with"] | {"camera": "another"}
    file.write_text(json.dumps(entries))
    with pytest.raises(InputError, match="1: filmed_with says something else"):
        read_ground_truth(file)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("image_size", None), ("image_size", [1]), ("image_size", [0, 5]), ("image_size", [1.5, 2]),
        ("image_size", [10**30, 1]), ("image_size", [True, 2]), ("pixel_um", [1]),
        ("pixel_um", [1, -1]), ("pixel_um", ["a", "b"]), ("lens", 7), ("camera", []),
        ("doubts", "a"), ("clip", 7), ("clip", ""),
    ],
)  # fmt: skip
def test_faults_of_what_it_was_filmed_with(
    tmp_path: Path, truth: GroundTruth, key: str, value: object
) -> None:
    file = tmp_path / "gt.json"
    write_ground_truth(file, replace(truth, filmed_with=RIG))
    entries = json.loads(file.read_text())
    entries["0"]["filmed_with"][key] = value
    file.write_text(json.dumps(entries))
    with pytest.raises(InputError, match=f"0: filmed_with: {key}"):
        read_ground_truth(file)


def test_a_clip_is_the_truth_of_one_video(tmp_path: Path, truth: GroundTruth) -> None:
    file = tmp_path / "gt.json"
    write_ground_truth(file, truth)
    assert list(read_truths(file, {"film"})) == ["film"]
    with pytest.raises(InputError, match=r"one clip, and there are 2 videos \(a, b\)"):
        read_truths(file, {"b", "a"})
