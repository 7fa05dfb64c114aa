"""Videos of a run, divided among processes: the experiments of one that works on them alone."""

from pathlib import Path
from typing import Any

import pytest

from influx_wrap.calibrate.recipe import RECIPES
from influx_wrap.compute.processes import WorkerDied
from influx_wrap.errors import InputError
from influx_wrap.observe.footage import JOURNAL
from influx_wrap.observe.stretches import Stretch, look_at_stretch
from influx_wrap.run.jobs import Job, recorded_jobs
from influx_wrap.run.listener import RunListener
from influx_wrap.run.observe import (
    ALL_FRAMES,
    ExperimentTask,
    FootageSettings,
    FootageWork,
    StretchTask,
    observe_jobs,
    work_on_footage,
)
from influx_wrap.run.pipeline import calibrate_jobs
from influx_wrap.run.recordings import DETECTIONS
from influx_wrap.run.workspace import Workspace
from tests.films import rig_footage, write_empty_film, write_film, write_rig

CELLS = ("z1f1", "z2f1", "z3f1")


@pytest.fixture(scope="module")
def footage(tmp_path_factory: pytest.TempPathFactory) -> FootageSettings:
    folder = tmp_path_factory.mktemp("catalogue")
    write_rig(folder)
    return rig_footage(folder)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole video (z1f1), one that ends early (z2f1), and one without a board (z3f1)."""
    folder = tmp_path_factory.mktemp("data")
    write_film(folder / "z1f1")
    cut = write_film(folder / "z2f1", seed=1)
    cut.write_bytes(cut.read_bytes()[: int(0.8 * cut.stat().st_size)])
    write_empty_film(folder / "z3f1")
    return folder


def jobs_of(data: Path, root: Path, cells: str = "all") -> tuple[list[Job], Workspace]:
    workspace = Workspace(root)
    return recorded_jobs(data, "canon17", cells, [RECIPES["batch"]], 0, workspace), workspace


def contents(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


class Heard(RunListener):
    """What is told of a run."""

    def __init__(self) -> None:
        self.warned: list[str] = []
        self.frames: list[tuple[int, int | None]] = []

    def progress(self, work: str, done: int, total: int | None) -> None:
        if work == ALL_FRAMES:
            self.frames.append((done, total))

    def warn(self, subject: str, text: str) -> None:
        self.warned.append(f"{subject}: {text}")


def test_the_same_experiments(data: Path, footage: FootageSettings, tmp_path: Path) -> None:
    """By a pool of two, and one recording after the other, and once more when all is there."""
    alone, told = Heard(), Heard()
    jobs, workspace = jobs_of(data, tmp_path / "alone")
    stores = {"batch": workspace}
    observed = observe_jobs(jobs, footage, 1, alone)
    calibrate_jobs(observed, stores, 1, RunListener(), None)
    jobs, workspace = jobs_of(data, tmp_path / "pool")
    stores = {"batch": workspace}
    with FootageWork(jobs, footage, told) as work:
        assert work.cells == set(CELLS)
    records = calibrate_jobs(jobs, stores, 2, told, None, footage=footage)["batch"]
    assert contents(tmp_path / "pool") == contents(tmp_path / "alone")
    assert sorted(told.warned) == sorted(alone.warned)
    assert any("z2f1" in text and "readable up to" in text for text in told.warned)
    statuses = {cell: record.failure is None for cell, record in records.items()}
    assert statuses == {"z1f1": True, "z2f1": True, "z3f1": False}
    assert [done for done, _ in told.frames] == sorted(done for done, _ in told.frames)

    # What is whole is not looked at again.
    again, (whole,) = Heard(), [job for job in jobs if job.cell == "z1f1"]
    calibrate_jobs([whole], stores, 1, again, None, footage=footage)
    assert not again.frames
    assert contents(tmp_path / "pool") == contents(tmp_path / "alone")


def test_what_a_process_costs_that_dies(
    data: Path, footage: FootageSettings, tmp_path: Path
) -> None:
    """Its recording, told in a sentence; what others have found of it is kept."""
    jobs, _ = jobs_of(data, tmp_path / "run", "z1f1,z3f1")
    with FootageWork(jobs, footage, RunListener()) as work:
        tasks = work.tasks()
        first, second = next(tasks), next(tasks)
        assert isinstance(first, StretchTask)
        assert (first.cell, first.stretch.start, first.stretch.stop) == ("z1f1", 0, 72)
        assert work.take(first, work_on_footage(first)) is None
        failed = work.take(second, WorkerDied(-9))
        assert isinstance(failed, Job)
        assert isinstance(failed.failure, InputError)
        assert "from frame 72 on: the process that looked at it ended" in str(failed.failure)
        others = list(tasks)
        assert {task.cell for task in others} == {"z3f1"}
        following: list[Any] = [work.take(task, work_on_footage(task)) for task in others]
        assert following[:-1] == [None] * (len(others) - 1)
        assert isinstance(following[-1], ExperimentTask)
        failed = work.take(following[-1], work_on_footage(following[-1]))
        assert isinstance(failed, Job)
        assert "is in none of the" in str(failed.failure)
    journal = tmp_path / "run" / "data" / "z1f1" / DETECTIONS / JOURNAL
    assert [path.name for path in journal.glob("*.npz")] == ["000000.npz"]
    with FootageWork(jobs[:1], footage, RunListener()) as work:
        starts = [task.stretch.start for task in work.tasks() if isinstance(task, StretchTask)]
    assert starts[:2] == [72, 144]


def test_a_recording_that_somebody_else_looks_at(
    data: Path, footage: FootageSettings, tmp_path: Path
) -> None:
    jobs, _ = jobs_of(data, tmp_path / "run", "z1f1")
    with (
        FootageWork(jobs, footage, RunListener()),
        FootageWork(jobs, footage, RunListener()) as other,
    ):
        assert other.cells == set()
        (job,) = observe_jobs(jobs, footage, 1, RunListener())
        assert "in use by another detect" in str(job.failure)


def test_errors_come_back(data: Path, footage: FootageSettings, tmp_path: Path) -> None:
    """In place of what was found, as they are not to end a worker."""
    jobs, _ = jobs_of(data, tmp_path / "run", "z1f1")
    with FootageWork(jobs, footage, RunListener()) as work:
        task = next(work.tasks())
        assert isinstance(task, StretchTask)
        there = task.stretch
    gone = data / "z1f1" / "clip.mp4"
    away = gone.rename(gone.with_suffix(".away"))
    try:
        answer = look_at_stretch(Stretch(**vars(there)))
    finally:
        away.rename(gone)
    assert isinstance(answer, InputError)
    assert str(gone) in str(answer)
