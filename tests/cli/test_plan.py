"""``plan`` prints the grid and writes what it is asked to."""

from pathlib import Path

from influx_wrap.formats.influx import read_lens_settings
from tests.cli.conftest import Invoke, assert_mistake


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
