"""The unit under a real systemd: what happens to the LED when the service is stopped or killed.

systemd runs as the first process of namespaces of its own, over a copy-on-write view of this
machine's files and with nothing of its configuration (``boot.sh``).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drone.harness import GUARD, HOME, Message, ServerProcess, fixed, wait_for
from tests.drone.pin import ROOT, environment
from tests.drone.test_attacks import LONGEST_ON_S, begin_flash
from tests.drone.test_install import unit_of

UNSHARE = ["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--cgroup", "true"]
UNIT = "influx-drone.service"
SERVER = "influx_drone.cli"


def can_boot() -> bool:
    tools = ("systemctl", "unshare", "nsenter")
    if os.getuid() != 0 or not all(map(shutil.which, tools)):
        return False
    return subprocess.run(UNSHARE, capture_output=True).returncode == 0


pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not can_boot(), reason="systemd can be booted by root alone"),
]


class Booted(ServerProcess):
    """The service in a systemd of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "state")
        self.folder = folder
        self.pin = folder / "pin"

    def start(self) -> None:
        """Boot, and wait until the server listens."""
        for name in ("units", "opt/bin", "state", "pin"):
            (self.folder / name).mkdir(parents=True)
        unit = unit_of("--user", "root", "--gps", HOME)
        (self.folder / "units" / UNIT).write_text("\n".join(["[Unit]", *unit]))
        told = {**environment(self.pin), "PIN_RECORD": "/srv/pin/pin"}
        told["PYTHONPATH"] = told["PYTHONPATH"].replace(str(self.pin), "/srv/pin")
        lines = [f"Environment={name}={value}" for name, value in told.items()]
        more = self.folder / "units" / f"{UNIT}.d"
        more.mkdir()
        (more / "pin.conf").write_text(
            "\n".join(["[Service]", "ReadWritePaths=/srv/pin", "SupplementaryGroups=", *lines])
        )
        server = self.folder / "opt" / "bin" / "influx-drone-server"
        server.write_text(f'#!/bin/sh\nexec {sys.executable} -m {SERVER} --dry-run --port 0 "$@"\n')
        server.chmod(0o755)
        readable = dict.fromkeys([str(ROOT), sys.prefix, sys.base_prefix])
        boot = Path(__file__).with_name("boot.sh")
        command = ["sh", str(boot), str(self.folder), UNIT, *readable]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stderr=log, stdout=log)
        wait_for(lambda: self.connection() or self.process.poll() is not None, 60)
        assert self.process.poll() is None, self.log.read_text()

    def connection(self) -> Message | None:
        """Its port and token, as the last server to start has written them."""
        with contextlib.suppress(OSError, ValueError):
            return json.loads((self.state / "connection.json").read_text())
        return None

    def _members(self, group: str) -> list[int]:
        """The processes in a control group of this systemd."""
        assert self.process is not None
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                groups = (folder / "cgroup").read_text()
                if f"influx-drone-test.{self.process.pid}/{group}\n" in groups:
                    found.append(int(folder.name))
        return found

    def keepers(self, module: str = "influx_drone.led") -> list[int]:
        """The service's processes of a module."""
        found = []
        for pid in self._members(f"system.slice/{UNIT}"):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if module.encode() in words and b"--led-off" not in words:
                    found.append(pid)
        return found

    def systemctl(self, *words: str) -> str:
        """What it says."""
        [init] = self._members("init.scope")
        command = ["nsenter", f"--target={init}", "--mount", "--pid", "--cgroup", "systemctl"]
        return subprocess.run([*command, *words], capture_output=True, text=True).stdout

    def exit(self) -> None:
        """Shut the system down."""
        assert self.process is not None
        self.systemctl("exit", "0")
        try:
            self.process.wait(timeout=30)
        finally:
            # Its first process takes all others with it.
            for init in self._members("init.scope"):
                os.kill(init, signal.SIGKILL)
            self.process.wait(timeout=30)


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Booted]:
    system = Booted(tmp_path_factory.mktemp("systemd"))
    system.start()
    try:
        yield system
    finally:
        system.exit()


@pytest.mark.parametrize("how", ["stop", "restart", "kill server", "kill keeper", "kill guard"])
def test_whatever_ends_the_service_the_led_goes_off_in_time(booted: Booted, how: str) -> None:
    """In the middle of a flash. With KillMode=mixed systemd itself killed the LED's process."""
    with fixed(booted) as talk:
        token, n_before = booted.connection(), len(booted.times_on_s())
        begin_flash(booted, talk, how.replace(" ", "-"))
        time.sleep(0.05)
        match how.split():
            case ["kill", module]:
                name = {"server": SERVER, "keeper": "influx_drone.led", "guard": GUARD}[module]
                [pid] = booted.keepers(name)
                os.kill(pid, signal.SIGKILL)
            case [verb]:
                booted.systemctl(verb, UNIT)
    if how == "stop":
        assert booted.systemctl("is-active", UNIT).strip() == "inactive"
        assert not booted.keepers()
        booted.systemctl("start", UNIT)
    if how in ("stop", "restart", "kill server"):
        wait_for(lambda: booted.connection() not in (None, token), 30)
    with fixed(booted) as talk:
        assert talk.trigger(how.replace(" ", "-"))["type"] == "reading"
    [seconds] = booted.times_on_s()[n_before:]
    assert seconds < LONGEST_ON_S


def test_if_all_are_killed_the_service_manager_turns_the_led_off(booted: Booted) -> None:
    """Nothing of ours is left to keep a time; it is off before the server starts again."""
    with fixed(booted) as talk:
        token = booted.connection()
        begin_flash(booted, talk, "all")
        booted.systemctl("kill", "--signal=KILL", "--kill-who=all", UNIT)
    wait_for(lambda: booted.connection() not in (None, token), 30)
    times = booted.times_on_s()
    assert times[-1] < 5.0
    with fixed(booted) as talk:
        assert talk.trigger("all")["type"] == "reading"
        assert booted.times_on_s() == times


def test_the_service_is_confined(booted: Booted) -> None:
    """And works all the same, which the tests before have shown."""
    [pid] = booted.keepers(SERVER)
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    assert int(status["CapBnd"], 16) == 0
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert booted.state.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in booted.state.iterdir()} == {0o600}
