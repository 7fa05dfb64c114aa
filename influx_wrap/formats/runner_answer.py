"""A camera as a method's runner states it: one JSON object, ``{"fx": ..., "fy": ..., "cx": ...}``.

cx and cy count from the picture's corner, as in all files of InFlux (``predict.runners``).
Distortion that is not named is zero; null stands for a number that the method does not know.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.pixel_origin import from_corner
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.predictions import PARAMETERS

_OPTIONAL = frozenset(("k1", "k2", "p1", "p2"))
_LARGEST = 1e300


def camera_of(answer: Mapping[str, Any], kind: str) -> FloatArray | None:
    """(P,) parameters of a camera of that kind, pixel (0, 0) a pixel's centre.

    NaN stands for what the method does not know, or cannot mean; None, that it names no parameter
    at all. What is no number is refused.
    """
    names = PARAMETERS[kind]
    if not any(name in answer for name in names):
        return None
    values = []
    for name in names:
        value = answer.get(name, 0.0 if name in _OPTIONAL else "nothing")
        if value is None:
            value = math.nan
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{name} = {value!r}")
        values.append(float(value) if abs(value) < _LARGEST else math.nan)
    return from_corner(np.array(values))
