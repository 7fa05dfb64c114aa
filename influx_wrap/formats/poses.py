"""``poses.csv``: where a calibration has the target in each view.

A row is a view: its number, the rotation matrix row by row and the translation (in the target's
unit) that take points of the target to camera space. All digits are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.files import read_text, write_text
from influx_wrap.model.arrays import FloatArray

POSES = "poses.csv"
COLUMNS = ("view", *(f"r{i}{j}" for i in range(3) for j in range(3)), "tx", "ty", "tz")


def write_poses(path: Path, views: Sequence[int], poses: FloatArray) -> None:
    """Write the poses (V, 12) of ``views``."""
    rows = [",".join(COLUMNS)]
    rows += [
        ",".join([str(view), *map(repr, pose)])
        for view, pose in zip(views, poses.tolist(), strict=True)
    ]
    write_text(path, "\n".join(rows) + "\n")


def read_poses(path: Path, views: Sequence[int]) -> FloatArray:
    """The poses (V, 12) of ``views``; a file of other views is refused."""
    header, *lines = read_text(path).splitlines() or [""]
    try:
        rows = [line.split(",") for line in lines]
        poses = np.array([row[1:] for row in rows], dtype=float).reshape(len(rows), 12)
        if header.split(",") != list(COLUMNS) or [int(row[0]) for row in rows] != list(views):
            raise ValueError
        if not np.isfinite(poses).all():
            raise ValueError
    except ValueError:
        raise InputError(f"{path} does not hold the poses of the {len(views)} views.") from None
    return poses
