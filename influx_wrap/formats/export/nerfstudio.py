"""nerfstudio's ``transforms.json`` with the intrinsics of every frame.

Camera poses are not ours to know: every ``transform_matrix`` is the identity, to be
replaced. The pixel origin is the top-left pixel's outer corner. ``file_path`` is
``images/frame_<six digits>.png``. The keys ``clip``, ``lens`` and ``camera`` are ours.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from influx_wrap.formats.export.frames import answered, clip_names
from influx_wrap.formats.files import write_json
from influx_wrap.formats.pixel_origin import to_corner
from influx_wrap.model.clip import Clip

KEYS = ("fl_x", "fl_y", "cx", "cy", "k1", "k2", "p1", "p2")
"""nerfstudio's names, in the order of ``model.intrinsics.NAMES``."""


def write_nerfstudio(clip: Clip, path: Path) -> None:
    """Write ``transforms.json``; ``lfl_mm`` and ``fd_m`` (null at infinity) come along."""
    clip = answered(clip)
    width, height = clip.image_size
    identity = np.eye(4).tolist()
    rows = zip(
        clip.frames.tolist(),
        clip.lfl_mm.tolist(),
        clip.fd_m.tolist(),
        to_corner(clip.intrinsics).tolist(),
        strict=True,
    )
    frames = [
        {
            "file_path": f"images/frame_{frame:06d}.png",
            "w": width,
            "h": height,
            **dict(zip(KEYS, values, strict=True)),
            "lfl_mm": lfl_mm,
            "fd_m": fd_m if math.isfinite(fd_m) else None,
            "transform_matrix": identity,
        }
        for frame, lfl_mm, fd_m, values in rows
    ]
    write_json(path, {"camera_model": "OPENCV", **clip_names(clip), "frames": frames})
