"""Results of Kalibr, read back: in upstream's layout, in ours, and spoiled."""

from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.export.camchain import camchain_text
from influx_wrap.formats.kalibr_results import read_camchain, read_sigma

THETA = np.array([1105.25, 1098.5, 648.0, 471.0, -0.12, 0.06, 1.2e-3, -9e-4])
SIZE = (1280, 960)

# Numbers as numpy prints them, broken over lines.
RESULTS = """Calibration results
====================
Camera-system parameters:
\tcam0 (/cam0/image_raw):
\t    type: <class 'DistortedPinholeCameraGeometry'>
\t    distortion: [-0.12  0.06  0.0012
 -0.0009] +- [1.5e-03 2.0e-03 3.0e-05
 4.0e-05]
\t    projection: [1105.25 1098.5   648.   471.  ] +- [0.5 0.25 0.75 1.  ]
\t    reprojection error: [-0.000001, 0.000002] +- [0.112, 0.108]
"""


def test_camchain(tmp_path: Path) -> None:
    path = tmp_path / "a-camchain.yaml"
    path.write_text(camchain_text(THETA, SIZE, "/cam0/image_raw"))
    assert np.array_equal(read_camchain(path, SIZE).array, THETA)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("pinhole", "omni", "camera_model must be pinhole"),
        ("radtan", "equidistant", "distortion_model must be radtan"),
        ("1280", "640", "resolution is 640 x 960, not 1280 x 960"),
        ("1105.25", ".nan", "must be finite"),
        ("1105.25", "-3.0", "a focal length must be positive"),
        ("cam0", "cam1", "cam0 is missing"),
    ],
)
def test_spoiled_camchain(tmp_path: Path, old: str, new: str, problem: str) -> None:
    path = tmp_path / "a-camchain.yaml"
    text = camchain_text(THETA, SIZE, "/camera/image_raw")
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=problem):
        read_camchain(path, SIZE)


def test_truncated_camchain(tmp_path: Path) -> None:
    path = tmp_path / "a-camchain.yaml"
    text = camchain_text(THETA, SIZE, "/cam0/image_raw")
    for length in range(0, text.index("resolution"), 7):
        path.write_text(text[:length])
        with pytest.raises(InputError):
            read_camchain(path, SIZE)


def test_deviations(tmp_path: Path) -> None:
    path = tmp_path / "a-results-cam.txt"
    path.write_text(RESULTS)
    expected = [0.5, 0.25, 0.75, 1, 1.5e-3, 2e-3, 3e-5, 4e-5]
    assert read_sigma(path).tolist() == expected
    path.write_text(RESULTS.replace("0.5 0.25 0.75 1.  ]", "0.5, 0.25, 0.75, 1]"))
    assert read_sigma(path).tolist() == expected


@pytest.mark.parametrize("deviations", ["0.5 0.25 nan 1.", "0.5 0.25 1.", "a b c d", "1 1 1 -1"])
def test_spoiled_deviations(tmp_path: Path, deviations: str) -> None:
    path = tmp_path / "a-results-cam.txt"
    path.write_text(RESULTS.replace("0.5 0.25 0.75 1.  ", deviations))
    with pytest.raises(InputError, match="projection"):
        read_sigma(path)


def test_no_deviations(tmp_path: Path) -> None:
    path = tmp_path / "a-results-cam.txt"
    path.write_text("Calibration results\n")
    with pytest.raises(InputError, match="projection"):
        read_sigma(path)
