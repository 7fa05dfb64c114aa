"""The options that choose an engine."""

from __future__ import annotations

from pathlib import Path

import click

from influx_wrap.cli.options import Command, choice_option, number
from influx_wrap.engines.engine import Engine
from influx_wrap.engines.kalibr import KalibrContainer, LocalKalibr, docker_client
from influx_wrap.engines.kalibr_engine import TIMEOUT_S, KalibrEngine
from influx_wrap.engines.native import NativeEngine
from influx_wrap.errors import InputError


def engine_options(function: Command) -> Command:
    """--engine, --image and --timeout-s."""
    engine = choice_option(
        "--engine",
        ("native", "kalibr"),
        "native",
        "Who calibrates: ours, or a real Kalibr (on the PATH, or in --image).",
    )
    image = click.option("--image", metavar="NAME", help="Container image with a Kalibr.")
    timeout = click.option(
        "--timeout-s",
        type=number(above=0),
        metavar="N",
        show_default=f"{TIMEOUT_S:g}",
        help="How long one run of Kalibr may take, in seconds.",
    )
    return engine(image(timeout(function)))


def chosen_engine(
    engine: str,
    image: str | None,
    timeout_s: float | None,
    *,
    folder: Path,
    jobs: int,
    bag: Path | None = None,
    recordings: Path | None = None,
) -> Engine:
    """The engine that the options name; Kalibr's files go into ``folder``."""
    if engine == "native":
        given = {"--image": image, "--timeout-s": timeout_s, "--bag": bag}
        for option, value in given.items():
            if value is not None:
                raise InputError(f"{option} is for --engine kalibr, which was not asked for.")
        return NativeEngine(jobs)
    place = LocalKalibr() if image is None else KalibrContainer(image, docker_client())
    limit_s = TIMEOUT_S if timeout_s is None else timeout_s
    return KalibrEngine(place, folder, jobs, limit_s, bag, recordings)
