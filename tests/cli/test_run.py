"""``run``: all cells, whatever happens to single ones or to the run itself."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.formats.lut import read_table
from influx_wrap.formats.recording_truth import read_recording_truth
from influx_wrap.observe import frames
from influx_wrap.run.workspace import Workspace
from tests.cli.conftest import Invoke, assert_mistake, command_line, execute

# Two drone cells and a board cell, in the plan's order.
CELLS = ("z0f9", "z1f9", "z7f0")
OPTIONS = ("--cells", ",".join(reversed(CELLS)), "--rollouts", 2)

# Few pixels, but several for each cell of a tag.
SMALL_CAMERA = """kind: camera
name: small
sensor_width_mm: 28.25
sensor_height_mm: 18.17
width_px: 480
height_px: 308
"""
COARSE_BOARD = """kind: board
name: 800x600
width_mm: 800
height_mm: 600
tag_rows: 4
tag_cols: 5
tag_size_mm: 100
tag_spacing: 0.3
"""


def contents(root: Path) -> dict[str, bytes]:
    """Every artefact; ``run.log`` holds times and is none."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.name != "run.log"
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run in one process."""
    root = tmp_path_factory.mktemp("run") / "canon17"
    done = execute("run", "canon17", *OPTIONS, "--out", root, "--jobs", 1)
    assert done.returncode == 0, done.stderr
    (root.parent / "stdout").write_text(done.stdout)
    (root.parent / "stderr").write_text(done.stderr)
    return root


def test_artefacts(finished: Path) -> None:
    workspace = Workspace(finished)
    names = {name.split("/")[0] for name in contents(finished)}
    summaries = {"plan.json", "summary.json", "summary.csv", "report.html", "explorer.html"}
    assert names == {"cells", "data", "lut.json"} | summaries
    assert set(read_table(workspace.table).names) == set(CELLS)
    for cell in CELLS:
        record = json.loads(workspace.result(cell).read_text())
        assert record["status"] == "ok"
        assert record["cell"]["name"] == cell
        assert record["truth"]["bound"]["fx"] > 0
        assert str(finished) not in workspace.result(cell).read_text()
    summary = json.loads(workspace.summary_json.read_text())
    assert [row["cell"] for row in summary["cells"]] == list(CELLS)
    assert summary["totals"]["ok"] == 3
    assert set(summary["totals"]["rms_error_over_bound"]["board"]) == {"fx", "fy", "cx", "cy"}
    rows = list(csv.DictReader(workspace.summary_csv.read_text().splitlines()))
    assert [row["cell"] for row in rows] == list(CELLS)


def test_output(finished: Path) -> None:
    said = (finished.parent / "stderr").read_text()
    assert f"simulating 3 experiments of canon17 into {finished / 'data'}" in said
    table = (finished.parent / "stdout").read_text()
    rows = [line.split() for line in table.splitlines() if line.startswith(CELLS)]
    assert [row[0] for row in rows[:3]] == list(CELLS)
    assert rows[0][1:3] == ["17", "13.46"]
    camera = json.loads(Workspace(finished).result("z0f9").read_text())["intrinsics"]
    assert float(rows[0][3]) == pytest.approx(camera["fx"], abs=1)
    assert rows[3][:2] == ["z0f9", "drone"], "errors"
    assert "RMS over board cells" in table
    assert "within 1 sigma, of drone cells" in table
    assert "Can this lens be used? " in table
    assert "3 cells ok, 0 failed" in table


def test_two_processes_give_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    done = execute("run", "canon17", *OPTIONS, "--out", tmp_path / "other", "--jobs", 2)
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "other") == contents(finished)


def kill_in_the_middle(command: list[str], root: Path) -> list[str]:
    """Start a run, kill it after its first result; returns the cells that were done."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(root.glob("cells/*/result.json")):
        assert process.poll() is None
        time.sleep(0.002)
    process.kill()
    process.wait()
    return [path.parent.name for path in root.glob("cells/*/result.json")]


def test_a_killed_run_ends_with_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    # On a busy machine the run may end before the kill arrives; then it is tried again.
    for attempt in range(5):
        root = tmp_path / f"killed{attempt}"
        command = command_line("run", "canon17", *OPTIONS, "--out", root, "--jobs", 1)
        done = kill_in_the_middle(command, root)
        if len(done) < len(CELLS):
            break
    assert 0 < len(done) < len(CELLS), "the run was not killed in the middle"
    assert not (root / "summary.json").exists()
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert f"{len(done)} results were there already" in again.stderr
    assert contents(root) == contents(finished)


def test_an_interrupted_run_says_how_to_resume(tmp_path: Path) -> None:
    root = tmp_path / "interrupted"
    command = command_line("run", "canon17", *OPTIONS, "--out", root, "--jobs", 2)
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not list(root.glob("data/*/experiment.yaml")):
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Interrupted. Resume with the same command." in errors
    assert "Traceback" not in errors


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def test_spoiled_and_missing_files_are_made_again(
    invoke: Invoke, copy: Path, finished: Path
) -> None:
    workspace = Workspace(copy)
    text = workspace.result("z0f9").read_text()
    workspace.result("z0f9").write_text(text[: len(text) // 2])
    (workspace.data("z1f9") / "coords_2d.csv").unlink()
    workspace.result("z0f9").with_name(".result.json.17.tmp").write_text("{")
    result = invoke("run", "canon17", *OPTIONS, "--out", copy)
    assert result.exit_code == 0, result.output
    assert "1 results were there already" in result.stderr
    assert contents(copy) == contents(finished)


def test_another_seed_is_another_run(invoke: Invoke, copy: Path, finished: Path) -> None:
    arguments = ("--cells", "z0f9", "--rollouts", 2, "--out", copy)
    assert invoke("run", "canon17", *arguments, "--seed", 1).exit_code == 0
    before, after = (contents(root)["cells/z0f9/result.json"] for root in (finished, copy))
    assert before != after


def test_another_lens_does_not_mix_in(invoke: Invoke, copy: Path, finished: Path) -> None:
    result = invoke("run", "premista80", "--cells", "z0f9", "--out", copy)
    assert result.exit_code == 2
    assert "holds a run with another plan" in result.stderr
    assert contents(copy) == contents(finished)


def test_two_runs_in_one_folder_are_refused(invoke: Invoke, copy: Path) -> None:
    with Workspace(copy).open():
        result = invoke("run", "canon17", *OPTIONS, "--out", copy)
    assert result.exit_code == 2
    assert "in use by another run" in result.stderr


def test_data_with_a_broken_cell(invoke: Invoke, simulated: Path, tmp_path: Path) -> None:
    data, out = Path(shutil.copytree(simulated, tmp_path / "data")), tmp_path / "out"
    (data / "z0f9" / "coords_2d.csv").write_text("0,1\n")
    shutil.copytree(data / "z1f9", data / "z10f9")
    text = (data / "z1f9" / "experiment.yaml").read_text()
    (data / "z1f9" / "experiment.yaml").write_text(text.replace("canon17", "premista80"))
    (data / "notes").mkdir()
    command = ("run", "canon17", "--data", data, "--out", out, "--recipe", "batch")
    result = invoke(*command)
    assert result.exit_code == 1, result.output
    assert "4 experiments of canon17" in result.stderr
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith("z")]
    assert [row[0] for row in rows[:4]] == ["z0f9", "z1f9", "z7f0", "z10f9"]
    assert [row[-1] == "failed" for row in rows[:4]] == [True, True, False, False]
    assert "z0f9 failed: input: coords_2d.csv, line 1: 2 values instead of 3" in result.stdout
    assert "z1f9 failed: input: this is an experiment of lens premista80" in result.stdout
    assert "2 cells ok, 2 failed" in result.stdout
    failure = Workspace(out).failure("z0f9").read_text()
    assert json.loads(failure)["status"] == "failed"
    assert str(tmp_path) not in failure
    assert not Workspace(out).result("z0f9").exists()

    shutil.copy(simulated / "z0f9" / "coords_2d.csv", data / "z0f9")
    shutil.copy(simulated / "z1f9" / "experiment.yaml", data / "z1f9")
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    assert "2 results were there already" in result.stderr
    assert not Workspace(out).failure("z0f9").exists()


def test_unreadable_files_fail_their_cell_only(
    invoke: Invoke, simulated: Path, tmp_path: Path
) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    for cell in ("z0f9", "z1f9"):
        shutil.copytree(simulated / cell, data / cell)
    (data / "z0f9" / "coords_2d.csv").unlink()
    (data / "z0f9" / "coords_2d.csv").mkdir()
    result = invoke("run", "canon17", "--data", data, "--out", out, "--recipe", "batch")
    assert result.exit_code == 1, result.output
    assert "z0f9 failed: input: coords_2d.csv is a folder, a file is needed" in result.stdout
    assert "1 cell ok, 1 failed" in result.stdout


def test_data_without_truth_shows_sigmas(invoke: Invoke, simulated: Path, tmp_path: Path) -> None:
    data, out = Path(shutil.copytree(simulated, tmp_path / "data")), tmp_path / "out"
    for path in data.glob("*/truth.json"):
        path.unlink()
    command = ("run", "canon17", "--data", data, "--out", out, "--recipe", "batch")
    result = invoke(*command, "--figures")
    assert result.exit_code == 0, result.output
    assert "fx px ± σ" in result.stdout
    assert "bound" not in result.stdout
    assert json.loads((out / "summary.json").read_text())["cells"][0]["error_fx_percent"] is None
    assert f", {out / 'errors.png'}, {out / 'lut'}" in result.stdout
    figures = {name: data for name, data in contents(out).items() if name.endswith(".png")}
    assert {"errors.png", "lut/regions.png"} <= set(figures)
    assert all(data.startswith(b"\x89PNG") for data in figures.values())
    pages = {name: data for name, data in contents(out).items() if name not in figures}
    result = invoke(*command)
    assert "errors.png" not in result.stdout
    assert contents(out) == pages, "old figures would speak of other results"


def test_exact_observations_have_no_bound(invoke: Invoke, tmp_path: Path) -> None:
    data = tmp_path / "data"
    exact = ("--noise-px", 0, "--rtk-ball-m", 0, "--cells", "z0f9")
    assert invoke("simulate", "canon17", "--out", data, *exact).exit_code == 0
    out = tmp_path / "out"
    result = invoke("run", "canon17", "--data", data, "--out", out, "--recipe", "batch")
    assert result.exit_code == 0, result.output
    row = json.loads((out / "summary.json").read_text())["cells"][0]
    assert row["bound_fx"] is None
    assert abs(row["error_fx_percent"]) < 1e-4


def test_folders_without_cells(invoke: Invoke, simulated: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for data, words in ((tmp_path / "none", "is not a folder"), (tmp_path, "no sub-folder")):
        assert_mistake(invoke("run", "canon17", "--data", data, "--out", out), words)
    result = invoke("run", "canon17", "--data", simulated, "--cells", "z3f3", "--out", out)
    assert_mistake(result, "has no cell 'z3f3'; it has z0f9, z1f9, z7f0.")
    assert not out.exists()


def test_unusable_out(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = invoke("run", "canon17", *OPTIONS, "--out", tmp_path / "file" / "run")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith(f"Error: {tmp_path / 'file' / 'run'} cannot")


def test_a_video_becomes_intrinsics(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error against the bound for the noise that corners have in this video."""
    catalogue, data, out = (tmp_path / name for name in ("catalogue", "data", "out"))
    catalogue.mkdir()
    (catalogue / "camera.yaml").write_text(SMALL_CAMERA)
    (catalogue / "board.yaml").write_text(COARSE_BOARD)
    rig = ("canon17", "--camera", "small")
    options = ("--cells", "z7f7", "--video", "--views", 10, "--jobs", 1)
    result = invoke("--catalogue", catalogue, "simulate", *rig, "--out", data, *options)
    assert result.exit_code == 0, result.output

    command = ("--catalogue", catalogue, "run", *rig, "--data", data, "--out", out)
    command += ("--recipe", "batch", "--jobs", 1)
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    workspace = Workspace(out)
    record = json.loads(workspace.result("z7f7").read_text())
    assert record["status"] == "ok"
    truth = record["truth"]
    for name in ("fx", "fy"):
        error = record["intrinsics"][name] - truth["intrinsics"][name]
        assert abs(error) < 3 * truth["bound"][name]

    shown = workspace.data("z7f7")
    chosen = json.loads((shown / "keyframes.json").read_text())
    answer = read_recording_truth(data / "z7f7")
    assert answer is not None
    assert answer.pose[chosen["frames"]].tolist() == list(range(10))
    for name in ("detections.png", "coverage.png", "contact.png"):
        assert (shown / name).read_bytes().startswith(b"\x89PNG")
    (warning,) = (line for line in result.stderr.splitlines() if line.startswith("z7f7: "))
    assert warning.startswith("z7f7: not covered: top-left corner, ")
    assert "; too few views: parallel to the sensor, " in warning

    def read(*_: object) -> None:
        raise AssertionError("frames were read")

    monkeypatch.setattr(frames.FrameSource, "frames", read)
    before = contents(out)
    again = invoke(*command)
    assert again.exit_code == 0, again.output
    assert "1 results were there already" in again.stderr
    assert again.stderr.splitlines().count(warning) == 1
    assert contents(out) == before


def test_an_experiment_at_infinity_is_in_the_table(
    invoke: Invoke, simulated: Path, tmp_path: Path
) -> None:
    """Without any other there is no table at all."""
    data, out = tmp_path / "data", tmp_path / "out"
    for cell in ("z0f9", "z1f9"):
        shutil.copytree(simulated / cell, data / cell)
    setting = data / "z1f9" / "experiment.yaml"
    setting.write_text(re.sub("fd_m: .*", "fd_m: .inf", setting.read_text()))
    command = ("run", "canon17", "--data", data, "--recipe", "batch", "--out", out)
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    table = read_table(out / "lut.json")
    assert table.names == ("z0f9", "z1f9")
    assert np.isinf(table.fd_m[1])
    assert (out / "report.html").exists()
    shutil.rmtree(data / "z0f9")
    shutil.rmtree(out / "cells" / "z0f9")
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    assert "no lut.json: " in result.stderr
    assert "1 cell ok, 0 failed" in result.stdout
    for name in ("lut.json", "explorer.html", "lut"):
        assert not (out / name).exists(), "an old one would speak of other results"
