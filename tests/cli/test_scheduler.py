"""``--scheduler``: a run on a cluster that is lost in the middle goes on with the same command."""

import os
import signal
import subprocess
import time
from pathlib import Path

from tests.cli.conftest import Invoke, command_line
from tests.compute.dask_cluster import dask_cluster

CELLS = tuple(f"z{zoom}f{focus}" for zoom in range(4) for focus in (8, 9))
OPTIONS = ("--cells", ",".join(CELLS), "--recipe", "batch")


def start(*arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command_line("run", "canon17", *OPTIONS, *arguments),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def n_done(root: Path) -> int:
    return len(list(root.glob("cells/*/result.json")))


def wait_for_results(n: int, root: Path, process: "subprocess.Popen[str]") -> None:
    while n_done(root) < n:
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.005)


def test_interrupted_then_without_scheduler_then_local(tmp_path: Path, invoke: Invoke) -> None:
    root, folder = tmp_path / "run", tmp_path / "dask"
    folder.mkdir()
    with dask_cluster(folder, 1) as (address, scheduler):
        process = start("--out", root, "--scheduler", address)
        wait_for_results(1, root, process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 130, errors
        assert "Interrupted. Resume with the same command." in errors
        kept = n_done(root)
        assert kept < len(CELLS)

        process = start("--out", root, "--scheduler", address)
        wait_for_results(kept + 1, root, process)
        os.kill(scheduler.pid, signal.SIGKILL)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 2, errors
        last = errors.strip().splitlines()[-1]
        assert last.startswith(f"Error: the scheduler at {address} does not answer any more.")
        assert "the same command goes on" in last
        assert "Traceback" not in errors
        assert kept < n_done(root) < len(CELLS)
        kept = n_done(root)
    result = invoke("run", "canon17", *OPTIONS, "--out", root, "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert f"{kept} results were there already" in result.stderr


def test_no_address(tmp_path: Path, invoke: Invoke) -> None:
    for command in ("run", "compare"):
        result = invoke(
            command, "canon17", "--cells", "z0f9", "--out", tmp_path / "x", "--scheduler", "here"
        )
        assert result.exit_code == 2
        assert "Error: 'here' is not the address of a scheduler" in result.stderr
        assert not (tmp_path / "x").exists()
