"""``influx-drone-server``: the command on the drone."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path

from influx_drone import __version__
from influx_drone.errors import DroneError
from influx_drone.files import own_folder

try:
    from influx_drone.led import LONGEST_FLASH_S, Wiring, led_off, note_off
except ModuleNotFoundError as missing:
    sys.exit(
        f"influx-drone-server needs {missing.name}: {sys.executable} -m pip install "
        "'influx_wrap[drone]', or on the drone what its installer installs."
    )

PORT = 47023
SIMULATED = "simulated:40.3500,-74.6500,60.0"

EXAMPLE = """example:
  influx-drone-server --gps /dev/ttyACM0 --pin 17
  influx-drone-server --dry-run --state desk     without a receiver and an LED
"""


def default_state() -> Path:
    """The service's folder, or one of the user's own."""
    given = os.environ.get("STATE_DIRECTORY")
    if given:
        return Path(given.split(":")[0])
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "influx-drone"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="influx-drone-server",
        description="Flash the drone's LED when the ground says so, and keep the RTK fix of each "
        "flash. Listens on the loopback only: the ground comes in through SSH.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--gps", metavar="STREAM", help="/dev/ttyACM0[:BAUD], tcp://HOST:PORT, file:RECORDING, "
        "or simulated:LAT,LON,HEIGHT; Septentrio SBF or NMEA")  # fmt: skip
    add("--pin", type=int, default=17, help="GPIO of the relay, Broadcom's number (17)")
    add("--active-high", action="store_true", help="the relay closes at a high level")
    add("--port", type=int, default=PORT, help=f"on the loopback; 0 takes a free one ({PORT})")
    add("--state", type=Path, default=None, metavar="DIR", help="where the journal is kept "
        "(the service's folder, or ~/.local/state/influx-drone)")  # fmt: skip
    add("--flash-s", type=float, default=0.25, help="length of a flash (0.25)")
    add("--max-age-s", type=float, default=0.5, help="oldest fix that is used (0.5)")
    add("--max-sigma-m", type=float, default=0.05, help="worst fix that is used (0.05)")
    add("--accept-float", action="store_true", help="take float fixes and large sigmas too")
    add("--dry-run", action="store_true", help="mock pins; a simulated receiver unless --gps")
    add("--led-off", action="store_true", help="turn the LED off, and nothing else")
    add("--verbose", action="store_true", help="log every connection")
    add("--version", action="version", version=__version__)
    return parser


def _turn_off(given: argparse.Namespace, state: Path) -> None:
    """The LED first: no state of the folder may keep it on."""
    led_off(_wiring(given))
    own_folder(state)
    note_off(state, "asked to")


def _serve(given: argparse.Namespace, state: Path) -> None:
    # Not loaded to turn the LED off, where time counts.
    from influx_drone.receiver import Limits
    from influx_drone.server import Settings, serve

    gps = given.gps or (SIMULATED if given.dry_run else None)
    if gps is None:
        raise DroneError("--gps is missing: where does the receiver send its fixes?")
    if not 0 < given.flash_s <= LONGEST_FLASH_S:
        raise DroneError(f"--flash-s must be above 0 and at most {LONGEST_FLASH_S:g} s.")
    if not given.max_age_s > 0 or not given.max_sigma_m > 0:
        raise DroneError("--max-age-s and --max-sigma-m must be above 0.")
    if not 0 <= given.port < 65536:
        raise DroneError(f"--port must be from 0 to 65535, got {given.port}.")
    serve(
        Settings(
            gps=gps,
            wiring=_wiring(given),
            state=state,
            port=given.port,
            flash_s=given.flash_s,
            limits=Limits(given.max_age_s, given.max_sigma_m),
            accept_float=given.accept_float,
        )
    )


def _wiring(given: argparse.Namespace) -> Wiring:
    return Wiring(given.pin, given.active_high, mock=given.dry_run)


def main() -> None:
    """Run the command."""
    given = _parser().parse_args()
    logging.basicConfig(
        level=logging.INFO if given.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    try:
        (_turn_off if given.led_off else _serve)(given, given.state or default_state())
    except DroneError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"Error: {where}{error.strerror or error}.", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
