"""Names of views beside Kalibr's files, which stay as they are."""

from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.kalibr import read_observations, write_observations
from influx_wrap.formats.view_names import VIEW_NAMES
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import Checkerboard

BOARD = Checkerboard(3, 4, 0.1, 0.1)
SIZE = (640, 480)


def views(names: tuple[str, ...] = ()) -> Observations:
    uv = 100 + 500 * np.repeat(BOARD.points[None, :, :2], 2, axis=0)
    return Observations(BOARD, uv, np.ones((2, 12), dtype=bool), SIZE, np.array([4, 9]), names)


def test_there_and_back(tmp_path: Path) -> None:
    coords, successes = tmp_path / "coords_2d.csv", tmp_path / "successes.csv"
    write_observations(coords, successes, views(("left01.jpg", "left02.jpg")))
    plain_text = coords.read_text()
    again = read_observations(coords, successes, BOARD, SIZE)
    assert again.view_names == ("left01.jpg", "left02.jpg")
    write_observations(coords, successes, views())
    assert coords.read_text() == plain_text
    assert not (tmp_path / VIEW_NAMES).exists(), "names of other views are gone"
    assert read_observations(coords, successes, BOARD, SIZE).view_names == ("view 4", "view 9")


def test_names_are_of_the_file_beside_them(tmp_path: Path) -> None:
    names = tmp_path / VIEW_NAMES
    names.write_text('{"4": "left01.jpg"}')
    coords, successes = tmp_path / "cam1.csv", tmp_path / "successes.csv"
    write_observations(coords, successes, views(("a.jpg", "b.jpg")))
    assert names.read_text() == '{"4": "left01.jpg"}'
    assert read_observations(coords, successes, BOARD, SIZE).view_names == ("view 4", "view 9")
    coords = coords.rename(tmp_path / "coords_2d.csv")
    found = read_observations(coords, successes, BOARD, SIZE)
    assert found.view_names == ("left01.jpg", "view 9")
    for broken, problem in (("[]", "mapping"), ('{"4": 7}', "4 must be text"), ("{", "not JSON")):
        names.write_text(broken)
        with pytest.raises(InputError, match=problem):
            read_observations(coords, successes, BOARD, SIZE)
