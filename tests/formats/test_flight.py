"""The files of a flight."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.flight import (
    StoredFlashes,
    read_flash_rtk,
    read_flashes,
    write_flash_rtk,
    write_flashes,
)
from influx_wrap.model.flashes import Flashes

COVARIANCE = [[1e-4, 2e-5, 0], [2e-5, 1e-4, 0], [0, 0, 4e-4]]


def row(index: int, **more: object) -> dict[str, object]:
    return {"x": 1.5 * index, "y": -2.0, "alt": 30.25, "timestamp": 1.7e9 + 10.1 * index, **more}


def test_the_release_s_own_readings(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps([row(0), row(1)]))
    readings = read_flash_rtk(tmp_path / "r.json")
    np.testing.assert_array_equal(readings.xyz_m, [[0, -2, 30.25], [1.5, -2, 30.25]])
    np.testing.assert_allclose(np.diff(readings.time_s), 10.1)
    assert readings.covariance_m2 is None
    assert readings.ids == ("0", "1")


def test_readings_with_covariance(tmp_path: Path) -> None:
    rows = [row(0, id="a", covariance_m2=COVARIANCE), row(1, id="b", covariance_m2=None)]
    write_flash_rtk(tmp_path / "r.json", rows)
    readings = read_flash_rtk(tmp_path / "r.json")
    assert readings.ids == ("a", "b")
    assert readings.covariance_m2 is not None
    np.testing.assert_array_equal(readings.covariance_m2[0], COVARIANCE)
    assert np.isnan(readings.covariance_m2[1]).all()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON"),
        ("[", "not JSON"),
        ("{}", "list of readings"),
        ("[]", "no reading"),
        ("[1]", "reading 0 must have x"),
        (json.dumps([{"x": 1}]), "timestamp is missing"),
        (json.dumps([row(0) | {"x": None}]), "x must be a number"),
        (json.dumps([row(0) | {"x": float("nan")}]), "line 1: NaN stands where a number"),
        (json.dumps([row(1), row(0)]), "reading 1 is not later than reading 0"),
        (json.dumps([row(0), row(0)]), "reading 1 is not later"),
        (json.dumps([row(0, id="a"), row(1, id="a")]), "two readings have the id 'a'"),
        (json.dumps([row(0, covariance_m2=[[1, 2], [2, 1]])]), "list of 3 numbers"),
        (json.dumps([row(0, covariance_m2=[[1, 2, 0], [0, 1, 0], [0, 0, 1]])]), "symmetric"),
        (json.dumps([row(0, covariance_m2=[[1, 2, 0], [2, 1, 0], [0, 0, 1]])]), "no covariance"),
    ],
)
def test_senseless_readings_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(InputError, match=problem) as error:
        read_flash_rtk(tmp_path / "r.json")
    assert "r.json" in str(error.value)


def some_flashes() -> Flashes:
    return Flashes(
        frames=np.array([10, 60]),
        last_frames=np.array([15, 60]),
        uv=np.array([[100.25, 40.5], [7.0, 8.125]]),
        radii_px=np.array([[14.0, 12.5], [9.0, 8.5]]),
        rule=np.array([1, 3]),
        fps=24.0,
        n_frames=100,
        image_size=(640, 400),
    )


def test_flashes_round_trip(tmp_path: Path) -> None:
    (tmp_path / "night.mp4").touch()
    stored = StoredFlashes(some_flashes(), tmp_path / "night.mp4", "cut off", {"detector": "x"})
    (tmp_path / "flight").mkdir()
    write_flashes(tmp_path / "flight" / "f.json", stored)
    again = read_flashes(tmp_path / "flight" / "f.json")
    assert again.footage == (tmp_path / "night.mp4").resolve()
    assert (again.truncated, again.made_from) == ("cut off", {"detector": "x"})
    for name in ("frames", "last_frames", "uv", "radii_px", "rule"):
        expected = getattr(stored.flashes, name)
        np.testing.assert_array_equal(getattr(again.flashes, name), expected)
    assert again.flashes.image_size == (640, 400)
    np.testing.assert_allclose(again.flashes.time_s, [10 / 24, 2.5])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": "x"}, "format"),
        ({"fps": 0}, "fps"),
        ({"n_frames": 20}, "outside the video"),
        ({"flashes": [{"frame": 1}]}, r"flashes\[0\]: last_frame is missing"),
        ({"flashes": [3]}, r"flashes\[0\] must be a mapping"),
        ({"image_size": [3]}, "image_size"),
    ],
)
def test_senseless_flashes_are_refused(
    tmp_path: Path, change: dict[str, object], problem: str
) -> None:
    path = tmp_path / "f.json"
    write_flashes(path, StoredFlashes(some_flashes(), tmp_path / "night.mp4", None, {}))
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=problem):
        read_flashes(path)
