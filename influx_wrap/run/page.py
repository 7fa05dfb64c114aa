"""The report of a run's folder: its records, and what the experiments' files add to them.

A record says how large the residuals of a calibration are, not where they point. That follows
from the poses that lie beside it and the corners that it names as used. An experiment whose
files are gone, or are not those of the record any more, is shown without.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
from threadpoolctl import threadpool_limits

from influx_wrap.compute.processes import WorkerDied, parallel
from influx_wrap.compute.progress import Progress, no_progress
from influx_wrap.errors import InputError
from influx_wrap.flight.review import REVIEW_PAGE
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.experiment import EXPERIMENT, FILES, read_experiment
from influx_wrap.formats.files import file_hash
from influx_wrap.formats.influx import LensSettings, read_lens_settings
from influx_wrap.formats.lut import read_table
from influx_wrap.formats.pictures import read_picture
from influx_wrap.formats.poses import POSES, read_poses
from influx_wrap.formats.results import read_result
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import project
from influx_wrap.model.observations import Observations
from influx_wrap.model.pose import transform
from influx_wrap.model.record import CellRecord, CellSetting
from influx_wrap.model.result import CalibrationResult, Failure, Json
from influx_wrap.model.suspicion import Suspicion
from influx_wrap.model.target import bow_basis
from influx_wrap.report.explorer import ProposedExperiment
from influx_wrap.report.run_page import (
    FootagePicture,
    Seen,
    cell_data,
    write_run_page,
)
from influx_wrap.run.jobs import by_number
from influx_wrap.run.plan import proposed
from influx_wrap.run.table import contradicted_in
from influx_wrap.run.views import CONTACT_PNG, FIGURES
from influx_wrap.run.workspace import Workspace

FEW = 6
"""So many experiments are done before another process has started."""
OF_ALL_VIEWS = ("batch", "all-views")
"""Answers that go with the board's bend; a rollout knows of none."""
PICTURE_WIDTH_PX, JPEG_QUALITY = 560, 60
PICTURES_BYTES = 1_000_000
"""All small pictures of a page together; with more footage the later ones are left out."""


@dataclass(frozen=True)
class Written:
    """What a report was made of: how many experiments, and those whose corners are not known."""

    path: Path
    n_cells: int
    n_failed: int
    unseen: tuple[str, ...]


@dataclass(frozen=True)
class PageTask:
    """An experiment to show: where its record lies, its files, and what was made beside them."""

    cell: str
    record: Path
    folder: Path
    beside: Path
    doubt: Suspicion | None


@dataclass(frozen=True, eq=False)
class Shown:
    """An experiment's record, and what the page knows of it."""

    record: CellRecord
    data: Json


@dataclass(frozen=True, eq=False)
class PageParts:
    """Experiments of a run that are ready for its page, made while others were calibrated."""

    workspace: Workspace
    data: Path | None
    made: dict[PageTask, Shown] = field(default_factory=dict)

    def task(self, cell: str) -> PageTask:
        """How an experiment is shown that has a record now."""
        failure = self.workspace.failure(cell)
        record = failure if failure.exists() else self.workspace.result(cell)
        return _task(self.workspace, self.data, cell, record, None)


def write_report(
    workspace: Workspace,
    data: Path | None,
    *,
    processes: int = 1,
    progress: Progress = no_progress,
    made: Mapping[PageTask, Shown] | None = None,
    missing: Sequence[ProposedExperiment] | None = None,
) -> Written:
    """Write ``report.html`` of a run, from all experiments in its folder.

    ``data`` is where recorded experiments lie, each in a folder of its name; others are in
    the run's folder. ``made`` are parts that are there already. ``missing`` are experiments to
    add to the lens's table; None: those that follow from the table in the folder, if there is one.
    The page does not depend on ``processes``.
    """
    tasks = _tasks(workspace, data)
    shown = {} if made is None else {task.cell: made[task] for task in tasks if task in made}
    todo = [task for task in tasks if task.cell not in shown]
    work: Generator[tuple[PageTask, Shown | WorkerDied], None, None] = (
        ((task, show_experiment(task)) for task in todo)
        if processes == 1 or len(todo) <= FEW
        else parallel(show_experiment, todo, processes)
    )
    with closing(work) as finished:
        for task, answer in finished:
            shown[task.cell] = _died(task, answer) if isinstance(answer, WorkerDied) else answer
            progress(len(shown), len(tasks))
    ordered = [shown[task.cell] for task in tasks]
    cells = _within_budget([one.data for one in ordered])
    explorer = workspace.explorer.name if workspace.explorer.exists() else None
    records = [one.record for one in ordered]
    write_run_page(
        workspace.report,
        _settings(workspace),
        records,
        cells,
        explorer,
        None if data is None else data.resolve().name,
        _missing(workspace) if missing is None else missing,
    )
    return Written(
        path=workspace.report,
        n_cells=len(cells),
        n_failed=sum(not cell["ok"] for cell in cells),
        unseen=tuple(cell["name"] for cell in cells if "unseen" in cell and cell["ok"]),
    )


def used_residuals(
    observations: Observations, result: CalibrationResult, poses: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Pixels (n, 2) and residuals (n, 2) in pixels of the corners that a result is made from.

    ``poses`` (V, 12) are the calibration's; a board that was found bent is bent here, too.
    """
    used = np.array([view.used for view in result.views], dtype=bool)
    valid = observations.valid & used[:, None]
    for index, view in enumerate(result.views):
        valid[index, list(view.corners_removed)] = False
    points = observations.target.points
    if result.selected in OF_ALL_VIEWS and result.bow_m is not None:
        points = (
            points + np.array([0, 0, 1]) * (bow_basis(points) @ np.array(result.bow_m))[:, None]
        )
    rotations, translations = poses[:, :9].reshape(-1, 3, 3), poses[:, 9:]
    projected, _ = project(result.intrinsics, transform(rotations, translations, points))
    return observations.uv[valid], (observations.uv - projected)[valid]


def _tasks(workspace: Workspace, data: Path | None) -> list[PageTask]:
    records, doubts = workspace.records(), contradicted_in(workspace)
    return [
        _task(workspace, data, name, records[name], doubts.get(name))
        for name in sorted(records, key=by_number)
    ]


def _task(
    workspace: Workspace, data: Path | None, cell: str, record: Path, doubt: Suspicion | None
) -> PageTask:
    beside = workspace.data(cell)
    recorded = data is not None and (data / cell / EXPERIMENT).exists()
    folder = data / cell if data is not None and recorded else beside
    return PageTask(cell, record, folder, beside, doubt)


def _missing(workspace: Workspace) -> Sequence[ProposedExperiment]:
    """Of the table in the folder of the run; nothing where there is no telling."""
    if not workspace.table.exists():
        return ()
    with suppress(InputError):
        return proposed(read_table(workspace.table), load_catalogue())
    return ()


def _settings(workspace: Workspace) -> LensSettings | None:
    """The run's plan; without one the experiments are only listed."""
    try:
        return read_lens_settings(workspace.plan)
    except InputError:
        return None


def show_experiment(task: PageTask) -> Shown:
    """What a worker does with an experiment."""
    return _show(task, lambda record: _seen(task, record))


def _died(task: PageTask, how: WorkerDied) -> Shown:
    """An experiment of which only the record is known, as nobody lived to read its files."""
    reason = (
        f"The process that read the experiment's files ended (exit code {how.exitcode}): residuals "
        "and coverage are not known. Write the page again with fewer --jobs."
    )
    return _show(task, lambda _: reason)


def _show(task: PageTask, look: Callable[[CellRecord], Seen | str]) -> Shown:
    try:
        record = CellRecord.from_dict(read_result(task.record)).doubted(task.doubt)
        with threadpool_limits(limits=1):
            shown = Shown(record, cell_data(record, look(record), _pictures(task)))
        # What the page will be made of, here, where one experiment's fault is no other's.
        json.dumps([shown.data, record.provenance], allow_nan=False)
        return shown
    except InputError as error:
        return _unreadable(task, str(error).replace(f"{task.record.parent}/", "").rstrip("."))
    except Exception as error:
        # A record of another version, or one that somebody has edited.
        return _unreadable(task, f"{task.record.name} is no result: {type(error).__name__} {error}")


def _unreadable(task: PageTask, reason: str) -> Shown:
    advice = "Give the same run command again: it is calibrated anew."
    failure = Failure("report", reason, advice)
    record = CellRecord(CellSetting(task.cell, None), None, failure, {})
    return Shown(record, cell_data(record, "The result cannot be read.", ()))


def _seen(task: PageTask, record: CellRecord) -> Seen | str:
    """The corners of an experiment, or a sentence that says why they are not known."""
    if not (task.folder / EXPERIMENT).exists():
        return "The experiment's files are not here: residuals and coverage are not known."
    for name in FILES:
        stated = record.provenance["inputs"].get(name)
        with suppress(InputError):
            if stated is not None and file_hash(task.folder / name) != stated:
                return f"{name} has changed since: residuals and coverage are not known."
    try:
        observations = read_experiment(task.folder).observations
        if record.result is None:
            return Seen(observations.image_size, observations.uv[observations.valid], None)
        views = [view.view for view in record.result.views]
        if views != observations.view_ids.tolist():
            raise InputError("its views are not those of the result.")
        poses = read_poses(task.record.parent / POSES, views)
        return Seen(observations.image_size, *used_residuals(observations, record.result, poses))
    except InputError as error:
        reason = str(error)
        for folder in (task.folder, task.record.parent):
            reason = reason.replace(f"{folder}/", "")
        reason = reason.rstrip(".")
        return f"Residuals and coverage are not known: {reason}."


def _pictures(task: PageTask) -> list[FootagePicture]:
    """What footage left in the run's folder; the contact sheet as a small picture, too."""
    there = [name for name in (*FIGURES, REVIEW_PAGE) if (task.beside / name).exists()]
    return [
        FootagePicture(
            f"data/{task.cell}/{name}",
            _small(task.beside / name) if name == CONTACT_PNG else None,
        )
        for name in there
    ]


def _small(path: Path) -> bytes | None:
    try:
        image = read_picture(path, colour=True)
    except InputError:
        return None
    height, width = image.shape[:2]
    if width > PICTURE_WIDTH_PX:
        size = PICTURE_WIDTH_PX, max(1, round(height * PICTURE_WIDTH_PX / width))
        image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    _, jpeg = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return bytes(jpeg)


def _within_budget(cells: list[Json]) -> list[Json]:
    left = PICTURES_BYTES
    kept = []
    for cell in cells:
        size = sum(len(image) for _, *images in cell["pictures"] for image in images)
        left -= size
        if size and left < 0:
            cell = cell | {"pictures": [[path] for path, *_ in cell["pictures"]]}
        kept.append(cell)
    return kept
