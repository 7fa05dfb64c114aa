"""Results text and poses, read by another parser and checked with OpenCV."""

import csv
from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml

from influx_wrap.formats.export.camchain import camchain_text
from influx_wrap.formats.kalibr_results import (
    CameraResults,
    KalibrFiles,
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
    lines = yaml.safe_load(block.replace("] +- [", ", ").replace("    ", ""))
    assert lines["projection"] == [320.5, 321.25, 160.0, 120.0, 0.001, 0.002, 0.003, 0.004]
    assert lines["distortion"] == [-0.05, 0.001, 0.0, 0.0, 0.005, 0.006, 0.007, 0.008]
    assert lines["reprojection error"] == [0.1, -0.2, 0.3, 0.4]
    assert lines["views"] == "3 used of 4"
    assert "-0.00000000" not in text


def test_poses(tmp_path: Path) -> None:
    rotation_vector, position = np.array([0.3, -2.0, 0.9]), np.array([0.1, 0.2, -1.5])
    rotation = cv2.Rodrigues(rotation_vector)[0]
    pose = np.concatenate([rotation.ravel(), -rotation @ position])
    write_kalibr_poses(tmp_path / "p.csv", [12], pose[None])
    (row,) = csv.DictReader((tmp_path / "p.csv").read_text().splitlines())
    assert row.pop("#timestamp [ns]") == "12"
    values = np.array([float(value) for value in row.values()])
    np.testing.assert_allclose(values[:3], position, atol=1e-8)
    # The camera's orientation is the inverse rotation; half the angle makes the quaternion.
    angle = np.linalg.norm(rotation_vector)
    axis = -rotation_vector / angle
    expected = np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis)])
    np.testing.assert_allclose(values[3:], expected, atol=1e-8)
    assert list(row)[:4] == ["p_RS_R_x [m]", "p_RS_R_y [m]", "p_RS_R_z [m]", "q_RS_w []"]


def test_camchain_and_names() -> None:
    camera = yaml.safe_load(camchain_text(CAMERA.array, (320, 240), "/a/b"))["cam0"]
    assert camera["intrinsics"] + camera["distortion_coeffs"] == CAMERA.array.tolist()
    assert (camera["rostopic"], camera["resolution"]) == ("/a/b", [320, 240])
    files = KalibrFiles(Path("a/run.1"))
    assert files.camchain == Path("a/run.1-camchain.yaml")
    assert files.results == Path("a/run.1-results-cam.txt")
    assert files.report == Path("a/run.1-report-cam.pdf")
    assert files.poses == Path("a/run.1-poses-cam0.csv")
