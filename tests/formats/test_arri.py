"""ARRI's exported metadata, hand-made: units, infinity, and what is missing."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.arri import read_art_metadata


def lens_state(**values: object) -> list[object]:
    other = {"metadataSetName": "Image Orientation", "metadataSetPayload": {}}
    return [None, other, {"metadataSetName": "Lens State", "metadataSetPayload": values}]


def write(path: Path, frames: list[Any]) -> Path:
    file = path / "clip.json"
    sets = {"clipBasedMetadataSets": [], "descriptiveMetadataSets": []}
    file.write_text(json.dumps({**sets, "frameBasedMetadata": {"frames": frames}}))
    return file


def test_units_and_gaps(tmp_path: Path) -> None:
    metric = {"lensFocalLength": 50500, "lensFocusDistanceMetric": 2500}
    imperial = {"lensFocalLength": 50500, "lensFocusDistanceImperial": 100_000}
    both = {**metric, "lensFocusDistanceImperial": 98_425}
    infinite = {"lensFocalLength": 50500, "lensFocusDistanceMetric": -1}
    far_in_inches = {"lensFocalLength": 50500, "lensFocusDistanceImperial": -1}
    missing = [
        {"lensFocalLength": None, "lensFocusDistanceMetric": 2500},
        {"lensFocalLength": 0, "lensFocusDistanceMetric": 2500},
        {"lensFocalLength": -1, "lensFocusDistanceMetric": 2500},
        {"lensFocalLength": 50500, "lensFocusDistanceMetric": 0},
        {"lensFocalLength": 50500},
    ]
    half = {"lensFocalLength": 50500, "lensFocusDistanceMetric": None}
    states = [metric, imperial, both, infinite, far_in_inches, *missing]
    states.append({**half, "lensFocusDistanceImperial": 100_000})
    frames = [
        {"frameId": 7 + i, "frameBasedMetadataSets": lens_state(**state)}
        for i, state in enumerate(states)
    ]
    empty = [{"metadataSetName": "Lens State", "metadataSetPayload": None}]
    frames.append({"frameId": 7 + len(frames), "frameBasedMetadataSets": empty})
    frames.append({"frameId": 7 + len(frames), "frameBasedMetadataSets": []})
    metadata = read_art_metadata(write(tmp_path, frames))
    assert metadata.frame.tolist() == [0, 1, 2, 3, 4, 10]
    np.testing.assert_allclose(metadata.lfl_mm, 50.5)
    np.testing.assert_allclose(metadata.fd_m, [2.5, 2.54, 2.5, math.inf, math.inf, 2.54])


def test_other_numbering(tmp_path: Path) -> None:
    state = lens_state(lensFocalLength=17000, lensFocusDistanceMetric=900)
    frames = [{"frameNo": str(i), "frameBasedMetadataSets": state} for i in (3, 5)]
    assert read_art_metadata(write(tmp_path, frames)).frame.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("frames", "problem"),
    [
        ([], "no frame whose set 'Lens State'"),
        ([7], r"frames\[0\] must be a mapping"),
        ([{"frameBasedMetadataSets": []}], "frameNo is missing"),
        ([{"frameId": "x", "frameBasedMetadataSets": []}], "frameId must be a whole number"),
        ([{"frameId": 0}], "frameBasedMetadataSets is missing"),
        ([{"frameId": 0, "frameBasedMetadataSets": []}] * 2, "comes twice"),
        (
            [{"frameId": 0, "frameBasedMetadataSets": lens_state(lensFocalLength=-5)}],
            "lensFocalLength must be positive",
        ),
        (
            [{"frameId": 0, "frameBasedMetadataSets": lens_state(lensFocalLength="wide")}],
            "lensFocalLength must be a number",
        ),
    ],
)
def test_faults(tmp_path: Path, frames: list[Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read_art_metadata(write(tmp_path, frames))
