"""Campaigns: what goes wrong in one cell is that cell's record, and nothing else."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from influx_wrap.calibrate.recipe import RECIPES
from influx_wrap.compute.processes import WorkerDied
from influx_wrap.engines import native
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.truth import Noise
from influx_wrap.plan import make_plan, select_cells
from influx_wrap.run import campaign
from influx_wrap.run.campaign import run_campaign
from influx_wrap.run.cell import CellOutcome
from influx_wrap.run.jobs import Job, recorded_jobs, simulated_jobs
from influx_wrap.run.workspace import Workspace
from influx_wrap.synth.film.simulation import simulations

BATCH = RECIPES["batch"]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "run")


@pytest.fixture
def jobs(workspace: Workspace) -> list[Job]:
    catalogue = load_catalogue()
    camera = catalogue.camera("arri-alexa-mini")
    plan = make_plan(catalogue.lens("canon17"), camera, catalogue.boards.values())
    chosen = simulations(plan, select_cells(plan, "z0f9,z1f9"), Noise(), seed=0)
    return simulated_jobs(chosen, [BATCH], workspace)


def in_this_process(
    function: Callable[[Job], list[CellOutcome]], tasks: Sequence[Job], processes: int
) -> Iterator[tuple[Job, list[CellOutcome]]]:
    for task in tasks:
        yield task, function(task)


def run(
    jobs: list[Job], workspace: Workspace
) -> tuple[dict[str, dict[str, Any]], list[CellOutcome]]:
    heard: list[CellOutcome] = []
    records = run_campaign(jobs, {"batch": workspace}, processes=1, report=heard.append)
    return {cell: record.as_dict() for cell, record in records["batch"].items()}, heard


def test_unexpected_errors_are_recorded_and_logged(
    jobs: list[Job], workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def calibrate(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(campaign, "parallel", in_this_process)
    monkeypatch.setattr(native, "calibrate", calibrate)
    with workspace.open():
        records, heard = run(jobs, workspace)
    assert [outcome.cell for outcome in heard] == ["z0f9", "z1f9"]
    for cell, record in records.items():
        assert record["status"] == "failed"
        assert record["reason"] == "unexpected ZeroDivisionError: division by zero"
        assert record["truth"]["bound"]["fx"] > 0
        assert workspace.failure(cell).exists()
    assert "Traceback" in workspace.log.read_text()
    assert not any("Traceback" in str(record) for record in records.values())


def test_a_dead_worker_is_recorded(
    jobs: list[Job], workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parallel(
        function: Callable[[Job], list[CellOutcome]], tasks: Sequence[Job], processes: int
    ) -> Iterator[tuple[Job, list[CellOutcome] | WorkerDied]]:
        yield tasks[1], function(tasks[1])
        yield tasks[0], WorkerDied(-9)

    monkeypatch.setattr(campaign, "parallel", parallel)
    records, heard = run(jobs, workspace)
    assert [outcome.cell for outcome in heard] == ["z1f9", "z0f9"]
    assert list(records) == ["z0f9", "z1f9"], "in the order of the jobs"
    assert "exit code -9" in records["z0f9"]["reason"]
    assert "--jobs" in records["z0f9"]["advice"]
    assert records["z0f9"]["cell"]["lfl_mm"] == 17
    assert records["z0f9"]["truth"]["intrinsics"]["fx"] > 2000
    assert records["z1f9"]["status"] == "ok"

    monkeypatch.setattr(campaign, "parallel", in_this_process)
    records, heard = run(jobs, workspace)
    assert [(outcome.cell, outcome.resumed) for outcome in heard] == [
        ("z1f9", True),
        ("z0f9", False),
    ]
    assert all(record["status"] == "ok" for record in records.values())


def test_recorded_cells_are_sorted_by_number(tmp_path: Path, workspace: Workspace) -> None:
    for name in ("z10f0", "z2f10", "z2f9", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "experiment.yaml").touch()
    (tmp_path / "empty").mkdir()
    found = recorded_jobs(tmp_path, "canon17", "all", [BATCH], 0, workspace)
    assert [job.cell for job in found] == ["b", "z2f9", "z2f10", "z10f0"]
    found = recorded_jobs(tmp_path, "canon17", "z10f0, b", [BATCH], 0, workspace)
    assert [job.cell for job in found] == ["b", "z10f0"]
