"""``influx-calib kalibr``, and commands under Kalibr's names for command lines that exist already.

The latter (``kalibr_calibrate_cameras`` and others) have Kalibr's options and need none of it.
"""

from __future__ import annotations

import click

from influx_wrap.cli.lazy import LazyGroup

COMMANDS = {
    "fork": "Make our fork: clone upstream's Kalibr and add the lines of patches/.",
    "check": "Which Kalibr a command, a checkout or an image is.",
}


@click.group("kalibr", cls=LazyGroup, package=__name__, summaries=COMMANDS)
def command() -> None:
    """A Kalibr for --engine kalibr.

    \b
    Example:
      influx-calib kalibr fork
      influx-calib kalibr check --image my-kalibr
    """
