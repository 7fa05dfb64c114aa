"""Projection against OpenCV, its derivatives against differences, and its domain."""

import math

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.model.intrinsics import (
    NAMES,
    Intrinsics,
    field_of_view_deg,
    fold_radii,
    fold_radius,
    image_centre,
    pixel_rays,
    project,
    project_with_jacobians,
    unproject,
)
from tests.model import twins

WIDE = Intrinsics(2080.0, 2090.0, 1700.0, 1110.0, k1=-0.15, k2=0.02, p1=3e-4, p2=-5e-4)
TELE = Intrinsics(26000.0, 26010.0, 1711.5, 1100.5, k1=2.0, k2=-30.0, p1=1e-3, p2=2e-3)
BARREL = Intrinsics(2000.0, 2000.0, 1711.5, 1100.5, k1=-0.2)


def points_in_view(intrinsics: Intrinsics, n: int, seed: int) -> np.ndarray:
    """(n, 3) camera-space points that are seen somewhere in a 3424 x 2202 picture."""
    rng = np.random.default_rng(seed)
    reach = np.array([1600, 1000]) / intrinsics.fx
    depth = rng.uniform(0.5, 20, (n, 1))
    return np.hstack([rng.uniform(-1, 1, (n, 2)) * reach * depth, depth])


@pytest.mark.parametrize("intrinsics", [WIDE, TELE, BARREL])
def test_projection_agrees_with_opencv(intrinsics: Intrinsics) -> None:
    points = points_in_view(intrinsics, 500, seed=1)
    fx, fy, cx, cy, *distortion = intrinsics.array
    matrix = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
    expected, _ = cv2.projectPoints(points, np.zeros(3), np.zeros(3), matrix, np.array(distortion))
    uv, valid = project(intrinsics, points)
    assert valid.all()
    np.testing.assert_allclose(uv, expected[:, 0], rtol=0, atol=1e-8)


@pytest.mark.parametrize("intrinsics", [WIDE, TELE, BARREL])
def test_jacobians_agree_with_central_differences(intrinsics: Intrinsics) -> None:
    points = points_in_view(intrinsics, 50, seed=2)
    _, valid, d_theta, d_point = project_with_jacobians(intrinsics, points)
    assert valid.all()
    for i in range(8):
        step = 1e-6 * max(1.0, abs(intrinsics.array[i]))
        shift = step * np.eye(8)[i]
        ahead, _ = project(Intrinsics.from_array(intrinsics.array + shift), points)
        behind, _ = project(Intrinsics.from_array(intrinsics.array - shift), points)
        difference = (ahead - behind) / (2 * step)
        np.testing.assert_allclose(d_theta[..., i], difference, rtol=1e-5, atol=1e-5)
    for i in range(3):
        shift = 1e-5 * np.eye(3)[i]
        ahead, _ = project(intrinsics, points + shift)
        behind, _ = project(intrinsics, points - shift)
        difference = (ahead - behind) / 2e-5
        np.testing.assert_allclose(d_point[..., i], difference, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("intrinsics", [WIDE, TELE, BARREL, Intrinsics(3000, 3000, 1711, 1100)])
def test_unproject_inverts_project(intrinsics: Intrinsics) -> None:
    points = points_in_view(intrinsics, 500, seed=3)
    uv, _ = project(intrinsics, points)
    ab, valid = unproject(intrinsics, uv)
    assert valid.all()
    np.testing.assert_allclose(ab, points[:, :2] / points[:, 2:], rtol=0, atol=1e-9)


def test_fold_radius_in_closed_form() -> None:
    assert fold_radius(-0.2, 0.0) == pytest.approx(math.sqrt(1 / 0.6))
    assert fold_radius(0.0, 0.0) == math.inf
    assert fold_radius(0.3, 0.0) == math.inf
    assert fold_radius(-0.15, 0.1) == math.inf
    radius = fold_radius(-0.3, -0.05)
    assert 1 - 0.9 * radius**2 - 0.25 * radius**4 == pytest.approx(0)


def test_beyond_the_fold_is_invalid_and_never_a_pixel() -> None:
    fold = fold_radius(BARREL.k1, BARREL.k2)
    radii = np.array([0.99 * fold, 1.01 * fold, 2 * fold, 50 * fold])
    uv, valid = project(BARREL, np.stack([radii, 0 * radii, 0 * radii + 1], axis=-1))
    assert valid.tolist() == [True, False, False, False]
    assert np.isnan(uv[1:]).all()


def test_pixels_no_direction_reaches_are_invalid() -> None:
    fold = fold_radius(BARREL.k1, BARREL.k2)
    edge = BARREL.fx * fold * (1 + BARREL.k1 * fold**2)
    uv = np.array([[BARREL.cx + 0.999 * edge, BARREL.cy], [BARREL.cx + 1.001 * edge, BARREL.cy]])
    ab, valid = unproject(BARREL, uv)
    assert valid.tolist() == [True, False]
    assert np.hypot(*ab[0]) < fold
    assert np.isnan(ab[1]).all()


def test_points_behind_or_in_the_camera_are_invalid() -> None:
    uv, valid = project(WIDE, [[0.1, 0.1, -1.0], [0.1, 0.1, 0.0], [0.0, 0.0, 0.0]])
    assert not valid.any()
    assert np.isnan(uv).all()


def test_nan_propagates_without_touching_its_neighbours() -> None:
    uv, valid = project(WIDE, [[np.nan, 0, 1], [0, 0, np.nan], [0, 0, 1]])
    assert valid.tolist() == [False, False, True]
    assert np.isnan(uv[:2]).all()
    ab, valid = unproject(WIDE, [[np.nan, 100.0], [WIDE.cx, WIDE.cy]])
    assert valid.tolist() == [False, True]
    assert np.isnan(ab[0]).all()
    np.testing.assert_allclose(ab[1], 0, atol=1e-12)


def test_leading_shapes_are_kept() -> None:
    points = points_in_view(WIDE, 12, seed=4).reshape(3, 4, 3)
    uv, valid, d_theta, d_point = project_with_jacobians(WIDE, points)
    assert uv.shape == (3, 4, 2)
    assert valid.shape == (3, 4)
    assert d_theta.shape == (3, 4, 2, 8)
    assert d_point.shape == (3, 4, 2, 3)


def test_array_and_mapping_round_trip() -> None:
    assert Intrinsics.from_array(WIDE.array) == WIDE
    assert Intrinsics.from_mapping(WIDE.as_dict()) == WIDE
    assert list(WIDE.as_dict()) == list(NAMES)
    with pytest.raises(InputError, match="lack k1, p2"):
        Intrinsics.from_mapping({k: 1.0 for k in NAMES if k not in ("k1", "p2")})


def test_image_centre_is_between_pixel_centres() -> None:
    assert image_centre((3424, 2202)) == (1711.5, 1100.5)


def test_folds_of_many_cameras() -> None:
    rng = np.random.default_rng(2)
    theta = np.zeros((500, 8))
    theta[:, 4:6] = rng.normal(size=(500, 2)) * [0.5, 0.2]
    theta[:50, 5] = 0.0
    theta[50:60, 4:6] = 0.0
    theta[60:70, 4] = 0.0
    expected = [twins.fold_radius(k1, k2) for k1, k2 in theta[:, 4:6]]
    np.testing.assert_allclose(fold_radii(theta), expected, rtol=1e-9)


@pytest.mark.parametrize("k", [(-0.11, 0.04, 7e-4, -1e-3), (-0.5, 0, 0.01, 0), (0.2, -1.3, 0, 0)])
def test_kernels_agree_with_their_twins(k: tuple[float, ...]) -> None:
    """Everywhere, also beyond the fold, in pixels as in derivatives."""
    camera = Intrinsics(40.0, 41.0, 42.5, 27.0, *k)
    size = (86, 55)
    uv = np.stack(np.meshgrid(*(np.arange(n, dtype=float) for n in size)), axis=-1)
    ab = (uv - camera.array[2:4]) / camera.array[:2]
    points = np.concatenate([ab, np.ones((*ab.shape[:2], 1))], axis=-1) * 1.7
    found = project_with_jacobians(camera, points)
    expected = twins.project_with_jacobians(camera, points)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-11)
    rays, valid = twins.unproject(camera, uv)
    assert valid.mean() > 0.1
    for a, b in (np.moveaxis(unproject(camera, uv)[0], -1, 0), pixel_rays(camera, size)):
        np.testing.assert_allclose(np.stack([a, b], axis=-1), rays, rtol=0, atol=1e-12)


def test_field_of_view_of_an_ideal_lens() -> None:
    """By hand: half of the picture to each side of the principal point."""
    width, height = 640, 412
    camera = Intrinsics(500.0, 600.0, 319.5, 205.5)
    half = math.hypot(width / 2 / 500, height / 2 / 600)
    expected = [2 * math.degrees(math.atan(tan)) for tan in (320 / 500, 206 / 600, half)]
    assert field_of_view_deg(camera, (width, height)) == pytest.approx(expected)


@pytest.mark.parametrize("camera", [WIDE, TELE])
def test_field_of_view_agrees_with_opencv(camera: Intrinsics) -> None:
    """Of a distorted picture whose principal point is not its centre."""
    fx, fy, cx, cy, *distortion = camera.array
    matrix = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
    right, bottom, x, y = 3423.5, 2201.5, 1711.5, 1100.5
    ends = [(-0.5, y), (right, y), (x, -0.5), (x, bottom)]
    ends += [(-0.5, -0.5), (right, bottom), (-0.5, bottom), (right, -0.5)]
    criteria = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 500, 1e-14)
    ideal = cv2.undistortPointsIter(
        np.array(ends)[:, None], matrix, np.array(distortion), np.eye(3), np.eye(3), criteria
    )[:, 0]
    rays = np.column_stack([ideal, np.ones(8)])
    rays /= np.linalg.norm(rays, axis=1)[:, None]
    across, down, *diagonals = np.degrees(np.arccos((rays[::2] * rays[1::2]).sum(axis=1)))
    expected = [across, down, max(diagonals)]
    assert field_of_view_deg(camera, (3424, 2202)) == pytest.approx(expected, rel=1e-8)


def test_field_of_view_where_the_distortion_folds() -> None:
    across, down, diagonal = field_of_view_deg(Intrinsics(400, 400, 319.5, 205.5, -0.5), (640, 412))
    assert math.isnan(across)
    assert math.isnan(diagonal)
    assert down > 0
