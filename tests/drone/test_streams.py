"""Sources of bytes: serial (a pseudo-terminal), TCP on loopback, recordings, the simulator."""

import itertools
import json
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from influx_drone import streams
from influx_drone.errors import DroneError
from influx_drone.fix import Fix, Quality
from influx_drone.rtk import Decoder
from influx_drone.simulator import FollowedFile, SimulatedReceiver, Situation
from influx_drone.streams import Chunks, every_epoch, open_stream

HERE = Situation(47.5, -8.5, 500.25)
START = 1_789_516_790.0
PATIENCE = 2000
"""Chunks after which a test gives up; most of them are a wait of up to 0.4 s."""


@pytest.fixture(autouse=True)
def fast_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "RETRY_S", 0.02)
    monkeypatch.setattr(streams, "SILENCE_S", 0.02)


def until(chunks: Chunks, is_enough: Callable[[bytes], bool]) -> bytes:
    data = b""
    for chunk in itertools.islice(chunks, PATIENCE):
        data += chunk
        if is_enough(data):
            return data
    raise AssertionError(f"only {data!r} came")


def recording(n: int = 12, *, is_nmea: bool = False) -> bytes:
    receiver = SimulatedReceiver(lambda t: HERE, sends_sbf=not is_nmea, sends_nmea=is_nmea)
    return b"".join(receiver.epoch(START + i / 10) for i in range(n))


@contextmanager
def terminal() -> Generator[tuple[int, str], None, None]:
    """A pseudo-terminal: the end to write to, and the device at the other."""
    master, slave = os.openpty()
    name = os.ttyname(slave)
    os.close(slave)
    try:
        yield master, name
    finally:
        os.close(master)


# Serial


def test_a_serial_port_is_read_and_opened_again(tmp_path: Path) -> None:
    device = tmp_path / "ttyACM0"
    stop = threading.Event()
    with closing(open_stream(f"{device}:9600", stop)) as chunks:
        assert [next(chunks) for _ in range(3)] == [b""] * 3
        for word in (b"$@one", b"$@two"):
            with terminal() as (master, name):
                device.symlink_to(name)
                # Opening the port discards what came before.
                assert until(chunks, _write_again(master, word)).endswith(word)
                assert b"" in itertools.islice(chunks, 5)
            device.unlink()
            assert until(chunks, _counts_down(3)) == b""
        stop.set()
        assert list(itertools.islice(chunks, 3)) in ([], [b""])


def _write_again(master: int, word: bytes) -> Callable[[bytes], bool]:
    def is_enough(data: bytes) -> bool:
        if not data.endswith(word):
            os.write(master, word)
        return data.endswith(word)

    return is_enough


def _counts_down(n: int) -> Callable[[bytes], bool]:
    counter: Iterator[int] = itertools.count(1)
    return lambda data: next(counter) >= n


# TCP


def accepting(server: socket.socket, connections: list[socket.socket]) -> Callable[[bytes], bool]:
    """Whether someone has called meanwhile."""
    server.setblocking(False)

    def is_accepted(data: bytes) -> bool:
        with suppress(BlockingIOError):
            connections.append(server.accept()[0])
            return True
        return False

    return is_accepted


def test_a_connection_is_opened_again() -> None:
    stop = threading.Event()
    connections: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with closing(open_stream(f"tcp://127.0.0.1:{port}", stop)) as chunks:
            for word in (b"$@one", b"$@two"):
                assert until(chunks, accepting(server, connections)) == b""
                with connections[-1]:
                    connections[-1].sendall(word)
                    assert until(chunks, lambda data: len(data) >= 5) == word
                    assert next(chunks) == b""
            stop.set()
            assert len(list(chunks)) <= 1


def test_a_silent_connection_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "DEAD_S", 0.1)
    connections: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with closing(open_stream(f"tcp://127.0.0.1:{port}")) as chunks:
            for _ in range(2):
                assert until(chunks, accepting(server, connections)) == b""
        for connection in connections:
            connection.close()


def test_a_host_that_is_not_there_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with closing(open_stream(f"tcp://127.0.0.1:{port}")) as chunks:
        assert [next(chunks) for _ in range(5)] == [b""] * 5
    for host in ("no-such-host.invalid", "a" * 70):
        with closing(open_stream(f"tcp://{host}:5000")) as chunks:
            assert next(chunks) == b""


def test_all_addresses_of_a_host_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    connections: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_server(("127.0.0.1", 0)) as gone:
            closed = gone.getsockname()
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 0, "", address)
            for address in (closed, server.getsockname())
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: found)
        with closing(open_stream("tcp://receiver:5000")) as chunks:
            assert until(chunks, accepting(server, connections)) == b""
    connections[0].close()


# Recordings


@pytest.mark.parametrize("is_nmea", [False, True])
def test_a_recording_is_replayed_at_its_pace(tmp_path: Path, is_nmea: bool) -> None:
    data = recording(is_nmea=is_nmea)
    path = tmp_path / "a,b.sbf"
    path.write_bytes(data)
    start = time.monotonic()
    assert b"".join(open_stream(f"file:{path},rate=4")) == data
    assert time.monotonic() - start > 0.9 * 1.0 / 4
    assert b"".join(open_stream(f"file:{path},rate=inf")) == data


def test_a_recording_can_go_round(tmp_path: Path) -> None:
    path = tmp_path / "flight.sbf"
    path.write_bytes(recording())
    stop = threading.Event()
    chunks = open_stream(f"file:{path},loop,rate=inf", stop)
    decoder, fixes = Decoder(), list[Fix]()
    while len(fixes) < 36:
        fixes += decoder.feed(next(chunks))
    assert len({fix.time_unix_s for fix in fixes}) == 12
    stop.set()
    assert list(chunks) == []


def test_a_recording_without_a_receiver_in_it_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    for content in (b"", b"nothing\n" * 100):
        path.write_bytes(content)
        with pytest.raises(DroneError, match=r"notes\.txt has no epoch"):
            list(open_stream(f"file:{path},loop"))


# The simulator


def test_the_simulator_keeps_the_time_of_the_system() -> None:
    before = time.time()
    stop = threading.Event()
    chunks = open_stream("simulated:47.5,-8.5,500.25,rate=50,noise=1,seed=3", stop)
    decoder, fixes = Decoder(), list[Fix]()
    while len(fixes) < 5:
        fixes += decoder.feed(next(chunks))
    assert all(before <= fix.time_unix_s <= time.time() for fix in fixes)
    assert fixes[0].latitude_deg == pytest.approx(47.5, abs=1e-6)
    assert fixes[0].latitude_deg != 47.5
    stop.set()
    assert len(list(chunks)) <= 1


@pytest.mark.parametrize("form", ["sbf", "nmea", "both"])
@pytest.mark.parametrize("quality", list(Quality))
def test_simulated_qualities(form: str, quality: Quality) -> None:
    spec = f"simulated:47.5,-8.5,500.25,format={form},quality={quality},sigma=0.5,rate=50"
    decoder, fixes = Decoder(), list[Fix]()
    with closing(open_stream(spec)) as chunks:
        while len(fixes) < 3:
            fixes += decoder.feed(next(chunks))
    assert {fix.quality for fix in fixes} == {quality}
    if quality is not Quality.NONE:
        assert fixes[-1].covariance_m2 is not None
        assert fixes[-1].covariance_m2[0][0] == pytest.approx(0.25)


def test_simulated_outages() -> None:
    decoder, fixes = Decoder(), list[Fix]()
    with closing(open_stream("simulated:0,0,0,rate=50,outage=0.2/0.1")) as chunks:
        while len(fixes) < 12:
            fixes += decoder.feed(next(chunks))
    assert all(round(100 * fix.time_unix_s) % 20 <= 10 for fix in fixes)
    assert fixes[-1].time_unix_s - fixes[0].time_unix_s > 0.3


def test_a_simulated_flight_is_steered_by_a_file(tmp_path: Path) -> None:
    path = tmp_path / "now.json"
    follow = FollowedFile(path, HERE)
    assert follow(0) == HERE
    path.write_text(json.dumps({"height_m": 520, "quality": "float", "sigma_m": 0.2}))
    assert follow(0) == Situation(47.5, -8.5, 520, Quality.FLOAT, 0.2)
    for bad in ('{"height_m": 5', '{"height": 530}', '{"latitude_deg": 95}', "3", '["quality"]'):
        path.write_text(bad)
        assert follow(0).height_m == 520
    for bad in ('{"quality": "good"}', '{"height_m": NaN}', '{"height_m": "x"}'):
        path.write_text(bad)
        assert follow(0).height_m == 520
    path.write_text(json.dumps({"is_silent": True}))
    assert SimulatedReceiver(follow).epoch(START) == b""
    path.unlink()
    assert follow(0).is_silent


def test_a_simulated_flight_is_steered_by_a_function() -> None:
    def climbing(time_unix_s: float) -> Situation:
        return Situation(47.5, -8.5, 500 + (time_unix_s - START))

    receiver = SimulatedReceiver(climbing)
    data = b"".join(receiver.epoch(START + i / 10) for i in range(30))
    heights = [fix.height_m for fix in Decoder().feed(data)]
    assert heights == pytest.approx([500 + i / 10 for i in range(30)])
    stop = threading.Event()
    chunks = every_epoch(SimulatedReceiver(lambda t: HERE).epoch, 50, stop)
    assert until(chunks, lambda data: data.startswith(b"$@"))


def test_the_same_seed_gives_the_same_bytes() -> None:
    def data(seed: int) -> bytes:
        receiver = SimulatedReceiver(lambda t: HERE, sends_nmea=True, noise=1, seed=seed)
        return b"".join(receiver.epoch(START + i / 10) for i in range(5))

    assert data(1) == data(1) != data(2)


def test_noise_has_the_size_it_is_said_to_have() -> None:
    receiver = SimulatedReceiver(lambda t: HERE, noise=1)
    fixes = Decoder().feed(b"".join(receiver.epoch(START + i / 10) for i in range(1000)))
    up = math.sqrt(sum((fix.height_m - 500.25) ** 2 for fix in fixes) / len(fixes))
    north = math.sqrt(sum((111_200 * (fix.latitude_deg - 47.5)) ** 2 for fix in fixes) / len(fixes))
    assert up == pytest.approx(0.016, rel=0.1)
    assert north == pytest.approx(0.008, rel=0.1)


def test_poles_and_date_line_are_no_trouble() -> None:
    for lat, lon in ((90, 0), (-90, 180), (0, -180), (59.999999999999, 179.99999999999)):
        receiver = SimulatedReceiver(
            lambda t, lat=lat, lon=lon: Situation(lat, lon, -40), sends_nmea=True, noise=1
        )
        assert len(Decoder().feed(b"".join(receiver.epoch(START + i / 10) for i in range(9)))) == 9


# Specifications


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "COM3",
        "/dev/ttyACM0:fast",
        "/dev/ttyACM0:0",
        "tcp://host",
        "tcp://:5000",
        "tcp://host:70000",
        "file:",
        "file:/no/such/recording",
        "simulated:",
        "simulated:1,2",
        "simulated:1,2,x",
        "simulated:91,2,3",
        "simulated:1,nan,3",
        "simulated:1,2,3,colour=red",
        "simulated:1,2,3,rate=0",
        "simulated:1,2,3,rate=10,rate=10",
        "simulated:1,2,3,quality=good",
        "simulated:1,2,3,format=ubx",
        "simulated:1,2,3,sigma=-1",
        "simulated:1,2,3,seed=inf",
        "simulated:1,2,3,noise=-1",
        "simulated:1,2,3,outage=3/20",
        "simulated:1,2,3,outage=20",
    ],
)
def test_what_is_not_understood_is_refused_at_once(spec: str) -> None:
    with pytest.raises(DroneError):
        open_stream(spec)


def test_a_port_named_by_its_place_has_colons(tmp_path: Path) -> None:
    (tmp_path / "by-path").mkdir()
    device = tmp_path / "by-path" / "usb-0:1.4:1.0"
    with terminal() as (master, name):
        device.symlink_to(name)
        for spec in (f"{device}", f"{device}:9600"):
            with closing(open_stream(spec)) as chunks:
                assert until(chunks, _write_again(master, b"$@")).endswith(b"$@")


def test_rates_of_recordings(tmp_path: Path) -> None:
    path = tmp_path / "flight.sbf"
    path.write_bytes(recording())
    for rate in ("0", "-1", "nan", "fast"):
        with pytest.raises(DroneError):
            open_stream(f"file:{path},rate={rate}")


def test_help_names_every_option() -> None:
    assert all(f"[,{option}=" in streams.SPECS for option in streams.OPTIONS)
