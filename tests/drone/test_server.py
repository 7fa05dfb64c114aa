"""The server on the drone, as a process: flashes, answers, and what must never happen."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from influx_drone import protocol
from tests.drone.harness import ServerProcess, connect, fixed, serving, talking, wait_for


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with serving(tmp_path / "state") as running:
        yield running


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One for all tests that leave no mark on it."""
    with serving(tmp_path_factory.mktemp("common") / "state") as running:
        yield running


def test_a_trigger_flashes_and_is_on_disk_before_the_answer(server: ServerProcess) -> None:
    with fixed(server) as talk:
        answer = talk.trigger("a", point=7)
        assert answer["type"] == "reading"
        assert server.readings() == [answer["entry"]]
    entry = answer["entry"]
    assert (entry["id"], entry["point"], entry["n"]) == ("a", 7, 1)
    assert entry["fix"]["quality"] == "fixed"
    assert entry["fix"]["latitude_deg"] == pytest.approx(40.35, abs=1e-5)
    [(flash, seconds)] = server.flashes()
    assert flash == "a"
    assert 0.25 <= seconds < 0.5
    # The fix is the one nearest to the flash: receivers report ten times a second.
    assert abs(entry["fix"]["clock_s"] - entry["led_on_clock_s"]) < 0.2


def test_the_same_trigger_again_gets_the_same_answer_and_no_flash(server: ServerProcess) -> None:
    with fixed(server) as talk:
        first = talk.trigger("a")
        again = talk.trigger("a", point=9)
        assert again["entry"] == first["entry"]
    with talking(server) as talk:
        assert talk.trigger("a")["entry"] == first["entry"]
    assert len(server.flashes()) == 1


def test_one_trigger_sent_twice_at_once_flashes_once(server: ServerProcess) -> None:
    with fixed(server) as talk:
        clock_s = talk.ask("status")["clock_s"]
        for _ in range(3):
            talk.send("trigger", id="a", point=1, not_after_s=clock_s + 60)
        answers = [talk.hear() for _ in range(3)]
    assert len({json.dumps(answer["entry"]) for answer in answers if answer}) == 1
    assert len(server.flashes()) == 1


def test_the_flash_goes_on_and_is_kept_when_the_link_breaks(server: ServerProcess) -> None:
    with fixed(server) as talk:
        clock_s = talk.ask("status")["clock_s"]
        talk.send("trigger", id="a", point=1, not_after_s=clock_s + 60)
        wait_for(lambda: [entry for entry in server.led() if entry["led"] == "on"])
    wait_for(server.readings)
    with talking(server) as talk:
        reply = talk.ask("readings", after=0)
        assert [entry["id"] for entry in reply["entries"]] == ["a"]


@pytest.mark.parametrize("late_s", [0.0, 0.02, 0.1, 0.24])
def test_a_server_killed_during_a_flash_answers_after_its_restart(
    server: ServerProcess, late_s: float
) -> None:
    with fixed(server) as talk:
        clock_s = talk.ask("status")["clock_s"]
        talk.send("trigger", id="a", point=1, not_after_s=clock_s + 60)
        wait_for(lambda: [entry for entry in server.led() if entry["led"] == "on"])
        time.sleep(late_s)
        server.kill()
    server.start()
    with fixed(server) as talk:
        answer = talk.trigger("a")
        assert answer["type"] == "reading"
    assert len(server.readings()) == 1
    [(flash, seconds)] = server.flashes()
    assert flash == "a"
    assert seconds < 0.5


def test_a_trigger_begun_but_never_flashed_is_flashed_when_it_is_sent_again(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    begun = {"kind": "started", "id": "a", "flight": "flight", "point": 1, "fix": None}
    (state / "journal.jsonl").write_text(json.dumps(begun) + "\n")
    with serving(state) as server, fixed(server) as talk:
        assert server.readings() == []
        assert talk.trigger("a")["type"] == "reading"
        assert len(server.flashes()) == 1


def test_a_killed_keeper_is_replaced_and_the_led_is_off(server: ServerProcess) -> None:
    with fixed(server) as talk:
        clock_s = talk.ask("status")["clock_s"]
        talk.send("trigger", id="a", point=1, not_after_s=clock_s + 60)
        wait_for(lambda: [entry for entry in server.led() if entry["led"] == "on"])
        [keeper] = server.keepers()
        os.kill(keeper, signal.SIGKILL)
        answer = talk.hear()
        # It was seen, though shorter: its reading counts, and it is not flashed again.
        assert answer is not None
        assert answer["type"] == "reading"
        assert talk.trigger("b")["type"] == "reading"
    assert [flash for flash, _ in server.flashes()] == ["a", "b"]
    assert max(seconds for _, seconds in server.flashes()) < 0.5


def test_a_keeper_that_hangs_is_ended_and_the_led_is_off(server: ServerProcess) -> None:
    with fixed(server) as talk:
        clock_s = talk.ask("status")["clock_s"]
        talk.send("trigger", id="a", point=1, not_after_s=clock_s + 60)
        wait_for(lambda: [entry for entry in server.led() if entry["led"] == "on"])
        [keeper] = server.keepers()
        os.kill(keeper, signal.SIGSTOP)
        answer = talk.hear()
        assert answer is not None
    [(_, seconds)] = server.flashes()
    assert seconds < 0.5


def test_a_keeper_killed_between_flashes_is_replaced(server: ServerProcess) -> None:
    [keeper] = server.keepers()
    os.kill(keeper, signal.SIGKILL)
    wait_for(lambda: server.keepers() not in ([], [keeper]))
    with fixed(server) as talk:
        assert talk.trigger("a")["type"] == "reading"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_stopped_server_leaves_no_keeper_and_the_led_off(
    server: ServerProcess, name: str
) -> None:
    with fixed(server) as talk:
        clock_s = talk.ask("status")["clock_s"]
        talk.send("trigger", id="a", point=1, not_after_s=clock_s + 60)
        wait_for(lambda: [entry for entry in server.led() if entry["led"] == "on"])
        assert server.process is not None
        server.process.send_signal(getattr(signal, name))
        assert server.process.wait(timeout=10) == 0
    assert server.keepers() == []
    assert max(seconds for _, seconds in server.flashes()) < 0.5
    assert not (server.state / "connection.json").exists()
    # What was begun was brought to its end.
    assert len(server.readings()) == 1


def test_led_off(server: ServerProcess) -> None:
    server.stop()
    server.led_off()
    assert server.led()[-1]["led"] == "off"


def test_a_trigger_that_comes_too_late_is_refused(server: ServerProcess) -> None:
    with fixed(server) as talk:
        clock_s = talk.ask("status")["clock_s"]
        answer = talk.trigger("a", not_after_s=clock_s - 1)
        assert answer["type"] == "refused"
        assert "too late" in answer["entry"]["reason"]
        # The answer stays what it was.
        assert talk.trigger("a")["entry"] == answer["entry"]
    assert server.flashes() == []


@pytest.mark.parametrize(
    ("gps", "problem", "accepted"),
    [
        ("file:EMPTY", "nothing has come", False),
        ("simulated:40.35,-74.65,60,quality=none", "no position", False),
        ("simulated:40.35,-74.65,60,quality=float", "float, not fixed", True),
        ("simulated:40.35,-74.65,60,sigma=0.3", "good to 0.", True),
    ],
)
def test_what_is_no_good_fix_is_refused(
    tmp_path: Path, gps: str, problem: str, accepted: bool
) -> None:
    (tmp_path / "empty").touch()
    gps = gps.replace("EMPTY", str(tmp_path / "empty"))
    with serving(tmp_path / "state", gps=gps) as server, talking(server) as talk:
        wait_for(lambda: problem in " ".join(talk.ask("status")["problems"]))
        refused = talk.trigger("a")
        assert refused["type"] == "refused"
        assert problem in refused["entry"]["reason"]
        assert server.flashes() == []
        answer = talk.trigger("b", accept_float=True)
        assert answer["type"] == ("reading" if accepted else "refused")


def test_a_fix_that_is_old_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path / "state", "--max-age-s", "0.001") as server, talking(server) as talk:
        wait_for(lambda: talk.ask("status")["fix"])
        time.sleep(0.05)
        answers = [talk.trigger(f"t{k}", accept_float=True) for k in range(3)]
        refused = [answer for answer in answers if answer["type"] == "refused"]
        assert refused
        assert "s old" in refused[0]["entry"]["reason"]


def test_answers_are_numbered_within_their_flight(server: ServerProcess) -> None:
    with fixed(server, "one") as talk:
        numbers = [talk.trigger(f"a{k}")["entry"]["n"] for k in range(3)]
        assert numbers == [1, 2, 3]
    with wait_for(lambda: connect(server)).socket:
        pass
    server.stop()
    server.start()
    with fixed(server, "two") as talk:
        assert talk.trigger("b")["entry"]["n"] == 1
        assert len(talk.ask("readings", after=0)["entries"]) == 1
    server.stop()
    server.start()
    with talking(server, "one") as talk:
        entries = talk.ask("readings", after=1)["entries"]
        assert [entry["id"] for entry in entries] == ["a1", "a2"]


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00\xff\xfe\n",
        b"{}\n",
        b"[1]\n",
        b'{"type":"trigger","id":"a","point":1,"not_after_s":1e9}\n',
        b'{"type":"hello","token":"guess","flight":"f","version":1}\n',
        b'{"type":"hello","token":7,"flight":"f","version":1}\n',
        b"[" * 3000 + b"\n",
        b"x" * 100_000,
    ],
)
def test_strangers_are_refused_and_the_server_goes_on(common: ServerProcess, said: bytes) -> None:
    logged = len(common.log.read_text())
    talk = connect(common)
    with talk.socket:
        talk.socket.sendall(said)
        reply = talk.hear()
        assert reply is None or reply["type"] == "error"
        assert talk.hear() is None
    wait_for(lambda: common.log.read_text()[logged:].count("refused"))
    wait_for(common.is_fixed)
    assert common.flashes() == []


@pytest.mark.parametrize(
    "values",
    [
        {"id": "../../etc/passwd"},
        {"id": ""},
        {"id": None},
        {"id": "x" * 65},
        {"point": -1},
        {"point": "1"},
        {"point": True},
        {"not_after_s": "soon"},
        {"not_after_s": None},
        {"accept_float": 1},
    ],
)
def test_a_malformed_trigger_is_refused(common: ServerProcess, values: dict[str, object]) -> None:
    with talking(common) as talk:
        reply = talk.trigger("a", **values)
        assert reply["type"] == "error"
        assert talk.hear() is None
    assert common.flashes() == []


def test_an_oversized_message_from_a_welcome_client_is_refused(common: ServerProcess) -> None:
    with talking(common) as talk:
        reply = talk.ask("status", padding="x" * protocol.REQUEST_BYTES)
        assert reply["type"] == "error"
        assert "4096" in reply["message"]
        assert talk.hear() is None


def test_random_messages_do_no_harm(common: ServerProcess) -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        talk = connect(common)
        with talk.socket, suppress(OSError):
            for _ in range(int(rng.integers(1, 4))):
                talk.socket.sendall(
                    rng.bytes(int(rng.integers(1, 300))) + b"\n" * int(rng.integers(2))
                )
    wait_for(common.is_fixed)
    assert common.flashes() == []


def test_a_second_ground_station_is_refused_while_the_first_is_there(
    server: ServerProcess,
) -> None:
    found = server.connection()
    assert found is not None
    with fixed(server, "first") as first:
        second = connect(server)
        with second.socket:
            hello = {"token": found["token"], "flight": "second", "version": protocol.VERSION}
            reply = second.ask("hello", **hello)
            assert reply["type"] == "error"
            assert "another ground station" in reply["message"]
        assert first.trigger("a")["type"] == "reading"
        # The same one may come back while its old connection still seems to stand.
        with talking(server, "first") as again:
            assert again.ask("status")["n"] == 1
            assert first.hear() is None


def test_a_second_server_on_the_same_folder_is_refused(common: ServerProcess) -> None:
    other = ServerProcess(common.state)
    other.log = common.state.parent / "other.log"
    other.process = subprocess.Popen(
        [sys.executable, "-m", "influx_drone.cli", "--dry-run", "--state", str(common.state)],
        stderr=other.log.open("wb"),
    )
    assert other.process.wait(timeout=20) == 2
    assert "in use by another influx-drone-server" in other.log.read_text()
    wait_for(common.is_fixed)


def test_a_full_disk_refuses_before_the_led_is_on(server: ServerProcess) -> None:
    with fixed(server) as talk:
        assert talk.trigger("a")["type"] == "reading"
        assert server.process is not None
        size = (server.state / "journal.jsonl").stat().st_size
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size + 20, size + 20))
        answer = talk.trigger("b")
        assert answer["type"] == "error"
        assert "cannot be written" in answer["message"]
    assert [flash for flash, _ in server.flashes()] == ["a"]
    server.stop()
    server.start()
    with fixed(server) as talk:
        assert talk.trigger("b")["entry"]["n"] == 2


def test_only_its_user_can_read_the_token(common: ServerProcess) -> None:
    assert (common.state / "connection.json").stat().st_mode & 0o077 == 0


def test_it_listens_on_the_loopback_alone(common: ServerProcess) -> None:
    found = common.connection()
    assert found is not None
    port = f"{found['port']:04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    local = [line.split()[1] for line in lines if line.split()[3] == "0A"]
    assert [address for address in local if address.endswith(f":{port}")] == [f"0100007F:{port}"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "--gps is missing"),
        (["--dry-run", "--flash-s", "5"], "--flash-s"),
        (["--dry-run", "--flash-s", "nan"], "--flash-s"),
        (["--dry-run", "--port", "70000"], "--port"),
        (["--dry-run", "--max-age-s", "0"], "--max-age-s"),
        (["--dry-run", "--state", "/dev/null/x"], "cannot be made a folder"),
        (["--dry-run", "--gps", "nonsense:1"], "nonsense"),
    ],
)
def test_senseless_options(tmp_path: Path, options: list[str], problem: str) -> None:
    command = [sys.executable, "-m", "influx_drone.cli", "--state", str(tmp_path / "s"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_many_flashes_one_after_the_other(server: ServerProcess) -> None:
    """From several connections of one flight, all at once, as retries may come."""
    answers = []

    def many(start: int) -> None:
        with talking(server, "flight") as talk:
            for k in range(start, start + 3):
                try:
                    answers.append(talk.trigger(f"t{k}"))
                except (OSError, AssertionError):
                    return

    with fixed(server):
        pass
    threads = [threading.Thread(target=many, args=(k,)) for k in (0, 1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = [entry["id"] for entry in server.readings()]
    assert len(ids) == len(set(ids))
    assert sorted(flash for flash, _ in server.flashes()) == sorted(ids)
