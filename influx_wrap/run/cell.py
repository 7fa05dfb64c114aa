"""One cell of a run: its experiment read (or simulated), calibrated, and put on record."""

from __future__ import annotations

import hashlib
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from influx_wrap.calibrate.bound import cramer_rao
from influx_wrap.calibrate.recipe import Recipe
from influx_wrap.calibrate.result import CalibrationError
from influx_wrap.calibrate.rollouts import RolloutStore
from influx_wrap.calibrate.sanity import TypedSetting, check_calibration, explain_failure
from influx_wrap.compute.provenance import provenance
from influx_wrap.engines.native import NativeEngine
from influx_wrap.errors import InputError
from influx_wrap.formats import experiment as files
from influx_wrap.formats.experiment import StoredExperiment, read_experiment
from influx_wrap.formats.files import file_hash
from influx_wrap.formats.recording_yaml import RECORDING, read_setting
from influx_wrap.model.hardware import Camera
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.optics import check_focal_px, thin_lens_focal_px
from influx_wrap.model.record import CellRecord, CellSetting, CellTruth
from influx_wrap.model.result import Json
from influx_wrap.model.words import size_text
from influx_wrap.run.jobs import Job


@dataclass(frozen=True)
class CellOutcome:
    """What one recipe gave for one cell; ``details`` are for the log."""

    cell: str
    recipe: str
    record: CellRecord
    seconds: float = 0.0
    resumed: bool = False
    details: str | None = None


@dataclass(frozen=True)
class _Known:
    """The cell and its truth, as far as they are known."""

    cell: CellSetting
    truth: CellTruth | None


def calibrate_cell(job: Job) -> list[CellOutcome]:
    """What a worker does with a cell: an outcome for each of the job's recipes."""
    with threadpool_limits(limits=1):
        try:
            experiment = _obtain(job)
            known = _known_of(experiment, job)
        except Exception as error:
            return [failed(job, recipe, error) for recipe in job.recipes]
        if len(job.recipes) > 1 and isinstance(job.engine, NativeEngine):
            job = replace(job, engine=replace(job.engine, store=RolloutStore()))
        return [_calibrate(job, recipe, experiment, known) for recipe in job.recipes]


def failed(job: Job, recipe: Recipe, error: Exception, known: _Known | None = None) -> CellOutcome:
    """The outcome of a cell that gave no result, in words for who filmed it."""
    details = None
    if isinstance(error, InputError):
        # Where the folder is differs from machine to machine, what is in it does not.
        reason = _without_folders(str(error), job)
        stage = "footage" if error is job.failure else "input"
        error = CalibrationError(stage, reason.rstrip("."), "Mend it and run this again.")
    elif not isinstance(error, CalibrationError):
        details = "".join(traceback.format_exception(error))
        reason = f"unexpected {type(error).__name__}: {_without_folders(str(error), job)}"
        advice = "This is a fault of influx_wrap; run.log has the details."
        error = CalibrationError("calibration", reason, advice)
    known = known or _known_of_job(job)
    made_from = made_from_job(job, recipe)
    record = CellRecord(known.cell, known.truth, error.failure, made_from)
    return CellOutcome(job.cell, recipe.name, record, details=details)


def _without_folders(text: str, job: Job) -> str:
    for folder in filter(None, (job.recording, job.folder)):
        text = text.replace(f"{folder}/", "").replace(str(folder), job.cell)
    return text


def made_from_job(job: Job, recipe: Recipe) -> Json:
    """The provenance of a job's result: it is finished when there is one that says the same."""
    names = (*files.FILES, files.TRUTH)
    # What the answer is checked against, and whether a person vouches for it.
    rig = None if job.rig is None else hashlib.sha256(repr(job.rig).encode()).hexdigest()
    trusted = {"trusted": True} if job.is_trusted else {}
    return provenance(
        recipe=recipe.as_dict(),
        seed=job.seed,
        inputs={name: _hash_if_readable(job.folder / name) for name in names},
        simulation=None if job.simulation is None else job.simulation.as_dict(),
        rig=rig,
        **trusted,
        **job.engine.provenance(),
    )


def _obtain(job: Job) -> StoredExperiment:
    if job.simulation is not None:
        job.simulation.write(job.folder)
    experiment = read_experiment(job.folder)
    if experiment.lens != job.lens:
        raise InputError(f"this is an experiment of lens {experiment.lens}, not of {job.lens}.")
    if job.rig is not None:
        _check_camera(experiment, job.rig.camera)
    return experiment


def _check_camera(experiment: StoredExperiment, camera: Camera) -> None:
    """Refuse an experiment of another camera, whose pixels are not those of the table."""
    if experiment.camera != camera.name:
        raise InputError(
            f"this is an experiment with camera {experiment.camera}, not with {camera.name}; name "
            "it with --camera."
        )
    size = experiment.observations.image_size
    if size != camera.image_size:
        raise InputError(
            f"{files.EXPERIMENT} says image_size {size_text(size)}, camera {camera.name} has "
            f"{size_text(camera.image_size)}: name the camera that recorded it with --camera, or "
            "describe it in a catalogue."
        )


def _calibrate(
    job: Job, recipe: Recipe, experiment: StoredExperiment, known: _Known
) -> CellOutcome:
    start = time.perf_counter()
    store = job.engine.store if isinstance(job.engine, NativeEngine) else None
    saved_s = 0.0 if store is None else store.saved_s
    observations = experiment.observations
    try:
        focal_px = thin_lens_focal_px(experiment.lfl_mm, experiment.fd_m, experiment.pixel_um)
        check_focal_px(focal_px, observations.image_size)
        prior_px = None if job.rig is None else job.rig.camera.pp_prior_px
        answer = job.engine.calibrate(
            observations,
            recipe,
            name=job.cell,
            focal_px=focal_px,
            seed=job.seed,
            pp_prior_px=prior_px,
        )
        suspicions = check_calibration(answer, observations, _typed(experiment, job))
    except CalibrationError as error:
        why = explain_failure(observations)
        if why is not None:
            advice = "Mend it and run this again."
            error = CalibrationError("target", f"{why} ({error.stage}: {error.reason})", advice)
        return failed(job, recipe, error, known)
    except Exception as error:
        return failed(job, recipe, error, known)
    record = CellRecord(
        known.cell,
        known.truth,
        answer,
        made_from_job(job, recipe),
        suspicions,
        is_trusted=job.is_trusted or experiment.is_trusted,
    )
    seconds = time.perf_counter() - start
    if store is not None:
        # What the recipe takes by itself, not what sharing rollouts with another one saves.
        seconds += store.saved_s - saved_s
    return CellOutcome(job.cell, recipe.name, record, seconds)


def _typed(experiment: StoredExperiment, job: Job) -> TypedSetting:
    """What is said of the experiment, for the answer to be checked against."""
    source = files.EXPERIMENT if job.recording is None else RECORDING
    return TypedSetting(experiment.lfl_mm, experiment.fd_m, experiment.pixel_um, source, job.rig)


def _hash_if_readable(path: Path) -> str | None:
    """A file that cannot be read is for its cell to fail at, not for the run."""
    try:
        return file_hash(path)
    except InputError:
        return None


def _known_of(experiment: StoredExperiment, job: Job) -> _Known:
    cell = CellSetting(
        job.cell,
        job.lens,
        experiment.camera,
        experiment.target_name,
        experiment.lfl_mm,
        experiment.fd_m,
    )
    return _Known(cell, _truth(experiment))


def _known_of_job(job: Job) -> _Known:
    """Without the experiment's files, which may be what is wrong."""
    if job.simulation is not None:
        camera, cell = job.simulation.camera.name, job.simulation.cell
        setting = CellSetting(job.cell, job.lens, camera, cell.target_name, cell.lfl_mm, cell.fd_m)
        return _Known(setting, CellTruth(job.simulation.truth, None))
    if job.recording is not None:
        read = read_setting(job.recording)
        camera_name = read.camera or (None if job.rig is None else job.rig.camera.name)
        setting = CellSetting(
            job.cell, job.lens, camera_name, read.target_name, read.lfl_mm, read.fd_m
        )
        return _Known(setting, None)
    return _Known(CellSetting(job.cell, job.lens), None)


def _truth(experiment: StoredExperiment) -> CellTruth | None:
    """The answer and the bound on any estimate of it, of a simulated experiment."""
    truth = experiment.truth
    if truth is None:
        return None
    bound = None
    if truth.corner_sigma_px > 0:
        bowed = bool(truth.bow_m.any())
        covariance = cramer_rao(experiment.observations, truth, bow=bowed)
        bound = dict(zip(NAMES, np.sqrt(np.diag(covariance)).tolist(), strict=True))
    return CellTruth(truth.intrinsics, bound)
