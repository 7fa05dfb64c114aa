"""The footage of a run turned into experiments.

``observe_jobs`` does it recording by recording. ``FootageWork`` divides videos into stretches,
which a pool of workers looks at beside everything else that it does: while the last stretches of
one recording are looked at the next one is decoded, and what has become an experiment is
calibrated.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from influx_wrap.compute.processes import WorkerDied
from influx_wrap.compute.progress import no_progress
from influx_wrap.errors import InputError
from influx_wrap.flight.pipeline import ObservedFlight, observe_flight
from influx_wrap.formats.recording_yaml import is_flight
from influx_wrap.model.experiment import Plan
from influx_wrap.model.hardware import Board
from influx_wrap.model.words import by_reason
from influx_wrap.observe.footage import VideoSearch
from influx_wrap.observe.stretches import SeenStretch, Stretch, look_at_stretch
from influx_wrap.observe.video import SOFTWARE
from influx_wrap.run.jobs import Job, unused_footage
from influx_wrap.run.listener import RunListener
from influx_wrap.run.recordings import Observed, observe_recording, search_recording
from influx_wrap.run.views import missing_in_short

log = logging.getLogger(__name__)

ALL_FRAMES = "frames of all recordings"
"""What the work on them is called."""


@dataclass(frozen=True)
class FootageSettings:
    """What footage is turned into experiments with: of a ``plan``, with ``boards`` by name;
    ``every_frame`` is searched for corners, or those that can become views; ``decoder`` is that of
    videos."""

    plan: Plan
    boards: Mapping[str, Board]
    every_frame: bool = False
    decoder: str = SOFTWARE


def observe_jobs(
    jobs: Sequence[Job], footage: FootageSettings, processes: int, listener: RunListener
) -> list[Job]:
    """The jobs, those of recordings with their experiments made from the footage.

    Footage that gives none becomes its job's failure. For the main thread only.
    """
    return [
        job if job.recording is None else _observe(job, footage, processes, listener)
        for job in jobs
    ]


@dataclass(frozen=True, eq=False)
class StretchTask:
    """A stretch of a cell's video to look at."""

    cell: str
    stretch: Stretch


@dataclass(frozen=True, eq=False)
class ExperimentTask:
    """A cell's experiment to make, all stretches of its video having been looked at."""

    cell: str
    recording: Path
    folder: Path
    footage: FootageSettings


FootageTask: TypeAlias = StretchTask | ExperimentTask
FootageAnswer: TypeAlias = SeenStretch | Observed | Exception


def work_on_footage(task: FootageTask) -> FootageAnswer:
    """What a worker does with footage."""
    if isinstance(task, StretchTask):
        return look_at_stretch(task.stretch)
    footage = task.footage
    try:
        return observe_recording(
            task.recording, footage.plan, footage.boards, task.folder,
            jobs=1, progress=no_progress, drawing=no_progress, every_frame=footage.every_frame,
            decoder=footage.decoder,
        )  # fmt: skip
    except Exception as error:
        return error


class FootageWork:
    """The videos of some jobs, for a pool of workers.

    Whoever works takes ``tasks`` and gives back what came of them, ``take``, which says what is
    to be done next: the experiment of a recording whose stretches have all been looked at, or its
    job, which is ready to be calibrated. A context in which what was found is nobody else's.
    """

    def __init__(
        self, jobs: Sequence[Job], footage: FootageSettings, listener: RunListener
    ) -> None:
        self._jobs = {job.cell: job for job in jobs}
        self._footage, self._listener = footage, listener
        self._open: dict[str, tuple[ExitStack, VideoSearch]] = {}
        self._out: dict[str, int] = {}
        self._n_frames: dict[str, int | None] = {}
        self._n_done: dict[str, int] = {}

    def __enter__(self) -> FootageWork:
        n = len(self._jobs)
        for number, cell in enumerate(list(self._jobs)):
            self._listener.progress("opening recordings", number, n)
            if not self._opened(cell):
                del self._jobs[cell]
        if n:
            self._listener.progress("opening recordings", n, n)
        return self

    def __exit__(self, *_: object) -> None:
        for stack, _search in self._open.values():
            stack.close()

    @property
    def cells(self) -> set[str]:
        """Those with a video that can be divided. Others, and those that cannot be opened, are not
        for a pool."""
        return set(self._jobs)

    def _opened(self, cell: str) -> bool:
        job, footage = self._jobs[cell], self._footage
        assert job.recording is not None
        with ExitStack() as stack:
            searching = search_recording(
                job.recording, footage.plan, footage.boards, job.folder,
                every_frame=footage.every_frame, decoder=footage.decoder,
            )  # fmt: skip
            # What is wrong with a recording is said when it is its turn.
            try:
                search = None if is_flight(job.recording) else stack.enter_context(searching)
            except Exception:
                return False
            if search is None or not (search.is_divisible or search.is_finished):
                return False
            self._open[cell] = stack.pop_all(), search
            self._n_frames[cell], self._n_done[cell] = search.source.n_expected, search.n_done
        return True

    def tasks(self) -> Iterator[FootageTask]:
        """Stretch by stretch, recording by recording."""
        for cell in self._jobs:
            self._out[cell] = 1
            if cell in self._open:
                for stretch in self._open[cell][1].stretches():
                    # It may have failed meanwhile.
                    if cell not in self._open:
                        break
                    self._out[cell] += 1
                    yield StretchTask(cell, stretch)
            self._out[cell] -= 1
            if self._out[cell] == 0 and cell in self._open:
                yield self._experiment(cell)

    def take(
        self, task: FootageTask, answer: FootageAnswer | WorkerDied
    ) -> FootageTask | Job | None:
        """What is to be done next because of an answer."""
        job = self._jobs[task.cell]
        if isinstance(task, StretchTask):
            self._out[task.cell] -= 1
            if task.cell not in self._open:
                return None
            assert not isinstance(answer, Observed)
            search = self._open[task.cell][1]
            try:
                search.take(task.stretch, answer)
            except Exception as error:
                self._close(task.cell)
                return replace(job, failure=error)
            self._n_done[task.cell] = search.n_done
            self._tell(task.cell)
            return self._experiment(task.cell) if self._out[task.cell] == 0 else None
        if isinstance(answer, WorkerDied):
            reason = f"the process that made its experiment ended (exit code {answer.exitcode})"
            answer = InputError(f"{job.recording}: {reason}. Run the same command again.")
        if isinstance(answer, Exception):
            return replace(job, failure=answer)
        assert isinstance(answer, Observed)
        for text in _warnings(answer):
            _warn(job.cell, text, self._listener)
        return job

    def _experiment(self, cell: str) -> ExperimentTask:
        self._close(cell)
        job = self._jobs[cell]
        assert job.recording is not None
        return ExperimentTask(cell, job.recording, job.folder, self._footage)

    def _close(self, cell: str) -> None:
        """Leave what was found to who makes the experiment."""
        stack, _ = self._open.pop(cell)
        stack.close()
        self._listener.finished(_frames_of(cell))

    def _tell(self, cell: str) -> None:
        """How many frames of a recording have been looked at, and of all."""
        self._listener.progress(_frames_of(cell), self._n_done[cell], self._n_frames[cell])
        known = [n for n in self._n_frames.values() if n is not None]
        total = sum(known) if len(known) == len(self._n_frames) else None
        self._listener.progress(ALL_FRAMES, sum(self._n_done.values()), total)


def warn_of_unused(data: Path | None, listener: RunListener) -> None:
    """Name the footage in a folder of recordings that belongs to none of them."""
    for text in [] if data is None else by_reason(unused_footage(data)):
        _warn(str(data), text, listener)


def _frames_of(cell: str) -> str:
    """What the work on a recording is called."""
    return f"frames of {cell}"


def _warn(subject: str, text: str, listener: RunListener) -> None:
    """Tell a person now, and whoever reads run.log later."""
    log.warning("%s: %s", subject, text)
    listener.warn(subject, f"{text}.")


def _observe(job: Job, footage: FootageSettings, processes: int, listener: RunListener) -> Job:
    assert job.recording is not None
    plan = footage.plan
    frames = _frames_of(job.cell)
    read = partial(listener.progress, frames)
    pictures = f"pictures of {job.cell}"
    drawing = partial(listener.progress, pictures)
    listener.progress(frames, 0, None)
    try:
        if is_flight(job.recording):
            flight = observe_flight(
                job.recording, plan, job.folder, jobs=processes, progress=read, drawing=drawing
            )
            texts = _flight_warnings(flight)
        else:
            observed = observe_recording(
                job.recording, plan, footage.boards, job.folder,
                jobs=processes, progress=read, drawing=drawing, every_frame=footage.every_frame,
                decoder=footage.decoder,
            )  # fmt: skip
            texts = _warnings(observed)
    except Exception as error:
        return replace(job, failure=error)
    finally:
        listener.finished(frames)
        listener.finished(pictures)
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
