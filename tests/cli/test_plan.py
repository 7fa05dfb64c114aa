"""``plan`` prints the grid and writes what it is asked to."""

from pathlib import Path

import numpy as np
import pytest

from influx_wrap.formats.influx import read_lens_settings
from influx_wrap.formats.lut import write_table
from tests.cli.conftest import Invoke, assert_mistake
from tests.plan.test_design import thin_table


def test_table_and_totals(invoke: Invoke) -> None:
    result = invoke("plan", "canon17")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    rows = [line.split() for line in lines if line.startswith("f")]
    assert [row[0] for row in rows] == [f"f{i}" for i in range(10)]
    assert rows[0][1:4] == ["0.85", "400x300", "400x300"]
    assert rows[9][2:] == ["drone"] * 7 + ["800x600"]
    told = " ".join(" ".join(lines).split())
    assert "80 experiments: 2 with board 100x75, 6 with board 200x150" in told
    assert told.endswith("19 with the drone.")


def test_files(invoke: Invoke, tmp_path: Path) -> None:
    out, figure = tmp_path / "plan.json", tmp_path / "plan.png"
    result = invoke("plan", "premista80", "--out", out, "--figure", figure)
    assert result.exit_code == 0
    assert len(read_lens_settings(out).experiments) == 90
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert f"written: {out}" in result.output


def test_unwritable(invoke: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "missing" / "plan.json"
    assert_mistake(invoke("plan", "canon17", "--out", out), f"{out} cannot be written")
    assert_mistake(invoke("plan", "canon17", "--figure", tmp_path / "a.docx"), "cannot draw")


def test_unknown_camera(invoke: Invoke) -> None:
    assert_mistake(invoke("plan", "canon17", "--camera", "arri"), "no camera 'arri'")


def test_chosen_plan_is_simulated(invoke: Invoke, tmp_path: Path) -> None:
    out, figure = tmp_path / "plan.json", tmp_path / "plan.png"
    result = invoke(
        "plan", "premista80", "--experiments", 6, "--boards-only", "--out", out, "--figure", figure
    )
    assert result.exit_code == 0, result.output
    told = " ".join(result.output.split())
    assert "6 experiments: " in told
    assert "Expected sigma of the picture's corner" in told
    settings = read_lens_settings(out)
    assert len(settings.experiments) == 6
    assert all(one.board_long_side_m for one in settings.experiments)
    folder = tmp_path / "sim"
    result = invoke("simulate", "premista80", "--plan", out, "--out", folder)
    assert result.exit_code == 0, result.output
    assert f"--plan {out}" in result.output
    names = {f"z{one.zoom_index}f{one.focus_index}" for one in settings.experiments}
    assert {path.name for path in folder.iterdir() if path.is_dir()} == names
    assert read_lens_settings(folder / "plan.json") == settings


def test_mistakes_of_chosen_plans(invoke: Invoke, tmp_path: Path) -> None:
    both = invoke("plan", "canon17", "--experiments", 8, "--accuracy-px", 1)
    assert_mistake(both, "exclude each other")
    assert_mistake(invoke("plan", "canon17", "--boards-only"), "--boards-only needs")
    assert_mistake(invoke("plan", "canon17", "--experiments", 2), "chosen of 4 to 40 experiments")
    assert_mistake(invoke("plan", "canon17", "--accuracy-px", -1), "is not above 0")
    out = tmp_path / "plan.json"
    assert invoke("plan", "premista80", "--out", out).exit_code == 0
    other = invoke("simulate", "canon17", "--plan", out, "--out", tmp_path / "sim")
    assert_mistake(other, "Is it the plan of another lens?")
    assert_mistake(invoke("plan", "next", tmp_path / "no.json"), "no.json")


def test_next(invoke: Invoke, table_file: Path) -> None:
    result = invoke("plan", "next", table_file, "--count", 2, "--accuracy-px", 1e-3)
    assert result.exit_code == 0, result.output
    told = " ".join(result.output.split())
    assert "Sigma of the picture's corner now: largest" in told
    assert told.count("->") == 4
    assert "is more than 0.001 px still" in told
    enough = invoke("plan", "next", table_file, "--accuracy-px", 1000)
    assert "That is enough: below 1000 px everywhere." in enough.output
    assert "->" not in enough.output
    assert "plan next" in invoke("plan", "next", "--help").output


@pytest.fixture
def table_file(tmp_path: Path) -> Path:
    path = tmp_path / "lut.json"
    write_table(path, thin_table(np.array([(80, 1.5), (80, 9), (140, 3), (250, 1.5), (250, 12.0)])))
    return path
