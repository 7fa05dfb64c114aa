"""``compare``: three recipes on the same simulated cells."""

import csv
import json
from pathlib import Path

from tests.cli.conftest import Invoke


def test_three_recipes(invoke: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "compare"
    command = ("compare", "canon17", "--cells", "z0f9,z7f0", "--rollouts", 2, "--out", out)
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    counts = {line[0]: line[1:4] for line in lines if line and line[0] in RECIPES}
    assert counts == {
        "stock": ["1", "of", "2"],
        "influx": ["0", "of", "2"],
        "batch": ["0", "of", "2"],
    }

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
    shares = [float(row["influx"]) for row in curve]
    assert shares == sorted(shares)
    for name in ("errors.png", "epe.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")

    artefacts = [p for p in out.rglob("*.*") if p.is_file() and p.name != "run.log"]
    before = {path: path.read_bytes() for path in artefacts}
    again = invoke(*command)
    assert again.exit_code == 0
    assert "5 results were there already" in again.stderr
    assert all(path.read_bytes() == content for path, content in before.items())


RECIPES = ("stock", "influx", "batch")


def test_all_lenses(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("compare", "all", "--cells", "z0f9", "--rollouts", 1, "--out", tmp_path / "all")
    assert result.exit_code == 0, result.output
    for lens in ("canon17", "premista80"):
        assert (tmp_path / "all" / lens / "summary.json").exists()
        assert f"{lens}: 1 simulated cells" in result.stdout
