"""What somebody tries who wants the server's token, its files, its attention, or its LED on."""

from __future__ import annotations

import os
import random
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from influx_drone.cli import _parser
from tests.drone.harness import (
    GUARD,
    ServerProcess,
    Talk,
    connect,
    fixed,
    serving,
    talking,
    wait_for,
)

LONGEST_ON_S = 0.5


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with serving(tmp_path / "state") as running:
        yield running


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One for all tests that leave no mark on it."""
    with serving(tmp_path_factory.mktemp("common") / "state") as running:
        yield running


def begin_flash(server: ServerProcess, talk: Talk, flash: str) -> None:
    """Trigger, and wait until the LED is on."""
    before = len(server.times_on_s()) if (server.pin / "pin").exists() else 0
    clock_s = talk.ask("status")["clock_s"]
    talk.send("trigger", id=flash, point=1, not_after_s=clock_s + 60)
    wait_for(lambda: len(server.times_on_s()) > before)


def refused(*options: object, code: int = 2) -> str:
    """What the command says that does not start."""
    command = [sys.executable, "-m", "influx_drone.cli", "--dry-run", "--port", "0"]
    command += [str(option) for option in options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


# Connections


def test_connections_that_say_nothing_lock_nobody_out(common: ServerProcess) -> None:
    """As many as there can be, all the time; those with the token get through all the same."""
    with ExitStack() as silent:
        for _ in range(100):
            silent.enter_context(connect(common).socket)
        welcome = 0
        for _ in range(40):
            silent.enter_context(connect(common).socket)
            with suppress(AssertionError), talking(common):
                welcome += 1
        assert welcome == 40


def test_a_flood_of_connections_locks_nobody_out(common: ServerProcess) -> None:
    over = threading.Event()

    def flood() -> None:
        held: list[socket.socket] = []
        while not over.is_set():
            with suppress(OSError):
                held.append(connect(common).socket)
            if len(held) > 60:
                held.pop(0).close()
        for one in held:
            one.close()

    attackers = [threading.Thread(target=flood) for _ in range(2)]
    for attacker in attackers:
        attacker.start()
    try:
        for _ in range(40):
            with talking(common):
                pass
    finally:
        over.set()
        for attacker in attackers:
            attacker.join()


def test_who_says_nothing_is_soon_gone(common: ServerProcess) -> None:
    begun = time.monotonic()
    with connect(common).socket as silent:
        silent.settimeout(10)
        while silent.recv(4096):
            pass
    assert time.monotonic() - begun < 3.0


@pytest.mark.parametrize("said", [
    b'{"type":"hello","token":"\\ud800","flight":"f","version":1,"seq":1}\n',
    b'{"type":"hello","seq":NaN}\n', b'{"type":"hello","seq":1e999}\n',
    b'{"type":"hello","seq":' + b"9" * 4000 + b"}\n", b'{"type":"hello","seq":[[]]}\n',
])  # fmt: skip
def test_no_first_words_are_too_strange(common: ServerProcess, said: bytes) -> None:
    with connect(common).socket as strange:
        strange.sendall(said)
        strange.settimeout(10)
        while strange.recv(4096):
            pass
    wait_for(common.is_fixed)
    assert "Traceback" not in common.log.read_text()


def test_a_number_that_is_too_large_is_refused(common: ServerProcess) -> None:
    with talking(common) as talk:
        assert talk.trigger("a", not_after_s=10**400)["type"] == "error"
    wait_for(common.is_fixed)
    assert "Traceback" not in common.log.read_text()


# The state folder


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    """It was prepared: whatever the server would open in it leads elsewhere."""
    precious, state = tmp_path / "precious", tmp_path / "state"
    state.mkdir()
    for name in ("server.lock", "led.lock", "journal.jsonl", "led.jsonl"):
        precious.write_text("precious")
        (state / name).symlink_to(precious)
    (state / "connection.tmp").touch()
    (state / "connection.tmp").chmod(0o666)
    state.chmod(0o777)
    for option in ((), ("--led-off",)):
        assert "can be written by other users" in refused("--state", state, *option)
        assert precious.read_text() == "precious"
        assert (state / "connection.tmp").read_text() == ""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_the_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    os.chown(tmp_path / "state", 65534, 65534)
    assert "belongs to user 65534" in refused("--state", tmp_path / "state")


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "elsewhere")
    assert "is a link" in refused("--state", tmp_path / "state")
    assert os.listdir(tmp_path / "elsewhere") == []


@pytest.mark.parametrize("name", ["server.lock", "led.lock", "journal.jsonl", "led.jsonl"])
def test_a_link_in_the_folder_is_not_followed(tmp_path: Path, name: str) -> None:
    precious, state = tmp_path / "precious", tmp_path / "state"
    precious.write_text("precious")
    state.mkdir(mode=0o700)
    (state / name).symlink_to(precious)
    assert f"{name} is a link" in refused("--state", state)
    assert precious.read_text() == "precious"


def test_the_token_is_written_into_a_file_of_its_own(tmp_path: Path) -> None:
    """Nobody who had the temporary file open before can read it."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    (state / "connection.tmp").touch(0o666)
    with open(state / "connection.tmp") as spy, serving(state) as server:
        assert server.connection()
        assert spy.read() == ""


def modes_of(folder: Path) -> dict[str, int]:
    paths = [folder, *folder.iterdir()]
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in paths}


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_nobody_else_can_read_anything(tmp_path: Path, umask: int) -> None:
    state, off = tmp_path / "state", tmp_path / "off"
    old = os.umask(umask)
    try:
        refused("--state", off, "--led-off", code=0)
        # As an earlier release left it.
        state.mkdir(mode=0o755)
        state.chmod(0o755)
        (state / "led.jsonl").touch(0o644)
        with serving(state) as server, fixed(server) as talk:
            assert talk.trigger("a")["type"] == "reading"
            modes = modes_of(state)
    finally:
        os.umask(old)
    assert len(modes) == 6
    for found in (modes, modes_of(off)):
        folder = "state" if found is modes else "off"
        assert found.pop(folder) == 0o700
        assert set(found.values()) == {0o600}, found


def test_the_help_does_not_lead_into_a_shared_folder() -> None:
    assert "/tmp" not in _parser().format_help()


# The journal


def test_damage_in_the_journals_costs_no_other_reading(tmp_path: Path) -> None:
    """Bits flipped and nonsense put in: what is answered is what was journalled, none twice."""
    state = tmp_path / "state"
    with serving(state) as server, fixed(server) as talk:
        said = {flash: talk.trigger(flash)["entry"] for flash in "abcd"}
    whole = (state / "journal.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    assert len(lines) == 8
    flipped = bytearray(lines[3])
    flipped[len(flipped) // 2] ^= 1
    nonsense = [b"{}\n", b'{"kind":"reading"}\n', b'{"kind":[],"id":{}}\n', b"[" * 9999 + b"\n"]
    damaged = [*lines[:3], bytes(flipped), *nonsense, *lines[4:]]
    (state / "journal.jsonl").write_bytes(b"".join(damaged))
    with serving(state) as server, fixed(server) as talk:
        for flash in "acd":
            assert talk.trigger(flash)["entry"] == said[flash]
        # b was flashed: its reading is made again from what was written before the flash.
        again = talk.trigger("b")["entry"]
        assert (again["kind"], again["id"]) == ("reading", "b")
        assert talk.trigger("e")["entry"]["n"] > max(entry["n"] for entry in said.values())
        log = server.log.read_text()
        assert f"{state / 'journal.jsonl'}, line 4, 5, 6, 7, 8: damaged" in log
        assert "Traceback" not in log
        assert len(server.times_on_s()) == 5


def test_what_flashed_is_not_flashed_again_if_the_journal_lost_it(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with serving(state) as server, fixed(server) as talk:
        talk.trigger("a")
    (state / "journal.jsonl").write_bytes(b"{}\n" * 2)
    with serving(state) as server, fixed(server) as talk:
        answer = talk.trigger("a")
        assert answer["type"] == "error"
        assert "it was flashed" in answer["message"]
        assert len(server.times_on_s()) == 1


def test_a_journal_of_an_earlier_release_is_gone_on_with(tmp_path: Path) -> None:
    """Its lines have neither version nor checksum."""
    state = tmp_path / "state"
    state.mkdir()
    fix = (
        '{"time_unix_s":1.8e9,"latitude_deg":40.0,"longitude_deg":-74.0,"height_m":60.0,'
        '"quality":"fixed","covariance_m2":null,"n_satellites":9,"clock_s":5.0}'
    )
    (state / "journal.jsonl").write_text(
        f'{{"kind":"started","id":"a","flight":"old","point":1,"fix":{fix},"unix_s":1.8e9}}\n'
        f'{{"kind":"reading","id":"a","flight":"old","n":1,"point":1,"fix":{fix},'
        '"led_on_clock_s":5.1,"led_off_clock_s":5.35}\n'
        '{"kind":"refused","id":"b","flight":"old","n":2,"point":2,"reason":"no"}\n'
        f'{{"kind":"started","id":"c","flight":"old","point":2,"fix":{fix},"unix_s":1.8e9}}\n'
    )
    (state / "led.jsonl").write_text(
        '{"clock_s": 5.1, "unix_s": 1.8e9, "led": "on", "id": "a", "why": "asked"}\n'
        '{"clock_s": 9.1, "unix_s": 1.8e9, "led": "on", "id": "c", "why": "asked"}\n'
    )
    with serving(state) as server, talking(server, "old") as talk:
        entries = talk.ask("readings", after=0)["entries"]
        assert [(entry["id"], entry["n"]) for entry in entries] == [("a", 1), ("b", 2), ("c", 3)]
        assert entries[2]["led_on_clock_s"] == 9.1
        assert server.times_on_s() == []


def test_the_id_of_another_flight_gets_an_error(server: ServerProcess) -> None:
    with fixed(server, "one") as talk:
        assert talk.trigger("a")["type"] == "reading"
    server.stop()
    server.start()
    with fixed(server, "two") as talk:
        answer = talk.trigger("a")
        assert answer["type"] == "error"
        assert "another flight" in answer["message"]
        assert talk.ask("readings", after=0)["entries"] == []
    assert len(server.times_on_s()) == 1


@pytest.mark.parametrize("loss", ["full", "deleted"])
def test_what_cannot_be_journalled_does_not_flash(server: ServerProcess, loss: str) -> None:
    journal = server.state / "journal.jsonl"
    with fixed(server) as talk:
        assert talk.trigger("a")["type"] == "reading"
        assert server.process is not None
        if loss == "full":
            limit = journal.stat().st_size + 20
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        else:
            journal.unlink()
        answer = talk.trigger("b")
        assert answer["type"] == "error"
        assert "cannot be written" in answer["message"]
    assert len(server.times_on_s()) == 1


# The LED


Harm = Callable[[ServerProcess], None]


def _kill(server: ServerProcess, *whom: str) -> None:
    """At once, as far as that can be: nobody has the time to notice."""
    assert server.process is not None
    pids = {
        "server": [server.process.pid],
        "keeper": server.keepers(),
        "guard": server.keepers(GUARD),
    }
    for name in whom:
        for pid in pids[name]:
            os.kill(pid, signal.SIGKILL)
    if "server" in whom:
        server.process.wait()


@pytest.mark.parametrize(("whom", "options"), [
    ("server", []), ("keeper", []), ("guard", []), ("server keeper", []),
    ("guard server", []), ("guard keeper", []),
    ("server keeper", ["--active-high"]), ("guard keeper", ["--active-high"]),
])  # fmt: skip
def test_whoever_is_killed_the_led_goes_off(tmp_path: Path, whom: str, options: list[str]) -> None:
    """In the middle of a flash; one of the three is left, and knows what to do."""
    rng = random.Random(f"{whom} {options}")
    with serving(tmp_path / "state", *options) as server:
        with fixed(server) as talk:
            begin_flash(server, talk, "a")
            time.sleep(rng.uniform(0.0, 0.2))
            _kill(server, *whom.split())
            if "server" not in whom:
                assert talk.hear()["type"] == "reading"  # type: ignore[index]
        if "server" in whom:
            server.start()
        with fixed(server) as talk:
            assert talk.trigger("a")["type"] == "reading"
            assert talk.trigger("b")["type"] == "reading"
        assert [entry["id"] for entry in server.readings()] == ["a", "b"]
        times = server.times_on_s()
        assert len(times) == 2
        assert max(times) < LONGEST_ON_S


@pytest.mark.parametrize("whom", ["keeper", "guard keeper"])
def test_whoever_hangs_the_led_goes_off(server: ServerProcess, whom: str) -> None:
    with fixed(server) as talk:
        begin_flash(server, talk, "a")
        for module in (GUARD, "influx_drone.led"):
            if module.removeprefix("influx_drone.").replace("led", "keeper") in whom:
                for pid in server.keepers(module):
                    os.kill(pid, signal.SIGSTOP)
        assert talk.hear()["type"] == "reading"  # type: ignore[index]
        assert talk.trigger("b")["type"] == "reading"
    assert len(server.times_on_s()) == 2
    assert max(server.times_on_s()) < LONGEST_ON_S


def test_a_keeper_that_wakes_up_too_late_does_not_flash(server: ServerProcess) -> None:
    """The drone has flown on meanwhile."""
    with fixed(server) as talk:
        [keeper] = server.keepers()
        os.kill(keeper, signal.SIGSTOP)
        clock_s = talk.ask("status")["clock_s"]
        talk.send("trigger", id="a", point=1, not_after_s=clock_s + 0.4)
        time.sleep(0.8)
        os.kill(keeper, signal.SIGCONT)
        answer = talk.hear()
        assert answer is not None
        assert answer["type"] == "error"
        assert "too late" in answer["message"]
    assert server.times_on_s() == []


def test_the_service_manager_has_the_last_word(server: ServerProcess) -> None:
    """If all three are killed, ``ExecStopPost`` turns it off, with the relay's own level."""
    with fixed(server) as talk:
        begin_flash(server, talk, "a")
        _kill(server, "guard", "keeper", "server")
    assert server.times_on_s() == [float("inf")]
    server.led_off()
    assert server.times_on_s() != [float("inf")]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_the_leds_processes_end_the_flash_when_all_are_told_to_stop(
    server: ServerProcess, name: str
) -> None:
    """As the service manager does with ``KillMode=control-group``."""
    with fixed(server) as talk:
        begin_flash(server, talk, "a")
        assert server.process is not None
        for pid in [*server.keepers(), *server.keepers(GUARD), server.process.pid]:
            os.kill(pid, getattr(signal, name))
        server.process.wait(timeout=10)
    wait_for(lambda: not server.keepers() and not server.keepers(GUARD))
    [seconds] = server.times_on_s()
    assert 0.24 < seconds < LONGEST_ON_S


def test_a_log_that_is_a_pipe_is_refused_before_any_flash(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    os.mkfifo(state / "led.jsonl")
    assert "led.jsonl is a pipe" in refused("--state", state)


def test_a_log_that_becomes_a_pipe_keeps_nothing_on(server: ServerProcess) -> None:
    """The watcher cannot replace the keeper, says so, and does when the pipe is gone."""
    log = server.state / "led.jsonl"
    with fixed(server) as talk:
        begin_flash(server, talk, "a")
        log.rename(server.state / "aside")
        os.mkfifo(log)
        _kill(server, "keeper")
        assert talk.hear()["type"] == "error"  # type: ignore[index]
        answer = talk.trigger("b")
        assert answer["type"] == "error"
        assert "is a pipe" in answer["message"]
        wait_for(lambda: "cannot be replaced" in server.log.read_text())
        log.unlink()
        (server.state / "aside").rename(log)
        wait_for(server.keepers)
        assert talk.trigger("c")["type"] == "reading"
    assert len(server.times_on_s()) == 2
    assert max(server.times_on_s()) < LONGEST_ON_S


@pytest.mark.parametrize("loss", ["full", "deleted"])
def test_nothing_flashes_without_a_trace(server: ServerProcess, loss: str) -> None:
    """The LED's log is full or gone when it is asked to flash."""
    log = server.state / "led.jsonl"
    with fixed(server) as talk:
        assert talk.trigger("a")["type"] == "reading"
        [keeper] = server.keepers()
        unlimited = resource.prlimit(keeper, resource.RLIMIT_FSIZE)
        if loss == "full":
            limit = log.stat().st_size + 20, unlimited[1]
            resource.prlimit(keeper, resource.RLIMIT_FSIZE, limit)
        else:
            log.rename(server.state / "aside")
            (server.state / "aside").unlink()
        answer = talk.trigger("b")
        assert answer["type"] == "error"
        assert "no flash: led.jsonl" in answer["message"]
        assert len(server.times_on_s()) == 1
        if loss == "full":
            resource.prlimit(keeper, resource.RLIMIT_FSIZE, unlimited)
            assert talk.trigger("b")["type"] == "reading"


def test_a_disk_that_fills_up_during_a_flash_keeps_nothing_on(server: ServerProcess) -> None:
    """The flash ends in time; its reading is kept when there is room again."""
    with fixed(server) as talk:
        begin_flash(server, talk, "a")
        assert server.process is not None
        limits = {}
        for pid in [server.process.pid, *server.keepers(), *server.keepers(GUARD)]:
            limits[pid] = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            # Enough for the pin's record alone.
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (150, limits[pid][1]))
        answer = talk.hear()
        assert answer is not None
        assert answer["type"] == "error"
        assert "it flashed" in answer["message"]
        for pid, limit in limits.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limit)
        assert talk.trigger("a")["type"] == "reading"
    [seconds] = server.times_on_s()
    assert seconds < LONGEST_ON_S


def test_a_position_lost_during_the_flash_leaves_the_one_before(tmp_path: Path) -> None:
    """Otherwise the reading would have none, and the ground could make nothing of it."""
    told = tmp_path / "told.json"
    gps = f"simulated:40.35,-74.65,60,follow={told},rate=2"
    with serving(tmp_path / "state", gps=gps) as server, talking(server) as talk:
        for k in range(10):
            told.write_text('{"quality":"fixed"}')
            wait_for(lambda: not (now := talk.ask("status"))["problems"] and now["age_s"] < 0.05)
            # The next one, half a second after the last, has no position and is the nearer one.
            told.write_text('{"quality":"none"}')
            time.sleep(0.25)
            answer = talk.trigger(f"t{k}")
            if answer["type"] == "reading":
                break
    fix = answer["entry"]["fix"]
    assert (fix["quality"], fix["latitude_deg"]) == ("fixed", pytest.approx(40.35))
    assert len(server.times_on_s()) == 1


@pytest.mark.system
@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """Nothing flashes without a trace, and what flashed is kept when there is room again."""
    state = tmp_path / "state"
    state.mkdir()
    disk = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", str(state)]
    subprocess.run(disk, check=True)
    try:
        with serving(state) as server, fixed(server) as talk:
            with open(state / "filler", "wb", buffering=0) as filler, suppress(OSError):
                while True:
                    filler.write(bytes(256))
            failed, asked = 0, 0
            while failed < 3:
                asked += 1
                assert asked < 40
                failed += talk.trigger(f"t{asked}")["type"] == "error"
            begun = [entry["id"] for entry in server.led() if entry["led"] == "on"]
            assert len(server.times_on_s()) == len(begun) == len(set(begun)) < asked
            (state / "filler").unlink()
            ids = [f"t{number}" for number in range(1, asked + 1)]
            assert {talk.trigger(flash)["type"] for flash in ids} == {"reading"}
            assert sorted(entry["id"] for entry in server.readings()) == sorted(ids)
            assert len(server.times_on_s()) == len(ids)
            assert max(server.times_on_s()) < LONGEST_ON_S
    finally:
        subprocess.run(["umount", str(state)], check=True)
