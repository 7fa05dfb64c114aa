"""The process that turns the LED off when the one that should have done it cannot.

It starts the keeper (``led.py``) and hears from it until when the LED is on. When the keeper
ends, is killed, or is silent past that time, the guard turns the LED off and ends too, and the
server starts both anew. A guard that is killed takes nothing with it: the keeper ends its flash
by its own clock and makes no other.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

from influx_drone.errors import DroneError
from influx_drone.led import Wiring, led_off, load_pins, note_off, parsed


def guard(command: list[str], wiring: Wiring) -> bool:
    """Watch over a keeper until it ends; returns whether the LED was on then."""
    reading, writing = os.pipe()
    with subprocess.Popen([*command, "--guard", str(writing)], pass_fds=[writing]) as keeper:
        os.close(writing)
        until_s: float | None = None
        while True:
            left_s = None if until_s is None else max(until_s - time.monotonic(), 0.0)
            if not select.select([reading], [], [], left_s)[0]:
                break
            told = os.read(reading, 4096).split()
            if not told:
                break
            until_s = None if told[-1] == b"off" else float(told[-1])
        keeper.kill()
        keeper.wait()
    if until_s is not None:
        led_off(wiring)
    return until_s is not None


def _main() -> None:
    # The service manager's signals are for the server: these two end when it does.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    given = parsed()
    command = [sys.executable, "-m", "influx_drone.led", *sys.argv[1:]]
    try:
        # If it fails, the keeper says why.
        with contextlib.suppress(Exception):
            load_pins(given.wiring)
        if guard(command, given.wiring):
            note_off(given.state, "its process ended")
    except DroneError as error:
        print(f"the LED's guard: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    _main()
