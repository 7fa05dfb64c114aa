"""Where a receiver's bytes come from: a serial port, TCP, a recording, or a simulation.

``open_stream`` takes one word and gives an endless iterator of chunks. It never blocks for long:
while nothing comes it yields ``b""`` at least every half second, so that whoever follows it sees
that the last fix grows old. A port that is unplugged and a connection that is lost are opened
again, for as long as it takes.
"""

from __future__ import annotations

import itertools
import logging
import math
import re
import select
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import serial

from influx_drone.errors import DroneError
from influx_drone.fix import Quality
from influx_drone.rtk import Decoder
from influx_drone.simulator import FollowedFile, SimulatedReceiver, Situation

SPECS = (
    "/dev/ttyACM0, /dev/ttyACM0:115200, tcp://HOST:PORT, file:PATH[,rate=2][,loop], or "
    "simulated:LAT,LON,HEIGHT[,format=sbf|nmea|both][,quality=fixed|float|autonomous|none]"
    "[,sigma=M][,noise=1][,seed=0][,rate=10][,outage=EVERY/FOR][,follow=FILE]"
)
BAUD = 115_200
SILENCE_S = 0.4
"""The longest wait without a chunk."""
RETRY_S = 1.0
CONNECT_S = 5.0
DEAD_S = 10.0
"""A connection this long without a byte is opened again: the other end may be gone unnoticed."""
CHUNK = 4096
REPLAY_CHUNK = 64
"""Small, so that a recording's pace is kept to a part of an epoch."""
OPTIONS = ("format", "quality", "sigma", "noise", "seed", "rate", "outage", "follow")
RATES_HZ = (1, 2, 5, 10, 20, 25, 50)

Chunks = Generator[bytes, None, None]

_log = logging.getLogger(__name__)


def open_stream(spec: str, stop: threading.Event | None = None) -> Chunks:
    """Chunks of bytes until ``stop`` is set; a recording that is not looped ends by itself.

    A specification that cannot be understood raises ``DroneError`` here; a device or host that
    is not there (yet) does not, it is waited for. Closing the iterator closes the source.
    """
    stop = stop or threading.Event()
    if spec.startswith("tcp://"):
        host, port = _host_and_port(spec)
        return _tcp(host, port, stop)
    if spec.startswith("file:"):
        return _file_stream(spec, stop)
    if spec.startswith("simulated:"):
        return _simulated_stream(spec, stop)
    device = re.fullmatch(r"(/.+?)(?::(\d{3,7}))?", spec)
    if device is None:
        raise DroneError(f"no GPS stream is known by {spec!r}: use {SPECS}.")
    # Linux's names of ports by their place on the bus have colons of their own.
    if ":" in device[1] and "/by-path/" not in device[1]:
        raise DroneError(f"the baud rate in {spec!r} is none: write it as in /dev/ttyACM0:{BAUD}.")
    return _serial(device[1], int(device[2] or BAUD), stop)


def _serial(device: str, baud: int, stop: threading.Event) -> Chunks:
    trouble = _Trouble(device)
    while not stop.is_set():
        try:
            with serial.Serial(device, baud, timeout=SILENCE_S, exclusive=True) as port:
                trouble.over()
                while not stop.is_set():
                    yield port.read(1) + port.read(port.in_waiting)
        # pyserial lets a few of the system's own errors through when a device vanishes.
        except (OSError, ValueError, TypeError) as error:
            trouble.report(error)
        yield from _silence(RETRY_S, stop)


def _tcp(host: str, port: int, stop: threading.Event) -> Chunks:
    """Each attempt takes the next of the host's addresses; only to find those may block."""
    trouble = _Trouble(f"{host}:{port}")
    for attempt in itertools.count():
        if stop.is_set():
            return
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            family, kind, protocol, _, address = addresses[attempt % len(addresses)]
            with socket.socket(family, kind, protocol) as connection:
                connection.setblocking(False)
                connection.connect_ex(address)
                yield from _connecting(connection, stop)
                trouble.over()
                yield from _received(connection, stop)
        # A name that cannot be one is a UnicodeError.
        except (OSError, UnicodeError) as error:
            trouble.report(error)
        yield from _silence(RETRY_S, stop)


def _connecting(connection: socket.socket, stop: threading.Event) -> Chunks:
    """Wait until a connection stands; raises OSError if it does not."""
    give_up = time.monotonic() + CONNECT_S
    while not select.select([], [connection], [], SILENCE_S)[1]:
        if stop.is_set() or time.monotonic() > give_up:
            raise TimeoutError("no answer")
        yield b""
    if code := connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        raise OSError(code, "not connected")


def _received(connection: socket.socket, stop: threading.Event) -> Chunks:
    """What comes through a connection; raises OSError when it ends."""
    last = time.monotonic()
    while not stop.is_set():
        if select.select([connection], [], [], SILENCE_S)[0]:
            data = connection.recv(CHUNK)
            if not data:
                raise ConnectionError("closed by the other end")
            last = time.monotonic()
            yield data
        elif time.monotonic() - last > DEAD_S:
            raise TimeoutError(f"nothing for {DEAD_S:g} s")
        else:
            yield b""


def _file_stream(spec: str, stop: threading.Event) -> Chunks:
    name, rate, is_looped = spec.removeprefix("file:"), 1.0, False
    while True:
        head, comma, option = name.rpartition(",")
        if comma and option == "loop":
            is_looped = True
        elif comma and option.startswith("rate="):
            rate = _number(option.removeprefix("rate="), "rate", spec)
            if not rate > 0:
                raise DroneError(f"the rate in {spec!r} must be above 0 (inf: without waiting).")
        else:
            break
        name = head
    if not Path(name).is_file():
        raise DroneError(f"there is no recording {name!r} to replay: give the path of a file.")
    return _replayed(Path(name), rate, is_looped, stop)


def _replayed(path: Path, rate: float, is_looped: bool, stop: threading.Event) -> Chunks:
    """A recording, each fix after the time that lay between it and the first."""
    while not stop.is_set():
        decoder, first_s, start_s = Decoder(), math.nan, time.monotonic()
        try:
            data = path.read_bytes()
        except OSError as error:
            raise DroneError(f"{path} cannot be read: {error.strerror}.") from error
        for at in range(0, len(data), REPLAY_CHUNK):
            chunk = data[at : at + REPLAY_CHUNK]
            times = [fix.time_unix_s for fix in decoder.feed(chunk)]
            for fix_s in [time_s for time_s in times if math.isfinite(time_s)][-1:]:
                if math.isnan(first_s):
                    first_s = fix_s
                due = start_s + max(0.0, fix_s - first_s) / rate
                yield from _silence(due - time.monotonic(), stop)
            if stop.is_set():
                return
            yield chunk
        if math.isnan(first_s):
            raise DroneError(f"{path} has no epoch of a receiver in it: record SBF or NMEA.")
        if not is_looped:
            return


def _simulated_stream(spec: str, stop: threading.Event) -> Chunks:
    words = spec.removeprefix("simulated:").split(",")
    place = [_number(word, "position", spec) for word in words[:3]]
    if len(place) != 3:
        raise DroneError(f"{spec!r} lacks a position: write simulated:LAT,LON,HEIGHT.")
    options: dict[str, str] = {}
    for word in words[3:]:
        key, equals, value = word.partition("=")
        if key not in OPTIONS or not equals or key in options:
            raise DroneError(
                f"{word!r} in {spec!r} is not understood: use each of {', '.join(OPTIONS)} at "
                "most once, as KEY=VALUE."
            )
        options[key] = value
    form = _choice(options.get("format", "sbf"), "format", ("sbf", "nmea", "both"))
    quality = _choice(options.get("quality", "fixed"), "quality", tuple(Quality))
    sigma = options.get("sigma")
    situation = Situation(
        place[0],
        place[1],
        place[2],
        quality=Quality(quality),
        sigma_m=None if sigma is None else _number(sigma, "sigma", spec),
    )
    rate = _choice(options.get("rate", "10"), "rate", tuple(map(str, RATES_HZ)))
    follow, seed = options.get("follow"), options.get("seed", "0")
    noise = _number(options.get("noise", "0"), "noise", spec)
    if not seed.isdecimal() or not 0 <= noise <= 100:
        raise DroneError(f"in {spec!r} the seed must be a whole number, the noise within 0 to 100.")
    receiver = SimulatedReceiver(
        FollowedFile(Path(follow), situation) if follow else lambda time_unix_s: situation,
        sends_sbf=form != "nmea",
        sends_nmea=form != "sbf",
        noise=noise,
        seed=int(seed),
    )
    every_s, out_s = _outage(options.get("outage"), spec)

    def epoch(time_unix_s: float) -> bytes:
        data = receiver.epoch(time_unix_s)
        return b"" if time_unix_s % every_s >= every_s - out_s else data

    return every_epoch(epoch, int(rate), stop)


def every_epoch(epoch: Callable[[float], bytes], rate_hz: int, stop: threading.Event) -> Chunks:
    """The bytes of each epoch (``SimulatedReceiver.epoch``) when the system's clock reaches it."""
    number = math.ceil(time.time() * rate_hz)
    while not stop.is_set():
        yield from _silence(number / rate_hz - time.time(), stop)
        yield epoch(number / rate_hz)
        # After a pause (a suspended machine, a set clock) the missed ones are not made up for.
        now = math.floor(time.time() * rate_hz)
        number = number + 1 if abs(now - number) <= rate_hz else now + 1


def _silence(seconds: float, stop: threading.Event) -> Iterator[bytes]:
    """Wait, with an empty chunk now and then."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not stop.wait(min(left, SILENCE_S)):
        yield b""


class _Trouble:
    """Tells the log when a source is lost and when it is back, not at every attempt."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._told: str | None = None

    def report(self, error: Exception) -> None:
        if str(error) != self._told:
            self._told = str(error)
            _log.warning("no GPS stream from %s (%s): trying again", self._source, error)

    def over(self) -> None:
        self._told = None
        _log.info("reading the GPS stream from %s", self._source)


def _host_and_port(spec: str) -> tuple[str, int]:
    host, _, port = spec.removeprefix("tcp://").rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise DroneError(f"{spec!r} is no address: write tcp://HOST:PORT.")
    return host.strip("[]"), int(port)


def _outage(text: str | None, spec: str) -> tuple[float, float]:
    """Period and length of the outages, in seconds: "20/3" is silent for the last 3 of each 20."""
    if text is None:
        return 1.0, 0.0
    every, _, length = text.partition("/")
    every_s, out_s = _number(every, "outage", spec), _number(length, "outage", spec)
    if not 0 < out_s < every_s:
        raise DroneError(f"outage={text} in {spec!r} is not EVERY/FOR in seconds, as in 20/3.")
    return every_s, out_s


def _number(text: str, name: str, spec: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise DroneError(f"the {name} {text!r} in {spec!r} is no number.")
    return value


def _choice(text: str, name: str, choices: tuple[str, ...]) -> str:
    if text not in choices:
        raise DroneError(f"the {name} {text!r} is not one of {', '.join(choices)}.")
    return text
