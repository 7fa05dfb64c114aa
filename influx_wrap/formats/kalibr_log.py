"""What a Kalibr says of its work besides the camera: in its log, its poses, our fork's own file.

Kalibr prints where it began (``Projection initialized to: [...]``), how many views it used and how
many corners it removed, and nothing else has these. Its file of poses has a row for each view that
was kept, by the time of the view. Our fork writes ``<name>-rollouts.json``, with all rollouts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.files import read_json, read_text
from influx_wrap.model.arrays import FloatArray

_NUMBER = r"([-+.\deE\s]+|[^\]]*nan[^\]]*)"
_PROJECTION = re.compile(rf"Projection initialized to:\s*\[{_NUMBER}\]")
_DISTORTION = re.compile(rf"Distortion initialized to:\s*\[{_NUMBER}\]")
_VIEWS = re.compile(r"(?<!\d)(\d{1,9}) images with (\d{1,9})(?: images)? used")
_REMOVED = re.compile(r"Removed (\d{1,9}) outlier corners\b(?! on batch)")
_RESTART = "Restarting for a new attempt"
_GAVE_UP = {
    "Initialization of focal length failed. You can enable": "it found no focal length",
    "Max. attemps reached": "its optimisation diverged three times",
}
"""What Kalibr prints on its way to nothing, in words."""


@dataclass(frozen=True, eq=False)
class KalibrLog:
    """What one run printed; None for what it did not.

    initialisation  (8,) intrinsics that the joint stage began at
    gave_up         why there is no result, if it says so
    """

    initialisation: FloatArray | None
    views_used: int | None
    corners_removed: int | None
    restarts: int
    gave_up: str | None


def read_log(text: str) -> KalibrLog:
    """From all that a run printed; after a restart, the last of everything counts."""
    used, removed = _VIEWS.findall(text), _REMOVED.findall(text)
    reasons = [why for words, why in _GAVE_UP.items() if words in text]
    return KalibrLog(
        initialisation=_initialisation(text),
        views_used=int(used[-1][1]) if used else None,
        corners_removed=int(removed[-1]) if removed else None,
        restarts=text.count(_RESTART),
        gave_up=reasons[-1] if reasons else None,
    )


def _initialisation(text: str) -> FloatArray | None:
    projection, distortion = _PROJECTION.findall(text), _DISTORTION.findall(text)
    if not projection or not distortion:
        return None
    try:
        values = np.array([float(word) for word in f"{projection[-1]} {distortion[-1]}".split()])
    except ValueError:
        return None
    return values if values.shape == (8,) and np.isfinite(values).all() else None


def read_pose_times(path: Path) -> list[int]:
    """Times in nanoseconds of the views in a file of poses."""
    rows = [line for line in read_text(path).splitlines() if line and not line.startswith("#")]
    try:
        return [int(row.split(",")[0]) for row in rows]
    except ValueError:
        raise InputError(f"{path} is no file of poses: its rows begin with a time in ns.") from None


@dataclass(frozen=True, eq=False)
class ForkRollout:
    """A rollout of our fork.

    theta   (8,) intrinsics; None if it failed
    views   numbers of the views kept
    """

    seed: int
    theta: FloatArray | None
    views: tuple[int, ...] | None
    corners_removed: int | None
    failure: str | None


@dataclass(frozen=True, eq=False)
class ForkRollouts:
    """What our fork says of all rollouts of one start; ``chosen`` is the one that it takes."""

    version: str
    initialisation: FloatArray
    chosen: int | None
    rollouts: tuple[ForkRollout, ...]


def read_fork_rollouts(path: Path) -> ForkRollouts:
    """The ``<name>-rollouts.json`` of our fork."""
    record = read_json(path)
    rollouts = []
    for one in record.records("rollouts"):
        camera, views, removed = (
            one.values.get(key) for key in ("camera", "views", "corners_removed")
        )
        rollouts.append(
            ForkRollout(
                seed=one.integer("seed", at_least=0),
                theta=None if camera is None else np.array(one.numbers("camera", 8)),
                views=None if views is None else tuple(one.integers("views").tolist()),
                corners_removed=None
                if removed is None
                else one.integer("corners_removed", at_least=0),
                failure=None if camera is not None else one.text("failure"),
            )
        )
    chosen = record.values.get("chosen")
    return ForkRollouts(
        version=record.text("version"),
        initialisation=np.array(record.numbers("initialization", 8)),
        chosen=None if chosen is None else record.integer("chosen", at_least=0),
        rollouts=tuple(rollouts),
    )
