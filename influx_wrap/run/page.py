"""The report of a run's folder: its records, and what the experiments' files add to them.

A record says how large the residuals of a calibration are, not where they point. They are
found again from the corners that it names as used: the poses that fit them best at its
intrinsics, on the bent board or among the measured points that its answer was found with. An
experiment whose files are gone, or are not those of the record any more, is shown without.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from threadpoolctl import threadpool_limits

from influx_wrap.calibrate import kernels
from influx_wrap.calibrate.points import fit_points
from influx_wrap.calibrate.pose import NO_BOW, PoseError, estimate_poses
from influx_wrap.calibrate.problem import pack
from influx_wrap.compute.processes import WorkerDied, parallel
from influx_wrap.errors import InputError
from influx_wrap.evaluate.cells import CellResult
from influx_wrap.flight.review import REVIEW_PAGE
from influx_wrap.formats import experiment as files
from influx_wrap.formats.experiment import read_experiment
from influx_wrap.formats.files import read_json
from influx_wrap.formats.influx import LensSettings, read_lens_settings
from influx_wrap.model.intrinsics import FloatArray, Intrinsics
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import PointCloud, bow_basis
from influx_wrap.report.run_page import FootagePicture, Seen, cell_data, write_run_page
from influx_wrap.run.campaign import by_number
from influx_wrap.run.views import CONTACT_PNG, FIGURES
from influx_wrap.run.workspace import Workspace, file_hash

Json = dict[str, Any]
Progress = Callable[[int, int], None]
"""Hears how many experiments of how many are done."""

FEW = 6
"""So many experiments are done before another process has started."""
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
class _Task:
    cell: str
    record: Path
    folder: Path
    beside: Path


@dataclass(frozen=True, eq=False)
class _Shown:
    record: Json
    data: Json


def write_report(
    workspace: Workspace, data: Path | None, *, processes: int = 1, progress: Progress | None = None
) -> Written:
    """Write ``report.html`` of a run, from all experiments in its folder.

    ``data`` is where recorded experiments lie, each in a folder of its name; others are in
    the run's folder. The page does not depend on ``processes``.
    """
    tasks = _tasks(workspace, data)
    shown: dict[str, _Shown] = {}
    work = (
        _here(tasks) if processes == 1 or len(tasks) <= FEW else parallel(_work, tasks, processes)
    )
    with closing(work) as finished:
        for task, answer in finished:
            shown[task.cell] = _died(task, answer) if isinstance(answer, WorkerDied) else answer
            if progress is not None:
                progress(len(shown), len(tasks))
    ordered = [shown[task.cell] for task in tasks]
    cells = _within_budget([one.data for one in ordered])
    write_run_page(workspace.report, _settings(workspace), [one.record for one in ordered], cells)
    return Written(
        path=workspace.report,
        n_cells=len(cells),
        n_failed=sum(not cell["ok"] for cell in cells),
        unseen=tuple(cell["name"] for cell in cells if "unseen" in cell and cell["ok"]),
    )


def used_residuals(
    observations: Observations, record: Mapping[str, Any]
) -> tuple[FloatArray, FloatArray]:
    """Pixels (n, 2) and residuals (n, 2) in pixels of the corners that a result is made from.

    Equal to those of the calibration itself where poses are a function of the intrinsics: of
    the initialisation, and of Kalibr's runs. A rollout's and a batch's poses were found along
    with the intrinsics, to the tolerance at which they stopped.
    """
    views = record["views"]["list"]
    if [view["view"] for view in views] != observations.view_ids.tolist():
        raise InputError("its views are not those of the result.")
    used = np.array([view["used"] for view in views], dtype=bool)
    valid = observations.valid.copy()
    for index, view in enumerate(views):
        valid[index, view["corners_removed"]] = False
    theta = Intrinsics.from_mapping(record["intrinsics"]).array
    target = observations.target
    is_batch = record["selected"] == "batch"
    if is_batch and record["bow_m"] is not None:
        bent = target.points.copy()
        bent[:, 2] += bow_basis(target.points) @ np.array(record["bow_m"])
        target = PointCloud(bent)
    chosen = Observations(
        target, observations.uv[used], valid[used], observations.image_size,
        observations.view_ids[used],
    )  # fmt: skip
    problem = pack(chosen)
    poses = estimate_poses(problem, theta)
    if is_batch and isinstance(target, PointCloud) and target.covariance is not None:
        # What counts is how well each point is known; the answer is where it was before.
        poses = fit_points(
            target.points, target.covariance, chosen.uv, chosen.valid, theta, poses,
            sigma_px=record["corner_sigma_px"],
        ).poses  # fmt: skip
    residuals = kernels.residuals(
        theta, NO_BOW, poses, problem.data, problem.count, problem.first
    )[problem.point >= 0]  # fmt: skip
    return chosen.uv[chosen.valid], residuals


def _tasks(workspace: Workspace, data: Path | None) -> list[_Task]:
    records = workspace.records()
    tasks = []
    for name in sorted(records, key=by_number):
        beside = workspace.data(name)
        recorded = data is not None and (data / name / files.EXPERIMENT).exists()
        folder = data / name if data is not None and recorded else beside
        tasks.append(_Task(name, records[name], folder, beside))
    return tasks


def _settings(workspace: Workspace) -> LensSettings | None:
    """The run's plan; without one the experiments are only listed."""
    try:
        return read_lens_settings(workspace.plan)
    except InputError:
        return None


def _here(tasks: Iterable[_Task]) -> Generator[tuple[_Task, _Shown | WorkerDied], None, None]:
    for task in tasks:
        yield task, _work(task)


def _work(task: _Task) -> _Shown:
    """What a worker does with an experiment."""
    return _show(task, lambda record: _seen(task, record))


def _died(task: _Task, how: WorkerDied) -> _Shown:
    """An experiment of which only the record is known, as nobody lived to read its files."""
    reason = (
        f"The process that read the experiment's files ended (exit code {how.exitcode}): residuals "
        "and coverage are not known. Write the page again with fewer --jobs."
    )
    return _show(task, lambda _: reason)


def _show(task: _Task, look: Callable[[Mapping[str, Any]], Seen | str]) -> _Shown:
    try:
        record = dict(read_json(task.record).values)
        with threadpool_limits(limits=1):
            shown = _Shown(record, cell_data(record, look(record), _pictures(task)))
        # What the page will be made of, here, where one experiment's fault is no other's.
        CellResult.of(record)
        json.dumps([shown.data, record["provenance"]], allow_nan=False)
        return shown
    except InputError as error:
        return _unreadable(task, str(error).replace(f"{task.record.parent}/", "").rstrip("."))
    except Exception as error:
        # A record of another version, or one that somebody has edited.
        return _unreadable(task, f"{task.record.name} is no result: {type(error).__name__} {error}")


def _unreadable(task: _Task, reason: str) -> _Shown:
    cell = dict.fromkeys(("lens", "camera", "target", "lfl_mm", "fd_m")) | {"name": task.cell}
    record: Json = {
        "status": "failed",
        "stage": "report",
        "reason": reason,
        "advice": "Give the same run command again: it is calibrated anew.",
        "cell": cell,
        "truth": None,
        "provenance": {},
    }
    return _Shown(record, cell_data(record, "The result cannot be read.", ()))


def _seen(task: _Task, record: Mapping[str, Any]) -> Seen | str:
    """The corners of an experiment, or a sentence that says why they are not known."""
    if not (task.folder / files.EXPERIMENT).exists():
        return "The experiment's files are not here: residuals and coverage are not known."
    for name in (files.EXPERIMENT, files.TARGET, files.COORDS, files.SUCCESSES):
        stated = record["provenance"]["inputs"].get(name)
        with suppress(InputError):
            if stated is not None and file_hash(task.folder / name) != stated:
                return f"{name} has changed since: residuals and coverage are not known."
    try:
        observations = read_experiment(task.folder).observations
        if record["status"] != "ok":
            return Seen(observations.image_size, observations.uv[observations.valid], None)
        return Seen(observations.image_size, *used_residuals(observations, record))
    except (InputError, PoseError, np.linalg.LinAlgError) as error:
        reason = str(error).replace(f"{task.folder}/", "").rstrip(".")
        return f"Residuals and coverage are not known: {reason}."


def _pictures(task: _Task) -> list[FootagePicture]:
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
    image = cv2.imread(str(path))
    if image is None:
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
