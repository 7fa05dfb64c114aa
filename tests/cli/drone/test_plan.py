"""``drone plan`` writes a mission, its map and its figure, or nothing at all."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from click.testing import Result

from influx_wrap.model.flight import corner_points_m
from tests.cli.conftest import Invoke, assert_mistake
from tests.plans import read_plan

OPTIONS = {
    "--lfl-mm": 17,
    "--fd-m": 13.5,
    "--lat": -33.8568,
    "--lon": -70.5,
    "--height-m": 1.44,
    "--heading-deg": 30,
    "--tilt-deg": 58,
}


@pytest.fixture
def plan(invoke: Invoke, tmp_path: Path) -> Any:
    """``plan("--test-flight", **{"--tilt-deg": 60})``: into ``tmp_path/mission.plan``."""

    def run(*flags: object, **changes: object) -> Result:
        options = {**OPTIONS, "--out": tmp_path / "mission.plan", **changes}
        pairs = [part for pair in options.items() if pair[1] is not None for part in pair]
        return invoke("drone", "plan", "canon17", *pairs, *flags)

    return run


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_flight_south_and_west(plan: Any, tmp_path: Path) -> None:
    result = plan()
    assert result.exit_code == 0, result.output
    assert names(tmp_path) == ["mission.kml", "mission.plan", "mission.png"]
    written = read_plan(tmp_path / "mission.plan")
    assert written.geodetic.shape == (24, 3)
    assert np.abs(written.geodetic[:, :2] - [-33.8568, -70.5]).max() < 3e-4
    assert written.hold_s.tolist() == [10] * 24
    assert ET.parse(tmp_path / "mission.kml").getroot().tag.endswith("kml")
    assert (tmp_path / "mission.png").read_bytes().startswith(b"\x89PNG")
    output = result.output
    assert "24 way points over a footprint of 22.4 x 14.4 m" in output
    assert "taken to be level" in output
    assert "high enough: 59.9 deg" in output
    assert re.search(
        r"home: -33\.\d{7}, -70\.\d{7}, .* ahead of the camera and .* to its right", output
    )
    assert f"written: {tmp_path / 'mission.plan'}" in output


def test_a_test_flight_then_the_flight_from_what_was_seen(plan: Any, tmp_path: Path) -> None:
    first = plan("--test-flight")
    assert len(read_plan(tmp_path / "mission.plan").geodetic) == 4
    assert "Test flight, CFL 17.02 mm" in first.output
    second = plan("--test-flight", **{"--seen": "left, right"})
    assert "Not seen: top, bottom" in second.output
    cfl = re.search(r"go on from it with: --cfl-mm ([\d.]+)\n", second.output)
    assert cfl is not None
    assert cfl[1] == "17.362"
    third = plan(**{"--seen": "all", "--cfl-mm": cfl[1]})
    assert "Calibration flight, CFL 17.36 mm" in third.output
    assert "becomes" not in third.output
    assert len(read_plan(tmp_path / "mission.plan").geodetic) == 24


@pytest.mark.parametrize("as_file", [False, True])
def test_measured_pixels_scale_the_cfl(plan: Any, tmp_path: Path, as_file: bool) -> None:
    points = corner_points_m(17.0, 13.5, (28.25, 18.17))
    focal = 0.98 * 17.0 * np.array([3424 / 28.25, 2202 / 18.17])
    uv = focal * points[:, :2] / points[:, 2:] + [1711.5, 1100.5]
    pixels = ";".join(f"{u:.3f},{v:.3f}" for u, v in uv)
    if as_file:
        (tmp_path / "seen.csv").write_text(pixels.replace(";", "\n") + "\n")
        pixels = str(tmp_path / "seen.csv")
    result = plan(**{"--pixels": pixels, "--cfl-mm": 17.0})
    assert result.exit_code == 0, result.output
    assert "CFL 17.000 mm becomes 16.660 mm" in result.output


def test_a_refused_flight_writes_nothing(plan: Any, tmp_path: Path) -> None:
    assert_mistake(plan(**{"--tilt-deg": 90}), "below the ground. Tilt the camera up to 59.9 deg")
    assert names(tmp_path) == []


def test_all_that_is_wrong_is_listed(plan: Any, tmp_path: Path) -> None:
    result = plan(
        **{"--tilt-deg": 90, "--heading-deg": 400, "--battery-min": 5, "--max-distance-m": 9}
    )
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert lines[0] == "Error: the flight is refused for 4 reasons:"
    assert [line[:5] for line in lines[1:]] == ["  1. ", "  2. ", "  3. ", "  4. "]
    assert names(tmp_path) == []


def test_an_earlier_flight_stays_and_is_pointed_out(plan: Any, tmp_path: Path) -> None:
    plan()
    before = (tmp_path / "mission.plan").read_bytes()
    result = plan(**{"--tilt-deg": 90})
    assert result.exit_code == 2
    assert "still holds a flight planned before" in result.stderr
    assert (tmp_path / "mission.plan").read_bytes() == before


def test_nothing_is_left_where_one_file_cannot_be_written(plan: Any, tmp_path: Path) -> None:
    (tmp_path / "mission.kml").mkdir()
    assert_mistake(plan(), "mission.kml cannot be written")
    assert names(tmp_path) == ["mission.kml"]
    out = tmp_path / "missing" / "mission.plan"
    assert_mistake(plan(**{"--out": out}), "missing", "cannot be written")


def test_a_full_disk_leaves_nothing(
    plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, values: object) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("influx_wrap.formats.mission.write_json", full)
    assert_mistake(plan(), "No space left on device")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"--lfl-mm": 12}, "canon17 zooms from 17 to 120 mm"),
        ({"--fd-m": 0.5}, "does not focus nearer than 0.85344 m"),
        ({"--fd-m": "inf"}, "not a finite number"),
        ({"--lat": "nan"}, "not a finite number"),
        ({"--lat": 91}, "latitude must be from -90 to 90"),
        ({"--cfl-mm": 9000}, "too long for a focus at 13.5 m"),
        ({"--lfl-mm": 120, "--fd-m": 2}, "Use a board"),
        ({"--out": "mission.json"}, "must end in .plan"),
        ({"--home-lat": 1}, "belong together"),
        ({"--seen": "left", "--pixels": "1,2;3,4"}, "exclude each other"),
        ({"--seen": "links"}, "--seen takes edges"),
        ({"--pixels": "1,2;3"}, "--pixels, position 2: '3' is not a pair"),
        ({"--pixels": "1,2;3,x"}, "--pixels, position 2: 'x' is not a number"),
        ({"--pixels": "1,2;3,nan"}, "--pixels, position 2: nan is not a finite number"),
        ({"--pixels": "none.csv"}, "none.csv does not exist"),
        ({"--camera": "film"}, "no camera 'film'"),
    ],
)
def test_mistakes(plan: Any, tmp_path: Path, changes: dict[str, object], words: str) -> None:
    assert_mistake(plan(**changes), words)
    assert names(tmp_path) == []


def test_a_file_of_pixels_with_a_bad_line(plan: Any, tmp_path: Path) -> None:
    path = tmp_path / "seen.csv"
    path.write_text("12,13\n\nabc\n")
    assert_mistake(plan(**{"--pixels": path}), f"{path}, line 3: 'abc' is not a pair")
    path.write_text("")
    assert_mistake(plan(**{"--pixels": path}), "two at least; got 0")


def test_help_has_an_example(invoke: Invoke) -> None:
    result = invoke("drone", "plan", "--help")
    assert result.exit_code == 0
    assert "influx-calib drone plan canon17 --lfl-mm 17" in result.output
