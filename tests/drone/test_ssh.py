"""From the ground to the drone: a real OpenSSH server, a real server process, and bad luck."""

from __future__ import annotations

import getpass
import json
import os
import random
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from influx_drone import ground
from influx_drone.errors import DroneError
from influx_drone.ground import FlashFailed, opened_flight
from influx_drone.link import STATES, Host, Link, LinkLost, parse_host
from influx_wrap.formats.flight import read_flash_rtk
from tests.docs.pages import documented
from tests.drone.harness import ServerProcess, lines_of, serving, wait_for
from tests.drone.ssh import Sshd, make_key, sshd, wire

pytestmark = pytest.mark.system

POINTS = 24
BY = "tests/drone/test_ssh.py"


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with sshd(tmp_path_factory.mktemp("ssh") / "etc") as running:
        yield running


@pytest.fixture
def drone(tmp_path: Path) -> Iterator[ServerProcess]:
    with serving(tmp_path / "state") as running:
        wait_for(running.is_fixed)
        yield running


def through(gate: Sshd, drone: ServerProcess, port: int | None = None) -> Host:
    return parse_host(
        f"{gate.host.rpartition(':')[0]}:{port or gate.port}",
        identity=gate.identity,
        known_hosts=gate.known_hosts(port),
        state=str(drone.state),
    )


def agree(folder: Path, drone: ServerProcess, n: int) -> None:
    """Nothing lost, nothing doubled: n flashes, n readings, on both sides the same."""
    theirs = drone.readings()
    ours = [entry for entry in lines_of(folder / "readings.jsonl") if entry["kind"] == "reading"]
    assert len(theirs) == n
    assert sorted(ours, key=lambda entry: entry["n"]) == theirs
    assert len({entry["id"] for entry in theirs}) == n
    flashes = drone.flashes()
    assert sorted(flash for flash, _ in flashes) == sorted(entry["id"] for entry in theirs)
    assert max(seconds for _, seconds in flashes) < 0.5


def test_24_triggers_give_24_readings(tmp_path: Path, gate: Sshd, drone: ServerProcess) -> None:
    """By the command itself, Enter by Enter."""
    out = tmp_path / "flight"
    command = [
        sys.executable, "-m", "influx_wrap.cli.main", "drone", "trigger", "--host", gate.host,
        "--identity", str(gate.identity), "--known-hosts", str(gate.known_hosts()),
        "--state", str(drone.state), "--out", str(out),
    ]  # fmt: skip
    first = subprocess.run(command, input="\n" * 10 + "q", capture_output=True, text=True)
    assert first.returncode == 0, first.stderr
    assert "14 points are missing" in first.stdout
    done = subprocess.run(command, input="\n" * 14, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "24 readings" in done.stdout
    agree(out, drone, POINTS)
    rows = json.loads((out / "flash_rtk.json").read_text())
    assert [row["point"] for row in rows] == list(range(1, POINTS + 1))
    readings = read_flash_rtk(out / "flash_rtk.json")
    assert readings.covariance_m2 is not None
    assert np.ptp(readings.xyz_m, axis=0).max() < 0.01
    assert abs(readings.xyz_m[0, 2] - 60.0) < 1.0


def test_the_documented_command(tmp_path: Path) -> None:
    """As the pages have it: a name from the configuration of ssh, the server in its usual place."""
    home, pi, desk = tmp_path / "home", tmp_path / "pi", tmp_path / "desk"
    for folder in (home / ".ssh", (pi / STATES[1]).parent, desk):
        folder.mkdir(parents=True)
    at_home = f'ForceCommand cd {pi} && sh -c "$SSH_ORIGINAL_COMMAND"'
    commands = [*documented("drone.md", BY), *documented("tutorial.md", BY)]
    assert len(commands) == 2
    with sshd(tmp_path / "etc", at_home) as gate, serving(pi / STATES[1]) as drone:
        wait_for(drone.is_fixed)
        (home / ".ssh" / "known_hosts").write_text(gate.known_hosts().read_text())
        (home / ".ssh" / "config").write_text(
            f"Host drone\n  HostName 127.0.0.1\n  Port {gate.port}\n"
            f"  User {getpass.getuser()}\n  IdentityFile {gate.identity}\n"
        )
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        for number, command in enumerate(commands, start=1):
            folder = desk / str(number)
            folder.mkdir()
            done = subprocess.run(
                ["bash", "-c", command], cwd=folder, input="\n" * POINTS, capture_output=True,
                text=True, env={**os.environ, "HOME": str(home), "PATH": path},
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            rows = json.loads((folder / "flight" / "flash_rtk.json").read_text())
            assert [row["point"] for row in rows] == list(range(1, POINTS + 1))


def test_200_cuts_kills_and_doubled_triggers_lose_and_double_nothing(
    tmp_path: Path, gate: Sshd, drone: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Doubling(Link):
        """Sends each trigger twice."""

        def ask(self, kind: str, **values: Any) -> dict[str, Any]:
            reply = super().ask(kind, **values)
            if kind == "trigger":
                assert super().ask(kind, **values)["entry"] == reply["entry"]
            return reply

    monkeypatch.setattr(ground, "Link", Doubling)
    monkeypatch.setattr(ground, "RETRY_S", (0.01,))
    rng = random.Random(5)
    over = threading.Event()
    kills = []

    def kill_now_and_then() -> None:
        while not over.wait(rng.uniform(3, 8)):
            drone.kill()
            kills.append(time.monotonic())
            drone.start()

    @contextmanager
    def killing() -> Iterator[None]:
        killer = threading.Thread(target=kill_now_and_then)
        killer.start()
        try:
            yield
        finally:
            over.set()
            killer.join()

    with wire(gate.port, seed=5) as line:
        host = through(gate, drone, line.port)
        with opened_flight(tmp_path / "flight", host, patience_s=120.0) as flight, killing():
            line.cutting = True
            point = 1
            while point <= POINTS:
                answer = flight.flash(point)
                # A server that has just been started has no fix yet, and says so.
                point += answer["kind"] == "reading"
            while line.cuts < 200:
                flight.poll()
            line.cutting = False
            over.set()
            flight.finish(30.0)
            assert [entry["point"] for entry in flight.readings] == list(range(1, POINTS + 1))
    assert line.cuts >= 200
    assert len(kills) >= 3
    agree(tmp_path / "flight", drone, POINTS)


def test_readings_that_never_reached_the_ground_are_fetched(
    tmp_path: Path, gate: Sshd, drone: ServerProcess
) -> None:
    host = through(gate, drone)
    with opened_flight(tmp_path / "flight", host, patience_s=10.0) as flight:
        for point in (1, 2, 3):
            flight.flash(point)
    journal = tmp_path / "flight" / "readings.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    # The ground's computer died: the answer to the first is lost, the last line is torn.
    kept = [line for line in lines if json.loads(line)["id"] != json.loads(lines[1])["id"]]
    journal.write_bytes(b"".join(kept)[:-20])
    with opened_flight(tmp_path / "flight", host, patience_s=10.0) as flight:
        flight.poll()
        assert len(flight.readings) == 3
        flight.finish(10.0)
    agree(tmp_path / "flight", drone, 3)


def test_a_silent_link_is_noticed_and_an_old_trigger_does_not_flash(
    tmp_path: Path, gate: Sshd, drone: ServerProcess
) -> None:
    """The server hangs for longer than the drone hovers; what it then reads is too old."""
    assert drone.process is not None
    host = through(gate, drone)
    with opened_flight(tmp_path / "flight", host, patience_s=1.0) as flight:
        flight.poll()
        drone.process.send_signal(19)
        with pytest.raises(LinkLost):
            flight.flash(1)
        drone.process.send_signal(18)
        flight.finish(20.0)
        assert flight.readings == []
        assert flight.flash(1)["kind"] == "reading"
    assert len(drone.flashes()) == 1


def test_a_drone_with_a_full_disk_says_so_and_the_flight_goes_on(
    tmp_path: Path, gate: Sshd, drone: ServerProcess
) -> None:
    assert drone.process is not None
    with opened_flight(tmp_path / "flight", through(gate, drone), patience_s=10.0) as flight:
        flight.flash(1)
        size = (drone.state / "journal.jsonl").stat().st_size
        unlimited = resource.prlimit(drone.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(drone.process.pid, resource.RLIMIT_FSIZE, (size + 20, unlimited[1]))
        with pytest.raises(FlashFailed, match="cannot be written"):
            flight.flash(2)
        resource.prlimit(drone.process.pid, resource.RLIMIT_FSIZE, unlimited)
        assert flight.flash(2)["kind"] == "reading"
        flight.finish(10.0)
    agree(tmp_path / "flight", drone, 2)


def test_an_unknown_host_key_is_refused(tmp_path: Path, gate: Sshd, drone: ServerProcess) -> None:
    (tmp_path / "empty").touch()
    host = parse_host(
        gate.host, identity=gate.identity, known_hosts=tmp_path / "empty", state=str(drone.state)
    )
    with pytest.raises(DroneError, match="is not known"):
        Link(host, "flight")


def test_another_host_key_is_refused(tmp_path: Path, gate: Sshd, drone: ServerProcess) -> None:
    other = make_key(tmp_path / "other")
    (tmp_path / "hosts").write_text(
        f"[127.0.0.1]:{gate.port} {other.with_suffix('.pub').read_text()}"
    )
    host = parse_host(
        gate.host, identity=gate.identity, known_hosts=tmp_path / "hosts", state=str(drone.state)
    )
    with pytest.raises(DroneError, match="is not the known one"):
        Link(host, "flight")


def test_a_wrong_key_is_refused(tmp_path: Path, gate: Sshd, drone: ServerProcess) -> None:
    host = parse_host(
        gate.host, identity=make_key(tmp_path / "stranger"), known_hosts=gate.known_hosts(),
        state=str(drone.state),
    )  # fmt: skip
    with pytest.raises(DroneError, match="does not let"):
        Link(host, "flight")


def test_a_second_ground_station_is_refused(gate: Sshd, drone: ServerProcess) -> None:
    host = through(gate, drone)
    first = Link(host, "first")
    try:
        with pytest.raises(DroneError, match="another ground station"):
            Link(host, "second")
        assert first.ask("status")["type"] == "status"
    finally:
        first.close()
    wait_for(lambda: "another ground station" in drone.log.read_text())


def test_a_server_that_is_not_running_is_waited_for(
    tmp_path: Path, gate: Sshd, drone: ServerProcess
) -> None:
    drone.stop()
    host = through(gate, drone)
    with opened_flight(tmp_path / "flight", host, patience_s=30.0) as flight:
        state = flight.poll()
        assert not state.linked
        assert "is not running" in str(state.trouble)
        drone.start()
        wait_for(lambda: flight.poll().linked)


def test_forwarding_that_is_forbidden_is_named(tmp_path: Path, drone: ServerProcess) -> None:
    with (
        sshd(tmp_path / "etc", "AllowTcpForwarding no") as closed,
        pytest.raises(DroneError, match="AllowTcpForwarding"),
    ):
        Link(through(closed, drone), "flight")


@pytest.mark.parametrize("case", ["unknown host", "wrong key"])
def test_the_command_says_so_and_exits_with_2(
    tmp_path: Path, gate: Sshd, drone: ServerProcess, case: str
) -> None:
    (tmp_path / "empty").touch()
    hosts = tmp_path / "empty" if case == "unknown host" else gate.known_hosts()
    key = make_key(tmp_path / "stranger") if case == "wrong key" else gate.identity
    command = [
        sys.executable, "-m", "influx_wrap.cli.main", "drone", "trigger", "--host", gate.host,
        "--identity", str(key), "--known-hosts", str(hosts), "--state", str(drone.state),
        "--out", str(tmp_path / "flight"),
    ]  # fmt: skip
    done = subprocess.run(command, input="\n", capture_output=True, text=True)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert ("is not known" if case == "unknown host" else "does not let") in done.stderr
    assert drone.readings() == [] if (drone.state / "journal.jsonl").exists() else True
