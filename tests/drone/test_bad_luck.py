"""A flight over the real SSH client while things are killed, clocks jump and the receiver fails."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from influx_drone.ground import FlashFailed, Flight, opened_flight
from influx_drone.link import LinkLost
from influx_drone.readings import as_rows
from influx_drone.simulator import SimulatedReceiver, Situation
from tests.drone.harness import GUARD, Message, ServerProcess, lines_of, serving, wait_for
from tests.drone.pin import times_on
from tests.drone.ssh import Sshd
from tests.drone.test_attacks import LONGEST_ON_S
from tests.drone.test_ssh import gate as gate  # a fixture
from tests.drone.test_ssh import through

pytestmark = pytest.mark.system

KILLS = int(os.environ.get("INFLUX_KILLS", "18"))
"""200 take a quarter of an hour."""
VICTIMS = ("server", "keeper", "server keeper", "guard", "guard keeper", "guard server")


def flash_until_read(flight: Flight, point: int) -> Message:
    """The reading of a point, however often it must be tried."""
    while True:
        with suppress(FlashFailed, LinkLost):
            answer = flight.flash(point)
            if answer["kind"] == "reading":
                return answer


def test_kills_lose_nothing_double_nothing_and_leave_no_led_on(tmp_path: Path, gate: Sshd) -> None:
    rng = random.Random(KILLS)
    acknowledged: list[Message] = []
    over = threading.Event()
    with serving(tmp_path / "state") as drone:
        wait_for(drone.is_fixed)

        def fly() -> None:
            folder, host = tmp_path / "flight", through(gate, drone)
            with opened_flight(folder, host, patience_s=60.0) as flight:
                while not over.is_set():
                    acknowledged.append(flash_until_read(flight, len(acknowledged) + 1))
                flight.finish(60.0)

        pilot = threading.Thread(target=fly)
        pilot.start()
        for k in range(KILLS):
            victims = VICTIMS[k % len(VICTIMS)].split()
            wait_for(drone.keepers, 30)
            if rng.random() < 0.7:
                # Within a flash or just after it.
                before = len(drone.times_on_s())
                wait_for(lambda n=before: len(drone.times_on_s()) > n, 60)  # type: ignore[misc]
            time.sleep(rng.uniform(0.0, 0.35))
            found = {"keeper": drone.keepers(), "guard": drone.keepers(GUARD)}
            assert drone.process is not None
            for pid in [pid for name in victims for pid in found.get(name, [])]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if "server" in victims:
                drone.kill()
                drone.start()
        over.set()
        pilot.join(timeout=180)
        assert not pilot.is_alive()
        theirs, led = drone.readings(), drone.led()
        times = times_on(drone.pin)
    # Acknowledged is journalled, on both sides the same; and none is there twice.
    ids = [entry["id"] for entry in theirs]
    assert len(set(ids)) == len(ids)
    assert all(entry in theirs for entry in acknowledged)
    ours = lines_of(tmp_path / "flight" / "readings.jsonl")
    ours = [entry for entry in ours if entry["kind"] == "reading"]
    assert sorted(ours, key=lambda entry: entry["n"]) == theirs
    # Each was begun once, and by the pin's own record nothing else was on.
    begun = {entry["id"]: entry["clock_s"] for entry in led if entry["led"] == "on"}
    assert sorted(begun) == sorted(ids)
    assert len([entry for entry in led if entry["led"] == "on"]) == len(ids)
    last_on_s = -1.0
    for on_s, _ in times:
        [at_s] = [clock_s for clock_s in begun.values() if last_on_s < clock_s <= on_s]
        assert on_s - at_s < LONGEST_ON_S
        last_on_s = on_s
    assert max(seconds for _, seconds in times) <= LONGEST_ON_S
    print(
        f"{KILLS} kills: {len(acknowledged)} acknowledged, {len(theirs)} journalled, {len(times)} "
        f"times on for {max(seconds for _, seconds in times):.3f} s at most"
    )


LATITUDE_DEG, METRES_PER_DEGREE, SPEED_M_PER_S = 40.0, 111_000.0, 2.0
UNIX_AT_ZERO_S = time.time() - time.monotonic()
"""The true time, which no clock that is set in these tests moves."""
BEGUN_UNIX_S = time.time()


def true_latitude_deg(unix_s: float) -> float:
    """Of a drone that flies north."""
    return LATITUDE_DEG + SPEED_M_PER_S * (unix_s - BEGUN_UNIX_S) / METRES_PER_DEGREE


class Radio:
    """A receiver on that drone, heard through TCP, and what may happen to what it sends."""

    def __init__(self) -> None:
        self.mode = "good"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._over = threading.Event()
        self._random = random.Random(1)
        self._sent: list[bytes] = []
        self._waiting = b""
        self._receiver = SimulatedReceiver(
            lambda unix_s: Situation(true_latitude_deg(unix_s), -74.0, 60.0)
        )
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        self._over.set()
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        while not self._over.is_set():
            with suppress(OSError):
                self._listener.settimeout(0.5)
                connection, _ = self._listener.accept()
                with connection:
                    self._send_epochs(connection)

    def _send_epochs(self, connection: socket.socket) -> None:
        number = int(10 * (UNIX_AT_ZERO_S + time.monotonic())) + 1
        while not self._over.wait(number / 10 - UNIX_AT_ZERO_S - time.monotonic()):
            self._sent.append(self._receiver.epoch(number / 10))
            number += 1
            connection.sendall(self._bad(self._sent[-1]))

    def _bad(self, epoch: bytes) -> bytes:
        match self.mode:
            case "stops":
                return b""
            case "stands still":
                self._waiting += epoch
                return b""
            case "garbles":
                return bytes(
                    byte ^ (1 << self._random.randrange(8)) * (self._random.random() < 0.03)
                    for byte in epoch
                    if self._random.random() < 0.99
                )
            case "repeats":
                return self._sent[-20 - len(self._sent) % 10]
            case "freezes":
                return self._sent[-10 - len(self._sent) % 10]
            case "hangs up":
                raise ConnectionError
        waiting, self._waiting = self._waiting, b""
        return waiting + epoch


@contextmanager
def radio() -> Iterator[Radio]:
    made = Radio()
    try:
        yield made
    finally:
        made.close()


def check_readings(readings: list[Message]) -> None:
    """Each is where and when the LED was on, by the truth."""
    rows = {row["id"]: row for row in as_rows(readings)}
    for entry in readings:
        on_unix_s = UNIX_AT_ZERO_S + entry["led_on_clock_s"]
        off_deg = entry["fix"]["latitude_deg"] - true_latitude_deg(on_unix_s)
        # A fix may be half a second old.
        assert abs(off_deg * METRES_PER_DEGREE) < 0.6 * SPEED_M_PER_S
        assert abs(rows[entry["id"]]["timestamp"] - on_unix_s) < 0.3


MODES = ("stops", "stands still", "garbles", "repeats", "freezes", "hangs up")


def test_a_stream_that_fails_gives_no_wrong_reading(tmp_path: Path, gate: Sshd) -> None:
    """It stops, comes late and all at once, is garbled or repeated: refused, or right."""
    rng = random.Random(3)
    answers: list[Message] = []
    with radio() as receiver, serving(tmp_path / "state", gps=receiver.address) as drone:
        wait_for(drone.is_fixed)
        host = through(gate, drone)
        with opened_flight(tmp_path / "flight", host, patience_s=20.0) as flight:
            for mode in (*MODES, *MODES):
                receiver.mode = mode
                for _ in range(2):
                    time.sleep(rng.uniform(0.0, 1.2))
                    answers.append(flight.flash(len(answers) + 1))
                receiver.mode = "good"
                # What was held up comes all at once, in the middle of a flash maybe.
                answers.append(flight.flash(len(answers) + 1))
                answers.append(flash_until_read(flight, len(answers) + 1))
            theirs = flight.finish(20.0)
        readings = [entry for entry in theirs if entry["kind"] == "reading"]
        assert len(readings) == len(drone.times_on_s())
    assert {entry["kind"] for entry in answers} == {"reading", "refused"}
    check_readings(readings)


CLOCK = """\
import os, time
_real = {"time": time.time, "monotonic": time.monotonic}
_file = os.environ["CLOCKS"]

def _moved(name, slot):
    def now():
        with open(_file) as file:
            return _real[name]() + float(file.read().split()[slot])
    return now

time.time = _moved("time", 0)
# This one is set by a new start of the machine alone.
_started = _moved("monotonic", 1)() - _real["monotonic"]()
time.monotonic = lambda: _real["monotonic"]() + _started
"""


def test_clocks_may_jump(tmp_path: Path, gate: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    """The drone's and the ground's clocks are set, forth and back; and the drone's Pi reboots."""
    clocks = tmp_path / "clocks"

    def set_clocks(seconds: str) -> None:
        # In one step: the drone's processes read it whenever they ask for the time.
        new = tmp_path / "clocks.new"
        new.write_text(seconds)
        new.replace(clocks)

    set_clocks("0 0")
    monkeypatch.setenv("CLOCKS", str(clocks))
    jumps_s = [0.0, 3600.0, -3600.0, -1.7e9, 3e8, 0.5]
    real_time = time.time
    with radio() as receiver:
        drone = ServerProcess(tmp_path / "state", gps=receiver.address)
        (drone.pin / "sitecustomize.py").write_text(CLOCK)
        drone.start()
        try:
            wait_for(drone.is_fixed)
            with opened_flight(
                tmp_path / "flight", through(gate, drone), patience_s=20.0
            ) as flight:
                for point, jump_s in enumerate(jumps_s, start=1):
                    set_clocks(f"{jump_s} 0")
                    monkeypatch.setattr(time, "time", lambda s=jump_s: real_time() - s)
                    assert flight.flash(point)["kind"] == "reading"
                check_readings(flight.readings)
                drone.stop()
                # As long as it was up before, its clock now is behind the one of the journal.
                set_clocks(f"0 {1.0 - time.monotonic()}")
                drone.start()
                assert flash_until_read(flight, len(jumps_s) + 1)["led_on_clock_s"] < 100
                flight.finish(20.0)
                assert len(flight.readings) == len(drone.times_on_s()) == len(jumps_s) + 1
                stamps = [row["timestamp"] for row in as_rows(flight.readings)]
                assert stamps == sorted(stamps)
                assert stamps[-1] - stamps[0] < 120
        finally:
            drone.stop()
