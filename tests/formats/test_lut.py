"""Tables on disk."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.influx import read_selected_results
from influx_wrap.formats.lut import read_table, write_table
from tests.lut.lenses import breathing_table


def test_a_table_comes_back_as_it_was(tmp_path: Path) -> None:
    table = breathing_table("canon17")
    table.covariance[3] = np.nan
    path = tmp_path / "lut.json"
    write_table(path, table)
    again = read_table(path)
    assert again.names == table.names
    assert (again.lens, again.camera) == (table.lens, table.camera)
    for name in ("lfl_mm", "fd_m", "values", "covariance", "is_drone", "grid"):
        np.testing.assert_array_equal(getattr(again, name), getattr(table, name))
    assert json.loads(path.read_text())["experiments"][3]["covariance"] is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "something"}, "lut build"),
        ({"version": 99}, "newer"),
        ({"pixel_origin": "corner"}, "must be 'center'"),
        ({"pixel_um": [8.25]}, "two positive numbers"),
        ({"experiments": []}, "at least one experiment"),
        ({"experiments": [3]}, r"experiments\[0\] must be an object"),
        ({"lens": None}, "lens"),
    ],
)
def test_faults_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "lut.json"
    write_table(path, breathing_table("canon17"))
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match=message) as error:
        read_table(path)
    assert "lut.json" in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "kite"}, "must be board or drone"),
        ({"fd_m": -2}, "fd_m"),
        ({"intrinsics": {"fx": 1}}, "fy is missing"),
        ({"covariance": [[1.0]]}, "covariance"),
    ],
)
def test_faults_of_an_experiment_are_named(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "lut.json"
    write_table(path, breathing_table("canon17"))
    content = json.loads(path.read_text())
    content["experiments"][2] |= change
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=message) as error:
        read_table(path)
    assert "experiments[2]" in str(error.value)


def test_selected_results(tmp_path: Path) -> None:
    numbers = {"fx": 2000.0, "fy": 2001.0, "cx": 1712.0, "cy": 1101.0}
    numbers |= {"k1": -0.1, "k2": 0.01, "p1": 0.0, "p2": -1.0}
    good = {"selected_trial": "7", "zoom": 24.0, "focus_distance": 1500.0, "board_size": 0.8}
    details = {
        "zoom_2_focus_distance_3": {**good, **numbers},
        "zoom_2_focus_distance_4": {**good, **numbers, "selected_trial": "invalid"},
        "zoom_2_focus_distance_5": {**good, **numbers, "fx": -1},
        "zoom_2_focus_distance_6": {**good, **numbers, "board_size": "drone"},
    }
    path = tmp_path / "selected.json"
    path.write_text(json.dumps({"zooms": [24], "focus_distances": [1500], "exp_details": details}))
    usable, unusable = read_selected_results(path)
    assert unusable == ("zoom_2_focus_distance_4", "zoom_2_focus_distance_5")
    first, drone = usable
    assert (first.zoom_index, first.focus_index, first.lfl_mm, first.fd_m) == (2, 3, 24.0, 1.5)
    # The file's origin is a pixel's corner; p2 = -1 is a value like any other.
    assert first.intrinsics == (2000.0, 2001.0, 1711.5, 1100.5, -0.1, 0.01, 0.0, -1.0)
    assert drone.is_drone
    assert not first.is_drone
