"""What exiftool -j tells of photographs and videos, in each of its ways of writing."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.lens_metadata import read_metadata
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.model.rig import ReportedRig

NAN, INF = math.nan, math.inf
CAMERA = {
    "Make": "Nikon",
    "Model": "NIKON Z 6_2",
    "LensModel": "NIKKOR Z 24-70mm f/2.8 S",
    "LensID": "Nikkor Z 24-70mm f/2.8 S",
    "Lens": "24-70mm f/2.8",
    "ImageWidth": 6048,
    "ImageHeight": 4024,
    "FocalLengthIn35mmFormat": "99 mm",
}


def photo(name: str, **tags: Any) -> dict[str, Any]:
    return {"SourceFile": name, "FNumber": 5.6, **CAMERA, **tags}


def read(folder: Path, *entries: Any, encoding: str = "utf-8") -> LensMetadata:
    (folder / "exif.json").write_text(json.dumps(entries, indent=1), encoding=encoding)
    return read_metadata(folder / "exif.json")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_photographs_in_the_order_of_their_names(tmp_path: Path, encoding: str) -> None:
    found = read(
        tmp_path,
        photo("./IMG_10.JPG", FocalLength="70.0 mm", SubjectDistance="inf"),
        photo("./IMG_9.JPG", FocalLength="24.5 mm", FocusDistance="1.26 m"),
        photo("./IMG_11.JPG", FocalLength="0.0 mm", SubjectDistance="undef"),
        encoding=encoding,
    )
    assert found.frame.tolist() == [0, 1, 2]
    np.testing.assert_allclose(found.lfl_mm, [24.5, 70, NAN])
    np.testing.assert_allclose(found.fd_m, [1.26, INF, NAN])
    assert found.rig.lens_models == ("NIKKOR Z 24-70mm f/2.8 S",)
    assert "Nikkor Z 24-70mm f/2.8 S" in found.rig.names_of("NIKKOR Z 24-70mm f/2.8 S")
    assert found.rig.names_of("NIKON Z 6_2") == ("NIKON Z 6_2", "Nikon NIKON Z 6_2")
    assert found.rig.image_sizes == ((6048, 4024),)
    assert "0 is './IMG_9.JPG', 2 is './IMG_11.JPG'" in found.notes[0]


def test_numbers_without_units_and_keys_with_groups(tmp_path: Path) -> None:
    numbers = {"EXIF:FocalLength": 24.5, "EXIF:SubjectDistance": 1.26}
    found = read(tmp_path, {"SourceFile": "a.jpg", "MakerNotes:FocalLength": 25, **numbers})
    assert (found.lfl_mm[0], found.fd_m[0]) == (24.5, 1.26)
    longer = {"EXIF:ExifIFD:FocalLength": {"val": "24.5 mm", "num": 24.5},
              "XMP:XMP-aux:ApproximateFocusDistance": {"val": 4294967295}}  # fmt: skip
    found = read(tmp_path, {"SourceFile": "a.jpg", **longer})
    assert (found.lfl_mm[0], found.fd_m[0]) == (24.5, INF)
    assert found.rig == ReportedRig()


@pytest.mark.parametrize(
    ("near", "far", "fd_m"),
    [("1.2 m", "1.3 m", 2 / (1 / 1.2 + 1 / 1.3)), ("12 m", "inf", NAN), ("inf", "inf", INF),
     ("1.2 m", None, NAN)],
)  # fmt: skip
def test_bounds(tmp_path: Path, near: str, far: str | None, fd_m: float) -> None:
    bounds = {"FocusDistanceLower": near, "FocusDistanceUpper": far}
    found = read(tmp_path, photo("a.jpg", FocalLength="50.0 mm", **bounds))
    np.testing.assert_allclose(found.fd_m, [fd_m])
    assert ("between a distance and infinity" in " ".join(found.notes)) == (near == "12 m")


def test_two_distances_are_two_channels(tmp_path: Path) -> None:
    both = {"FocusDistance": "1.26 m", "SubjectDistance": "1.3 m"}
    found = read(tmp_path, photo("a.jpg", FocalLength="50.0 mm", **both))
    assert found.fd_m.tolist() == [1.26]
    assert found.channels[0].values.tolist() == [1.3]


def test_samples_of_a_video(tmp_path: Path) -> None:
    video = {
        "SourceFile": "clip.mp4",
        "Main:VideoFrameRate": 25,
        "Main:Model": "ILME-FX3",
        **{f"Doc{k}:FocalLength": f"{34 + k}.0 mm" for k in range(1, 12)},
        **{f"Doc{k}:FocusDistance": f"{k} m" for k in range(1, 12) if k != 5},
        "Doc12:GPSLatitude": 48,
    }
    found = read(tmp_path, video)
    assert found.frame.tolist() == list(range(11))
    np.testing.assert_array_equal(found.lfl_mm, np.arange(35, 46))
    np.testing.assert_array_equal(found.fd_m, [1, 2, 3, 4, NAN, 6, 7, 8, 9, 10, 11])
    assert found.clip.fps == 25
    assert found.rig.camera_models == ("ILME-FX3",)
    assert "has 11 samples" in found.notes[0]


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([photo("a.jpg", FocalLength="wide")], "a.jpg: FocalLength 'wide' is not a number"),
        ([photo("a.jpg", FocusDistance="-3 m")], "a.jpg: FocusDistance must be positive"),
        ([photo("a.jpg"), photo("a.jpg")], "a.jpg comes twice"),
        (
            [photo("a.mp4", **{"Doc1:FocalLength": 3}), photo("b.mp4")],
            "of 2 files, and of samples in them",
        ),
        ([{"FocalLength": 3}], "is JSON, but neither"),
        ([], "is JSON, but neither"),
    ],
)
def test_refused(tmp_path: Path, entries: list[Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read(tmp_path, *entries)
