"""Methods in their own installations: a Python environment, or a container.

The method's runner (``runners``) is started there and asked, frame by frame, over a pipe. Frames
are handed over as PNG files in a temporary folder, a few ahead; all of a video's at once to a
method that wants the whole video. A method answers frame by frame from one process for all videos,
which is started afresh after a fault; a whole video has a process of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import cv2

from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.formats.files import make_folder
from influx_wrap.model.arrays import Picture
from influx_wrap.model.words import size_text
from influx_wrap.observe.frames import TruncatedInput
from influx_wrap.predict.answers import VideoAnswers
from influx_wrap.predict.environment import Environment, MethodProcess
from influx_wrap.predict.predictor import (
    Footage,
    MethodError,
    Predicted,
    SettingValue,
    all_frames,
    typed_settings,
)
from influx_wrap.predict.runner_facts import EXTERNAL, RUNNERS, Runner, read_runner

AHEAD = 4
"""How many frames a method may have in hand."""


class NotInstalledError(InputError):
    """A method is not there at all, for this video or any other."""


@dataclass
class External:
    """A method behind a pipe.

    logs       folder for what the method writes to stderr, one file per process
    timeout_s  how long the method may be silent
    stop       set from another thread, ends all waiting
    """

    name: str
    runner: Runner
    settings: Mapping[str, SettingValue]
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
        return self.runner.kind

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
        progress(n_frames, n_frames)
        warnings = list(answers.warnings())
        if truncated is not None:
            warnings.append(str(truncated))
        return Predicted(
            all_frames(answers.values(n_frames)), tuple(warnings), whole=truncated is None
        )


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
    known = method in EXTERNAL
    runner = read_runner(RUNNERS / EXTERNAL[method] if known else Path(method))
    name = method if known else Path(method).stem
    return External(
        name,
        runner,
        typed_settings(name, runner.settings, given),
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
