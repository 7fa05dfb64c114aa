"""Where a method is installed, a Python environment or a container, and its process there."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.predict.conversation import Conversation
from influx_wrap.predict.predictor import SettingValue
from influx_wrap.predict.runner_facts import RUNNERS

SERVE = RUNNERS / "serve.py"
ENGINES = ("docker", "podman")


@dataclass(frozen=True)
class Environment:
    """Where a method is installed.

    python       the interpreter of its environment
    image        a container image instead, in which ``python`` is looked for
    run_options  for the container engine, such as ``--gpus=all``
    """

    python: str
    image: str | None = None
    run_options: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"the image {self.image}" if self.image else self.python

    def command(self, arguments: Sequence[str], readable: Sequence[Path], name: str) -> list[str]:
        """What starts the interpreter; the folders ``readable`` have the same names inside."""
        if self.image is None:
            return [self.python, *arguments]
        mounts = [f"--volume={folder}:{folder}:ro" for folder in readable]
        return [
            *(_engine(), "run", "--rm", "--interactive", f"--name={name}", *mounts),
            *(*self.run_options, self.image, self.python, *arguments),
        ]

    def kill(self, name: str) -> None:
        """End a container, which does not end with the command that started it."""
        if self.image is not None:
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run([_engine(), "kill", name], capture_output=True, timeout=30)


def _engine() -> str:
    for engine in ENGINES:
        found = shutil.which(engine)
        if found:
            return found
    raise InputError("--image needs docker or podman on the PATH; --python needs neither.")


class MethodProcess:
    """A method's process, and the folder in which it finds frames and leaves its litter.

    log        file for what it writes to stderr
    timeout_s  how long it may be silent
    stop       set from another thread, ends all waiting
    """

    def __init__(
        self,
        environment: Environment,
        runner: Path,
        settings: Mapping[str, SettingValue],
        log: Path,
        *,
        timeout_s: float,
        stop: threading.Event,
    ) -> None:
        self.log = log
        self._environment = environment
        self._temporary = tempfile.TemporaryDirectory(prefix="influx-predict-")
        self._name = f"influx-predict-{uuid.uuid4().hex[:12]}"
        folder = Path(self._temporary.name)
        self.folder = folder / "frames"
        litter = folder / "tmp"
        self.folder.mkdir()
        litter.mkdir()
        runner = runner.resolve()
        readable = sorted({SERVE.parent, runner.parent, self.folder})
        arguments = [str(SERVE), str(runner), json.dumps(dict(settings))]
        variables = {} if environment.image else {"TMPDIR": str(litter)}
        try:
            self.talk = Conversation(
                environment.command(arguments, readable, self._name),
                log,
                timeout_s=timeout_s,
                environment=variables,
                stop=stop,
            )
        except BaseException:
            self._temporary.cleanup()
            raise

    def note(self, text: str) -> None:
        """Write a line into the log, between those of the method."""
        with self.log.open("a") as file:
            file.write(text + "\n")

    def close(self) -> None:
        """End the process, and remove its folder."""
        self._environment.kill(self._name)
        self.talk.close()
        self._temporary.cleanup()
