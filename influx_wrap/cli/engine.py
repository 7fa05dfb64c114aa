"""The options that choose an engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from influx_wrap.cli.options import number
from influx_wrap.engines.engine import Engine
from influx_wrap.engines.kalibr import KalibrContainer, LocalKalibr, docker_client
from influx_wrap.engines.kalibr_engine import TIMEOUT_S, KalibrEngine
from influx_wrap.engines.native import NativeEngine
from influx_wrap.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])


def engine_options(function: F) -> F:
    """--engine, --image and --timeout-s."""
    engine = click.option(
        "--engine",
        type=click.Choice(("native", "kalibr")),
        default="native",
        show_default=True,
        help="Who calibrates: ours, or a real Kalibr (on the PATH, or in --image).",
    )
    image = click.option("--image", metavar="NAME", help="Container image with a Kalibr.")
    timeout = click.option(
        "--timeout-s",
        type=number(above=0),
        metavar="N",
        show_default=f"{TIMEOUT_S:g}",
        help="How long one run of Kalibr may take.",
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
) -> Engine:
    """The engine that the options name; Kalibr's files go into ``folder``."""
    if engine == "native":
        given = {"--image": image, "--timeout-s": timeout_s, "--bag": bag}
        for option, value in given.items():
            if value is not None:
                raise InputError(f"{option} is for --engine kalibr, which was not asked for.")
        return NativeEngine(jobs)
    place = LocalKalibr() if image is None else KalibrContainer(image, docker_client())
    return KalibrEngine(place, folder, jobs, TIMEOUT_S if timeout_s is None else timeout_s, bag)
