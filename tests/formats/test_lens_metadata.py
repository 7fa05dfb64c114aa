"""The lens metadata of a clip: read back as written, faults named with their line."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.lens_metadata import read_lens_metadata, read_metadata, write_lens_metadata
from influx_wrap.model.lens_metadata import LensMetadata


def test_round_trip(tmp_path: Path) -> None:
    written = LensMetadata(
        np.array([0, 1, 5]), np.array([24.1, 24.1, 1 / 3]), np.array([1.9, math.inf, 1e6 / 7])
    )
    write_lens_metadata(tmp_path / "m.csv", written)
    assert (tmp_path / "m.csv").read_text().splitlines()[2] == "1,24.1,inf"
    found = read_lens_metadata(tmp_path / "m.csv")
    for name in ("frame", "lfl_mm", "fd_m"):
        np.testing.assert_array_equal(getattr(found, name), getattr(written, name))


def test_frames_in_any_order_with_gaps_and_blank_lines(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("﻿frame, lfl_mm, fd_m\r\n7,20,3\r\n\r\n2, 21 ,inf\r\n")
    found = read_lens_metadata(tmp_path / "m.csv")
    assert found.frame.tolist() == [2, 7]
    assert found.lfl_mm.tolist() == [21, 20]
    assert found.fd_m.tolist() == [math.inf, 3]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("", "line 1: the header frame,lfl_mm,fd_m is needed"),
        ("0,20,3\n", "line 1: the header"),
        ("frame,lfl_mm,fd_m\n", "has no frame"),
        ("frame,lfl_mm,fd_m\n0,20,3\n1,20\n", "line 3: 2 values instead of 3"),
        ("frame,lfl_mm,fd_m\n0,20,3\n\n0,20,3\n", "line 4: frame 0 has had a line already"),
        ("frame,lfl_mm,fd_m\n0.5,20,3\n", "line 2: frame '0.5' is not a number of a frame"),
        ("frame,lfl_mm,fd_m\n-1,20,3\n", "line 2: frame '-1'"),
        ("frame,lfl_mm,fd_m\n0,nan,3\n", "line 2: lfl_mm must be above 0, got nan"),
        ("frame,lfl_mm,fd_m\n0,inf,3\n", "line 2: lfl_mm must be finite"),
        ("frame,lfl_mm,fd_m\n0,20,-3\n", "line 2: fd_m must be above 0"),
        ("frame,lfl_mm,fd_m\n0,20,\n", "line 2: fd_m is missing"),
        ("frame,lfl_mm,fd_m\n0,20mm,3\n", "line 2: lfl_mm '20mm' is not a number"),
    ],
)
def test_faults_name_the_line(tmp_path: Path, lines: str, words: str) -> None:
    (tmp_path / "m.csv").write_text(lines)
    with pytest.raises(InputError, match=words) as error:
        read_lens_metadata(tmp_path / "m.csv")
    assert "m.csv" in str(error.value)


def test_missing_values(tmp_path: Path) -> None:
    written = LensMetadata(
        np.array([0, 2, 3]), np.array([24.1, math.nan, 1]), np.array([math.nan, math.inf, 2])
    )
    write_lens_metadata(tmp_path / "m.csv", written)
    assert (tmp_path / "m.csv").read_text().splitlines()[1:3] == ["0,24.1,", "2,,inf"]
    found = read_metadata(tmp_path / "m.csv")
    for name in ("frame", "lfl_mm", "fd_m"):
        np.testing.assert_array_equal(getattr(found, name), getattr(written, name))
    assert found.told.tolist() == [False, False, True]
    assert found.some(found.told).frame.tolist() == [3]


def write_influx(path: Path, frames: object) -> Path:
    values = {"frames": frames, "lens": "canon17", "clipMetadata": {}, "descriptiveMetadata": []}
    (path / "per_frame_metadata.json").write_text(json.dumps(values))
    return path / "per_frame_metadata.json"


def test_influx(tmp_path: Path) -> None:
    fds = [2.5, math.inf, "inf", -1, -0.001, -2.54e-5, None, math.nan]
    frames: dict[str, object] = {
        str(k): {"focal_length_mm": 24.5, "focus_distance_m": fd} for k, fd in enumerate(fds)
    }
    frames["11"] = {"focal_length_mm": None, "focus_distance_m": 3}
    frames["10"] = {}
    found = read_metadata(write_influx(tmp_path, frames))
    assert found.frame.tolist() == [*range(8), 10, 11]
    np.testing.assert_array_equal(found.lfl_mm, [24.5] * 8 + [math.nan] * 2)
    far, nan = math.inf, math.nan
    np.testing.assert_array_equal(found.fd_m, [2.5, far, far, far, far, far, nan, nan, nan, 3])


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ({}, "has no frame"),
        ([], "frames must be a mapping"),
        ({"a": {}}, "frame 'a' is not a number"),
        ({"0": 3}, "0 must be a mapping"),
        ({"1": {}, "01": {}}, "01 is a frame that has come already"),
        ({"0": {"focal_length_mm": "wide"}}, "0: focal_length_mm must be a number"),
        ({"0": {"focal_length_mm": -1}}, "focal_length_mm must be above 0"),
        ({"0": {"focus_distance_m": -3}}, "focus_distance_m must be above 0"),
        ({"0": {"focal_length_mm": math.inf}}, "focal length finite"),
    ],
)
def test_faults_of_influx(tmp_path: Path, frames: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_metadata(write_influx(tmp_path, frames))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no lens metadata known here"),
        ("lfl,fd\n1,2\n", "no lens metadata known here"),
        ('{"clips": []}', "is JSON, but neither"),
        ('{"frames": {', "line 1: this is not JSON"),
        ("frame,lfl_mm,fd_m\n0,20,-3\n", "line 2: fd_m must be above 0"),
    ],
)
def test_files_of_nobody(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "m").write_text(text)
    with pytest.raises(InputError, match=words):
        read_metadata(tmp_path / "m")
    with pytest.raises(InputError, match="does not exist"):
        read_metadata(tmp_path / "none")


def test_lens_of_influx_metadata(tmp_path: Path) -> None:
    frames = {"0": {"focal_length_mm": 20, "focus_distance_m": 3}}
    lens = {"metadataSetName": "Lens Device", "metadataSetPayload": {"lensModel": "CN7x17 KAS"}}
    file = {"frames": frames, "lens": "canon17", "descriptiveMetadata": [lens]}
    (tmp_path / "m.json").write_text(json.dumps(file))
    found = read_metadata(tmp_path / "m.json")
    assert found.rig.lens_models == ("canon17", "CN7x17 KAS")
    assert found.some(found.told).rig == found.rig
