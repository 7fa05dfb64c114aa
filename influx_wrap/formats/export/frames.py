"""What the exports share: frames with an answer, names of files."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np

from influx_wrap.errors import InputError, install_line
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.clip import Clip

_LONGEST_NAME = 200
"""Longer ones are cut: OpenCV's files and OpenTrackIO have limits."""


def answered(clip: Clip) -> Clip:
    """The clip without the frames that have no intrinsics; there must be others."""
    kept = clip.answered
    if not kept.any():
        raise InputError(
            f"none of the {len(kept)} frames of {clip.name} has intrinsics: there is nothing to "
            "export."
        )
    return clip if kept.all() else clip.rows(kept)


def sensor_mm(clip: Clip) -> FloatArray:
    """(n, 2) width and height of the sensor that show each frame with one focal length.

    Most formats have a single focal length in millimetres. It is fx times the pixels' pitch;
    where fy in millimetres is not quite the same, the height takes the difference, so that
    the projection is that of the intrinsics.
    """
    width, height = clip.image_size
    width_mm = 1e-3 * clip.pixel_um[0] * width
    focal = focal_mm(clip)
    return np.stack([np.full(len(focal), width_mm), focal * height / clip.intrinsics[:, 1]], axis=1)


def focal_mm(clip: Clip) -> FloatArray:
    """(n,) camera focal lengths."""
    return np.asarray(1e-3 * clip.pixel_um[0] * clip.intrinsics[:, 0])


def clip_names(clip: Clip) -> dict[str, str]:
    """What the clip, its lens and its camera are called, where that is known; each on one line."""
    given = {"clip": clip.name, "lens": clip.lens_name, "camera": clip.camera_name}
    if clip.name == clip.lens_name:
        # A table goes by its lens, and is no clip.
        del given["clip"]
    names = {key: _one_line(name or "") for key, name in given.items()}
    return {key: name for key, name in names.items() if name}


def clip_names_text(clip: Clip) -> str:
    """The same for a comment: ``clip A001, lens canon17, camera arri-alexa-mini``."""
    return ", ".join(f"{key} {name}" for key, name in clip_names(clip).items())


def _one_line(name: str) -> str:
    """A name for a file of text: without line breaks and what else cannot be printed."""
    printable = "".join(letter if letter.isprintable() else " " for letter in name)
    return " ".join(printable.split())[:_LONGEST_NAME]


def missing_sentence(clip: Clip) -> str:
    """How many frames have no intrinsics; empty if all have."""
    kept = clip.answered
    if kept.all():
        return ""
    first = clip.frames[np.argmin(kept)]
    return (
        f"{np.count_nonzero(~kept)} of {len(kept)} frames have no intrinsics and are left out, "
        f"the first is frame {first}."
    )


def extra(module: str, package: str, path: Path) -> ModuleType:
    """A module that only exports need."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(
            f"{path}: this format is written by {package}: {install_line('export')}."
        ) from None
