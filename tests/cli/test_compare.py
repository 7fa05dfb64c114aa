"""``compare``: all recipes on the same simulated cells."""

import csv
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke


def test_all_recipes(invoke: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "compare"
    command = ("compare", "canon17", "--cells", "z0f9,z7f0", "--rollouts", 2, "--out", out)
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    by_recipe = {line[0]: line for line in lines if line and line[0] in RECIPES and "of" in line}
    assert {name: line[1:5] for name, line in by_recipe.items()} == {
        name: ["board", "0", "of", "1"] for name in RECIPES
    }
    drone = [line[:6] for line in lines if line[:1] == ["drone"]]
    assert drone[0] == ["drone", "1", "of", "1", "no", "answer"]
    assert [line[1] for line in drone[1:]] == ["0", "0", "0"]

    summary = json.loads((out / "summary.json").read_text())["recipes"]
    assert summary["stock"]["rms_error_over_bound"]["drone"] is None
    assert summary["batch"]["error_percent"]["fx"]["max"] < 0.2
    rows = list(csv.DictReader((out / "summary.csv").read_text().splitlines()))
    assert [(row["recipe"], row["cell"]) for row in rows] == [
        (recipe, cell) for recipe in RECIPES for cell in ("z0f9", "z7f0")
    ]
    assert json.loads((out / "stock" / "cells" / "z0f9" / "failure.json").read_text())["advice"]

    curve = list(csv.DictReader((out / "epe.csv").read_text().splitlines()))
    assert float(curve[-1]["batch"]) == 1.0
    assert 0 < float(curve[-1]["stock"]) < 0.5, "the failed drone cell counts as infinitely far"
    printed = {line[0]: line[1::2] for line in lines if line and line[0] in RECIPES and "%" in line}
    at_one_px = min(curve, key=lambda row: abs(float(row["epe_px"]) - 1))
    for name in RECIPES:
        assert float(printed[name][1]) == pytest.approx(100 * float(at_one_px[name]), abs=0.051)
    shares = [float(row["influx"]) for row in curve]
    assert shares == sorted(shares)
    for name in ("errors.png", "epe.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")

    artefacts = [p for p in out.rglob("*.*") if p.is_file() and p.name != "run.log"]
    before = {path: path.read_bytes() for path in artefacts}
    again = invoke(*command)
    assert again.exit_code == 0
    assert "7 results were there already" in again.stderr
    assert all(path.read_bytes() == content for path, content in before.items())


RECIPES = ("stock", "paper", "influx", "batch")


def test_all_lenses(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("compare", "all", "--cells", "z0f9", "--rollouts", 1, "--out", tmp_path / "all")
    assert result.exit_code == 0, result.output
    for lens in ("canon17", "premista80"):
        assert (tmp_path / "all" / lens / "summary.json").exists()
        assert f"{lens}: 1 simulated cells" in result.stdout
