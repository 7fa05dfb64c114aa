"""A method run over many videos: a few at once, what is finished kept, a fault costing one video.

What was predicted for a video is kept in a journal, a hidden folder beside the results, under
a name made from the video and all that could change the answer. Whoever starts the same work again
finds it there; what failed is tried again. The journal is removed when nothing failed.
"""

from __future__ import annotations

import hashlib
import io
import json
import queue
import shutil
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from influx_wrap import __version__
from influx_wrap.compute.processes import completed
from influx_wrap.errors import InputError
from influx_wrap.formats.arrays import read_arrays
from influx_wrap.formats.files import make_folder, write_bytes
from influx_wrap.model.predictions import PARAMETERS, VideoPredictions
from influx_wrap.observe.journal import footage_hash
from influx_wrap.predict.external import NotInstalledError
from influx_wrap.predict.predictor import (
    Footage,
    MethodError,
    Predicted,
    Predictor,
    all_frames,
)
from influx_wrap.predict.process import Stopped

VideoProgress = Callable[[str, int, int | None], None]
"""Hears a video's name, how many of its frames are done, and of how many, if that is known."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of a video.

    predicted  None if the method failed
    failure    what happened then, a sentence
    n_frames   of the video; 0 if it could not be opened
    kept       True if it was found in the journal
    """

    name: str
    predicted: Predicted | None
    n_frames: int
    failure: str | None = None
    kept: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the method worked, on a recording that could be read to its end."""
        return self.predicted is not None and self.predicted.whole

    def answers(self, kind: str) -> VideoPredictions:
        """For all frames, none of them answered if the method failed."""
        if self.predicted is not None:
            return self.predicted.answers
        return all_frames(np.full((self.n_frames, len(PARAMETERS[kind])), np.nan))


class VideoJournal:
    """Finished videos in a folder; ``made_with`` is all that shapes the answers."""

    def __init__(self, folder: Path, made_with: Mapping[str, object]) -> None:
        self._folder = folder
        self._made_with = {**made_with, "influx_wrap": __version__}

    def path(self, footage: Footage) -> Path:
        """The file of a video."""
        described = {**self._made_with, "name": footage.name, "footage": footage_hash(footage.path)}
        digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
        if footage.metadata is not None:
            for values in (footage.metadata.frame, footage.metadata.lfl_mm):
                digest.update(values.tobytes())
        if footage.truth is not None:
            digest.update(footage.truth.intrinsics.tobytes())
        return self._folder / f"{digest.hexdigest()}.npz"

    def find(self, path: Path) -> Predicted | None:
        """What is kept; None if there is nothing, or it is not whole after a crash."""
        kept = read_arrays(path, ("frames", "values", "warnings", "whole"))
        if kept is None:
            return None
        try:
            answers = VideoPredictions(kept["frames"], kept["values"])
            return Predicted(answers, tuple(kept["warnings"].tolist()), bool(kept["whole"]))
        except (ValueError, TypeError):
            return None

    def keep(self, path: Path, predicted: Predicted) -> None:
        """Note a finished video."""
        make_folder(self._folder)
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            frames=predicted.answers.frames,
            values=predicted.answers.values,
            warnings=np.array(predicted.warnings, dtype=np.str_),
            whole=np.array(predicted.whole),
        )
        write_bytes(path, buffer.getvalue())

    def remove(self) -> None:
        """The results are written."""
        shutil.rmtree(self._folder, ignore_errors=True)


def predict_videos(
    footages: Sequence[Footage],
    make: Callable[[threading.Event], Predictor],
    journal: VideoJournal,
    *,
    jobs: int = 1,
    progress: VideoProgress = lambda name, done, total: None,
) -> Generator[Outcome, None, None]:
    """The outcome of every video, as they are completed.

    ``make`` makes a predictor for each of the ``jobs`` threads, of which each has one video at a
    time; the event it is given tells a predictor to give up. A method that is not installed
    ends everything.
    """
    stop = threading.Event()
    threads = ThreadPoolExecutor(jobs)
    predictors = [make(stop) for _ in range(min(jobs, len(footages)))]
    idle: queue.SimpleQueue[Predictor] = queue.SimpleQueue()
    for predictor in predictors:
        idle.put(predictor)

    def one(footage: Footage) -> Outcome:
        predictor = idle.get()
        try:
            return _outcome(footage, predictor, journal, progress)
        finally:
            idle.put(predictor)
            footage.close()

    try:
        for future in completed([threads.submit(one, footage) for footage in footages]):
            yield future.result()
    finally:
        stop.set()
        threads.shutdown(cancel_futures=True)
        for predictor in predictors:
            predictor.close()


def _outcome(
    footage: Footage, predictor: Predictor, journal: VideoJournal, progress: VideoProgress
) -> Outcome:
    try:
        path = journal.path(footage)
        kept = journal.find(path)
        if kept is not None:
            return Outcome(footage.name, kept, len(kept.answers.frames), kept=True)
        predicted = predictor.predict(
            footage, lambda done, total: progress(footage.name, done, total)
        )
    except (NotInstalledError, Stopped):
        raise
    except (MethodError, InputError) as error:
        text = str(error) if isinstance(error, InputError) else f"{error}."
        return Outcome(footage.name, None, _count(footage), failure=text)
    journal.keep(path, predicted)
    n_frames = len(predicted.answers.frames)
    progress(footage.name, n_frames, n_frames)
    return Outcome(footage.name, predicted, n_frames)


def _count(footage: Footage) -> int:
    try:
        return footage.count()
    except InputError:
        return 0
