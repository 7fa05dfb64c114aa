"""Results text and poses, read by another parser and checked with OpenCV."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml

from influx_wrap.formats.export.camchain import camchain_text
from influx_wrap.formats.kalibr_results import (
    CameraResults,
    KalibrFiles,
    read_camchain,
    read_sigma,
    write_kalibr_poses,
    write_results,
)
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.target import AprilGrid, Checkerboard, PointCloud, Target

CAMERA = Intrinsics(320.5, 321.25, 160.0, 120.0, -0.05, 0.001, -2e-9, 0.0)
SIGMA = np.arange(1, 9) / 1000


@pytest.mark.parametrize(
    "target",
    [
        AprilGrid(4, 3, 0.05, 0.3),
        Checkerboard(7, 6, 0.02, 0.03),
        PointCloud(np.vstack([np.eye(3), np.ones(3)])),
    ],
)
def test_results(tmp_path: Path, target: Target) -> None:
    path = tmp_path / "x-results-cam.txt"
    remarks = (("views", "3 used of 4"),)
    results = CameraResults("/a/b", CAMERA, SIGMA, (0.1, -0.2), (0.3, 0.4), remarks)
    write_results(path, results, target)
    text = path.read_text()
    assert "cam0 (/a/b):" in text
    # Every line of the camera is YAML, but for the +-.
    block = text.split("cam0 (/a/b):")[1].split("Target configuration")[0]
    lines = dict(line.strip().split(": ", 1) for line in block.splitlines() if ": " in line)
    assert numbers(lines["projection"]) == [320.5, 321.25, 160, 120, 0.001, 0.002, 0.003, 0.004]
    assert numbers(lines["distortion"]) == [-0.05, 0.001, 0, 0, 0.005, 0.006, 0.007, 0.008]
    assert lines["reprojection error"] == "[0.100000, -0.200000] +- [0.300000, 0.400000]"
    assert "views" not in lines
    assert text.endswith("    views: 3 used of 4\n")
    assert "-0.  " not in text


def numbers(text: str) -> list[float]:
    """Of two vectors as numpy prints them."""
    assert "," not in text
    return [
        float(word) for word in text.replace("+-", "").replace("[", "").replace("]", "").split()
    ]


# What a Kalibr writes of a made-up board, by hand.
KALIBR = """Calibration results \n====================
Camera-system parameters:
cam0 (/cam0/image_raw):
    type: <class 'aslam_cv.libaslam_cv_python.DistortedPinholeCameraGeometry'>
    distortion: [-0.05  0.01  0.    0.  ] +- [0.00099824 0.00158853 0.00023843 0.00030232]
    projection: [2945.07873061 2945.04121899 1711.71829237 1100.46502876] +- [1.8529 1.8024 3.2991 2.7506]
    reprojection error: [-0.000001, 0.000002] +- [0.100161, 0.099766]



Target configuration
====================

  Type: aprilgrid
  Tags: \n    Rows: 8
    Cols: 11
    Size: 0.048 [m]
    Spacing 0.0144 [m]
"""  # noqa: E501
CAMCHAIN = """cam0:
  cam_overlaps: []
  camera_model: pinhole
  distortion_coeffs: [-0.05, 0.01, 0.0, 0.0]
  distortion_model: radtan
  intrinsics: [2945.0787306092507, 2945.041218988454, 1711.7182923739351, 1100.4650287576492]
  resolution: [3424, 2202]
  rostopic: /cam0/image_raw
"""
POSES = """#timestamp, p_RS_R_x [m], p_RS_R_y [m], p_RS_R_z [m], q_RS_w [], q_RS_x [], q_RS_y [], q_RS_z []
"""  # noqa: E501
THEIRS = Intrinsics(
    *(2945.07873061, 2945.04121899, 1711.71829237, 1100.46502876),
    *(-0.05, 0.01, 0.0, 0.0),
)


def test_text_is_kalibr_s_to_the_letter(tmp_path: Path) -> None:
    sigma = np.array(
        [1.8529, 1.8024, 3.2991, 2.7506, 0.00099824, 0.00158853, 0.00023843, 0.00030232]
    )
    mean, std = (-1e-6, 2e-6), (0.100161, 0.099766)
    results = CameraResults("/cam0/image_raw", THEIRS, sigma, mean, std)
    path = tmp_path / "x-results-cam.txt"
    write_results(path, results, AprilGrid(11, 8, 0.048, 0.3))
    assert path.read_text() == KALIBR
    assert read_sigma(path).tolist() == sigma.tolist()


def test_camchain_is_kalibr_s_to_the_letter(tmp_path: Path) -> None:
    path = tmp_path / "x-camchain.yaml"
    path.write_text(CAMCHAIN)
    camera = read_camchain(path, (3424, 2202))
    assert camchain_text(camera.array, (3424, 2202), "/cam0/image_raw") == CAMCHAIN


def test_poses(tmp_path: Path) -> None:
    rotation_vector, position = np.array([0.3, -2.0, 0.9]), np.array([0.1, 0.2, -1.5])
    rotation = cv2.Rodrigues(rotation_vector)[0]
    pose = np.concatenate([rotation.ravel(), -rotation @ position])
    write_kalibr_poses(tmp_path / "p.csv", [12], pose[None])
    header, line = (tmp_path / "p.csv").read_text().splitlines()
    assert header == POSES.splitlines()[0]
    values = np.array([float(value) for value in line.split(",")])
    assert values[0] == 12
    np.testing.assert_allclose(values[1:4], position, atol=1e-6)
    # x, y, z, w, of the rotation from target to camera; half the angle makes the quaternion.
    angle = np.linalg.norm(rotation_vector)
    axis = rotation_vector / angle
    expected = np.array([*(np.sin(angle / 2) * axis), np.cos(angle / 2)])
    np.testing.assert_allclose(values[4:], expected, atol=1e-6)


def test_camchain_and_names() -> None:
    camera = yaml.safe_load(camchain_text(CAMERA.array, (320, 240), "/a/b"))["cam0"]
    assert camera["intrinsics"] + camera["distortion_coeffs"] == CAMERA.array.tolist()
    assert (camera["rostopic"], camera["resolution"]) == ("/a/b", [320, 240])
    files = KalibrFiles(Path("a/run.1"))
    assert files.camchain == Path("a/run.1-camchain.yaml")
    assert files.results == Path("a/run.1-results-cam.txt")
    assert files.report == Path("a/run.1-report-cam.pdf")
    assert files.poses == Path("a/run.1-poses-cam0.csv")
