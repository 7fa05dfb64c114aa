"""OpenCV's ``FileStorage`` YAML: matrices of all frames, one below the other.

``camera_matrix`` is (3 n, 3) and ``distortion_coefficients`` (n, 5): k1, k2, p1, p2, k3 = 0.
For a single frame that is the file of OpenCV's own calibration samples. Pixel (0, 0) is the
centre of the top-left pixel.
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from influx_wrap.formats.export.frames import answered
from influx_wrap.formats.files import write_text
from influx_wrap.model.clip import Clip


def write_opencv(clip: Clip, path: Path) -> None:
    """Write the file; ``frames``, ``lfl_mm`` and ``fd_m`` (infinity is .Inf) are (n, 1)."""
    clip = answered(clip)
    n = len(clip.frames)
    fx, fy, cx, cy = clip.intrinsics[:, :4].T
    matrices = np.zeros((n, 3, 3))
    matrices[:, 0, 0], matrices[:, 1, 1], matrices[:, 2, 2] = fx, fy, 1
    matrices[:, 0, 2], matrices[:, 1, 2] = cx, cy
    coefficients = np.pad(clip.intrinsics[:, 4:], ((0, 0), (0, 1)))
    storage = cv2.FileStorage("clip.yml", cv2.FILE_STORAGE_WRITE | cv2.FILE_STORAGE_MEMORY)
    storage.write("image_width", clip.image_size[0])
    storage.write("image_height", clip.image_size[1])
    storage.write("frames", clip.frames.astype(np.int32)[:, None])
    storage.write("lfl_mm", clip.lfl_mm[:, None])
    storage.write("fd_m", clip.fd_m[:, None])
    storage.write("camera_matrix", matrices.reshape(-1, 3))
    storage.write("distortion_coefficients", coefficients)
    write_text(path, storage.releaseAndGetString())
