"""What a method's runner says of itself, read from its source."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from influx_wrap.errors import InputError
from influx_wrap.formats.files import read_text
from influx_wrap.model.predictions import PARAMETERS, RAD_TAN
from influx_wrap.predict.predictor import SettingValue

RUNNERS = Path(__file__).parent / "runners"
EXTERNAL = {
    "colmap": "colmap.py",
    "geocalib": "geocalib.py",
    "perspective-fields": "perspective_fields.py",
    "unidepth": "unidepth.py",
    "wildcamera": "wildcamera.py",
    "droidcalib": "droidcalib.py",
    "depth-anything-3": "depth_anything_3.py",
}
TIMEOUT_S = 300.0
_FACTS = ("INSTALL", "SETTINGS", "KIND", "WHOLE_VIDEO", "STRIDE", "TIMEOUT_S")


@dataclass(frozen=True)
class Runner:
    """What a runner says of itself: the constants that ``runners`` explains."""

    path: Path
    install: str
    settings: Mapping[str, SettingValue]
    kind: str = RAD_TAN
    whole_video: bool = False
    stride: int = 1
    timeout_s: float = TIMEOUT_S


def read_runner(path: Path) -> Runner:
    """A runner's facts, read without running it: it may need what is not installed here."""
    text = read_text(path)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise InputError(f"{path}, line {line or 1}: this is not Python.") from None
    facts: dict[str, Any] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if name in _FACTS:
                try:
                    facts[name.lower()] = ast.literal_eval(statement.value)
                except ValueError:
                    raise InputError(
                        f"{path}, line {statement.lineno}: {name} must be written out."
                    ) from None
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if "load" not in defined or not {"install", "settings"} <= facts.keys():
        raise InputError(f"{path} is no runner: it needs INSTALL, SETTINGS and load(settings).")
    runner = Runner(path, **facts)
    if not isinstance(runner.settings, dict) or runner.kind not in PARAMETERS:
        raise InputError(f"{path}: SETTINGS must be a dict, KIND {' or '.join(PARAMETERS)}.")
    if not (type(runner.stride) is int and runner.stride > 0 and runner.timeout_s > 0):
        raise InputError(f"{path}: STRIDE must be a whole number and TIMEOUT_S one, above 0.")
    return runner
