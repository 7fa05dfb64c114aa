"""What a run of Kalibr leaves behind, read back: the camchain and the results text.

The camchain has the numbers in full. The results text is for people, but nothing else has the
standard deviations: ``projection: [fx fy cx cy] +- [...]`` and ``distortion: [k1 k2 p1 p2] +-
[...]``, with or without commas, broken over lines where they are long. Kalibr's deviations are
those of a corner noise of 1 px, whatever the noise was. Pixel (0, 0) is the centre of the
top-left pixel.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.files import read_text, read_yaml
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.words import size_text

CAMCHAINS = "*camchain*.yaml"
RESULTS = "*results-cam*.txt"


def read_camchain(path: Path, image_size: tuple[int, int]) -> Intrinsics:
    """The one camera of a camchain, which must be pinhole-radtan for images of this size."""
    camera = read_yaml(path).record("cam0")
    for key, needed in (("camera_model", "pinhole"), ("distortion_model", "radtan")):
        if camera.text(key) != needed:
            raise camera.fault(key, f"must be {needed}, got {camera.text(key)!r}.")
    if camera.numbers("resolution") != image_size:
        found = " x ".join(f"{number:g}" for number in camera.numbers("resolution"))
        raise camera.fault("resolution", f"is {found}, not {size_text(image_size)}.")
    for key in ("intrinsics", "distortion_coeffs"):
        if len(camera.numbers(key)) != 4:
            raise camera.fault(key, f"must be 4 numbers, got {len(camera.numbers(key))}.")
    values = [*camera.numbers("intrinsics"), *camera.numbers("distortion_coeffs")]
    if min(values[:2]) <= 0:
        raise camera.fault("intrinsics", "are no camera's: a focal length must be positive.")
    return Intrinsics.from_array(np.array(values))


def read_sigma(path: Path) -> FloatArray:
    """(8,) the standard deviations of the first camera in a results text."""
    text = read_text(path)
    return np.concatenate([_deviations(path, text, key) for key in ("projection", "distortion")])


def _deviations(path: Path, text: str, key: str) -> FloatArray:
    found = re.search(rf"{key}:\s*\[[^\]]*\]\s*\+-\s*\[([^\]]*)\]", text)
    if found is None:
        raise InputError(f"{path} has no line {key}: [...] +- [...].")
    try:
        values = np.array([float(word) for word in found[1].replace(",", " ").split()])
    except ValueError:
        raise InputError(f"{path}: the deviations of {key} are not numbers.") from None
    if values.shape != (4,) or not np.isfinite(values).all() or (values < 0).any():
        raise InputError(f"{path}: {key} needs four deviations of at least 0.")
    return values
