"""What a runner says of itself: constants, read without running it (``runners`` explains them).

It may need what is not installed here, or another Python.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from influx_wrap.errors import InputError
from influx_wrap.formats.files import read_text
from influx_wrap.model.predictions import PARAMETERS, RAD_TAN
from influx_wrap.predict.predictor import SettingValue
from influx_wrap.predict.process import RUNNERS

EXTERNAL = {
    "colmap": "colmap.py",
    "hloc": "hloc.py",
    "geocalib": "geocalib.py",
    "perspective-fields": "perspective_fields.py",
    "unidepth": "unidepth.py",
    "wildcamera": "wildcamera.py",
    "droidcalib": "droidcalib.py",
    "anycalib": "anycalib.py",
    "moge-2": "moge_2.py",
    "vggt": "vggt.py",
    "map-anything": "map_anything.py",
    "depth-anything-3": "depth_anything_3.py",
}
TIMEOUT_S = 300.0
CAMERA_MODEL = "camera_model"
"""The setting on which the kind of camera may depend."""
_FACTS = ("INSTALL", "SETTINGS", "KIND", "WHOLE_VIDEO", "STRIDE", "TIMEOUT_S")


@dataclass(frozen=True)
class Runner:
    """What a runner says of itself.

    about    the first line of its docstring
    imports  the modules that it imports and that do not come with Python
    kind     of camera; or one for each value of the setting ``CAMERA_MODEL``
    """

    path: Path
    about: str
    imports: tuple[str, ...]
    install: str
    settings: Mapping[str, SettingValue]
    kind: str | Mapping[str, str] = RAD_TAN
    whole_video: bool = False
    stride: int = 1
    timeout_s: float = TIMEOUT_S

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds of camera that it can give."""
        return (self.kind,) if isinstance(self.kind, str) else tuple(sorted({*self.kind.values()}))

    def kind_with(self, name: str, settings: Mapping[str, SettingValue]) -> str:
        """The kind of camera that it gives with these settings; ``name`` is the method's."""
        if isinstance(self.kind, str):
            return self.kind
        model = str(settings[CAMERA_MODEL])
        if model not in self.kind:
            raise InputError(
                f"{name}: {CAMERA_MODEL} is one of {', '.join(self.kind)}, got {model!r}: "
                f"other models are neither {' nor '.join(PARAMETERS)}."
            )
        return self.kind[model]


def method_runner(method: str) -> tuple[str, Runner]:
    """Name and runner of a method: one of ``EXTERNAL``, or the path of a runner."""
    if method in EXTERNAL:
        return method, read_runner(RUNNERS / EXTERNAL[method])
    path = Path(method)
    return path.stem, read_runner(path)


def read_runner(path: Path) -> Runner:
    """A runner's facts."""
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
    about = (ast.get_docstring(tree) or path.stem).splitlines()[0]
    runner = Runner(path, about, _imports(tree), **facts)
    _check(runner)
    return runner


def _check(runner: Runner) -> None:
    path, kind = runner.path, runner.kind
    if not isinstance(runner.settings, dict):
        raise InputError(f"{path}: SETTINGS must be a dict.")
    kinds = list(kind.values()) if isinstance(kind, dict) else [kind]
    if not kinds or any(one not in PARAMETERS for one in kinds):
        raise InputError(
            f"{path}: KIND must be {' or '.join(PARAMETERS)}, or a dict with one of them for each "
            f"value of the setting {CAMERA_MODEL}."
        )
    if isinstance(kind, dict) and CAMERA_MODEL not in runner.settings:
        raise InputError(f"{path}: KIND depends on {CAMERA_MODEL}, which SETTINGS does not have.")
    if not (type(runner.stride) is int and runner.stride > 0 and runner.timeout_s > 0):
        raise InputError(f"{path}: STRIDE must be a whole number and TIMEOUT_S one, above 0.")


def _imports(tree: ast.Module) -> tuple[str, ...]:
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module.partition(".")[0])
    return tuple(sorted(modules - sys.stdlib_module_names))
