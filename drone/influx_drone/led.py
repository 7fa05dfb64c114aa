"""The LED behind its relay, which must never stay on.

The pin belongs to a process of its own, the keeper. It is told to flash and turns the LED off
by its own clock, so a server that is stopped, hangs or is killed during a flash changes
nothing: the flash ends when it should, and is in the log. A keeper that is killed itself,
or does not report the end of a flash in time, is noticed by the server, which then turns
the LED off with its own hands and starts another keeper. If both are killed at once, the
service's ``ExecStopPost`` does it (``influx-drone-server --led-off``).

The keeper reads ``flash ID SECONDS`` from its standard input and writes ``ready``,
``on ID CLOCK`` and ``off ID CLOCK``. Its log, JSON lines, is how a server that was started
anew knows whether a flash that was asked for was made.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import json
import logging
import os
import selectors
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import gpiozero
from gpiozero.pins.mock import MockFactory

from influx_drone.errors import DroneError

log = logging.getLogger(__name__)

LOG, LOCK = "led.jsonl", "led.lock"
LONGEST_FLASH_S = 1.0
LATE_S = 0.1
"""How long after its end a flash may be reported before the keeper counts as hung."""


class Relay(Protocol):
    """What switches the LED."""

    def on(self) -> None:
        """Let it shine."""

    def off(self) -> None:
        """Let it not."""

    def close(self) -> None:
        """Let go of the pin."""


@dataclass(frozen=True)
class Wiring:
    """Which pin the relay is at; relay boards are mostly active low. ``mock``: there is none."""

    pin: int
    active_high: bool = False
    mock: bool = False

    def arguments(self) -> list[str]:
        """As the keeper's command line takes it."""
        flags = ["--active-high"] * self.active_high + ["--mock"] * self.mock
        return ["--pin", str(self.pin), *flags]


def open_relay(wiring: Wiring) -> Relay:
    """The relay, switched off."""
    if wiring.mock:
        gpiozero.Device.pin_factory = MockFactory()
    try:
        relay: Relay = gpiozero.OutputDevice(
            wiring.pin, active_high=wiring.active_high, initial_value=False
        )
    except Exception as error:
        raise DroneError(
            f"pin {wiring.pin} cannot be used: {error}. Is another program using it, and may "
            "this user use GPIO (group gpio)? Without hardware: --dry-run."
        ) from None
    return relay


def led_off(wiring: Wiring, state: Path, reason: str) -> None:
    """Turn the LED off whoever turned it on, and say so in the log."""
    relay = open_relay(wiring)
    relay.off()
    relay.close()
    with _Log(state / LOG) as written:
        written.add("off", None, reason)


def flashed(state: Path) -> dict[str, float]:
    """When each flash in the log began, by id, in seconds of the drone's clock."""
    try:
        lines = (state / LOG).read_bytes().splitlines()
    except OSError:
        return {}
    begun = {}
    for line in lines:
        with contextlib.suppress(ValueError, TypeError, KeyError):
            entry = json.loads(line)
            if entry["led"] == "on":
                begun[str(entry["id"])] = float(entry["clock_s"])
    return begun


class _Log:
    """Every change of the LED. Not forced to the disk: that takes longer than a flash, and the
    kernel keeps what a killed process wrote."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115

    def __enter__(self) -> _Log:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, led: str, flash: str | None, reason: str) -> float:
        """Write a line; returns the time that stands in it."""
        now = time.monotonic()
        entry = {"clock_s": now, "unix_s": time.time(), "led": led, "id": flash, "why": reason}
        # A full disk must not keep the LED from being turned off.
        with contextlib.suppress(OSError):
            self._file.write(json.dumps(entry).encode() + b"\n")
        return now


class Keeper:
    """The server's hold on the keeper process."""

    def __init__(self, wiring: Wiring, state: Path) -> None:
        self._wiring = wiring
        self._state = state
        self._process: asyncio.subprocess.Process | None = None
        self._busy = asyncio.Lock()

    async def start(self) -> None:
        """Start the process and wait until the LED is known to be off."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "influx_drone.led", "--state", str(self._state),
            *self._wiring.arguments(),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            # A Ctrl-C or a kill of the server's group must not reach it.
            start_new_session=True,
        )  # fmt: skip
        answer = await self._hear(10.0)
        if answer != ["ready"]:
            await self._give_up("the LED's process did not start")
            raise DroneError(
                f"the LED's process did not start ({' '.join(answer) or 'it ended'}). "
                "Is the pin free, and may this user use GPIO? Without hardware: --dry-run."
            )

    async def flash(self, flash: str, seconds: float) -> tuple[float, float]:
        """Flash; returns when the LED went on and off, in seconds of the drone's clock.

        Raises ``DroneError`` if it is not known to have flashed; the LED is off then too.
        """
        async with self._busy:
            return await self._flash(flash, seconds)

    async def _flash(self, flash: str, seconds: float) -> tuple[float, float]:
        if self._process is None or self._process.returncode is not None:
            await self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        times = []
        try:
            self._process.stdin.write(f"flash {flash} {seconds}\n".encode())
            await self._process.stdin.drain()
            for expected, limit in (("on", 2.0), ("off", seconds + LATE_S)):
                answer = await self._hear(limit)
                if answer[:2] != [expected, flash]:
                    raise OSError(f"no {expected!r} from the LED's process")
                times.append(float(answer[2]))
        except OSError as error:
            await self._give_up(str(error))
            await self.start()
            raise DroneError(f"the flash failed: {error}; the LED was turned off.") from None
        return times[0], times[1]

    async def stop(self) -> None:
        """End the process; it turns the LED off."""
        if self._process is not None and self._process.returncode is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                await asyncio.wait_for(self._process.wait(), 2.0)
            except TimeoutError:
                await self._give_up("it did not end")

    async def watch(self) -> None:
        """Replace a keeper that died between flashes, for as long as this runs."""
        while True:
            await asyncio.sleep(0.05)
            async with self._busy:
                if self._process is not None and self._process.returncode is not None:
                    log.error("the LED's process ended with code %s", self._process.returncode)
                    await self._give_up("its process ended")
                    with contextlib.suppress(DroneError):
                        await self.start()

    async def _hear(self, limit_s: float) -> list[str]:
        """The words of the next line; none if the process ended."""
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), limit_s)
        except TimeoutError:
            return ["silence"]
        return line.decode(errors="replace").split()

    async def _give_up(self, reason: str) -> None:
        """The keeper is of no use: end it, and turn the LED off here and now."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        try:
            led_off(self._wiring, self._state, reason)
        except DroneError as error:
            log.error("%s", error)


def keep(wiring: Wiring, state: Path) -> None:
    """What the keeper's process does until its standard input ends."""
    with _waiting_lock(state / LOCK), _Log(state / LOG) as written:
        relay = open_relay(wiring)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            written.add("off", None, "start")
            _say("ready")
            _obey(relay, written)
        finally:
            relay.off()
            written.add("off", None, "end")
            relay.close()


def _obey(relay: Relay, written: _Log) -> None:
    flash, end = None, 0.0
    waiting = b""
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        while True:
            left = max(end - time.monotonic(), 0.0) if flash is not None else None
            if flash is not None and left == 0.0:
                relay.off()
                now = written.add("off", flash, "done")
                _say("off", flash, now)
                flash, left = None, None
            line, separator, rest = waiting.partition(b"\n")
            if flash is None and separator:
                waiting = rest
                _, flash, seconds = line.decode().split()
                end = written.add("on", flash, "asked") + min(float(seconds), LONGEST_FLASH_S)
                relay.on()
                _say("on", flash, time.monotonic())
                continue
            if selector.select(left):
                data = os.read(0, 4096)
                if not data:
                    # The server is gone. A flash that was begun is finished: it is asked for,
                    # and no longer than any other.
                    if flash is not None:
                        time.sleep(max(end - time.monotonic(), 0.0))
                        relay.off()
                        written.add("off", flash, "done")
                    return
                waiting += data


def _say(*words: object) -> None:
    with contextlib.suppress(OSError):
        os.write(1, (" ".join(map(str, words)) + "\n").encode())


@contextmanager
def _waiting_lock(path: Path) -> Iterator[None]:
    """One keeper at a time: that of a server that was killed may still be ending its flash."""
    with open(path, "w") as file:
        deadline = time.monotonic() + LONGEST_FLASH_S + 2.0
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise DroneError(f"{path} is held by another process of the LED.") from None
                time.sleep(0.01)
        yield


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--pin", type=int, required=True)
    parser.add_argument("--active-high", action="store_true")
    parser.add_argument("--mock", action="store_true")
    given: Any = parser.parse_args()
    try:
        keep(Wiring(given.pin, given.active_high, given.mock), given.state)
    except DroneError as error:
        _say("error:", error)
        sys.exit(2)


if __name__ == "__main__":
    _main()
