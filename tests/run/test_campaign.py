"""Campaigns: what goes wrong in one cell is that cell's record, and nothing else."""

from collections.abc import Callable, Iterable, Iterator
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
from influx_wrap.run.page import PageParts, PageTask, write_report
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
    function: Callable[[Job], list[CellOutcome]], tasks: Iterable[Job], processes: int
) -> Iterator[tuple[Job, list[CellOutcome]]]:
    for task in tasks:
        yield task, function(task)


def run(
    jobs: list[Job], workspace: Workspace, page: PageParts | None = None
) -> tuple[dict[str, dict[str, Any]], list[CellOutcome]]:
    heard: list[CellOutcome] = []
    records = run_campaign(jobs, {"batch": workspace}, processes=1, report=heard.append, page=page)
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
        function: Callable[[Job], list[CellOutcome]], tasks: Iterable[Job], processes: int
    ) -> Iterator[tuple[Job, list[CellOutcome] | WorkerDied]]:
        first, second = tasks
        yield second, function(second)
        yield first, WorkerDied(-9)

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


def test_parts_of_the_page_are_made_on_the_way(
    jobs: list[Job], workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def parallel(
        function: Callable[[object], object], tasks: Iterable[Job | PageTask], processes: int
    ) -> Iterator[tuple[object, object]]:
        for task in tasks:
            order.append(f"{type(task).__name__} {task.cell}")
            died = task.cell == "z1f9" and isinstance(task, PageTask)
            yield task, WorkerDied(-9) if died else function(task)

    monkeypatch.setattr(campaign, "parallel", parallel)
    run(jobs[:1], workspace)
    parts = PageParts(workspace, None)
    run(jobs, workspace, parts)
    assert order == ["Job z0f9", "Job z1f9", "PageTask z1f9", "PageTask z0f9"]
    assert [task.cell for task in parts.made] == ["z0f9"]
    done: list[int] = []
    page = write_report(
        workspace, None, made=parts.made, progress=lambda n, _: done.append(n)
    ).path.read_bytes()
    assert done == [2], "one of them was made on the way"
    assert write_report(workspace, None).path.read_bytes() == page


def test_recorded_cells_are_sorted_by_number(tmp_path: Path, workspace: Workspace) -> None:
    for name in ("z10f0", "z2f10", "z2f9", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "experiment.yaml").touch()
    (tmp_path / "empty").mkdir()
    found = recorded_jobs(tmp_path, "canon17", "all", [BATCH], 0, workspace)
    assert [job.cell for job in found] == ["b", "z2f9", "z2f10", "z10f0"]
    found = recorded_jobs(tmp_path, "canon17", "z10f0, b", [BATCH], 0, workspace)
    assert [job.cell for job in found] == ["b", "z10f0"]
