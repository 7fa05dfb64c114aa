"""A method over videos and their files: what ``influx-calib predict`` does.

Everything is checked before the first frame is read (``prepare``); then come the answers
(``PredictRun.predict``) and the file of predictions (``PredictRun.write``).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.formats.files import check_writable
from influx_wrap.formats.groundtruth import read_truths
from influx_wrap.formats.lens_metadata import read_metadata
from influx_wrap.formats.submission import write_submission
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.predictions import Predictions
from influx_wrap.predict.external import External, make_external
from influx_wrap.predict.predictor import Footage, Predictor
from influx_wrap.predict.process import Environment
from influx_wrap.predict.runner import EXTERNAL
from influx_wrap.predict.trivial import TRIVIAL, make_trivial
from influx_wrap.predict.videos import Outcome, VideoJournal, VideoProgress, predict_videos

METHODS = (*TRIVIAL, *EXTERNAL)
VERSION = "influx"


@dataclass(frozen=True)
class PredictRequest:
    """Who predicts what.

    videos           by name, each a video or a folder of pictures
    out              file for the predictions; logs and what is kept for later go beside it
    method           its name, or the path of a runner of the user's own, a ``.py`` file
    settings         of the method, in place of its defaults
    metadata         a file per video, in their order, for the method metadata
    truth            file for the methods that need it
    sensor_width_mm  of the camera, for the method metadata
    stride           every which frame is looked at; None: as the method wants it
    timeout_s        how long the method may be silent; None: as the method wants it
    jobs             how many videos at once
    """

    videos: Mapping[str, Path]
    out: Path
    method: str
    settings: Mapping[str, str]
    metadata: Sequence[Path]
    truth: Path | None
    sensor_width_mm: float
    environment: Environment
    stride: int | None = None
    timeout_s: float | None = None
    jobs: int = 1

    def predictor(self, stop: threading.Event) -> Predictor:
        """The method; ``stop`` tells it to give up."""
        method = self.method
        if method in TRIVIAL:
            return make_trivial(method, self.settings, self.sensor_width_mm)
        check_method(method)
        return make_external(
            method,
            self.settings,
            self.environment,
            logs=self.out.with_name(f"{self.out.name}.logs"),
            stride=self.stride,
            timeout_s=self.timeout_s,
            stop=stop,
        )


@dataclass(frozen=True, eq=False)
class PredictRun:
    """A method and its videos, ready to begin; ``kind`` of camera is what it predicts."""

    request: PredictRequest
    method: str
    kind: str
    footages: Sequence[Footage]
    journal: VideoJournal

    def predict(self, progress: VideoProgress, finished: Callable[[str], None]) -> list[Outcome]:
        """What became of each video, in their order.

        progress  hears a video's name, how many frames are done, and of how many if that is known
        finished  hears the name of a video that is over
        """
        outcomes: dict[str, Outcome] = {}
        running = predict_videos(
            self.footages,
            self.request.predictor,
            self.journal,
            jobs=self.request.jobs,
            progress=progress,
        )
        with closing(running):
            for outcome in running:
                outcomes[outcome.name] = outcome
                finished(outcome.name)
        return [outcomes[name] for name in self.request.videos]

    def write(self, outcomes: Sequence[Outcome]) -> bool:
        """Write the predictions of all videos that could be opened; False if none could."""
        predicted = {
            outcome.name: outcome.answers(self.kind) for outcome in outcomes if outcome.n_frames
        }
        if predicted:
            predictions = Predictions(self.method, self.kind, VERSION, predicted)
            write_submission(self.request.out, predictions)
        if all(outcome.failure is None for outcome in outcomes):
            self.journal.remove()
        return bool(predicted)


def prepare(request: PredictRequest) -> PredictRun:
    """Check all that is asked for, and read what is known of the videos."""
    predictor = request.predictor(threading.Event())
    footages = _footages(request)
    check_writable(request.out)
    made_with = {
        "method": predictor.name,
        "settings": dict(request.settings),
        "sensor_width_mm": request.sensor_width_mm,
        **_provenance(predictor),
    }
    journal = VideoJournal(request.out.with_name(f".{request.out.name}.journal"), made_with)
    return PredictRun(request, predictor.name, predictor.kind, footages, journal)


def check_method(method: str) -> None:
    """Refuse what is neither a method's name nor a runner's file."""
    if method not in METHODS and not method.endswith(".py"):
        raise InputError(
            f"there is no method {method}; the methods are {', '.join(METHODS)}, and runners "
            "of your own, given as a file such as mine.py."
        )


def named_videos(texts: Sequence[str]) -> dict[str, Path]:
    """Videos by name; ``NAME=PATH``, or a path whose last part is the name."""
    paths: dict[str, Path] = {}
    for text in texts:
        path, (name, equals, rest) = Path(text), text.partition("=")
        if equals and not path.exists() and "/" not in name:
            path = Path(rest)
        else:
            name = path.resolve().name if path.is_dir() else path.stem
        if not path.exists():
            raise InputError(f"{path} does not exist.")
        if not name:
            raise InputError(f"{text}: the name before = is missing.")
        if name in paths:
            raise InputError(
                f"{paths[name]} and {path} would both be video {name}: name one of them, as in "
                f"other={path}."
            )
        paths[name] = path
    return paths


def _footages(request: PredictRequest) -> list[Footage]:
    videos, method, metadata, truth = (
        request.videos, request.method, request.metadata, request.truth,
    )  # fmt: skip
    if metadata and method != "metadata":
        raise InputError(f"--metadata is for the method metadata, not for {method}.")
    if method == "metadata" and len(metadata) != len(videos):
        raise InputError(
            f"the method metadata needs a --metadata file for each of the {len(videos)} videos, in "
            f"their order; there are {len(metadata)}."
        )
    if (truth is None) == (method in ("perfect", "noisy")):
        raise InputError("--truth is for the methods perfect and noisy, which need it.")
    told = dict(zip(videos, map(read_metadata, metadata), strict=False))
    truths = {} if truth is None else _truths(truth, list(videos))
    return [Footage(name, path, told.get(name), truths.get(name)) for name, path in videos.items()]


def _truths(path: Path, names: Sequence[str]) -> dict[str, GroundTruth]:
    """From a file of all videos or, for a single video, from its own."""
    truths = read_truths(path, names)
    missing = [name for name in names if name not in truths]
    if missing:
        raise InputError(f"{path} has no video {missing[0]}; name it as there: NAME=PATH.")
    return truths


def _provenance(predictor: Predictor) -> dict[str, object]:
    """What else shapes the answers of a method that is run elsewhere."""
    if not isinstance(predictor, External):
        return {}
    return {
        "runner": hashlib.sha256(predictor.runner.path.read_bytes()).hexdigest(),
        "environment": str(predictor.environment),
        "stride": predictor.stride,
    }
