"""``report``, and the page that ``run`` writes."""

import shutil
from pathlib import Path

import pytest

from influx_wrap.errors import InputError
from influx_wrap.run import pipeline
from influx_wrap.run.workspace import Workspace
from tests.cli.conftest import Invoke, assert_mistake


@pytest.fixture(scope="module")
def data(simulated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two experiments, one of them with a fault."""
    folder = tmp_path_factory.mktemp("data")
    for cell in ("z0f9", "z1f9"):
        shutil.copytree(simulated / cell, folder / cell)
    (folder / "z1f9" / "coords_2d.csv").write_text("0,1\n")
    return folder


@pytest.fixture(scope="module")
def finished(data: Path, invoke: Invoke, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "out"
    result = invoke("run", "canon17", "--data", data, "--out", out, "--recipe", "batch")
    assert result.exit_code == 1, result.output
    assert f", {out / 'report.html'}" in result.stdout
    return out


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def test_same_page_again(invoke: Invoke, data: Path, finished: Path, copy: Path) -> None:
    page = copy / "report.html"
    page.unlink()
    result = invoke("report", copy, "--data", data)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"1 ok, 1 failed; written: {page}\n"
    assert result.stderr == ""
    assert page.read_bytes() == (finished / "report.html").read_bytes()


def test_experiments_that_are_elsewhere(invoke: Invoke, copy: Path) -> None:
    result = invoke("report", copy, "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert "1 of 2 experiments are shown without coverage and residuals (z0f9)" in result.stderr
    assert "--data" in result.stderr


def test_a_run_that_has_not_ended(invoke: Invoke, copy: Path) -> None:
    (copy / "summary.json").unlink()
    (copy / "plan.json").unlink()
    shutil.rmtree(copy / "cells" / "z1f9")
    assert "1 ok, 0 failed" in invoke("report", copy).stdout


def test_mistakes(invoke: Invoke, copy: Path, tmp_path: Path) -> None:
    assert_mistake(invoke("report", tmp_path / "nowhere"), "nowhere is no folder of a run")
    assert_mistake(invoke("report", tmp_path), "no cells with results in it")
    assert_mistake(invoke("report", copy, "--data", tmp_path / "none"), "none is not a folder")
    (copy / "report.html").unlink()
    (copy / "report.html").mkdir()
    assert_mistake(invoke("report", copy), "report.html cannot be written")


def test_help_has_an_example(invoke: Invoke) -> None:
    assert "influx-calib report runs/canon17" in invoke("report", "--help").stdout
    assert "  report " in invoke("--help").stdout


@pytest.mark.parametrize("error", [InputError("the disk is full."), KeyError("a fault")])
def test_a_run_without_its_page_is_a_run(
    invoke: Invoke, data: Path, copy: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(pipeline, "write_report", fail)
    command = ("run", "canon17", "--data", data, "--out", copy, "--recipe", "batch")
    result = invoke(*command, "--cells", "z0f9")
    assert result.exit_code == 0, result.output
    assert "no report.html: " in result.stderr
    assert "Traceback" not in result.stderr
    assert "report.html" not in result.stdout
    assert Workspace(copy).result("z0f9").exists()
    assert not (copy / "report.html").exists(), "an old one would speak of other results"
    assert "no report" in (copy / "run.log").read_text()
