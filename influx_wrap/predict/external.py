"""Methods in their own installations: a Python environment, or a container.

The method's runner (``runners``) is started there and asked, frame by frame, over a pipe. Frames
are handed over as PNG files in a temporary folder, a few ahead; all of a video's at once to a
method that wants the whole video. A method answers frame by frame from one process for all videos,
which is started afresh after a fault; a whole video has a process of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.formats.files import make_folder
from influx_wrap.formats.runner_answer import camera_of
from influx_wrap.model.arrays import FloatArray, Picture
from influx_wrap.model.predictions import PARAMETERS
from influx_wrap.model.words import size_text
from influx_wrap.observe.frames import TruncatedInput
from influx_wrap.predict.predictor import (
    Footage,
    MethodError,
    Predicted,
    Predictor,
    SettingValue,
    all_frames,
    typed_settings,
)
from influx_wrap.predict.process import Environment, MethodProcess
from influx_wrap.predict.runner import Runner, method_runner

AHEAD = 4
"""How many frames a method may have in hand."""


class NotInstalledError(InputError):
    """A method is not there at all, for this video or any other."""


@dataclass
class External(Predictor):
    """A method behind a pipe.

    camera     kind of camera it gives, one of ``PARAMETERS``
    logs       folder for what the method writes to stderr, one file per process
    timeout_s  how long the method may be silent
    stop       set from another thread, ends all waiting
    """

    name: str
    runner: Runner
    settings: Mapping[str, SettingValue]
    camera: str
    environment: Environment
    logs: Path
    stride: int
    timeout_s: float
    stop: threading.Event

    def __post_init__(self) -> None:
        self._process: MethodProcess | None = None

    @property
    def kind(self) -> str:
        """Of camera."""
        return self.camera

    def predict(self, footage: Footage, progress: Progress) -> Predicted:
        """Ask for all frames of a video, or every ``stride``-th."""
        # A video that cannot be opened should not cost a process.
        size = footage.source.image_size
        process = self._process or self._started(footage)
        self._process = None
        process.note(f"== {footage.name}, {size_text(size)}")
        try:
            predicted = self._ask(process, VideoAnswers(self.kind), footage, progress)
        except MethodError as error:
            process.close()
            raise MethodError(f"{self.name} {error}; its stderr is in {process.log}") from None
        except BaseException:
            process.close()
            raise
        if self.runner.whole_video:
            process.close()
        else:
            self._process = process
        return predicted

    def close(self) -> None:
        """End the process that waits for another video."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def _started(self, footage: Footage) -> MethodProcess:
        make_folder(self.logs)
        log = self.logs / f"{footage.name}.log"
        log.unlink(missing_ok=True)
        try:
            process = MethodProcess(
                self.environment,
                self.runner.path,
                self.settings,
                log,
                timeout_s=self.timeout_s,
                stop=self.stop,
            )
        except InputError as error:
            raise NotInstalledError(str(error)) from None
        try:
            first = process.talk.receive()
            if "missing" in first:
                raise NotInstalledError(
                    f"{self.name} is not installed in {self.environment} ({first['missing']}). "
                    f"{self.runner.install} Then name that environment's interpreter with "
                    "--python, or a container image with --image."
                )
            if "ready" not in first:
                raise MethodError("did not begin by saying that it is ready")
        except MethodError as error:
            process.close()
            raise MethodError(
                f"{self.name} could not be started: it {error}; its stderr is in {log}"
            ) from None
        except BaseException:
            process.close()
            raise
        return process

    def _ask(
        self, process: MethodProcess, answers: VideoAnswers, footage: Footage, progress: Progress
    ) -> Predicted:
        waiting: dict[int, Path] = {}
        n_frames, n_asked, truncated = 0, 0, None
        try:
            for index, picture in footage.pictures():
                n_frames = index + 1
                if index % self.stride:
                    continue
                path = process.folder / f"{index:06d}.png"
                _write_png(path, picture)
                process.talk.send({"frame": index, "path": str(path)})
                waiting[index] = path
                n_asked += 1
                if not self.runner.whole_video and len(waiting) == AHEAD:
                    answered = answers.take(process.talk.receive(), waiting)
                    waiting.pop(answered).unlink()
                progress(n_frames, footage.source.n_frames)
        except TruncatedInput as error:
            truncated = error
        if not n_frames:
            raise truncated or InputError(f"{footage.path} has no frame.")
        # Waited for even if all is answered: what else it said must not count for the next video.
        process.talk.send({"end": True})
        while "done" not in (message := process.talk.receive()):
            if self.runner.whole_video and message.get("frame") == "all":
                answers.take_for_all(message)
            else:
                answers.take(message, waiting)
        if not self.runner.whole_video and len(answers) < n_asked:
            raise MethodError(f"left {n_asked - len(answers)} frames without a word")
        for path in waiting.values():
            path.unlink()
        warnings = list(answers.warnings())
        if truncated is not None:
            warnings.append(str(truncated))
        return Predicted(
            all_frames(answers.values(n_frames)), tuple(warnings), whole=truncated is None
        )


class VideoAnswers:
    """What a method has said about a video so far."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._n_parameters = len(PARAMETERS[kind])
        self._rows: dict[int, FloatArray] = {}
        self._for_all: FloatArray | None = None
        self._errors: dict[int, str] = {}
        self._impossible: list[str] = []

    def __len__(self) -> int:
        """How many frames were answered, one by one."""
        return len(self._rows)

    def take(self, message: Mapping[str, Any], asked: Mapping[int, Path]) -> int:
        """Note the answer for a frame, in whatever order they come; returns the frame."""
        frame = message.get("frame")
        if type(frame) is not int or frame not in asked or frame in self._rows:
            raise MethodError(f"answered for frame {frame!r}, which nobody had asked about")
        if "error" in message:
            self._errors[frame] = str(message["error"])
        self._rows[frame] = self._row(f"frame {frame}", message)
        return frame

    def take_for_all(self, message: Mapping[str, Any]) -> None:
        """Note the one answer that holds for every frame, looked at or not."""
        self._for_all = self._row("all frames", message)

    def _row(self, where: str, message: Mapping[str, Any]) -> FloatArray:
        """(P,) NaN where the method does not know, or names a camera that cannot be."""
        nothing = np.full(self._n_parameters, np.nan)
        try:
            row = camera_of(message, self._kind)
        except InputError as error:
            raise MethodError(f"answered {error} for {where}") from None
        if row is None:
            return nothing
        if not np.isfinite(row).all() or (row[:2] <= 0).any():
            self._impossible.append(where)
            return nothing
        return row

    def warnings(self) -> Iterator[str]:
        """What the user should know. A method that failed on every frame has failed."""
        if self._errors and len(self._errors) == len(self._rows):
            raise MethodError(f"failed on every frame ({next(iter(self._errors.values()))[:200]})")
        if self._errors:
            frame, text = next(iter(self._errors.items()))
            yield f"it failed on {len(self._errors)} frames, first on frame {frame} ({text[:200]})."
        if self._impossible:
            yield (
                f"{len(self._impossible)} answers are no camera and are left out, first that for "
                f"{self._impossible[0]}: all numbers must be finite, and focal lengths positive."
            )

    def values(self, n_frames: int) -> FloatArray:
        """(n_frames, P)."""
        values = np.full((n_frames, self._n_parameters), np.nan)
        if self._for_all is not None:
            values[:] = self._for_all
        for frame, row in self._rows.items():
            values[frame] = row
        return values


def make_external(
    method: str,
    given: Mapping[str, str],
    environment: Environment,
    logs: Path,
    *,
    stride: int | None = None,
    timeout_s: float | None = None,
    stop: threading.Event | None = None,
) -> External:
    """A method by its name, one of ``EXTERNAL``, or by the path of a runner.

    ``stride`` and ``timeout_s`` are the runner's unless given.
    """
    name, runner = method_runner(method)
    settings = typed_settings(name, runner.settings, given)
    return External(
        name,
        runner,
        settings,
        runner.kind_with(name, settings),
        environment,
        logs,
        stride or runner.stride,
        timeout_s or float(runner.timeout_s),
        stop or threading.Event(),
    )


def _write_png(path: Path, picture: Picture) -> None:
    """Quickly rather than small: it is read once."""
    _, data = cv2.imencode(".png", picture, [cv2.IMWRITE_PNG_COMPRESSION, 1])
    try:
        path.write_bytes(data.tobytes())
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror}. Set TMPDIR to a folder with more room."
        ) from None
