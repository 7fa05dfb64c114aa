"""``influx-calib kalibr check``: which Kalibr something is."""

from __future__ import annotations

from pathlib import Path

import click

from influx_wrap.cli.options import PATH
from influx_wrap.engines.kalibr import KalibrContainer, LocalKalibr, Place, docker_client
from influx_wrap.engines.kalibr_fork import read_series, recognise_checkout
from influx_wrap.engines.kalibr_kind import ask_which
from influx_wrap.errors import InputError


@click.command("check")
@click.argument("what", type=PATH, required=False)
@click.option("--image", metavar="NAME", help="A container image in place of WHAT.")
def command(what: Path | None, image: str | None) -> None:
    """Say whether WHAT is upstream's Kalibr, our fork, the InFlux build or our imitation.

    WHAT is a command, or the folder of a checkout; without one it is the kalibr_calibrate_cameras
    that --engine kalibr finds on the PATH.

    \b
    Example:
      influx-calib kalibr check
      influx-calib kalibr check third_party/kalibr/fork
      influx-calib kalibr check --image my-kalibr
    """
    if what is not None and image is not None:
        raise InputError(f"{what} and --image exclude each other: leave one out.")
    if what is not None and what.is_dir():
        click.echo(f"{what}: {recognise_checkout(what, read_series())}")
        return
    place: Place
    place = LocalKalibr(what) if image is None else KalibrContainer(image, docker_client())
    click.echo(f"{place}: {ask_which(place)}")
