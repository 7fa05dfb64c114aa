"""The footage of a run turned into experiments, cell by cell."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from influx_wrap.flight.pipeline import ObservedFlight, observe_flight
from influx_wrap.formats.recording_yaml import is_flight
from influx_wrap.model.experiment import Plan
from influx_wrap.model.hardware import Board
from influx_wrap.model.words import by_reason
from influx_wrap.run.jobs import Job, unused_footage
from influx_wrap.run.listener import RunListener
from influx_wrap.run.recordings import Observed, observe_recording
from influx_wrap.run.views import missing_in_short

log = logging.getLogger(__name__)


def observe_jobs(
    jobs: Sequence[Job],
    plan: Plan,
    boards: Mapping[str, Board],
    processes: int,
    listener: RunListener,
) -> list[Job]:
    """The jobs, those of recordings with their experiments made from the footage.

    Footage that gives none becomes its job's failure. For the main thread only.
    """
    return [
        job if job.recording is None else _observe(job, plan, boards, processes, listener)
        for job in jobs
    ]


def warn_of_unused(data: Path | None, listener: RunListener) -> None:
    """Name the footage in a folder of recordings that belongs to none of them."""
    for text in [] if data is None else by_reason(unused_footage(data)):
        _warn(str(data), text, listener)


def _warn(subject: str, text: str, listener: RunListener) -> None:
    """Tell a person now, and whoever reads run.log later."""
    log.warning("%s: %s", subject, text)
    listener.warn(subject, f"{text}.")


def _observe(
    job: Job, plan: Plan, boards: Mapping[str, Board], processes: int, listener: RunListener
) -> Job:
    assert job.recording is not None
    frames = f"frames of {job.cell}"
    read = partial(listener.progress, frames)
    drawing = partial(listener.progress, f"pictures of {job.cell}")
    listener.progress(frames, 0, None)
    try:
        if is_flight(job.recording):
            flight = observe_flight(
                job.recording, plan, job.folder, jobs=processes, progress=read, drawing=drawing
            )
            texts = _flight_warnings(flight)
        else:
            observed = observe_recording(
                job.recording, plan, boards, job.folder,
                jobs=processes, progress=read, drawing=drawing,
            )  # fmt: skip
            texts = _warnings(observed)
    except Exception as error:
        return replace(job, failure=error)
    for text in texts:
        _warn(job.cell, text, listener)
    return job


def _warnings(observed: Observed) -> list[str]:
    """What a person should know of a recording, a line each."""
    texts = []
    summary = observed.summary
    if summary.truncated is not None:
        texts.append(_truncated(summary.n_frames, summary.truncated))
    texts += by_reason(summary.unread)
    if observed.sheet_problem is not None:
        texts.append(f"contact sheet: {observed.sheet_problem.rstrip('.')}")
    if observed.views.mode == "moved":
        texts.append(observed.views.why)
    missing = missing_in_short(observed.views.coverage)
    if missing is not None:
        texts.append(missing)
    return texts


def _flight_warnings(flight: ObservedFlight) -> list[str]:
    """What a person should know of a flight that was calibrated, a line each."""
    stored = flight.stored
    texts = []
    if stored.truncated is not None:
        texts.append(_truncated(stored.flashes.n_frames, stored.truncated))
    return texts + flight.matched.doubts


def _truncated(n_frames: int, reason: str) -> str:
    return f"the footage is readable up to frame {n_frames - 1}, then {reason}; going on with that"
