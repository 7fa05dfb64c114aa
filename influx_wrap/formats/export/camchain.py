"""Kalibr's camchain YAML: one camera per file, and so one file per frame.

Kalibr has no clips. A path that ends in ``.yaml`` takes a single frame; any other is a folder
of ``camchain-<frame>.yaml``. Pixel (0, 0) is the centre of the top-left pixel.
"""

from __future__ import annotations

import math
from pathlib import Path

import yaml

from influx_wrap.compute.progress import Progress, no_progress
from influx_wrap.errors import InputError
from influx_wrap.formats.export.frames import answered, clip_names_text
from influx_wrap.formats.files import make_folder, write_text
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.clip import Clip

SUFFIXES = (".yaml", ".yml")


def write_camchain(clip: Clip, path: Path, progress: Progress = no_progress) -> None:
    """Write the file of a single frame, or a folder of them."""
    clip = answered(clip)
    if path.suffix in SUFFIXES:
        if len(clip.frames) > 1:
            raise InputError(
                f"{path}: a camchain holds one camera, but {clip.name} has {len(clip.frames)} "
                "frames: give the name of a folder, without .yaml."
            )
        write_text(path, camchain(clip, 0))
        return
    make_folder(path)
    for row, frame in enumerate(clip.frames.tolist()):
        write_text(path / f"camchain-{frame:06d}.yaml", camchain(clip, row))
        progress(row + 1, len(clip.frames))


def camchain(clip: Clip, row: int) -> str:
    """The YAML text of one frame, below a comment with the names of clip, lens and camera."""
    about = clip_names_text(clip)
    comment = f"# {about}, frame {clip.frames[row]}\n" if about else ""
    text = camchain_text(clip.intrinsics[row], clip.image_size, f"/{clip.name}/image_raw")
    return comment + text


def camchain_text(intrinsics: FloatArray, image_size: tuple[int, int], topic: str) -> str:
    """The YAML text of a camera with ``intrinsics`` (8,)."""
    values = intrinsics.tolist()
    camera = {
        "cam_overlaps": [],
        "camera_model": "pinhole",
        "distortion_coeffs": values[4:],
        "distortion_model": "radtan",
        "intrinsics": values[:4],
        "resolution": list(image_size),
        "rostopic": topic,
    }
    # One line for each key, however long, with lists in brackets: Kalibr's own layout.
    return yaml.safe_dump({"cam0": camera}, default_flow_style=None, width=math.inf)
