"""STMaps, read with OpenCV's EXR decoder."""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.export.stmap import distort_map, undistort_map, write_stmap
from influx_wrap.model.intrinsics import Intrinsics
from tests.formats.export.clips import IMAGE_SIZE, SMALL_SIZE, make_clip

pytest.importorskip("OpenEXR")


def read_pixels(path: Path) -> np.ndarray:
    """(height, width, 2) pixels, centres at integers, y down, that a map points at."""
    blue_green_red = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    assert blue_green_red.dtype == np.float32
    height, width = blue_green_red.shape[:2]
    s, t = blue_green_red[..., 2].astype(float), blue_green_red[..., 1].astype(float)
    return np.stack([s * width - 0.5, (1 - t) * height - 0.5], axis=-1)


def pixel_grid(image_size: tuple[int, int]) -> np.ndarray:
    """(height, width, 2) where the pixels are."""
    return np.stack(np.meshgrid(*(np.arange(n, dtype=float) for n in image_size)), axis=-1)


def matrix_of(camera: Intrinsics) -> tuple[np.ndarray, np.ndarray]:
    """OpenCV's camera matrix and coefficients."""
    matrix = np.array([[camera.fx, 0, camera.cx], [0, camera.fy, camera.cy], [0, 0, 1]])
    return matrix, camera.array[4:]


def test_maps_agree_with_opencv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCV_IO_ENABLE_OPENEXR", "1")
    clip = make_clip(SMALL_SIZE)
    steps = []
    write_stmap(clip, tmp_path / "maps", progress=lambda *now: steps.append(now))
    assert len(steps) == 5
    names = {file.name for file in (tmp_path / "maps").iterdir()}
    kinds = ("undistort", "distort")
    assert names == {f"{kind}.{n:06d}.exr" for kind in kinds for n in (4, 5, 6, 9, 12)}
    rounding = SMALL_SIZE[0] * 2**-23
    for row in clip.answered.nonzero()[0]:
        matrix, k = matrix_of(clip.camera(row))
        frame = clip.frames[row]
        undistort = read_pixels(tmp_path / "maps" / f"undistort.{frame:06d}.exr")
        expected = cv2.initUndistortRectifyMap(matrix, k, None, matrix, SMALL_SIZE, cv2.CV_32FC1)
        assert np.abs(undistort - np.stack(expected, axis=-1)).max() < 3 * rounding
        distort = read_pixels(tmp_path / "maps" / f"distort.{frame:06d}.exr")
        flat = ((distort.reshape(-1, 2) - matrix[:2, 2]) / matrix[[0, 1], [0, 1]])[:, None]
        points = cv2.convertPointsToHomogeneous(flat)
        again, _ = cv2.projectPoints(points, np.zeros(3), np.zeros(3), matrix, k)
        assert np.abs(again.reshape(distort.shape) - pixel_grid(SMALL_SIZE)).max() < 3 * rounding


def test_a_full_picture_is_right_to_the_float() -> None:
    camera = make_clip().camera(0)
    size = (IMAGE_SIZE[0], 40)
    matrix, k = matrix_of(camera)
    st = undistort_map(camera, size).astype(float)
    found = np.stack([st[..., 0] * size[0] - 0.5, (1 - st[..., 1]) * size[1] - 0.5], axis=-1)
    rays = (pixel_grid(size) - matrix[:2, 2]) / matrix[[0, 1], [0, 1]]
    points = cv2.convertPointsToHomogeneous(rays.reshape(-1, 1, 2))
    expected, _ = cv2.projectPoints(points, np.zeros(3), np.zeros(3), matrix, k)
    error = np.abs(found - expected.reshape(found.shape))
    inside = (expected.reshape(found.shape)[..., 1] > -0.5) & (found[..., 1] > -0.5)
    assert error[..., 0].max() < 2.1e-4
    assert error[inside].max() < 2.1e-4


def test_beyond_the_fold_maps_point_outside_the_picture() -> None:
    camera = Intrinsics(40.0, 40.0, 42.5, 27.0, -0.5)
    for st in (undistort_map(camera, SMALL_SIZE), distort_map(camera, SMALL_SIZE)):
        assert np.isfinite(st).all()
        assert st[0, 0].tolist() == [-1, -1]
        assert ((st[27, 42] > 0) & (st[27, 42] < 1)).all()


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "OpenEXR", None)
    with pytest.raises(InputError, match=r"influx_wrap\[export\]"):
        write_stmap(make_clip(SMALL_SIZE), tmp_path / "maps")
    assert not (tmp_path / "maps").exists()
