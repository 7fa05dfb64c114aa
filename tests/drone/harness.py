"""A real server process on the loopback, and ways to talk to it and to harm it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from influx_drone import protocol
from tests.drone.pin import environment, times_on

Message = dict[str, Any]
HEAD = b'{"v":2,"crc":"'
GUARD = "influx_drone.guard"
HOME = "simulated:40.35,-74.65,60.0"


def wait_for(condition: Callable[[], Any], limit_s: float = 20.0) -> Any:
    """What ``condition`` returns once it is true."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited {limit_s} s in vain")


def lines_of(path: Path) -> list[Message]:
    """The entries of a journal, whose checksums must be right; old lines have none."""
    entries = []
    for line in path.read_bytes().splitlines():
        if not line.startswith(HEAD):
            entries.append(json.loads(line))
            continue
        head, body = line[: len(HEAD) + 10], line[len(HEAD) + 10 :]
        assert head == b'%b%08x",' % (HEAD, zlib.crc32(body[:-1]))
        entries.append(json.loads(b"{" + body))
    return entries


def _hear_hangups() -> None:
    """Tests that run under nohup ignore SIGHUP, and so would the processes that they start."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class ServerProcess:
    """``influx-drone-server --dry-run``, which can be killed and started again."""

    def __init__(self, state: Path, *options: str, gps: str = HOME) -> None:
        self.state = state
        self.options = ["--gps", gps, *options]
        self.log = state.parent / f"{state.name}.log"
        self.pin = state.parent / f"{state.name}.pin"
        self.environment = {**os.environ, **environment(self.pin)}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command = [sys.executable, "-m", "influx_drone.cli", "--dry-run", "--verbose",
                   "--port", "0", "--state", str(self.state), *self.options]  # fmt: skip
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stderr=log, stdout=log, env=self.environment, preexec_fn=_hear_hangups
            )
        wait_for(lambda: self.connection() or self.process.poll() is not None)

    def connection(self) -> Message | None:
        """Its port and token, if they are of the process that runs now."""
        assert self.process is not None
        with contextlib.suppress(OSError, ValueError):
            found = json.loads((self.state / "connection.json").read_text())
            if found["pid"] == self.process.pid:
                return found
        return None

    def kill(self) -> None:
        """SIGKILL, as the kernel does when memory runs out."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM, as the service manager does."""
        assert self.process is not None
        self.process.terminate()
        try:
            return self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def keepers(self, module: str = "influx_drone.led") -> list[int]:
        """Processes that hold the LED's pin; or its guards."""
        found = []
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (folder / "cmdline").read_bytes().split(b"\0")
                if module.encode() in words and str(self.state).encode() in words:
                    found.append(int(folder.name))
        return found

    def journal(self) -> list[Message]:
        """All entries of the drone's journal."""
        return lines_of(self.state / "journal.jsonl")

    def readings(self) -> list[Message]:
        """The readings among them."""
        return [entry for entry in self.journal() if entry["kind"] == "reading"]

    def led(self) -> list[Message]:
        """The LED's log."""
        return lines_of(self.state / "led.jsonl")

    def flashes(self) -> list[tuple[str, float]]:
        """(id, seconds on) of every flash; one that has no end counts as endless."""
        found, begun = [], None
        for entry in self.led():
            if entry["led"] == "on":
                assert begun is None, "turned on while it was on"
                begun = entry
            elif begun is not None:
                found.append((begun["id"], entry["clock_s"] - begun["clock_s"]))
                begun = None
        return found if begun is None else [*found, (begun["id"], float("inf"))]

    def times_on_s(self) -> list[float]:
        """For how long the LED was on each time, from the pin's own record."""
        active_high = "--active-high" in self.options
        return [seconds for _, seconds in times_on(self.pin, active_high=active_high)]

    def led_off(self) -> None:
        """What the service manager does when the server has ended."""
        words = [option for option in self.options if option == "--active-high"]
        command = [sys.executable, "-m", "influx_drone.cli", "--led-off", "--dry-run", *words]
        command += ["--state", str(self.state)]
        subprocess.run(command, check=True, env=self.environment)

    def is_fixed(self) -> bool:
        """Whether a fresh connection hears of a good fix."""
        with contextlib.suppress(AssertionError), talking(self, "probe") as talk:
            return not talk.ask("status")["problems"]
        return False


@contextmanager
def serving(state: Path, *options: str, gps: str = HOME) -> Iterator[ServerProcess]:
    """A server that is gone afterwards, with its keeper."""
    server = ServerProcess(state, *options, gps=gps)
    server.start()
    try:
        yield server
    finally:
        assert server.process is not None
        if server.process.poll() is None:
            server.stop()
        for keeper in [*server.keepers(GUARD), *server.keepers()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(keeper, signal.SIGKILL)


@dataclass
class Talk:
    """A bare connection to the server."""

    socket: socket.socket
    buffer: bytes = b""
    number: int = 0

    def send(self, kind: str, **values: Any) -> None:
        self.number += 1
        self.socket.sendall(protocol.encode({"type": kind, "seq": self.number, **values}))

    def hear(self) -> Message | None:
        """The next message, None at the end."""
        while b"\n" not in self.buffer:
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(line)

    def ask(self, kind: str, **values: Any) -> Message:
        self.send(kind, **values)
        reply = self.hear()
        assert reply is not None
        return reply

    def trigger(self, flash: str, **values: Any) -> Message:
        """Trigger at point 1, with a minute's time."""
        clock_s = self.ask("status")["clock_s"]
        given = {"id": flash, "point": 1, "not_after_s": clock_s + 60, **values}
        return self.ask("trigger", **given)


def connect(server: ServerProcess) -> Talk:
    """A connection that has not said hello yet."""
    found = server.connection()
    assert found is not None
    return Talk(socket.create_connection(("127.0.0.1", found["port"]), timeout=10))


@contextmanager
def talking(server: ServerProcess, flight: str = "flight") -> Iterator[Talk]:
    """A connection that was welcomed."""
    talk = connect(server)
    with talk.socket:
        found = server.connection()
        assert found is not None
        hello = talk.ask("hello", token=found["token"], flight=flight, version=protocol.VERSION)
        assert hello["type"] == "hello", hello
        yield talk


@contextmanager
def fixed(server: ServerProcess, flight: str = "flight") -> Iterator[Talk]:
    """The same, once there is a good fix."""
    with talking(server, flight) as talk:
        wait_for(lambda: not talk.ask("status")["problems"])
        yield talk
