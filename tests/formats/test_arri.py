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
from influx_wrap.model.rig import ReportedRig


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


def test_lens_camera_and_size_of_the_reference_tool(tmp_path: Path) -> None:
    def named(name: str, **payload: object) -> dict[str, object]:
        return {"metadataSetName": name, "metadataSetPayload": payload}

    state = lens_state(lensFocalLength=17000, lensFocusDistanceMetric=900)
    file = {
        "clipBasedMetadataSets": [
            None,
            named("Sensor State", acquisitionRect={"x": 0, "width": 3424, "height": 2202}),
            named("Sensor State", acquisitionRect={"width": "wide", "height": True}),
        ],
        "descriptiveMetadataSets": [
            named("Lens Device", lensModel="CN7x17 KAS S/P1"),
            named("Lens Device", lensModel=17),
            named("Camera Device", cameraModel=" ALEXA Mini "),
            {"metadataSetName": "Camera Device", "metadataSetPayload": None},
        ],
        "frameBasedMetadata": {"frames": [{"frameId": 0, "frameBasedMetadataSets": state}]},
    }
    path = tmp_path / "clip.json"
    path.write_text(json.dumps(file))
    rig = ReportedRig(("CN7x17 KAS S/P1",), ("ALEXA Mini",), ((3424, 2202),))
    assert read_metadata(path).rig == read_art_metadata(path).rig == rig
    path.write_text(json.dumps(file | {"clipBasedMetadataSets": 7, "descriptiveMetadataSets": {}}))
    assert read_metadata(path).rig == ReportedRig()


def test_sets_of_a_frame_by_their_names(tmp_path: Path) -> None:
    states = [{"lensFocalLength": 17000, "lensFocusDistanceMetric": 900}, None]
    frames = [
        {"frameId": k, "frameBasedMetadataSets": {"Lens State": state}}
        for k, state in enumerate(states)
    ]
    assert read_art_metadata(write(tmp_path, frames)).fd_m.tolist() == [0.9]


def test_lens_camera_and_size_of_meta_extract(tmp_path: Path) -> None:
    columns = ("Lens Model", "Camera Model", "Image Width", "Image Height", "Lens Focal Length",
               "Lens Focus Distance", "Lens Distance Unit")  # fmt: skip
    setting = ("40.000", "4.812", "Meter")
    rows = [
        ("ARRI SP40 T1.8", "Alexa LF Plus W", "1920", "1080", *setting),
        ("--", "n.a.", "--", "1080", *setting),
        ("ARRI SP50 T1.8", "", "1920", "1080", *setting),
    ]
    path = tmp_path / "clip.csv"
    path.write_text("\n".join("\t".join(row) for row in (columns, *rows)))
    lenses = ("ARRI SP40 T1.8", "ARRI SP50 T1.8")
    assert read_metadata(path).rig == ReportedRig(lenses, ("Alexa LF Plus W",), ((1920, 1080),))
    path.write_text("\n".join("\t".join(row[4:]) for row in (columns, *rows)))
    assert read_metadata(path).rig == ReportedRig()


def test_encoders_of_the_reference_tool(tmp_path: Path) -> None:
    """A lens with a scale, no motor, and a distance in inches that is another one in frame 1."""
    states = [
        lens_state(
            lensFocalLength=17000,
            lensFocusDistanceMetric=fd,
            lensFocusDistanceImperial=inches,
            lensScaleRawEncoderValueFocus=777 + fd,
            lensMotorRawEncoderValueFocus=0,
            lensScaleRawEncoderValueFl=None,
        )
        for fd, inches in ((2540, 100_000), (1270, 60_000), (-1, -1))
    ]
    frames = [{"frameId": k, "frameBasedMetadataSets": state} for k, state in enumerate(states)]
    inches, counts = read_metadata(write(tmp_path, frames)).channels
    np.testing.assert_allclose(inches.values, [2.54, 1.524, math.inf])
    assert (inches.used, inches.name) == ("lensFocusDistanceMetric", "lensFocusDistanceImperial")
    assert counts.name == "lensScaleRawEncoderValueFocus"
    assert counts.values.tolist() == [3317, 2047, 776]
    assert counts.is_counts
    same = read_metadata(write(tmp_path, frames[::2])).channels
    assert [channel.name for channel in same] == ["lensScaleRawEncoderValueFocus"]


def test_encoders_of_meta_extract(tmp_path: Path) -> None:
    header = "\t".join(("Index", "Lens Focal Length", "Lens Focus Distance", "Lens Distance Unit",
                        "RawEncoderFocus RawLds", "RawEncoderFocal RawLds"))  # fmt: skip
    rows = ["0\t40\t4.8\tMeter\t777\t--", "1\t40\t4.9\tMeter\t790\t--", "4\t40\t5\tMeter\t--\t--"]
    (tmp_path / "clip.csv").write_text("\n".join([header, *rows]))
    found = read_metadata(tmp_path / "clip.csv")
    assert found.frame.tolist() == [0, 1, 4]
    (counts,) = found.channels
    np.testing.assert_array_equal(counts.values, [777, 790, math.nan])
    assert (counts.quantity, counts.name) == ("FD", "RawEncoderFocus RawLds")
