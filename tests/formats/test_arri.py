"""ARRI's exported metadata, hand-made: units, infinity, and what is missing."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.arri import read_art_metadata
from influx_wrap.formats.lens_metadata import read_metadata


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
    everything = read_metadata(write(tmp_path, frames))
    assert everything.frame.tolist() == list(range(13))
    assert np.isnan(everything.lfl_mm).tolist() == [k in (5, 6, 7, 11, 12) for k in range(13)]
    assert np.isnan(everything.fd_m).tolist() == [k in (8, 9, 11, 12) for k in range(13)]
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


HEADER = "Index\tMaster TC\tLens Distance Unit\tLens Focus Distance\tLens Focal Length\tLens Model"


def write_meta_extract(path: Path, *settings: tuple[str, str, str], header: str = HEADER) -> Path:
    """Lines with a unit, a focus distance and a focal length each."""
    file = path / "clip.csv"
    lines = ["\t".join((str(k), "01:00:00:00", *s, "A lens")) for k, s in enumerate(settings)]
    file.write_text("\r\n".join([header, *lines]) + "\r\n")
    return file


def test_meta_extract(tmp_path: Path) -> None:
    file = write_meta_extract(
        tmp_path,
        ("Meter", "4.812", "40.0"),
        ("Foot", "10.0", "40.0"),
        ("Inch", "100", "40.0"),
        ("Meter", "-1", "40.0"),
        ("Foot", "-1.000", "40.0"),
        ("--", "Infinity", "40.0"),
        ("Meter", "--", "40.0"),
        ("Meter", "0.000", "40.0"),
        ("Meter", "4.812", "--"),
        ("--", "--", "--"),
    )
    metadata = read_metadata(file)
    assert metadata.frame.tolist() == list(range(10))
    nan, inf = math.nan, math.inf
    np.testing.assert_allclose(metadata.lfl_mm, [40.0] * 8 + [nan] * 2)
    np.testing.assert_allclose(
        metadata.fd_m, [4.812, 3.048, 2.54, inf, inf, inf, nan, nan, 4.812, nan]
    )


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (("Parsec", "4", "40"), "line 2: Lens Distance Unit 'Parsec' is not known"),
        (("--", "4", "40"), "line 2: Lens Distance Unit '--' is not known"),
        (("Meter", "4'2", "40"), 'line 2: Lens Focus Distance "4\'2" is not a number'),
        (("Meter", "4", "-40"), "line 2: Lens Focal Length must be positive"),
        (("Meter", "nan", "40"), "line 2: Lens Focus Distance must be positive"),
    ],
)
def test_faults_of_meta_extract(tmp_path: Path, setting: tuple[str, str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_metadata(write_meta_extract(tmp_path, setting))


def test_truncated_meta_extract(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no frame"):
        read_metadata(write_meta_extract(tmp_path))
    file = write_meta_extract(tmp_path, ("Meter", "4", "40"))
    file.write_text(file.read_text() + "1\t01:00:00:01\tMet")
    with pytest.raises(InputError, match="line 3: 3 columns instead of 6"):
        read_metadata(file)
    header = HEADER.replace("Lens Distance Unit", "Unit")
    with pytest.raises(InputError, match="line 1: the column 'Lens Distance Unit' is missing"):
        read_metadata(write_meta_extract(tmp_path, ("Meter", "4", "40"), header=header))
