"""Blackmagic RAW's text: clip and frames by their headings."""

import math
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.lens_metadata import read_metadata
from influx_wrap.model.lens_metadata import ReportedClip
from influx_wrap.model.rig import ReportedRig
from tests.formats.camera_files import BLACKMAGIC


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_values(tmp_path: Path, end: str, encoding: str) -> None:
    (tmp_path / "m.txt").write_bytes(BLACKMAGIC.replace("\n", end).encode(encoding))
    found = read_metadata(tmp_path / "m.txt")
    assert found.frame.tolist() == [0, 1, 3]
    np.testing.assert_array_equal(found.lfl_mm, [24, 25, 25])
    np.testing.assert_array_equal(found.fd_m, [1.25, math.inf, math.nan])
    lens, camera = "ACME Zoom 18-35mm", "Blackmagic Pocket Cinema Camera 6K Pro"
    assert found.rig == ReportedRig((lens,), (camera,), ((6144, 3456),))
    assert found.clip == ReportedClip(None, 24.0)


@pytest.mark.parametrize(
    ("text", "fd_m"),
    [("700mm to 750mm", 2 / (1 / 0.7 + 1 / 0.75)), ("1m - 2m", 4 / 3), ("5m to inf", math.nan),
     ("inf to inf", math.inf), ("0mm", math.nan)],
)  # fmt: skip
def test_distances_between_bounds(tmp_path: Path, text: str, fd_m: float) -> None:
    (tmp_path / "m.txt").write_text(BLACKMAGIC.replace("1250mm", text))
    np.testing.assert_allclose(read_metadata(tmp_path / "m.txt").fd_m[0], fd_m)


def test_a_single_frame(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text(BLACKMAGIC[: BLACKMAGIC.index("Frame 1")])
    assert read_metadata(tmp_path / "m.txt").notes == ("m.txt tells of frame 0 alone.",)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("1250mm", "1250", "line 15: distance '1250' has no unit"),
        ("24mm", "wide", "line 14: focal_length 'wide' is not a number"),
        ("Frame 1 ", "Frame 0 ", "line 18: frame 0 has come already"),
        (BLACKMAGIC[BLACKMAGIC.index("Frame 0") :], "", "has no frame"),
    ],
)
def test_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    (tmp_path / "m.txt").write_text(BLACKMAGIC.replace(old, new))
    with pytest.raises(InputError, match=words):
        read_metadata(tmp_path / "m.txt")
