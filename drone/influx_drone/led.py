"""The LED behind its relay, which must never stay on.

The pin belongs to a process of its own, the keeper. It is told to flash and turns the LED off
by its own clock, so a server that is stopped, hangs or is killed during a flash changes
nothing: the flash ends when it should, and is in the log. The keeper is the child of a third
process, the guard (``guard.py``), which turns the LED off when the keeper ends or hangs before
it did; and when both have, the server does. So one of the three is enough, and nobody waits for
another one. If all of them are killed at once, the service's ``ExecStopPost`` is left
(``influx-drone-server --led-off``).

The keeper reads ``flash ID SECONDS NOT_AFTER`` from its standard input and writes ``ready``, and
for each flash ``on ID CLOCK`` and ``off ID CLOCK``, or ``failed ID REASON`` if it made none: it
was asked too late, for example, because it had to be started anew first. Its log is how
a server that was started anew knows whether a flash that was asked for was made: what cannot be
written there is not flashed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import logging
import os
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

from influx_drone import protocol
from influx_drone.errors import DroneError
from influx_drone.files import opened
from influx_drone.journal import append_line, encode_line, read_lines

log = logging.getLogger(__name__)

LOG, LOCK = "led.jsonl", "led.lock"
NOT_MADE = "not made"
LONGEST_FLASH_S = 1.0
GUARD_LATE_S, LATE_S = 0.05, 0.12
"""How long after its end a flash may be reported before the keeper counts as hung: for the
guard, and for the server, which is the second to act."""
START_S = 30.0
"""How long the processes may take to start, on the smallest of computers."""
BUSY_S = 3.0
"""How long a pin or the lock is waited for that another process is about to let go of."""
AGAIN_S = 1.0
"""When to try again to replace a keeper, if that failed."""


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


def load_pins(wiring: Wiring) -> None:
    """Have what opens a pin at hand: to load it can take longer than a flash."""
    if gpiozero.Device.pin_factory is None and wiring.mock:
        gpiozero.Device.pin_factory = MockFactory()
    gpiozero.Device.ensure_pin_factory()


def open_relay(wiring: Wiring) -> Relay:
    """The relay, switched off."""
    try:
        load_pins(wiring)
        relay: Relay = gpiozero.OutputDevice(
            wiring.pin, active_high=wiring.active_high, initial_value=False
        )
    except Exception as error:
        raise DroneError(
            f"pin {wiring.pin} cannot be used: {error}. Is another program using it, and may "
            "this user use GPIO (group gpio)? Without hardware: --dry-run."
        ) from None
    return relay


def led_off(wiring: Wiring) -> None:
    """Turn the LED off whoever turned it on.

    Who held the pin may take a moment to die, or to end its flash.
    """
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            relay = open_relay(wiring)
            break
        except DroneError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    relay.off()
    relay.close()


def note_off(state: Path, reason: str) -> None:
    """Say in the log that the LED was turned off, if that can be written."""
    with contextlib.suppress(DroneError, OSError), LedLog(state / LOG) as written:
        written.add("off", None, reason)


def flashed(state: Path) -> dict[str, float]:
    """When each flash in the log began, by id, in seconds of the drone's clock."""
    try:
        with os.fdopen(opened(state / LOG, os.O_RDONLY), "rb") as file:
            data = file.read()
    except (DroneError, OSError):
        return {}
    begun: dict[str, float] = {}
    for entry in read_lines(data)[0]:
        flash, clock_s = entry.get("id"), entry.get("clock_s")
        if entry.get("led") == "on" and isinstance(flash, str) and protocol.is_number(clock_s):
            begun[flash] = float(clock_s)
        elif entry.get("why") == NOT_MADE and isinstance(flash, str):
            begun.pop(flash, None)
    return begun


class LedLog:
    """Every change of the LED. Not forced to the disk: that takes longer than a flash, and the
    kernel keeps what a killed process wrote."""

    def __init__(self, path: Path) -> None:
        self._file = opened(path, os.O_WRONLY | os.O_APPEND)

    def __enter__(self) -> LedLog:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def add(self, led: str, flash: str | None, reason: str) -> None:
        """Write a line; raises OSError."""
        now = time.monotonic()
        entry = {"clock_s": now, "unix_s": time.time(), "led": led, "id": flash, "why": reason}
        append_line(self._file, encode_line(entry), sync=False)


class Keeper:
    """The server's hold on the keeper process and its guard."""

    def __init__(self, wiring: Wiring, state: Path) -> None:
        self._wiring = wiring
        self._state = state
        self._guard: asyncio.subprocess.Process | None = None
        self._busy = asyncio.Lock()

    async def start(self) -> None:
        """Start the processes and wait until the LED is known to be off."""
        try:
            self._guard = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "influx_drone.guard", "--state", str(self._state),
                *self._wiring.arguments(),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                # A Ctrl-C or a kill of the server's group must not reach them.
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise DroneError(f"the LED's process cannot be started: {error.strerror}.") from None
        # Who has to turn the LED off in a keeper's place must be quick.
        with contextlib.suppress(Exception):
            load_pins(self._wiring)
        answer = await self._hear(START_S)
        if answer != ["ready"]:
            await self._give_up("the LED's process did not start")
            raise DroneError(
                f"the LED's process did not start ({' '.join(answer) or 'it ended'}). "
                "Is the pin free, and may this user use GPIO? Without hardware: --dry-run."
            )

    async def flash(self, flash: str, seconds: float, not_after_s: float) -> tuple[float, float]:
        """Flash; returns when the LED went on and off, in seconds of the drone's clock.

        Raises ``DroneError`` if it is not known to have flashed; the LED is off then too.
        """
        async with self._busy:
            return await self._flash(flash, seconds, not_after_s)

    async def _flash(self, flash: str, seconds: float, not_after_s: float) -> tuple[float, float]:
        if self._guard is None or self._guard.returncode is not None:
            await self._replace("the LED's process had ended")
        assert self._guard is not None
        assert self._guard.stdin is not None
        times = []
        try:
            self._guard.stdin.write(f"flash {flash} {seconds} {not_after_s}\n".encode())
            await self._guard.stdin.drain()
            for expected, limit in (("on", 2.0), ("off", seconds + LATE_S)):
                answer = await self._hear(limit)
                if answer[:2] == ["failed", flash]:
                    raise DroneError(f"there was no flash: {' '.join(answer[2:])}.")
                if answer[:2] != [expected, flash]:
                    raise OSError(f"no {expected!r} from the LED's process")
                times.append(float(answer[2]))
        except OSError as error:
            await self._replace(str(error))
            raise DroneError(f"the flash failed: {error}; the LED was turned off.") from None
        return times[0], times[1]

    async def stop(self) -> None:
        """End the processes; the keeper turns the LED off."""
        if self._guard is not None and self._guard.returncode is None:
            assert self._guard.stdin is not None
            self._guard.stdin.close()
            try:
                await asyncio.wait_for(self._guard.wait(), LONGEST_FLASH_S + 1.0)
            except TimeoutError:
                await self._give_up("it did not end")

    async def watch(self) -> None:
        """Replace processes that died between flashes, for as long as this runs."""
        while True:
            await asyncio.sleep(0.05)
            try:
                async with self._busy:
                    if self._guard is not None and self._guard.returncode is not None:
                        log.error("the LED's process ended with code %s", self._guard.returncode)
                        await self._replace("its process ended")
            except Exception as error:
                # Whatever it is may pass; as long as it lasts, every trigger says so.
                log.error("the LED's process cannot be replaced: %s", error)
                await asyncio.sleep(AGAIN_S)

    async def _replace(self, reason: str) -> None:
        await self._give_up(reason)
        await self.start()

    async def _hear(self, limit_s: float) -> list[str]:
        """The words of the next line; none if the processes ended."""
        assert self._guard is not None
        assert self._guard.stdout is not None
        try:
            line = await asyncio.wait_for(self._guard.stdout.readline(), limit_s)
        except TimeoutError:
            return ["silence"]
        return line.decode(errors="replace").split()

    async def _give_up(self, reason: str) -> None:
        """They are of no use: end both, and turn the LED off here and now."""
        if self._guard is None:
            return
        # The keeper is in the guard's group, and may have outlived it.
        with contextlib.suppress(OSError):
            os.killpg(self._guard.pid, signal.SIGKILL)
        await self._guard.wait()
        try:
            await asyncio.to_thread(led_off, self._wiring)
        except DroneError as error:
            log.error("%s", error)
        note_off(self._state, reason)


def keep(wiring: Wiring, state: Path, guard: int) -> None:
    """What the keeper's process does until its standard input ends.

    ``guard`` is a descriptor on which the guard is told until when the LED is on.
    """
    with waiting_lock(state / LOCK), LedLog(state / LOG) as written:
        relay = open_relay(wiring)
        try:
            with contextlib.suppress(OSError):
                written.add("off", None, "start")
            _say("ready")
            for line in sys.stdin.buffer:
                _, flash, seconds, not_after_s = line.decode().split()
                if time.monotonic() > float(not_after_s):
                    _say("failed", flash, "it would have come too late")
                    continue
                _make_flash(relay, written, guard, flash, min(float(seconds), LONGEST_FLASH_S))
        finally:
            relay.off()
            relay.close()


def _make_flash(relay: Relay, written: LedLog, guard: int, flash: str, seconds: float) -> None:
    """No flash without a guard and a trace; nothing between on and off can block or fail."""
    try:
        os.write(guard, b"off\n")
        written.add("on", flash, "asked")
    except OSError as error:
        _say("failed", flash, f"{LOG}: {error.strerror}")
        return
    reason = NOT_MADE
    try:
        os.write(guard, b"%f\n" % (time.monotonic() + seconds + GUARD_LATE_S))
        relay.on()
        begun_s = time.monotonic()
        reason = "done"
        _say("on", flash, begun_s)
        time.sleep(seconds)
    except Exception as error:
        _say("failed", flash, error)
    relay.off()
    ended_s = time.monotonic()
    with contextlib.suppress(OSError):
        os.write(guard, b"off\n")
    if reason == "done":
        _say("off", flash, ended_s)
    with contextlib.suppress(OSError):
        written.add("off", flash, reason)


def _say(*words: object) -> None:
    with contextlib.suppress(OSError):
        os.write(1, (" ".join(map(str, words)) + "\n").encode())


@contextmanager
def waiting_lock(path: Path) -> Iterator[None]:
    """One keeper at a time: that of a server that was killed may still be ending its flash."""
    with os.fdopen(opened(path, os.O_RDWR)) as file:
        deadline = time.monotonic() + BUSY_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise DroneError(f"{path} is held by another process of the LED.") from None
                time.sleep(0.01)
        yield


def parsed() -> argparse.Namespace:
    """The command line of keeper and guard."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--pin", type=int, required=True)
    parser.add_argument("--active-high", action="store_true")
    parser.add_argument("--mock", action="store_true")
    parser.add_argument("--guard", type=int, help="the guard's descriptor")
    given = parser.parse_args()
    given.wiring = Wiring(given.pin, given.active_high, given.mock)
    return given


def _main() -> None:
    given: Any = parsed()
    try:
        keep(given.wiring, given.state, given.guard)
    except DroneError as error:
        _say("error:", error)
        sys.exit(2)


if __name__ == "__main__":
    _main()
