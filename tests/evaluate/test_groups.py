"""Videos that belong together."""

from __future__ import annotations

import numpy as np
import pytest

from influx_wrap.evaluate.groups import lenses, motions
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.lens_metadata import LensMetadata


def video(lfl_mm: list[float], fd_m: list[float]) -> GroundTruth:
    n = len(lfl_mm)
    metadata = LensMetadata(np.arange(n), np.array(lfl_mm), np.array(fd_m))
    return GroundTruth(metadata, np.ones((n, 8)), np.ones(n, dtype=bool))


@pytest.mark.parametrize(
    ("lfl_mm", "fd_m", "kind"),
    [
        ([17, 17.1, 17], [3, 3, 3], "still"),
        ([17, 30, 17], [3, 3.01, 3], "zoom"),
        ([17, 17, 17], [3, 3, 4], "focus"),
        ([17, 30, 40], [3, 3, 4], "both"),
        ([17, 17], [3, np.inf], "focus"),
        ([17, 17], [np.inf, np.inf], "still"),
        ([17, np.nan, 30], [np.nan, np.nan, np.nan], "zoom"),
        ([np.nan], [np.nan], "still"),
    ],
)
def test_what_the_lens_did(lfl_mm: list[float], fd_m: list[float], kind: str) -> None:
    assert motions({"v": video(lfl_mm, fd_m)}) == {"v": kind}


def test_which_lens_it_was() -> None:
    known = load_catalogue().lenses.values()
    videos = {
        "wide": video([17, 40], [3, 3]),
        "long": video([90, 250], [3, 3]),
        "either": video([90, 100], [3, 3]),
        "neither": video([17, 250], [3, 3]),
        "nothing": video([np.nan, np.nan], [3, 3]),
    }
    assert lenses(videos, known) == {"wide": "canon17", "long": "premista80"}
