"""A method's process: where it is installed, and the conversation with it.

A conversation is JSON lines both ways, each with a time limit. The process has a group of its own,
which is killed as a whole, so that nothing it started is left. Its stderr goes to a file. It may
end, hang or print anything: all of that is a ``MethodError`` here.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from influx_wrap.errors import InputError
from influx_wrap.formats.json_text import parse_json_text
from influx_wrap.predict.predictor import MethodError, SettingValue

RUNNERS = Path(__file__).parent / "runners"
SERVE = RUNNERS / "serve.py"
ENGINES = ("docker", "podman")
LONGEST_LINE = 1 << 16
SHOWN = 60
"""How many characters of rubbish, or of a log's last line, a message repeats."""
LOG_TAIL = 1 << 14
_SLICE_S = 0.2
_LAST_WORDS = 64


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


class Stopped(Exception):
    """The user wants no more of it."""


class Conversation:
    """A running process. ``stop`` ends all waiting, from whichever thread it is set."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        timeout_s: float,
        environment: Mapping[str, str],
        stop: threading.Event,
    ) -> None:
        self.log = log
        self._timeout_s = timeout_s
        self._stop = stop
        self._received = bytearray()
        try:
            with log.open("ab") as stderr:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    env={**os.environ, **environment},
                    start_new_session=True,
                )
        except OSError as error:
            raise InputError(f"{command[0]} cannot be started: {error.strerror}.") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._stdin, False)

    def send(self, message: Mapping[str, object]) -> None:
        """Write one line."""
        data = memoryview((json.dumps(message) + "\n").encode())
        deadline = time.monotonic() + self._timeout_s
        while data:
            self._wait(self._stdin, select.POLLOUT, deadline)
            try:
                data = data[os.write(self._stdin, data) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                # What it said last tells more than that it has gone.
                for _ in range(_LAST_WORDS):
                    self.receive()
                raise self._ended() from None

    def receive(self) -> dict[str, Any]:
        """Read one line, which must be a JSON object."""
        deadline = time.monotonic() + self._timeout_s
        while (end := self._received.find(b"\n")) < 0:
            if len(self._received) > LONGEST_LINE:
                raise self._rubbish(bytes(self._received))
            self._wait(self._stdout, select.POLLIN, deadline)
            data = os.read(self._stdout, LONGEST_LINE)
            if not data:
                raise self._rubbish(bytes(self._received)) if self._received else self._ended()
            self._received += data
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        try:
            message = parse_json_text(line, "the answer", bare_nan=True)
        except InputError:
            message = None
        if not isinstance(message, dict):
            raise self._rubbish(line)
        return message

    def close(self) -> None:
        """End the process and all it started, at once."""
        # The first process is still a zombie, if it has ended: its group's number is not reused.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _wait(self, file: int, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(file, event)
        while True:
            left = deadline - time.monotonic()
            if self._stop.is_set():
                raise Stopped
            if poll.poll(1e3 * max(0.0, min(left, _SLICE_S))):
                return
            if left <= 0:
                raise MethodError(f"was silent for {self._timeout_s:g} s")

    def _rubbish(self, line: bytes) -> MethodError:
        text = line[: 4 * SHOWN].decode(errors="replace")[:SHOWN]
        return MethodError(f"printed what is no answer ({text!r})")

    def _ended(self) -> MethodError:
        """How the process ended; it has closed its pipe, but may not be gone yet."""
        code: int | None = None
        for _ in range(100):
            # Without reaping it: ``close`` needs its group.
            ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
                break
            time.sleep(0.02)
        if code is None:
            how = "closed its pipe"
        elif code < 0:
            how = f"was killed by signal {-code} (out of memory?)"
        else:
            how = f"ended with exit code {code}"
        said = _last_line(self.log)
        return MethodError(f"{how}, saying {said!r}" if said else how)


def _last_line(log: Path) -> str:
    with suppress(OSError), log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - LOG_TAIL))
        lines = file.read().decode(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip() and not line.startswith("== ")]
        return said[-1][: 2 * SHOWN] if said else ""
    return ""
