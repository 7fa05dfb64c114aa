"""Which methods there are, and whether an environment has what they import."""

from __future__ import annotations

import inspect
import json
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from influx_wrap.errors import InputError
from influx_wrap.formats.json_text import parse_json_text
from influx_wrap.model.predictions import RAD_TAN
from influx_wrap.predict.predictor import SettingValue, typed_settings
from influx_wrap.predict.process import Environment
from influx_wrap.predict.runner import EXTERNAL, method_runner
from influx_wrap.predict.trivial import TRIVIAL

REPOSITORY = "repository"
"""The setting that names a copy of a method which is no package."""
TIMEOUT_S = 60.0
_PROBE = """
import importlib.util, json, sys
modules, folders = json.loads(sys.argv[1])
sys.path[:0] = folders
print(json.dumps([name for name in modules if importlib.util.find_spec(name) is None]))
"""


@dataclass(frozen=True)
class MethodState:
    """A method and what it lacks.

    about     what it is, in a line
    kinds     of camera that it can give
    install   how to install it; empty if there is nothing to install
    missing   modules that it imports and the environment does not have
    settings  with their defaults
    """

    name: str
    about: str
    kinds: tuple[str, ...]
    install: str
    missing: tuple[str, ...]
    settings: Mapping[str, SettingValue]


def known_methods(environment: Environment) -> list[MethodState]:
    """All methods that have a name, those that run no program first."""
    trivial = [
        MethodState(
            name,
            (inspect.getdoc(kind) or name).splitlines()[0],
            (RAD_TAN,),
            "",
            (),
            getattr(kind, "settings", {}),
        )
        for name, kind in TRIVIAL.items()
    ]
    return [*trivial, *external_methods(list(EXTERNAL), {}, environment)]


def external_methods(
    methods: Sequence[str], given: Mapping[str, str], environment: Environment
) -> list[MethodState]:
    """Methods that run a program, by name or as a runner; ``given`` replaces their settings.

    The environment is asked once, and imports nothing for it.
    """
    runners = dict(method_runner(method) for method in methods)
    settings = {name: typed_settings(name, one.settings, given) for name, one in runners.items()}
    copies = sorted({str(one[REPOSITORY]) for one in settings.values() if one.get(REPOSITORY)})
    modules = sorted({module for runner in runners.values() for module in runner.imports})
    missing = _missing(environment, modules, copies)
    return [
        MethodState(
            name,
            runner.about,
            runner.kinds,
            runner.install,
            tuple(module for module in runner.imports if module in missing),
            settings[name],
        )
        for name, runner in runners.items()
    ]


def _missing(environment: Environment, modules: list[str], copies: list[str]) -> list[str]:
    arguments = ["-c", _PROBE, json.dumps([modules, copies])]
    command = environment.command(arguments, [], f"influx-predict-{uuid.uuid4().hex[:12]}")
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIMEOUT_S,
        )
    except OSError as error:
        raise InputError(f"{command[0]} cannot be started: {error.strerror}.") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"{environment} was silent for {TIMEOUT_S:g} s.") from None
    try:
        found = parse_json_text(done.stdout.encode(), str(environment))
    except InputError:
        found = None
    if not isinstance(found, list):
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1][:200]
        raise InputError(f"{environment} is no Python that answers; it said {said!r}.") from None
    return [str(name) for name in found]
