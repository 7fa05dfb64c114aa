"""Real photographs and a real print, if there are any at hand.

``INFLUX_WRAP_PICTURES=DIR pytest tests/observe/test_real_pictures.py -s``, where DIR has
two photographs of a 6 x 6 AprilGrid and the picture of an 8 x 11 sheet, named as below, and may
have OpenCV's photographs ``left*.jpg`` of a checkerboard with cut outer squares, in any folder.
"""

import os
from pathlib import Path

import cv2
import numpy as np
import pytest
from scipy.optimize import least_squares

from influx_wrap.model.target import AprilGrid, Checkerboard
from influx_wrap.observe import checkerboard
from influx_wrap.observe.aprilgrid import detect

PICTURES = os.environ.get("INFLUX_WRAP_PICTURES")
pytestmark = pytest.mark.skipif(not PICTURES, reason="INFLUX_WRAP_PICTURES names no folder")

PHOTOGRAPHED = AprilGrid(tag_cols=6, tag_rows=6, tag_size_m=0.088, tag_spacing=0.3)
PRINTED = AprilGrid(tag_cols=11, tag_rows=8, tag_size_m=0.012, tag_spacing=0.3)


def read(name: str) -> np.ndarray:
    image = cv2.imread(str(Path(PICTURES or "") / name), cv2.IMREAD_GRAYSCALE)
    assert image is not None
    return image


def rms_from_a_plane(uv: np.ndarray, shape: tuple[int, ...]) -> float:
    """Of corners (n, 2) from the best homography with k1, k2 about the picture's middle."""
    xy = PHOTOGRAPHED.points[:, :2] / np.ptp(PHOTOGRAPHED.points[:, :2])
    middle, scale = (np.array(shape[::-1]) - 1) / 2, max(shape) / 2
    start, _ = cv2.findHomography(xy, (uv - middle) / scale)

    def misfit(p: np.ndarray) -> np.ndarray:
        flat = cv2.perspectiveTransform(xy[None], np.append(p[:8], 1).reshape(3, 3))[0]
        r2 = (flat**2).sum(axis=1, keepdims=True)
        return (middle + scale * flat * (1 + r2 * (p[8] + p[9] * r2)) - uv).ravel()

    best = least_squares(misfit, [*start.ravel()[:8], 0, 0])
    return float(np.sqrt(2 * np.mean(best.fun**2)))


@pytest.mark.parametrize("name", ["aprilgrid_6x6_4080x3072.jpg", "aprilgrid_6x6_752x480.png"])
def test_all_tags_of_a_photograph(name: str) -> None:
    image = read(name)
    detection = detect(image, PHOTOGRAPHED)
    assert detection.found.all()
    rms = rms_from_a_plane(detection.uv, image.shape)
    print(f"{name}: {detection.found.sum()} corners, {rms:.3f} px from a plane with distortion")
    assert rms < 0.5


def test_all_tags_of_a_print_in_kalibr_s_order() -> None:
    image = read("calibio_kalibr_200x150_8x11.png")
    detection = detect(image, PRINTED)
    assert detection.found.all()
    homography, _ = cv2.findHomography(PRINTED.points[:, :2], detection.uv)
    seen = cv2.perspectiveTransform(PRINTED.points[None, :, :2], homography)[0]
    error = np.linalg.norm(seen - detection.uv, axis=1)
    print(f"print: {len(error)} corners, {error.max():.3f} px at most from a scaled sheet")
    assert error.max() < 0.5
    # Bottom-left first, x to the right, y up.
    assert homography[0, 0] > 0
    assert homography[1, 1] < 0


def test_a_checkerboard_with_cut_outer_squares() -> None:
    """All found, and where ``cornerSubPix`` has them, with a window that stays in the squares."""
    board = Checkerboard(9, 6, 0.025, 0.025)
    paths = sorted(Path(PICTURES or "").rglob("left*.jpg"))
    if not paths:
        pytest.skip("no left*.jpg")
    criteria = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_COUNT, 100, 1e-4)
    for path in paths:
        image = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        assert image is not None
        seen = checkerboard.detect(image, board)
        assert seen.found.all(), path
        found, corners = cv2.findChessboardCorners(image, (9, 6))
        assert found
        peer = cv2.cornerSubPix(image, corners, (5, 5), (-1, -1), criteria).reshape(-1, 2)
        apart = np.linalg.norm(seen.uv[:, None] - peer, axis=2).min(axis=1)
        print(f"{path.name}: {apart.max():.2f} px from cornerSubPix at most")
        assert apart.max() < 0.5
