"""Lens settings files: what is written is read back, faults are named."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.influx import read_lens_settings, write_lens_settings
from influx_wrap.model.experiment import Plan
from influx_wrap.plan import make_plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    catalogue = load_catalogue()
    camera = catalogue.camera("arri-alexa-mini")
    return make_plan(catalogue.lens("canon17"), camera, catalogue.boards.values())


def test_the_file_looks_like_the_releases(plan: Plan, tmp_path: Path) -> None:
    write_lens_settings(tmp_path / "canon17.json", plan)
    settings = json.loads((tmp_path / "canon17.json").read_text())
    assert list(settings) == ["zooms", "focus_distances", "exp_details"]
    assert settings["zooms"] == [17, 18, 20, 24, 32, 48, 80, 120]
    assert settings["focus_distances"][:3] == [853.44, 1500, 1687.5]
    assert len(settings["exp_details"]) == 80
    near = {"zoom": 17, "focus_distance": 853.44, "board_size": 0.4}
    far = {"zoom": 17, "focus_distance": 13500, "board_size": "drone"}
    assert settings["exp_details"]["zoom_0_focus_distance_0"] == near
    assert settings["exp_details"]["zoom_0_focus_distance_9"] == far


def test_round_trip(plan: Plan, tmp_path: Path) -> None:
    write_lens_settings(tmp_path / "canon17.json", plan)
    settings = read_lens_settings(tmp_path / "canon17.json")
    assert settings.lfl_mm == plan.lfl_mm
    assert settings.fd_m == pytest.approx(plan.fd_m, rel=1e-9)
    assert len(settings.experiments) == len(plan.cells)
    for setting, cell in zip(settings.experiments, plan.cells, strict=True):
        assert (setting.zoom_index, setting.focus_index) == (cell.zoom_index, cell.focus_index)
        assert setting.lfl_mm == cell.lfl_mm
        assert setting.fd_m == pytest.approx(cell.fd_m, rel=1e-9)
        long_side = cell.board.width_mm / 1e3 if cell.board else None
        assert setting.board_long_side_m == long_side


def test_infinity_cannot_be_written(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="infinite"):
        write_lens_settings(tmp_path / "x.json", replace(plan, fd_m=(1.0, math.inf)))


CELL = '{"zoom_0_focus_distance_0": {"zoom": 17, "focus_distance": 900, "board_size": 0.4}}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "line 1: this is not JSON"),
        ("[]", "a mapping"),
        ("[" * 100_000, "nested more than 100 levels"),
        ('{"zooms": [17], "focus_distances": [900]}', "exp_details is missing"),
        ('{"zooms": 17, "focus_distances": [900], "exp_details": {}}', "zooms must be a list"),
        (
            '{"zooms": [NaN], "focus_distances": [900], "exp_details": {}}',
            "line 1: NaN stands where a number belongs",
        ),
        ('{"zooms": [17], "focus_distances": [9e999], "exp_details": {}}', "must be finite"),
        (
            '{"zooms": [17], "focus_distances": [900], "exp_details": []}',
            "exp_details must be a map",
        ),
        ('{"zooms": [], "focus_distances": [900], "exp_details": ' + CELL + "}", "not in the grid"),
    ],
)
def test_faulty_files(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=rf"x.json.*{problem}"):
        read_lens_settings(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("zoom_0_focus_distance_0", "cell_0", "cell_0 must look like"),
        ('"zoom": 17', '"zoom": "17"', "zoom_0_focus_distance_0: zoom must be a number"),
        ('"focus_distance": 900', '"focus_distance": -1', "focus_distance must be above 0"),
        ('"board_size": 0.4', '"board_size": "plane"', "board_size must be a number"),
        (', "board_size": 0.4', "", "board_size is missing"),
    ],
)
def test_faulty_experiments(tmp_path: Path, old: str, new: str, problem: str) -> None:
    text = '{"zooms": [17], "focus_distances": [900], "exp_details": ' + CELL + "}"
    (tmp_path / "x.json").write_text(text.replace(old, new))
    with pytest.raises(InputError, match=rf"x.json: exp_details: .*{problem}"):
        read_lens_settings(tmp_path / "x.json")
