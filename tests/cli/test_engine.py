"""``--engine kalibr`` of calibrate and run, with a stand-in for Kalibr on the PATH."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from influx_wrap.formats.experiment import read_experiment
from tests.cli.conftest import Invoke, assert_mistake, command_line
from tests.cli.test_calibrate import LENS, inputs
from tests.engines.standin import FORK_HELP, UPSTREAM_HELP, install

SIZE = (3424, 2202)
KALIBR = ("--engine", "kalibr", "--rollouts", 3, "--jobs", 2)


@pytest.fixture
def stand_in(tmp_path: Path, simulated: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """``stand_in(by_seed={...})`` puts a Kalibr on the PATH that knows the truth of z0f9."""

    def put(**facts: Any) -> None:
        truth = read_experiment(simulated / "z0f9").truth
        assert truth is not None
        folder = install(tmp_path / "bin", truth.intrinsics.array, SIZE, **facts)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    return put


def test_calibrate(invoke: Invoke, simulated: Path, tmp_path: Path, stand_in: Any) -> None:
    stand_in(by_seed={"5001": "kill"})
    out = tmp_path / "result.json"
    experiment = inputs(simulated / "z0f9")
    result = invoke("calibrate", *experiment, *LENS, *KALIBR, "--seed", 5, "--out", out)
    assert result.exit_code == 0, result.output
    record = json.loads(out.read_text())
    assert record["status"] == "ok"
    assert result.stderr.startswith("Recipe paper in place of influx: ")
    assert "calibrated by: the InFlux build of Kalibr, recipe paper" in result.stdout
    assert record["provenance"]["recipe"]["name"] == record["engine"]["recipe"] == "paper"
    failures = [run["failure"] for run in record["engine"]["runs"]]
    assert [bool(failure) for failure in failures] == [False, True, False]
    assert "1 of 3 runs of Kalibr failed" in record["warnings"][0]
    assert set(record["provenance"]["engine"]) == {"name", "kind", "version", "command"}
    assert str(tmp_path) not in out.read_text()
    assert (tmp_path / "result-kalibr" / "rollout-001" / "kalibr.log").exists()


def test_calibrate_fails(invoke: Invoke, simulated: Path, tmp_path: Path, stand_in: Any) -> None:
    stand_in(by_seed={str(seed): "crash" for seed in range(3)})
    out = tmp_path / "result.json"
    result = invoke("calibrate", *inputs(simulated / "z0f9"), *LENS, *KALIBR, "--out", out)
    assert result.exit_code == 1
    assert "\nFailed: kalibr: no run of 3 gave a result" in result.stderr
    assert json.loads(out.read_text())["stage"] == "kalibr"


def test_run(invoke: Invoke, simulated: Path, tmp_path: Path, stand_in: Any) -> None:
    stand_in()
    data = tmp_path / "data"
    shutil.copytree(simulated / "z0f9", data / "z0f9")
    shutil.copytree(simulated / "z0f9", data / "z1f9")
    (data / "z1f9" / "coords_2d.csv").write_text("")
    command = ("run", "canon17", "--data", data, "--out", tmp_path / "run", *KALIBR)
    result = invoke(*command)
    assert result.exit_code == 1, result.output
    root = tmp_path / "run"
    record = json.loads((root / "cells/z0f9/result.json").read_text())
    assert record["provenance"]["engine"]["name"] == "kalibr"
    assert (root / "kalibr/z0f9/rollout-002/kalibr.log").read_text() == "seed 2\n"
    assert json.loads((root / "cells/z1f9/failure.json").read_text())["stage"] == "input"
    assert "recipe paper" in result.stdout
    assert "Recipe paper in place of influx" in result.stderr
    assert json.loads((root / "summary.json").read_text())["recipe"]["name"] == "paper"
    assert "1 results were there already" in invoke(*command).stderr


def test_interrupted_run(simulated: Path, tmp_path: Path, stand_in: Any) -> None:
    stand_in(by_seed={"0": "hang"})
    data = tmp_path / "data"
    shutil.copytree(simulated / "z0f9", data / "z0f9")
    process = subprocess.Popen(
        command_line("run", "canon17", "--data", data, "--out", tmp_path / "run", *KALIBR),
        stderr=subprocess.PIPE,
        text=True,
    )
    asked = tmp_path / "run/kalibr/z0f9/rollout-000/asked.json"
    while not (asked.exists() and asked.read_text().endswith("}")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Interrupted. Resume with the same command." in stderr
    with pytest.raises(ProcessLookupError):
        os.kill(json.loads(asked.read_text())["pid"], 0)


def test_mistakes(
    invoke: Invoke,
    simulated: Path,
    tmp_path: Path,
    stand_in: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stand_in(help=UPSTREAM_HELP)
    out = ("--out", tmp_path / "run")

    def mistake(*options: object) -> Any:
        return invoke("run", "canon17", "--data", simulated, *out, *options)

    assert_mistake(mistake("--image", "x"), "--image is for --engine kalibr")
    assert_mistake(mistake("--engine", "kalibr"), "initialise=single")
    without_pictures = invoke("run", "canon17", *out, "--engine", "kalibr")
    assert_mistake(without_pictures, "takes no corners", "--bag", "--data")
    assert_mistake(mistake("--engine", "kalibr", "--recipe", "batch"), "one by one")
    assert_mistake(mistake("--engine", "kalibr", "--timeout-s", 0), "not above 0")
    scheduler = ("--scheduler", "tcp://127.0.0.1:1")
    assert_mistake(mistake("--engine", "kalibr", *scheduler), "leave --scheduler out")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert_mistake(mistake("--engine", "kalibr", "--image", "x"), "no container engine answers")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert_mistake(mistake("--engine", "kalibr"), "not on the PATH")
    assert not (tmp_path / "run").exists()


def test_compare(invoke: Invoke, tmp_path: Path, stand_in: Any) -> None:
    """A Kalibr beside our recipes, on the same corners: intrinsics, views and time."""
    stand_in(help=FORK_HELP, kept=[0])
    command = ("compare", "canon17", "--cells", "z0f9", "--rollouts", 2, "--jobs", 1)
    result = invoke(*command, "--engine", "kalibr", "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.stdout.splitlines()]
    (kalibr,) = [row for row in rows if row[:1] == ["kalibr"] and row[6:7] == ["of"]]
    assert kalibr[5:8] == ["1", "of", "1"]
    assert float(kalibr[8]) >= 0
    record = json.loads((tmp_path / "run/kalibr/cells/z0f9/result.json").read_text())
    assert record["engine"]["kind"] == "fork"
    assert (tmp_path / "run/kalibr-runs/z0f9/rollouts/calib-rollouts.json").exists()
    assert "kalibr" in json.loads((tmp_path / "run/summary.json").read_text())["recipes"]
