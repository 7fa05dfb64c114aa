"""Many cells calibrated side by side, each with one or more recipes.

A cell is simulated if it is not a recorded one, read back like any experiment, and
calibrated; what is on disk already and made from the same inputs is taken from there.
Footage has become an experiment before (``recordings``), or its job says why it has not.
The parent alone writes results, so a worker that dies leaves nothing behind, and a cell
that fails is a record like any other: the others go on.

A worker of a cluster need not see the parent's disk: the files of an experiment travel to
it with the job, those of a simulated one travel back.
"""

from __future__ import annotations

import logging
import math
import re
import tempfile
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from influx_wrap.calibrate.bound import cramer_rao
from influx_wrap.calibrate.recipe import Recipe
from influx_wrap.calibrate.result import CalibrationError
from influx_wrap.compute.cluster import Cluster
from influx_wrap.compute.processes import WorkerDied, parallel
from influx_wrap.compute.provenance import provenance
from influx_wrap.engines.engine import Engine
from influx_wrap.engines.native import NativeEngine
from influx_wrap.errors import InputError
from influx_wrap.formats import experiment as files
from influx_wrap.formats.experiment import StoredExperiment, read_experiment
from influx_wrap.formats.files import file_hash, make_folder, read_json, write_bytes
from influx_wrap.formats.influx import lens_settings, write_lens_settings
from influx_wrap.formats.recording_yaml import RECORDING, read_setting
from influx_wrap.model.experiment import Plan
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.optics import thin_lens_focal_px
from influx_wrap.run.workspace import Workspace
from influx_wrap.synth.film.simulation import Simulation

log = logging.getLogger(__name__)

Json = dict[str, Any]

# An experiment is complete when the last of them is there.
FILES = (files.TARGET, files.COORDS, files.SUCCESSES, files.TRUTH, files.EXPERIMENT)


@dataclass(frozen=True)
class Job:
    """One cell: where its files are, how they are made if they are not, what to do with them.

    ``recording`` is the folder of the footage they are made from, with the run's ``camera``;
    ``failure`` says why they could not be.
    """

    cell: str
    lens: str
    folder: Path
    simulation: Simulation | None
    recipes: tuple[Recipe, ...]
    seed: int
    recording: Path | None = None
    failure: Exception | None = None
    camera: str | None = None
    engine: Engine = field(default_factory=NativeEngine)


@dataclass(frozen=True)
class Outcome:
    """What one recipe gave for one cell; ``details`` are for the log."""

    cell: str
    recipe: str
    record: Json
    seconds: float = 0.0
    resumed: bool = False
    details: str | None = None


def simulated_jobs(
    simulations: Iterable[Simulation], recipes: Sequence[Recipe], workspace: Workspace
) -> list[Job]:
    """A job for every simulation, its files in the workspace."""
    return [
        Job(s.cell.name, s.lens, workspace.data(s.cell.name), s, tuple(recipes), s.seed)
        for s in simulations
    ]


def recorded_jobs(
    folder: Path,
    lens: str,
    cells: str,
    recipes: Sequence[Recipe],
    seed: int,
    workspace: Workspace,
) -> list[Job]:
    """A job for every sub-folder with an ``experiment.yaml`` or a ``recording.yaml``.

    They come zoom by zoom; what is made from a recording goes into the workspace. ``cells``
    names some of them (``z3f2,z0f9``), or is ``all``.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; --data is a folder with one folder per cell.")
    experiments = {path.parent.name for path in folder.glob(f"*/{files.EXPERIMENT}")}
    footage = {path.parent.name for path in folder.glob(f"*/{RECORDING}")} - experiments
    found = experiments | footage
    if not found:
        raise InputError(
            f"{folder} has no sub-folder with an {files.EXPERIMENT} or a {RECORDING}: there is "
            "no cell in it. Make one with influx-calib simulate."
        )
    wanted = set(found) if cells == "all" else {name.strip() for name in cells.split(",")}
    known = sorted(found, key=by_number)
    for name in wanted:
        if name not in found:
            raise InputError(f"{folder} has no cell {name!r}; it has {', '.join(known)}.")
    chosen = [name for name in known if name in wanted]
    return [
        Job(name, lens, workspace.data(name), None, tuple(recipes), seed, folder / name)
        if name in footage
        else Job(name, lens, folder / name, None, tuple(recipes), seed)
        for name in chosen
    ]


def by_number(name: str) -> list[str | int]:
    """A key that sorts z2f10 after z2f9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def claim(workspace: Workspace, plan: Plan) -> None:
    """Write the plan into a workspace, unless the workspace is another plan's."""
    if workspace.plan.exists() and read_json(workspace.plan).values != lens_settings(plan):
        raise InputError(
            f"{workspace.root} holds a run with another plan (another lens or catalogue). "
            "Choose another --out."
        )
    write_lens_settings(workspace.plan, plan)


def run_campaign(
    jobs: Sequence[Job],
    stores: Mapping[str, Workspace],
    *,
    processes: int,
    report: Callable[[Outcome], None],
    cluster: Cluster | None = None,
) -> dict[str, dict[str, Json]]:
    """Records by recipe and cell, cells in the order of ``jobs``.

    ``stores`` has a workspace for every recipe's name. ``report`` hears of every outcome
    as it comes, those on disk first. The work is done by ``processes`` on this machine, or
    by the workers of ``cluster``; no answer depends on either.
    """
    log.info("%d cells with %s", len(jobs), ", ".join(stores))
    records: dict[str, dict[str, Json]] = {name: {} for name in stores}
    remaining = []

    def keep(outcome: Outcome) -> None:
        _log(outcome)
        stores[outcome.recipe].save(outcome.cell, outcome.record)
        records[outcome.recipe][outcome.cell] = outcome.record
        report(outcome)

    for job in jobs:
        pending = []
        if job.failure is not None:
            for recipe in job.recipes:
                keep(_failed(job, recipe, job.failure))
            continue
        for recipe in job.recipes:
            record = stores[recipe.name].finished(job.cell, _provenance(job, recipe))
            if record is None:
                pending.append(recipe)
            else:
                records[recipe.name][job.cell] = record
                report(Outcome(job.cell, recipe.name, record, resumed=True))
        if pending:
            remaining.append(replace(job, recipes=tuple(pending)))
    where = f"{processes} processes" if cluster is None else "a cluster"
    log.info("%d cells to calibrate on %s", len(remaining), where)
    if any(job.engine.drives_processes for job in remaining):
        work = _here(remaining)
    elif cluster is None:
        work = parallel(_work, remaining, processes)
    else:
        work = _afar(remaining, cluster)
    with closing(work) as finished:
        for job, outcomes in finished:
            if isinstance(outcomes, WorkerDied):
                outcomes = [_failed(job, recipe, _death(outcomes)) for recipe in job.recipes]
            for outcome in outcomes:
                keep(outcome)
    return {
        name: {job.cell: by_cell[job.cell] for job in jobs} for name, by_cell in records.items()
    }


def _work(job: Job) -> list[Outcome]:
    """What a worker does with a cell."""
    with threadpool_limits(limits=1):
        try:
            experiment = _obtain(job)
            known = _known(job, experiment)
        except Exception as error:
            return [_failed(job, recipe, error) for recipe in job.recipes]
        return [_calibrate(job, recipe, experiment, known) for recipe in job.recipes]


def _here(
    jobs: Sequence[Job],
) -> Generator[tuple[Job, list[Outcome] | WorkerDied], None, None]:
    """Every job with its outcomes, one by one in this process."""
    for job in jobs:
        yield job, _work(job)


@dataclass(frozen=True)
class Parcel:
    """A job for another machine, with those files of its experiment that are there."""

    job: Job
    contents: Mapping[str, bytes]


def pack(job: Job) -> Parcel:
    """A job as it is sent: a simulated one needs nothing but its settings."""
    return Parcel(job, {} if job.simulation is not None else _contents(job.folder))


def work_on_parcel(parcel: Parcel) -> tuple[list[Outcome], Mapping[str, bytes]]:
    """What a worker of a cluster does: returns outcomes, and the files if it made them."""
    job = parcel.job
    with tempfile.TemporaryDirectory(prefix="influx-") as place:
        folder = Path(place) / job.cell
        make_folder(folder)
        for name, data in parcel.contents.items():
            write_bytes(folder / name, data)
        outcomes = _work(replace(job, folder=folder))
        return outcomes, _contents(folder) if job.simulation is not None else {}


def _afar(
    jobs: Sequence[Job], cluster: Cluster
) -> Generator[tuple[Job, list[Outcome] | WorkerDied], None, None]:
    """Every job with its outcomes, worked on by a cluster."""
    with closing(cluster.parallel(work_on_parcel, map(pack, jobs))) as finished:
        for parcel, answer in finished:
            job = parcel.job
            if isinstance(answer, WorkerDied):
                yield job, answer
                continue
            outcomes, made = answer
            if job.simulation is None and _is_unreadable(outcomes):
                # What is wrong with files can be said only where they are.
                outcomes = _work(job)
            if made:
                make_folder(job.folder)
            for name, data in made.items():
                write_bytes(job.folder / name, data)
            yield job, outcomes


def _contents(folder: Path) -> dict[str, bytes]:
    contents = {}
    for name in FILES:
        with suppress(OSError):
            contents[name] = (folder / name).read_bytes()
    return contents


def _is_unreadable(outcomes: Sequence[Outcome]) -> bool:
    return any(outcome.record.get("stage") == "input" for outcome in outcomes)


def _obtain(job: Job) -> StoredExperiment:
    if job.simulation is not None:
        job.simulation.write(job.folder)
    experiment = read_experiment(job.folder)
    if experiment.lens != job.lens:
        raise InputError(f"this is an experiment of lens {experiment.lens}, not of {job.lens}.")
    return experiment


def _calibrate(job: Job, recipe: Recipe, experiment: StoredExperiment, known: Json) -> Outcome:
    start = time.perf_counter()
    try:
        focal_px = thin_lens_focal_px(experiment.lfl_mm, experiment.fd_m, experiment.pixel_um)
        answer = job.engine.calibrate(
            experiment.observations, recipe, name=job.cell, focal_px=focal_px, seed=job.seed
        )
    except Exception as error:
        return _failed(job, recipe, error, known)
    record = answer.as_dict() | known | {"provenance": _provenance(job, recipe)}
    return Outcome(job.cell, recipe.name, record, time.perf_counter() - start)


def _failed(job: Job, recipe: Recipe, error: Exception, known: Json | None = None) -> Outcome:
    details = None
    if isinstance(error, InputError):
        # Where the folder is differs from machine to machine, what is in it does not.
        reason = str(error)
        for folder in filter(None, (job.recording, job.folder)):
            reason = reason.replace(f"{folder}/", "").replace(str(folder), job.cell)
        stage = "footage" if error is job.failure else "input"
        error = CalibrationError(stage, reason.rstrip("."), "Mend it and run this again.")
    elif not isinstance(error, CalibrationError):
        details = "".join(traceback.format_exception(error))
        reason = f"unexpected {type(error).__name__}: {error}"
        advice = "This is a fault of influx_wrap; run.log has the details."
        error = CalibrationError("calibration", reason, advice)
    record = error.as_dict() | (known or _known(job, None))
    record["provenance"] = _provenance(job, recipe)
    return Outcome(job.cell, recipe.name, record, details=details)


def _provenance(job: Job, recipe: Recipe) -> Json:
    names = (files.EXPERIMENT, files.TARGET, files.COORDS, files.SUCCESSES, files.TRUTH)
    return provenance(
        recipe=recipe.as_dict(),
        seed=job.seed,
        inputs={name: _hash_if_readable(job.folder / name) for name in names},
        simulation=None if job.simulation is None else job.simulation.as_dict(),
        **job.engine.provenance(),
    )


def _hash_if_readable(path: Path) -> str | None:
    """A file that cannot be read is for its cell to fail at, not for the run."""
    try:
        return file_hash(path)
    except InputError:
        return None


def _known(job: Job, experiment: StoredExperiment | None) -> Json:
    """The cell and its truth, as far as they are known without the experiment's files."""
    cell: Json = {"name": job.cell, "lens": job.lens}
    if experiment is not None:
        cell["camera"], cell["target"] = experiment.camera, experiment.target_name
        cell["lfl_mm"], cell["fd_m"] = experiment.lfl_mm, experiment.fd_m
        truth = _truth(experiment)
    elif job.simulation is not None:
        planned = job.simulation.cell
        cell["camera"], cell["target"] = job.simulation.camera.name, planned.target_name
        cell["lfl_mm"], cell["fd_m"] = planned.lfl_mm, planned.fd_m
        truth = {"intrinsics": job.simulation.truth.as_dict(), "bound": None}
    elif job.recording is not None:
        setting = read_setting(job.recording)
        cell["camera"], cell["target"] = setting.camera or job.camera, setting.target_name
        cell["lfl_mm"], cell["fd_m"] = setting.lfl_mm, setting.fd_m
        truth = None
    else:
        cell |= dict.fromkeys(("camera", "target", "lfl_mm", "fd_m"))
        truth = None
    if cell["fd_m"] == math.inf:
        cell["fd_m"] = "inf"
    return {"cell": cell, "truth": truth}


def _truth(experiment: StoredExperiment) -> Json | None:
    """The answer and the bound on any estimate of it, of a simulated experiment."""
    truth = experiment.truth
    if truth is None:
        return None
    bound = None
    if truth.corner_sigma_px > 0:
        bowed = bool(truth.bow_m.any())
        covariance = cramer_rao(experiment.observations, truth, bow=bowed)
        bound = dict(zip(NAMES, np.sqrt(np.diag(covariance)).tolist(), strict=True))
    return {"intrinsics": truth.intrinsics.as_dict(), "bound": bound}


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


def _log(outcome: Outcome) -> None:
    record = outcome.record
    answer = "ok" if record["status"] == "ok" else f"failed: {record['stage']}: {record['reason']}"
    log.info("%s %s %.2f s: %s", outcome.cell, outcome.recipe, outcome.seconds, answer)
    if outcome.details:
        log.info(outcome.details)
