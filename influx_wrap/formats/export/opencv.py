"""OpenCV's ``FileStorage`` YAML: matrices of all frames, one below the other.

``camera_matrix`` is (3 n, 3) and ``distortion_coefficients`` (n, 5): k1, k2, p1, p2, k3 = 0.
For a single frame that is the file of OpenCV's own calibration samples. Pixel (0, 0) is the
centre of the top-left pixel.
"""

from __future__ import annotations

import math
from pathlib import Path

import cv2
import numpy as np

from influx_wrap.formats.export.frames import answered, clip_names
from influx_wrap.formats.files import write_text
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.clip import Clip
from influx_wrap.model.result import CalibrationResult


def write_opencv(clip: Clip, path: Path) -> None:
    """Write the file; ``frames``, ``lfl_mm`` and ``fd_m`` (infinity is .Inf) are (n, 1), ``clip``,
    ``lens`` and ``camera`` what they are called."""
    clip = answered(clip)
    storage = _storage(clip.image_size)
    for key, name in clip_names(clip).items():
        # Text that is in quotes by itself, OpenCV would take for quoted already.
        text = name.replace("\\", "\\\\").replace('"', '\\"')
        storage.write(key, f'"{text}"')
    storage.write("frames", clip.frames.astype(np.int32)[:, None])
    storage.write("lfl_mm", clip.lfl_mm[:, None])
    storage.write("fd_m", clip.fd_m[:, None])
    _write_matrices(storage, clip.intrinsics)
    write_text(path, storage.releaseAndGetString())


def write_opencv_camera(path: Path, result: CalibrationResult) -> None:
    """Write the file of one camera, with the verdict on it; ``avg_reprojection_error`` is OpenCV's,
    over both axes."""
    storage = _storage(result.image_size)
    _write_matrices(storage, result.intrinsics.array[None])
    storage.write("avg_reprojection_error", math.sqrt(2) * result.residuals.rms_px)
    if result.assessment is not None:
        storage.write("verdict", result.assessment.sentence)
    write_text(path, storage.releaseAndGetString())


def _storage(image_size: tuple[int, int]) -> cv2.FileStorage:
    storage = cv2.FileStorage("camera.yml", cv2.FILE_STORAGE_WRITE | cv2.FILE_STORAGE_MEMORY)
    storage.write("image_width", image_size[0])
    storage.write("image_height", image_size[1])
    return storage


def _write_matrices(storage: cv2.FileStorage, intrinsics: FloatArray) -> None:
    """Of cameras (n, 8)."""
    fx, fy, cx, cy = intrinsics[:, :4].T
    matrices = np.zeros((len(intrinsics), 3, 3))
    matrices[:, 0, 0], matrices[:, 1, 1], matrices[:, 2, 2] = fx, fy, 1
    matrices[:, 0, 2], matrices[:, 1, 2] = cx, cy
    storage.write("camera_matrix", matrices.reshape(-1, 3))
    storage.write("distortion_coefficients", np.pad(intrinsics[:, 4:], ((0, 0), (0, 1))))
