"""``influx-calib drone trigger``: a flash at every hover point, and where the drone was."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from influx_drone.errors import DroneError
from influx_drone.ground import FlashFailed, Flight, State, opened_flight
from influx_drone.link import LinkLost, find_host
from influx_drone.readings import as_rows
from influx_wrap.cli.options import PATH, count_option, number_option
from influx_wrap.cli.tables import answers
from influx_wrap.formats.files import check_writable, make_folder
from influx_wrap.formats.flight import FLASH_RTK, write_flash_rtk

POLL_S = 0.5
QUIT, ENTER = ("q", "\x04"), ("\n", "\r", " ")


@click.command("trigger")
@click.option(
    "--host",
    required=True,
    metavar="[USER@]HOST[:PORT]",
    help="The drone's computer, by its name in ~/.ssh/config too.",
)
@click.option("--out", type=PATH, required=True, help="Folder of the flight; an old one goes on.")
@count_option("--points", 24, "How many hover points there are; 4 of a test flight.", at_least=1)
@click.option("--identity", type=PATH, show_default="as ssh", help="Private key to log in with.")
@click.option("--known-hosts", type=PATH, help="Host keys beside those ssh knows.")
@click.option(
    "--state", metavar="DIR", help="The server's folder on the drone, if not a usual one."
)
@click.option("--accept-float", is_flag=True, help="Take float fixes and large sigmas too.")
@number_option(
    "--patience-s",
    8.0,
    "How long after Enter a flash still makes sense: the drone must still be hovering.",
    above=0,
)
def command(
    host: str,
    out: Path,
    points: int,
    identity: Path | None,
    known_hosts: Path | None,
    state: str | None,
    accept_float: bool,
    patience_s: float,
) -> None:
    """Flash the LED at each hover point, and keep the drone's position.

    Watch the drone in QGroundControl; when it hovers, press Enter. A link that is lost is
    tried again, and readings that are on the drone alone are fetched. q ends the flight;
    the same command goes on with it. The result is flash_rtk.json in the folder.

    \b
    Example:
      influx-calib drone trigger --host drone --out flight
    """
    errors = Console(stderr=True, highlight=False)
    target = find_host(host, identity=identity, known_hosts=known_hosts, state=state)
    make_folder(out)
    check_writable(out / FLASH_RTK)
    options: dict[str, Any] = {"patience_s": patience_s, "accept_float": accept_float}
    with opened_flight(out, target, **options) as flight:
        try:
            _fly(flight, out, points, errors)
        finally:
            _write(flight, out)
        _finish(flight, out, points)


def _fly(flight: Flight, out: Path, points: int, errors: Console) -> None:
    """Flash on Enter until all points are done or the person ends it."""
    with _keys() as keys, Live(console=errors, refresh_per_second=4, transient=True) as live:
        shown = flight.poll()
        polled_s = time.monotonic()
        while shown.n_readings < points:
            live.update(_line(shown, points))
            key = keys.next(0.1)
            if key in QUIT:
                return
            if key in ENTER:
                _flash_one(flight, out, points, live, errors)
            if key in ENTER or time.monotonic() > polled_s + POLL_S:
                shown = flight.poll()
                polled_s = time.monotonic()


def _flash_one(flight: Flight, out: Path, points: int, live: Live, errors: Console) -> None:
    point = len(flight.readings) + 1
    try:
        answer = flight.flash(point, lambda state: live.update(_line(state, points)))
    except LinkLost as error:
        errors.print(f"Point {point}: no answer; {error}. Press Enter again if it still hovers.")
        return
    except FlashFailed as error:
        errors.print(f"Point {point}: no reading, {error}.")
        return
    if answer["kind"] == "refused":
        errors.print(f"Point {point}: no flash, {answer['reason']}.")
        return
    _write(flight, out)
    fix = answer["fix"]
    errors.print(
        f"Point {point} of {points}: {fix['quality']}, {fix['latitude_deg']:.8f} "
        f"{fix['longitude_deg']:.8f}, {fix['height_m']:.3f} m"
    )


def _write(flight: Flight, out: Path) -> None:
    rows = as_rows(flight.readings)
    if rows:
        write_flash_rtk(out / FLASH_RTK, rows)


def _finish(flight: Flight, out: Path, points: int) -> None:
    """Compare the journals, and say what there is."""
    if not flight.has_triggered:
        trouble = flight.state.trouble
        why = f": {trouble}" if trouble else ""
        raise DroneError(f"nothing was flashed, so there is nothing to keep{why}.")
    try:
        theirs = flight.finish(20.0)
    except LinkLost as error:
        n = len(flight.readings)
        raise DroneError(
            f"{n} readings are in {out / FLASH_RTK}, but there is no link ({error}): readings may "
            "be on the drone alone. Give the same command again when it is in reach."
        ) from None
    _write(flight, out)
    n = sum(entry["kind"] == "reading" for entry in theirs)
    if n == 0:
        raise DroneError("every trigger was refused, so there is nothing to keep.")
    few = "" if n >= points else f" {points - n} points are missing; the same command goes on."
    answers().print(
        f"{n} readings in {out / FLASH_RTK}; the drone's journal has the same.{few}\n"
        f"Next: influx-calib drone detect VIDEO --out {out}",
        soft_wrap=True,
    )


def _line(state: State, points: int) -> Text:
    """Link, fix and point in one line."""
    text = Text()
    if not state.linked:
        text.append("no link ", "bold red")
        text.append(f"({state.trouble or 'connecting'}), trying again", "red")
        return text
    text.append("linked  ", "green")
    status = state.status or {}
    fix = status.get("fix")
    if fix is None:
        text.append("no fix", "bold red")
    else:
        good = not status["problems"]
        text.append(str(fix["quality"]), "green" if good else "bold yellow")
        if status["sigma_m"] is not None:
            text.append(f" +-{100 * status['sigma_m']:.1f} cm")
        if fix["n_satellites"] is not None:
            text.append(f", {fix['n_satellites']} satellites")
        text.append(f", {status['age_s']:.1f} s old")
    for problem in status.get("problems", ())[:1]:
        text.append(f"  ({problem})", "yellow")
    text.append(f"  point {min(state.n_readings + 1, points)} of {points}", "bold")
    text.append("  Enter flashes, q ends")
    return text


class _Keys:
    """What is typed; at the end of a piped input it is q."""

    def next(self, limit_s: float) -> str | None:
        """The next key, None if there is none within ``limit_s``."""
        ready, _, _ = select.select([sys.stdin], [], [], limit_s)
        if not ready:
            return None
        # Not sys.stdin.read: what that holds back, select does not see.
        return os.read(sys.stdin.fileno(), 1).decode(errors="replace") or "q"


@contextmanager
def _keys() -> Iterator[_Keys]:
    """Single keys from a terminal, without their echo."""
    if not sys.stdin.isatty():
        yield _Keys()
        return
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield _Keys()
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
