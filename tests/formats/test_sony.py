"""Sony's XML: who filmed it, how long it is, and the setting at its start if the lens talks."""

from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.lens_metadata import read_metadata
from influx_wrap.model.lens_metadata import ReportedClip
from tests.formats.camera_files import TALKING_XML, VENICE_XML


def test_a_lens_that_talks(tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_text(TALKING_XML, encoding="utf-16")
    found = read_metadata(tmp_path / "m.xml")
    np.testing.assert_allclose([found.lfl_mm[0], found.fd_m[0]], [50, 3.04])
    assert found.clip == ReportedClip(4, 24.0)
    assert found.rig.lens_models == ("S7i-50",)
    assert found.rig.camera_models == ("MPC-3628",)
    assert "first frame only" in found.notes[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (VENICE_XML, "tells neither LFL nor FD: give the CSV file"),
        (VENICE_XML[:300], "this is not XML: .* Is the file complete"),
        ("<a>NonRealTimeMeta</a>", "but not of a Sony clip"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><NonRealTimeMeta/>", "defines entities"),
        (TALKING_XML.replace("3.040m", "3.040"), "has no unit"),
        (TALKING_XML.replace("3.040m", "-1m"), "must be positive"),
    ],
)
def test_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "m.xml").write_text(text)
    with pytest.raises(InputError, match=words):
        read_metadata(tmp_path / "m.xml")
