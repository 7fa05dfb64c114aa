"""Many cells calibrated side by side, each with one or more recipes.

A cell is simulated if it is not a recorded one, read back like any experiment, and
calibrated; what is on disk already and made from the same inputs is taken from there.
Footage has become an experiment before (``recordings``), or its job says why it has not.
The parent alone writes results, so a worker that dies leaves nothing behind, and a cell
that fails is a record like any other: the others go on. The parts of the run's page are made
in between, as soon as there is a result.

A worker of a cluster need not see the parent's disk: the files of an experiment travel to
it with the job, those of a simulated one travel back.
"""

from __future__ import annotations

import logging
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from influx_wrap.calibrate.result import CalibrationError
from influx_wrap.compute.cluster import Cluster
from influx_wrap.compute.processes import WorkerDied, parallel
from influx_wrap.formats import experiment as files
from influx_wrap.formats.files import make_folder, write_bytes
from influx_wrap.formats.view_names import VIEW_NAMES
from influx_wrap.model.record import CellRecord
from influx_wrap.observe.journal import footage_hash
from influx_wrap.observe.stretches import SeenStretch
from influx_wrap.run.afar import NotHere, SentStretch, is_doubtful, look_afar, send_stretch
from influx_wrap.run.cell import CellOutcome, calibrate_cell, failed, made_from_job
from influx_wrap.run.jobs import Job
from influx_wrap.run.observe import (
    FootageAnswer,
    FootageTask,
    FootageWork,
    StretchTask,
    work_on_footage,
)
from influx_wrap.run.page import PageParts, PageTask, Shown, show_experiment
from influx_wrap.run.workspace import Workspace

log = logging.getLogger(__name__)

Work: TypeAlias = Generator[tuple[Job, list[CellOutcome] | WorkerDied], None, None]
"""Every job with its outcomes, or how its worker died."""

# An experiment is complete when the last of them is there.
SENT = (*files.FILES[1:], VIEW_NAMES, files.TRUTH, files.EXPERIMENT)


def run_campaign(
    jobs: Sequence[Job],
    stores: Mapping[str, Workspace],
    *,
    processes: int,
    report: Callable[[CellOutcome], None],
    cluster: Cluster | None = None,
    page: PageParts | None = None,
    footage: FootageWork | None = None,
) -> dict[str, dict[str, CellRecord]]:
    """Records by recipe and cell, cells in the order of ``jobs``.

    ``stores`` has a workspace for every recipe's name. ``report`` hears of every outcome
    as it comes, those on disk first. The work is done by ``processes`` on this machine, or
    by the workers of ``cluster``; no answer depends on either. ``page`` is given its parts,
    if they can be made on the way; its workspace is one of ``stores``. ``footage`` has the jobs
    whose experiments are to be made first, by the same workers.
    """
    log.info("%d cells with %s", len(jobs), ", ".join(stores))
    records: dict[str, dict[str, CellRecord]] = {name: {} for name in stores}
    remaining: list[Job] = []
    resumed: list[str] = []

    def keep(outcome: CellOutcome) -> None:
        _log(outcome)
        stores[outcome.recipe].save(outcome.record)
        records[outcome.recipe][outcome.cell] = outcome.record
        report(outcome)

    def admitted(job: Job) -> Job | None:
        """A job with the recipes that are still to be done; None if all have been."""
        pending = []
        if job.failure is not None:
            for recipe in job.recipes:
                keep(failed(job, recipe, job.failure))
            return None
        for recipe in job.recipes:
            record = stores[recipe.name].finished(job.cell, made_from_job(job, recipe))
            if record is None:
                pending.append(recipe)
            else:
                records[recipe.name][job.cell] = record
                resumed.append(job.cell)
                report(CellOutcome(job.cell, recipe.name, record, resumed=True))
        return replace(job, recipes=tuple(pending)) if pending else None

    waiting = set() if footage is None else footage.cells
    for job in jobs:
        if job.cell not in waiting and (ready := admitted(job)) is not None:
            remaining.append(ready)
    where = f"{processes} processes" if cluster is None else "a cluster"
    n_left = len(remaining) + len(waiting)
    log.info("%d cells to calibrate on %s", n_left, where)
    work: Work
    if any(job.engine.drives_processes for job in remaining):
        work = ((job, calibrate_cell(job)) for job in remaining)
    elif cluster is None:
        work = _here(remaining, processes, page, resumed, footage, admitted)
    else:
        work = _afar(remaining, cluster, footage, admitted)
    with closing(work) as finished:
        for job, outcomes in finished:
            if isinstance(outcomes, WorkerDied):
                outcomes = [failed(job, recipe, _death(outcomes)) for recipe in job.recipes]
            for outcome in outcomes:
                keep(outcome)
    return {
        name: {job.cell: by_cell[job.cell] for job in jobs} for name, by_cell in records.items()
    }


Task: TypeAlias = Job | PageTask | FootageTask


class _Tasks(Iterator[Task]):
    """Tasks in their order, behind ``urgent`` ones, which may be added at any time."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self.urgent: deque[Task] = deque()
        self._others = iter(tasks)

    def __next__(self) -> Task:
        return self.urgent.popleft() if self.urgent else next(self._others)


def work_here(task: Task) -> list[CellOutcome] | Shown | FootageAnswer:
    """What a worker on this machine does."""
    match task:
        case Job():
            return calibrate_cell(task)
        case PageTask():
            return show_experiment(task)
        case _:
            return work_on_footage(task)


def _here(
    jobs: Sequence[Job],
    processes: int,
    page: PageParts | None,
    resumed: Sequence[str],
    footage: FootageWork | None,
    admitted: Callable[[Job], Job | None],
) -> Work:
    """Every job with its outcomes, worked on by processes.

    They look at footage as well, and calibrate its experiments as soon as these are made; and they
    make the parts of the page: that of a job at once, so that the last job leaves no others, and
    those of results that were there already when a worker has nothing else to do.
    """
    of_footage = () if footage is None else footage.tasks()
    others = [] if page is None else [page.task(cell) for cell in resumed]
    if not jobs and footage is None:
        return
    tasks = _Tasks(chain(jobs, of_footage, others))
    with closing(parallel(work_here, tasks, processes)) as finished:
        for task, answer in finished:
            if isinstance(task, PageTask):
                # The part of a worker that died is made with the page, which says so.
                if page is not None and isinstance(answer, Shown):
                    page.made[task] = answer
                continue
            if not isinstance(task, Job):
                assert footage is not None
                assert not isinstance(answer, list | Shown)
                _take(footage, task, answer, tasks, admitted)
                continue
            assert isinstance(answer, list | WorkerDied)
            yield task, answer
            # The result has been written by now.
            if page is not None:
                tasks.urgent.append(page.task(task.cell))


def _take(
    footage: FootageWork,
    task: FootageTask,
    answer: FootageAnswer | WorkerDied,
    tasks: _Tasks,
    admitted: Callable[[Job], Job | None],
) -> None:
    """What came of footage, and what is to be done next because of it."""
    following = footage.take(task, answer)
    if isinstance(following, Job):
        following = admitted(following)
    if following is not None:
        tasks.urgent.append(following)


@dataclass(frozen=True)
class Parcel:
    """A job for another machine, with those files of its experiment that are there."""

    job: Job
    contents: Mapping[str, bytes]


def pack_job(job: Job) -> Parcel:
    """A job as it is sent: a simulated one needs nothing but its settings."""
    return Parcel(job, {} if job.simulation is not None else _contents(job.folder))


def work_on_parcel(parcel: Parcel) -> tuple[list[CellOutcome], Mapping[str, bytes]]:
    """What a worker of a cluster does: returns outcomes, and the files if it made them."""
    job = parcel.job
    with tempfile.TemporaryDirectory(prefix="influx-") as place:
        folder = Path(place) / job.cell
        make_folder(folder)
        for name, data in parcel.contents.items():
            write_bytes(folder / name, data)
        outcomes = calibrate_cell(replace(job, folder=folder))
        return outcomes, _contents(folder) if job.simulation is not None else {}


def work_afar(task: Parcel | SentStretch) -> object:
    """What a worker of a cluster does."""
    return work_on_parcel(task) if isinstance(task, Parcel) else look_afar(task)


class _Parcels(Iterator[Parcel | SentStretch]):
    """Tasks as they are sent. Those that only this machine can do are done on the way."""

    def __init__(self, tasks: _Tasks, here: Callable[[FootageTask], None]) -> None:
        self._tasks, self._here = tasks, here
        self._content: dict[Path, str] = {}
        self._unseen: set[Path] = set()

    def is_unseen(self, task: StretchTask) -> None:
        """A worker does not see the video."""
        self._unseen.add(task.stretch.source.path)

    def __next__(self) -> Parcel | SentStretch:
        for task in self._tasks:
            if isinstance(task, Job):
                return pack_job(task)
            if isinstance(task, StretchTask):
                path = task.stretch.source.path
                content = self._content.setdefault(path, footage_hash(path))
                sent = send_stretch(task, content, is_seen=path not in self._unseen)
                if sent is not None:
                    return sent
            assert not isinstance(task, PageTask)
            self._here(task)
        raise StopIteration


def _afar(
    jobs: Sequence[Job],
    cluster: Cluster,
    footage: FootageWork | None,
    admitted: Callable[[Job], Job | None],
) -> Work:
    """Every job with its outcomes, worked on by a cluster, which looks at footage as well."""
    tasks = _Tasks(chain(jobs, () if footage is None else footage.tasks()))

    def take(task: FootageTask, answer: FootageAnswer | WorkerDied) -> None:
        assert footage is not None
        _take(footage, task, answer, tasks, admitted)

    parcels = _Parcels(tasks, lambda task: take(task, work_on_footage(task)))
    with closing(cluster.parallel(work_afar, parcels)) as finished:
        for sent, answer in finished:
            if isinstance(sent, SentStretch):
                task = sent.task
                if isinstance(answer, NotHere):
                    parcels.is_unseen(task)
                    tasks.urgent.append(task)
                elif is_doubtful(sent, answer):
                    take(task, work_on_footage(task))
                else:
                    assert isinstance(answer, SeenStretch)
                    take(task, answer)
                continue
            job = sent.job
            if isinstance(answer, WorkerDied):
                yield job, answer
                continue
            assert isinstance(answer, tuple)
            outcomes, made = answer
            if job.simulation is None and _is_unreadable(outcomes):
                # What is wrong with files can be said only where they are.
                outcomes = calibrate_cell(job)
            if made:
                make_folder(job.folder)
            for name, data in made.items():
                write_bytes(job.folder / name, data)
            yield job, outcomes


def _contents(folder: Path) -> dict[str, bytes]:
    contents = {}
    for name in SENT:
        with suppress(OSError):
            contents[name] = (folder / name).read_bytes()
    return contents


def _is_unreadable(outcomes: Sequence[CellOutcome]) -> bool:
    failures = [outcome.record.failure for outcome in outcomes]
    return any(failure is not None and failure.stage == "input" for failure in failures)


def _death(death: WorkerDied) -> CalibrationError:
    if death.exitcode is None:
        return CalibrationError(
            "process",
            f"no worker of the cluster finished this cell: {death.reason}",
            "They may be out of memory or disk: see their logs, and run the same command again.",
        )
    return CalibrationError(
        "process",
        f"the process that worked on this cell ended (exit code {death.exitcode})",
        "It may have run out of memory: run the same command again with fewer --jobs.",
    )


def _log(outcome: CellOutcome) -> None:
    failure = outcome.record.failure
    answer = "ok" if failure is None else f"failed: {failure.stage}: {failure.reason}"
    log.info("%s %s %.2f s: %s", outcome.cell, outcome.recipe, outcome.seconds, answer)
    if outcome.details:
        log.info(outcome.details)
