"""Recorded experiments: from footage to an experiment that can be calibrated.

A board's corners are detected in all frames, the frames in which it was held still are
chosen (all, of separate photographs), and what they show becomes the folder of an
experiment, with the detections in a folder inside it and the figures of ``views`` beside
it. Each step is taken only if what it starts from has changed. A simulated recording's
truth goes along, with the noise of the corners as it is in this footage.

Of a flight, the LED's flashes are detected and matched with the drone's readings
(``flight.match``). A flight whose match is not certain becomes no experiment: a page is written on
which a person decides, and the decision is taken from the ``review.csv`` that comes of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.flight.match import (
    MatchedFlight,
    check_enough,
    forget_experiment,
    write_flight_experiment,
    write_match,
)
from influx_wrap.flight.review import REVIEW_PAGE, settle_flight, write_review_files
from influx_wrap.formats import experiment as files
from influx_wrap.formats.detections import SUMMARY, DetectionSummary
from influx_wrap.formats.experiment import write_experiment
from influx_wrap.formats.files import file_hash, make_folder, read_json, write_json
from influx_wrap.formats.flight import FLASHES, StoredFlashes, read_flash_rtk
from influx_wrap.formats.pairs import REVIEW
from influx_wrap.formats.recording import (
    DRONE,
    FlightRecording,
    Recording,
    RecordingTruth,
    clip_with_metadata,
    read_flight_recording,
    read_flight_truth,
    read_recording,
    read_recording_truth,
)
from influx_wrap.model.experiment import Plan
from influx_wrap.model.hardware import Board
from influx_wrap.model.intrinsics import project
from influx_wrap.model.observations import Observations
from influx_wrap.model.optics import thin_lens_focal_px
from influx_wrap.model.pose import transform
from influx_wrap.model.truth import Truth
from influx_wrap.observe.arriraw import export_metadata
from influx_wrap.observe.coverage import Coverage
from influx_wrap.observe.flashes import detect_flashes
from influx_wrap.observe.footage import detect_footage
from influx_wrap.observe.frames import FrameSource
from influx_wrap.observe.sources import open_frames
from influx_wrap.run.views import Progress, choose_views, show_views, shown_coverage

log = logging.getLogger(__name__)

DETECTIONS, MADE_FROM = "detections", "made_from.json"
LENS_METADATA = "lens_metadata.json"


@dataclass(frozen=True)
class Setting:
    """What an experiment was recorded with."""

    name: str
    target_name: str
    lfl_mm: float
    fd_m: float


@dataclass(frozen=True, eq=False)
class Observed:
    """What was found in a recording.

    coverage       what the chosen views show
    sheet_problem  why the contact sheet just drawn is none, or not complete; else None
    """

    summary: DetectionSummary
    coverage: Coverage
    sheet_problem: str | None


@dataclass(frozen=True, eq=False)
class ObservedFlight:
    """What was found in the recording of a flight."""

    stored: StoredFlashes
    matched: MatchedFlight


def observe_recording(
    folder: Path,
    plan: Plan,
    boards: Mapping[str, Board],
    out: Path,
    *,
    jobs: int,
    opened: Callable[[int | None], None],
    progress: Callable[[int], None],
    drawing: Progress,
) -> Observed:
    """Make the experiment ``out`` from the recording in ``folder``, as far as need be.

    ``opened`` hears how many frames the footage says it has, ``progress`` how many are
    done, ``drawing`` how far the contact sheet is. For the main thread only.
    """
    recording = read_recording(folder, boards, extracted_metadata(folder, out))
    source = open_frames(recording.footage)
    _check_rig(recording, source, plan)
    opened(source.n_frames)
    summary = detect_footage(
        source,
        recording.target,
        out / DETECTIONS,
        stills=recording.is_stills,
        jobs=jobs,
        progress=progress,
    )
    setting = Setting(folder.name, recording.target_name, recording.lfl_mm, recording.fd_m)
    made_from = _made_from(recording, setting, plan, out)
    is_made = _is_made_from(out, made_from)
    coverage = shown_coverage(out) if is_made else None
    if coverage is not None:
        return Observed(summary, coverage, None)
    views = choose_views(out / DETECTIONS)
    if not is_made:
        # Until the last file is written the folder is made from nothing.
        write_json(out / MADE_FROM, {})
        observations, truth = views.observations, read_recording_truth(folder)
        log.info("%s: %d of %d frames used", folder.name, observations.n_views, summary.n_frames)
        known = None if truth is None else _truth_of_views(truth, observations)
        write_experiment(out, setting, plan.camera, plan.lens.name, observations, known)
    sheet_problem = show_views(views, recording.footage, out, drawing)
    write_json(out / MADE_FROM, made_from)
    return Observed(summary, views.coverage, sheet_problem)


def observe_flight(
    folder: Path,
    plan: Plan,
    out: Path,
    *,
    jobs: int,
    opened: Callable[[int | None], None],
    progress: Callable[[int], None],
    drawing: Progress,
) -> ObservedFlight:
    """Make the experiment ``out`` from the recorded flight in ``folder``.

    The arguments are those of ``observe_recording``. A review is taken from ``folder`` or,
    if there is none, from ``out``. Raises ``InputError`` if a person has to decide.
    """
    recording = read_flight_recording(folder, extracted_metadata(folder, out))
    source = open_frames(recording.footage, colour=True)
    _check_rig(recording, source, plan)
    opened(source.n_frames)
    stored = detect_flashes(source, out, jobs=jobs, progress=progress)
    setting = Setting(folder.name, DRONE, recording.lfl_mm, recording.fd_m)
    focal_px = thin_lens_focal_px(setting.lfl_mm, setting.fd_m, plan.camera.pixel_um)
    readings = read_flash_rtk(recording.rtk)
    review = next((path for path in (folder / REVIEW, out / REVIEW) if path.exists()), None)
    matched = settle_flight(stored.flashes, readings, review, focal_px=focal_px)
    write_match(out, matched)
    if matched.questions:
        forget_experiment(out)
        _ask(recording, matched, out, review, drawing)
        raise InputError(
            f"{matched.refusal()} Decide in {out / REVIEW_PAGE} (in the run's data folder), save "
            f"{REVIEW} beside it or beside the recording."
        )
    check_enough(matched)
    write_flight_experiment(
        out, matched, setting, plan.camera, plan.lens.name, read_flight_truth(folder)
    )
    return ObservedFlight(stored, matched)


def _ask(
    recording: FlightRecording,
    matched: MatchedFlight,
    out: Path,
    review: Path | None,
    drawing: Progress,
) -> None:
    """Write the review page, unless it is there and would be the same."""

    def made_from(decided: Path | None) -> dict[str, str | None]:
        return {
            "flashes": file_hash(out / FLASHES),
            "rtk": file_hash(recording.rtk),
            "review": None if decided is None else file_hash(decided),
        }

    if (out / REVIEW_PAGE).exists() and _says(out / MADE_FROM, made_from(review)):
        return
    write_review_files(
        out, matched, recording.footage, title=recording.folder.name, progress=drawing
    )
    write_json(out / MADE_FROM, made_from(review or out / REVIEW))


def extracted_metadata(folder: Path, out: Path) -> Path | None:
    """Where the metadata are that had to be taken out of a clip; None if there is no need."""
    clip = clip_with_metadata(folder)
    if clip is None:
        return None
    path = out / LENS_METADATA
    if not path.exists():
        make_folder(out)
        export_metadata(clip, path)
    return path


def _check_rig(recording: Recording | FlightRecording, source: FrameSource, plan: Plan) -> None:
    lens, camera = plan.lens.name, plan.camera
    if recording.lens not in (None, lens):
        raise InputError(f"this is a recording with lens {recording.lens}, not with {lens}.")
    if recording.camera not in (None, camera.name):
        raise InputError(
            f"this is a recording with camera {recording.camera}, not with {camera.name}; "
            "name it with --camera."
        )
    if source.image_size != camera.image_size:
        sizes = ["{} x {}".format(*size) for size in (source.image_size, camera.image_size)]
        raise InputError(
            f"{source.path} has frames of {sizes[0]} pixels, camera {camera.name} of {sizes[1]}. "
            "Name the camera that recorded it with --camera, or describe it in a catalogue."
        )


def _truth_of_views(truth: RecordingTruth, observations: Observations) -> Truth:
    """The answer, with the corners' noise such as half of all deviations are below it says.

    A few corners that are off by pixels must not make the bound on the answer a loose one.
    """
    exact = truth.of_views(observations.view_ids, observations.target, 0.0)
    points = transform(exact.rotations, exact.translations, exact.target_points)
    uv, _ = project(exact.intrinsics, points)
    deviation = np.abs(observations.uv - uv)[observations.valid]
    sigma_px = 1.4826 * float(np.median(deviation))
    return truth.of_views(observations.view_ids, observations.target, sigma_px)


def _made_from(
    recording: Recording, setting: Setting, plan: Plan, out: Path
) -> dict[str, str | None]:
    truth = recording.folder / files.TRUTH
    return {
        "detections": file_hash(out / DETECTIONS / SUMMARY),
        "lens": plan.lens.name,
        "camera": repr(plan.camera),
        "setting": repr(setting),
        "truth": file_hash(truth) if truth.exists() else None,
    }


def _is_made_from(out: Path, made_from: Mapping[str, str | None]) -> bool:
    names = (files.EXPERIMENT, files.TARGET, files.COORDS, files.SUCCESSES)
    return all((out / name).exists() for name in names) and _says(out / MADE_FROM, made_from)


def _says(path: Path, made_from: Mapping[str, str | None]) -> bool:
    """Whether the file at ``path`` says just this."""
    try:
        return read_json(path).values == made_from
    except InputError:
        return False
