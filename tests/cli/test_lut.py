"""``influx-calib lut`` as a user meets it."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from influx_wrap.cli.main import main
from influx_wrap.formats.lut import read_table, write_table
from influx_wrap.formats.results import write_result
from influx_wrap.lut.schemes import SCHEMES
from influx_wrap.model.intrinsics import NAMES, Intrinsics
from influx_wrap.model.record import CellSetting
from influx_wrap.model.result import CalibrationResult, Failure
from influx_wrap.run.workspace import Workspace
from tests.cli.conftest import assert_mistake
from tests.lut.lenses import breathing_table
from tests.model.records import make_record, make_result


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def lut(tmp_path: Path) -> Path:
    path = tmp_path / "lut.json"
    write_table(path, breathing_table("canon17"))
    return path


def make_run(folder: Path) -> None:
    """A run's folder with 29 results and a failure."""
    table = breathing_table("canon17")
    workspace = Workspace(folder)
    for row, name in enumerate(table.names[:30]):
        target = "drone" if table.is_drone[row] else "800x600"
        setting = float(table.lfl_mm[row]), float(table.fd_m[row])
        cell = CellSetting(name, "canon17", "arri-alexa-mini", target, *setting)
        outcome: CalibrationResult | Failure = make_result(
            Intrinsics.from_array(table.values[row]), covariance=table.covariance[row]
        )
        if name == "z0f7":
            outcome = Failure("focal", "no idea", "none")
        workspace.save(make_record(outcome, cell))


def test_a_run_becomes_a_table(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    out = tmp_path / "lut.json"
    result = run("lut", "build", tmp_path / "run", "--out", out)
    assert result.exit_code == 0, result.output
    assert "29 experiments of canon17" in result.output
    assert "focal: no idea" in result.output
    table = read_table(out)
    assert "z0f7" not in table.names
    np.testing.assert_array_equal(table.values[:7], breathing_table("canon17").values[:7])
    assert set(table.provenance["results"]) == set(table.names)


def test_what_cannot_be_in_a_table_is_named(tmp_path: Path) -> None:
    """An experiment at infinity, and results that somebody has spoiled; the rest is kept."""
    make_run(tmp_path / "run[1]")
    cells = tmp_path / "run[1]" / "cells"
    far = json.loads((cells / "z0f0" / "result.json").read_text())
    far["cell"]["fd_m"] = "inf"
    del far["checksum"]
    write_result(cells / "z0f0" / "result.json", far)
    del far["truth"]
    write_result(cells / "z0f1" / "result.json", far)
    (cells / "z0f2" / "result.json").write_text('{"status": ')
    out = tmp_path / "lut [new].json"
    result = run("lut", "build", tmp_path / "run[1]", "--out", out)
    assert result.exit_code == 0, result.output
    assert f"27 experiments of canon17 in {out}" in result.output
    assert "left out: z0f1, result.json is no result (KeyError: 'truth')" in result.output
    assert "left out: z0f2, result.json is no result" in result.output
    table = read_table(out)
    assert {"z0f1", "z0f2"}.isdisjoint(table.names)
    assert np.isinf(table.fd_m[table.names.index("z0f0")])


def test_results_whose_numbers_were_edited(tmp_path: Path) -> None:
    """They do not enter a table unannounced; those of earlier versions do, with a word."""
    make_run(tmp_path / "run")
    cells = tmp_path / "run" / "cells"
    for name, edit in (("z0f1", "edited"), ("z0f2", "of old"), ("z0f3", "of old")):
        values = json.loads((cells / name / "result.json").read_text())
        if edit == "edited":
            values["intrinsics"]["fx"] *= 1.01
        else:
            del values["checksum"]
        (cells / name / "result.json").write_text(json.dumps(values))
    out = tmp_path / "lut.json"
    result = run("lut", "build", tmp_path / "run", "--out", out)
    assert result.exit_code == 0, result.output
    told = " ".join(result.output.split())
    assert "left out: z0f1, its result was changed after it was written" in told
    assert "2 results of an earlier version, without a checksum" in told
    assert {"z0f1"}.isdisjoint(read_table(out).names)
    assert {"z0f2", "z0f3"} <= set(read_table(out).names)
    result = run("lut", "build", tmp_path / "run", "--out", out, "--keep-suspects")
    assert result.exit_code == 0, result.output
    assert "its result was changed after it was written" in " ".join(result.output.split())
    assert "z0f1" in read_table(out).names


def test_a_scheme_that_judges_nothing(tmp_path: Path) -> None:
    """At (40, 5) inside the triangle of the others in FD, but a corner of the hull in 1 / FD."""
    table = breathing_table("canon17").rows(np.arange(4))
    settings = np.array([[24, 1], [24, 10], [70, 1], [40, 5]], dtype=float)
    uneven = replace(
        table, lfl_mm=settings[:, 0], fd_m=settings[:, 1],
        grid=np.array([[0, 0], [0, 2], [2, 0], [1, 1]]),
    )  # fmt: skip
    write_table(tmp_path / "lut.json", uneven)
    result = run("lut", "crossval", tmp_path / "lut.json")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines()]
    assert [line[:2] for line in lines if line[0] in SCHEMES] == [
        ["smooth", "median"], ["paper", "median"], ["disparity", "none"], ["thin-lens", "none"],
    ]  # fmt: skip


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    result = run("lut", "build", tmp_path, "--out", tmp_path / "lut.json")
    assert result.exit_code == 2
    assert "no folder of a run" in result.output
    assert not (tmp_path / "lut.json").exists()


def test_a_query_as_json(lut: Path) -> None:
    result = run("lut", "query", lut, "--lfl-mm", 35, "--fd-m", 2.4, "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["status"] == "interpolated"
    assert answer["scheme"] == "smooth"
    assert list(answer["intrinsics"]) == list(answer["sigma"]) == list(NAMES)
    assert answer["vertices"] == []
    result = run("lut", "query", lut, "--lfl-mm", 35, "--fd-m", 2.4, "--json", "--scheme", "paper")
    answer = json.loads(result.output)
    assert sum(vertex["weight"] for vertex in answer["vertices"]) == pytest.approx(1)
    beyond = json.loads(run("lut", "query", lut, "--lfl-mm", 35, "--fd-m", "inf", "--json").stdout)
    assert beyond["status"] == "extrapolated"
    assert beyond["fd_m"] == "inf"
    assert all(np.isfinite(list(beyond["sigma"].values())))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--lfl-mm", 12, "--fd-m", 2), "outside the table of canon17"),
        (("--lfl-mm", 120, "--fd-m", 0.3), "is nearer than"),
        (("--lfl-mm", 120, "--fd-m", 0.3, "--scheme", "paper"), "no setting of a lens"),
        (("--lfl-mm", 35, "--fd-m", -1), "not above 0"),
        (("--lfl-mm", 35, "--fd-m", "nan"), "not a finite number"),
    ],
)
def test_settings_without_an_answer(lut: Path, options: tuple[object, ...], message: str) -> None:
    result = run("lut", "query", lut, *options)
    assert result.exit_code == 2
    assert message in result.output


def test_cross_validation_names_the_best_scheme(lut: Path, tmp_path: Path) -> None:
    result = run("lut", "crossval", lut, "--figure", tmp_path / "figures")
    assert result.exit_code == 0, result.output
    assert "favour smooth" in result.output
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {f"left_out_{s}.png" for s in ("paper", "disparity", "thin-lens")}


def test_pictures_of_a_table(lut: Path, tmp_path: Path) -> None:
    result = run("lut", "plot", lut, "--figure", tmp_path / "figures", "--scheme", "disparity")
    assert result.exit_code == 0, result.output
    for name in ("regions.png", "intrinsics.png"):
        assert (tmp_path / "figures" / name).stat().st_size > 10_000


def test_the_explorer_is_beside_the_table(lut: Path, tmp_path: Path) -> None:
    result = run("lut", "explore", lut)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"written: {tmp_path / 'lut.html'}\n"
    assert "canon17 on arri-alexa-mini" in (tmp_path / "lut.html").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"lut.json", "lut.html"}


def test_the_explorer_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = breathing_table("canon17").rows(np.array([3]))
    write_table(tmp_path / "lut.json", table)
    opened: list[str] = []
    monkeypatch.setattr("click.launch", lambda url: len(opened.append(url) or opened) - 1)
    out = tmp_path / "page.html"
    result = run("lut", "explore", tmp_path / "lut.json", "--out", out, "--open")
    assert result.exit_code == 0, result.output
    assert opened == [str(out)]
    without = run("lut", "explore", tmp_path / "lut.json", "--out", out, "--open")
    assert_mistake(without, "no browser to open")
    assert out.exists()


def test_tables_that_cannot_be_explored(lut: Path, tmp_path: Path) -> None:
    assert_mistake(run("lut", "explore", tmp_path / "none.json"), "does not exist")
    assert_mistake(run("lut", "explore", lut, "--out", lut), "is the table itself")
    nowhere = tmp_path / "nowhere" / "page.html"
    assert_mistake(run("lut", "explore", lut, "--out", nowhere), "cannot be written")
    whole = lut.read_text()
    lut.write_text(whole[: len(whole) // 2])
    assert_mistake(run("lut", "explore", lut), "this is not JSON")
    lut.write_text('{"frames": {}}')
    assert_mistake(run("lut", "explore", lut), "influx-calib lut build")
    assert [path.name for path in tmp_path.iterdir()] == ["lut.json"]


def test_a_table_without_covariances(tmp_path: Path) -> None:
    """Its sigma is a question mark, and never 0."""
    table = breathing_table("canon17")
    path = tmp_path / "lut.json"
    write_table(path, replace(table, covariance=np.full_like(table.covariance, np.nan)))
    setting = ("--lfl-mm", float(table.lfl_mm[0]), "--fd-m", float(table.fd_m[0]))
    for options in (setting, ("--lfl-mm", 35, "--fd-m", "inf")):
        result = run("lut", "query", path, *options, "--scheme", "paper")
        assert result.exit_code == 0, result.output
        assert result.output.count("?") == len(NAMES)
        assert "Sigma is not known" in result.output
        result = run("lut", "query", path, *options, "--json", "--scheme", "paper")
        assert set(json.loads(result.output)["sigma"].values()) == {None}
    result = run("lut", "crossval", path)
    assert result.exit_code == 0
    assert "nan" not in result.output
    (tmp_path / "clip.csv").write_text("frame,lfl_mm,fd_m\n0,35,2.4\n")
    result = run("annotate", tmp_path / "clip.csv", "--lut", path, "--out", tmp_path / "gt.csv",
                 "--scheme", "paper")  # fmt: skip
    assert result.exit_code == 0, result.output
    with (tmp_path / "gt.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert {row[f"sigma_{name}"] for name in NAMES} == {""}


def test_the_fit_is_put_into_the_file(lut: Path) -> None:
    """Once it is there, a query says nothing about it."""
    setting = ("--lfl-mm", 35, "--fd-m", "inf")
    before = run("lut", "query", lut, *setting)
    assert "lut fit" in before.stderr
    result = run("lut", "fit", lut)
    assert result.exit_code == 0, result.output
    assert read_table(lut).smooth is not None
    after = run("lut", "query", lut, *setting)
    assert after.stderr == ""
    assert after.stdout == before.stdout


def test_an_experiment_that_contradicts_the_others_is_named(tmp_path: Path) -> None:
    table = breathing_table("canon17")
    values = table.values.copy()
    row = table.names.index("z3f4")
    values[row, :2] *= 1.01
    write_table(tmp_path / "lut.json", replace(table, values=values))
    result = run("lut", "fit", tmp_path / "lut.json")
    assert result.exit_code == 0, result.output
    (line,) = [line for line in result.stdout.splitlines() if "odd" in line]
    assert line.startswith("  odd: z3f4, f")
    assert "the other experiments say" in line
    assert "goes without it" in line
    assert read_table(tmp_path / "lut.json").smooth.set_aside == ("z3f4",)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("lfl_mm", 1e-300, "cannot be right: at an LFL of 1e-300 mm"),
        ("fd_m", 1e-300, "an FD of 1e-300 m"),
        ("zoom", 10**30, "zoom must be at most 1000000"),
        ("variance", -1.0, "no covariance: it is not symmetric, or has a negative variance"),
        ("correlation", 1e9, "no covariance"),
        ("fx", 1e300, "cannot be right"),
    ],
)
def test_a_table_that_cannot_be_right(lut: Path, key: str, value: float, said: str) -> None:
    table = json.loads(lut.read_text())
    experiment = table["experiments"][5]
    if key == "variance":
        experiment["covariance"][2][2] = value
    elif key == "correlation":
        experiment["covariance"][0][1] = experiment["covariance"][1][0] = value
    elif key == "fx":
        experiment["intrinsics"]["fx"] = value
    else:
        experiment[key] = value
    lut.write_text(json.dumps(table))
    result = run("lut", "query", lut, "--lfl-mm", 35, "--fd-m", 2)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
