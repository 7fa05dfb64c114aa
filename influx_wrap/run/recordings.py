"""Recorded experiments: from footage to an experiment that can be calibrated.

A board's corners are detected in all frames, the frames in which it was held still are
chosen (all, of separate photographs), and what they show becomes the folder of an
experiment, with the detections in a folder inside it and the figures of ``views`` beside
it. Each step is taken only if what it starts from has changed. A simulated recording's
truth goes along, with the noise of the corners as it is in this footage.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from influx_wrap.compute.progress import Progress
from influx_wrap.formats.detections import SUMMARY, DetectionSummary
from influx_wrap.formats.experiment import FILES, TRUTH, write_experiment
from influx_wrap.formats.files import file_hash, write_json
from influx_wrap.formats.freshness import MADE_FROM, is_made_from
from influx_wrap.formats.recording import Recording, read_recording
from influx_wrap.formats.recording_truth import RecordingTruth, read_recording_truth
from influx_wrap.model.experiment import Plan, Setting
from influx_wrap.model.hardware import Board
from influx_wrap.model.observations import Observations
from influx_wrap.model.truth import Truth
from influx_wrap.observe.footage import VideoSearch, detect_footage, open_search
from influx_wrap.observe.frames import FrameSource
from influx_wrap.observe.recorded import check_rig, extracted_metadata
from influx_wrap.observe.sources import open_frames
from influx_wrap.observe.video import SOFTWARE
from influx_wrap.run.views import ShownViews, choose_views, show_views, shown_views

log = logging.getLogger(__name__)

DETECTIONS = "detections"


@dataclass(frozen=True, eq=False)
class Observed:
    """What was found in a recording.

    views          how the views were chosen and what they show
    sheet_problem  why the contact sheet just drawn is none, or not complete; else None
    """

    summary: DetectionSummary
    views: ShownViews
    sheet_problem: str | None


def observe_recording(
    folder: Path,
    plan: Plan,
    boards: Mapping[str, Board],
    out: Path,
    *,
    jobs: int,
    progress: Progress,
    drawing: Progress,
    every_frame: bool = False,
    decoder: str = SOFTWARE,
) -> Observed:
    """Make the experiment ``out`` from the recording in ``folder``, as far as need be.

    ``progress`` hears of frames, ``drawing`` of those read for the contact sheet; ``every_frame``
    as in ``detect_footage``, ``decoder`` as in ``open_frames``. For the main thread only.
    """
    recording, source = _opened(folder, plan, boards, out, decoder)
    summary = detect_footage(
        source,
        recording.target,
        out / DETECTIONS,
        stills=recording.is_stills,
        jobs=jobs,
        progress=progress,
        every_frame=every_frame,
    )
    setting = Setting(folder.name, recording.target_name, recording.lfl_mm, recording.fd_m)
    made_from = _made_from(recording, setting, plan, out)
    is_made = _is_made(out, made_from)
    shown = shown_views(out) if is_made else None
    if shown is not None:
        return Observed(summary, shown, None)
    views = choose_views(out / DETECTIONS)
    if not is_made:
        # Until the last file is written the folder is made from nothing.
        write_json(out / MADE_FROM, {})
        observations, truth = views.observations, read_recording_truth(folder)
        used = f"{observations.n_views} of {summary.n_frames} frames used"
        log.info("%s: %s; %s", folder.name, used, views.keyframes.why)
        known = None if truth is None else _truth_of_views(truth, observations)
        write_experiment(out, setting, plan.camera, plan.lens.name, observations, known)
    sheet_problem = show_views(views, recording.footage, out, drawing)
    write_json(out / MADE_FROM, made_from)
    shown = ShownViews(views.coverage, views.keyframes.mode, views.keyframes.why)
    return Observed(summary, shown, sheet_problem)


def _opened(
    folder: Path, plan: Plan, boards: Mapping[str, Board], out: Path, decoder: str
) -> tuple[Recording, FrameSource]:
    recording = read_recording(folder, boards, extracted_metadata(folder, out))
    source = open_frames(recording.footage, decoder=decoder)
    check_rig(recording, source, plan)
    return recording, source


@contextmanager
def search_recording(
    folder: Path,
    plan: Plan,
    boards: Mapping[str, Board],
    out: Path,
    *,
    every_frame: bool,
    decoder: str,
) -> Iterator[VideoSearch | None]:
    """The search of a recording's video, for its stretches to be shared out, before
    ``observe_recording`` makes the experiment; None of photographs."""
    recording, source = _opened(folder, plan, boards, out, decoder)
    if recording.is_stills:
        yield None
        return
    with open_search(source, recording.target, out / DETECTIONS, every_frame=every_frame) as search:
        yield search


def _truth_of_views(truth: RecordingTruth, observations: Observations) -> Truth:
    """The answer, with the corners' noise as it is in this footage."""
    exact = truth.of_views(observations.view_ids, observations.target, 0.0)
    sigma_px = exact.spread_px(observations.uv, observations.valid)
    return truth.of_views(observations.view_ids, observations.target, sigma_px)


def _made_from(
    recording: Recording, setting: Setting, plan: Plan, out: Path
) -> dict[str, str | None]:
    truth = recording.folder / TRUTH
    return {
        "detections": file_hash(out / DETECTIONS / SUMMARY),
        "lens": plan.lens.name,
        "camera": repr(plan.camera),
        "setting": repr(setting),
        "truth": file_hash(truth) if truth.exists() else None,
    }


def _is_made(out: Path, made_from: Mapping[str, str | None]) -> bool:
    is_complete = all((out / name).exists() for name in FILES)
    return is_complete and is_made_from(out / MADE_FROM, made_from)
