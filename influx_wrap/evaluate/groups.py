"""What videos have in common: the lens they were shot with, and what it did meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.hardware import Lens

MOVES = 0.01
"""The share by which LFL or FD must change over a video to count as a movement."""


def motions(truth: Mapping[str, GroundTruth]) -> dict[str, str]:
    """``zoom``, ``focus``, ``both`` or ``still``, by the metadata of each video."""
    kinds = {
        (False, False): "still",
        (True, False): "zoom",
        (False, True): "focus",
        (True, True): "both",
    }
    return {
        video: kinds[_moves(known.metadata.lfl_mm), _moves(known.metadata.fd_m)]
        for video, known in truth.items()
    }


def lenses(truth: Mapping[str, GroundTruth], known: Iterable[Lens]) -> dict[str, str]:
    """The lens of each video, as its truth says or as its focal lengths tell, if only one of the
    known lenses has them."""
    ranges = list(known)
    found = {}
    for video, answer in truth.items():
        if answer.filmed_with is not None and answer.filmed_with.lens is not None:
            found[video] = answer.filmed_with.lens
            continue
        lfl = answer.metadata.lfl_mm[np.isfinite(answer.metadata.lfl_mm)]
        fitting = [
            lens.name
            for lens in ranges
            if len(lfl)
            and lfl.min() >= lens.lfl_min_mm * (1 - MOVES)
            and lfl.max() <= lens.lfl_max_mm * (1 + MOVES)
        ]
        if len(fitting) == 1:
            found[video] = fitting[0]
    return found


def _moves(values: FloatArray) -> bool:
    """Whether values (n,) change; infinity, a focus beyond everything, is one value."""
    told = values[~np.isnan(values)]
    if len(told) == 0:
        return False
    finite = told[np.isfinite(told)]
    if len(finite) < len(told):
        return len(finite) > 0
    return bool(finite.max() > finite.min() * (1 + MOVES))
