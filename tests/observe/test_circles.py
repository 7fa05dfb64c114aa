"""Circle centres in rendered pictures: what is found is the picture of the centre."""

from functools import cache

import cv2
import numpy as np
import pytest

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics, pixel_rays, project
from influx_wrap.model.pose import transform
from influx_wrap.model.target import CircleGrid
from influx_wrap.observe.circles import detect

SIZE = (480, 360)
CAMERA = Intrinsics(465.0, 466.0, 238.0, 182.0, -0.1, 0.03, 5e-4, -3e-4)
FINE = 4
SYMMETRIC = CircleGrid(8, 6, 0.03)
ASYMMETRIC = CircleGrid(4, 11, 0.02, asymmetric=True)


@cache
def fine_rays() -> FloatArray:
    """Directions (4 H, 4 W, 3) of 4 x 4 rays for every pixel."""
    shift = (1 - FINE) / (2 * FINE)
    fine = Intrinsics(
        FINE * CAMERA.fx, FINE * CAMERA.fy, FINE * (CAMERA.cx - shift), FINE * (CAMERA.cy - shift),
        CAMERA.k1, CAMERA.k2, CAMERA.p1, CAMERA.p2,
    )  # fmt: skip
    a, b = pixel_rays(fine, (FINE * SIZE[0], FINE * SIZE[1]), (0.0, 0.0))
    return np.stack([a, b, np.ones_like(a)], axis=-1)


def picture(
    target: CircleGrid, tilt: tuple[float, float], roll: float = 0.0, noise: float = 2.0
) -> tuple[np.ndarray, FloatArray]:
    """A picture of circles as wide as three fifths of their distance, and where their centres
    are (T, 2), from the rays of 4 x 4 places in every pixel."""
    radius_m = 0.3 * target.spacing_m * (np.sqrt(2) if target.asymmetric else 1)
    in_plane = cv2.Rodrigues(np.array([0.0, 0.0, roll]))[0]
    rotation = np.diag([1.0, -1.0, -1.0]) @ cv2.Rodrigues(np.array([*tilt, 0.0]))[0] @ in_plane
    translation = np.array([0.0, 0.0, 0.42]) - rotation @ target.points.mean(axis=0)
    rays = fine_rays() @ rotation
    origin = -translation @ rotation
    xy = origin[:2] - origin[2] * rays[..., :2] / rays[..., 2:]
    dark = np.zeros(xy.shape[:2], dtype=bool)
    for x, y, _ in target.points:
        dark |= (xy[..., 0] - x) ** 2 + (xy[..., 1] - y) ** 2 < radius_m**2
    value = np.where(dark, 25.0, 230.0)
    image = cv2.resize(value, SIZE, interpolation=cv2.INTER_AREA)
    image = cv2.GaussianBlur(image, (0, 0), 0.8)
    image += noise * np.random.default_rng(0).standard_normal(image.shape)
    uv, valid = project(CAMERA, transform(rotation[None], translation[None], target.points)[0])
    assert valid.all()
    return np.clip(image.round(), 0, 255).astype(np.uint8), uv


@pytest.mark.parametrize("tilt", [(0.0, 0.0), (0.6, 0.1), (-0.3, 0.55)])
@pytest.mark.parametrize("target", [SYMMETRIC, ASYMMETRIC])
def test_centres_are_free_of_the_bias_of_perspective(
    target: CircleGrid, tilt: tuple[float, float]
) -> None:
    image, uv = picture(target, tilt)
    detection = detect(image, target)
    assert detection.found.all()
    error = detection.uv - uv
    print(f"RMS {np.sqrt((error**2).sum(axis=1).mean()):.4f} px, mean {error.mean(axis=0)}")
    assert np.sqrt((error**2).sum(axis=1).mean()) < 0.06
    assert np.abs(error.mean(axis=0)).max() < 0.03


def test_without_the_correction_centres_would_be_off() -> None:
    """As those are that OpenCV finds in the same picture."""
    image, uv = picture(SYMMETRIC, (0.6, 0.1))
    found, centres = cv2.findCirclesGrid(image, (8, 6), flags=cv2.CALIB_CB_SYMMETRIC_GRID)
    assert found
    apart = centres.reshape(-1, 1, 2) - uv
    nearest = np.linalg.norm(apart, axis=2).argmin(axis=0)
    by_opencv = apart[nearest, np.arange(len(uv))].mean(axis=0)
    ours = (detect(image, SYMMETRIC).uv - uv).mean(axis=0)
    print(f"mean error {np.linalg.norm(ours):.4f} px, OpenCV's {np.linalg.norm(by_opencv):.4f} px")
    assert np.linalg.norm(ours) < 0.25 * np.linalg.norm(by_opencv)


@pytest.mark.parametrize("roll", [0.3, 1.4, 3.0])
def test_an_asymmetric_grid_is_numbered_however_it_is_held(roll: float) -> None:
    image, uv = picture(ASYMMETRIC, (0.2, 0.1), roll)
    detection = detect(image, ASYMMETRIC)
    turned = uv.reshape(11, 4, 2)[::-1, ::-1].reshape(-1, 2)
    # Eleven rows: the first and the last are not shifted, so that half a turn moves it.
    assert min(np.abs(detection.uv - way).max() for way in (uv, turned)) < 0.25
    assert np.abs(detection.uv - uv).max() < 0.25


def test_white_circles_on_black() -> None:
    image, uv = picture(SYMMETRIC, (0.3, -0.2))
    assert np.abs(detect(255 - image, SYMMETRIC).uv - uv).max() < 0.25


def test_no_circles() -> None:
    for image in (np.full((480, 640), 128, np.uint8), np.zeros((4, 4), np.uint8)):
        assert not detect(image, SYMMETRIC).found.any()
    other = CircleGrid(7, 6, 0.03)
    image, _ = picture(CircleGrid(5, 4, 0.03), (0.2, 0.1))
    assert not detect(image, other).found.any()
