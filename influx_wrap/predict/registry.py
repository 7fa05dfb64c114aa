"""All methods by name."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.predict.environment import Environment
from influx_wrap.predict.external import make_external
from influx_wrap.predict.predictor import Predictor
from influx_wrap.predict.runner_facts import EXTERNAL
from influx_wrap.predict.trivial import TRIVIAL, make_trivial

METHODS = (*TRIVIAL, *EXTERNAL)


def is_trivial(method: str) -> bool:
    """True for those that run no program and look at no picture."""
    return method in TRIVIAL


def make_predictor(
    method: str,
    settings: Mapping[str, str],
    *,
    sensor_width_mm: float,
    environment: Environment,
    logs: Path,
    stride: int | None = None,
    timeout_s: float | None = None,
    stop: threading.Event | None = None,
) -> Predictor:
    """A method by its name, or a runner of the user's own by its path, a ``.py`` file."""
    if is_trivial(method):
        return make_trivial(method, settings, sensor_width_mm)
    if method not in EXTERNAL and not method.endswith(".py"):
        raise InputError(
            f"there is no method {method}; the methods are {', '.join(METHODS)}, and runners of "
            "your own, given as a file such as mine.py."
        )
    return make_external(
        method, settings, environment, logs, stride=stride, timeout_s=timeout_s, stop=stop
    )
