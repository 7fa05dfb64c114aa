"""Other lights, written and read back; faults named."""

import json

import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.flight import OtherLight, read_other_lights, write_other_lights

LIGHTS = [
    OtherLight(0, 99, (10.5, 20.25), "is on most of the time, left out"),
    OtherLight(7, 7, (300.0, 1.0), "is on for less than a flash"),
]


def test_round_trip(tmp_path):
    write_other_lights(tmp_path / "lights.json", LIGHTS)
    assert read_other_lights(tmp_path / "lights.json") == LIGHTS
    write_other_lights(tmp_path / "lights.json", [])
    assert read_other_lights(tmp_path / "lights.json") == []


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"frame": 3, "last_frame": 2, "uv": [1, 2], "reason": "x"}, "last_frame must be at least"),
        ({"frame": 3, "last_frame": 4, "uv": [1, 2, 3], "reason": "x"}, "uv must have 2 numbers"),
        ({"frame": 3, "last_frame": 4, "uv": [1, 2]}, "reason is missing"),
        (5, "must be a mapping"),
    ],
)
def test_faults(tmp_path, row, words):
    (tmp_path / "lights.json").write_text(json.dumps({"lights": [row]}))
    with pytest.raises(InputError, match=rf"lights\[0\]:? {words}"):
        read_other_lights(tmp_path / "lights.json")
