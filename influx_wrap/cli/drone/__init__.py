"""``influx-calib drone``: a flight, from its plan to observations of a lens."""

from __future__ import annotations

import click

from influx_wrap.cli.lazy import LazyGroup

COMMANDS = {
    "plan": "The mission of a test flight or of the 24 hover points, checked.",
    "trigger": "Flash the LED at each hover point and keep the position, over SSH.",
    "detect": "The LED's flashes in a night's video.",
    "match": "Which flash belongs to which position; asks where it is not certain.",
}


@click.group("drone", cls=LazyGroup, package=__name__, summaries=COMMANDS)
def command() -> None:
    """Where a board would be too small, a drone with an LED is the target.

    \b
    Example:
      influx-calib drone plan canon17 --lfl-mm 17 --fd-m 13.5 --lat 40.35 --lon -74.65 \\
        --height-m 1.44 --heading-deg 30 --tilt-deg 58 --out mission.plan
      influx-calib drone trigger --host drone --out flight
      influx-calib drone detect night.mp4 --out flight
      influx-calib drone match flight
    """
