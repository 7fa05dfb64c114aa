"""Projection uncertainty against drawing cameras at random, and inverse information."""

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from influx_wrap.calibrate.adjust import TIGHT_STOP, adjust
from influx_wrap.calibrate.uncertainty import inverse_information, projection_uncertainty
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics, unproject
from tests.calibrate.scenes import CAMERA, IMAGE_SIZE, board_scene, opencv_project

STEPS = 7


@pytest.fixture(scope="module")
def covariance() -> FloatArray:
    """That of a few views, large enough to matter and small enough to be linear."""
    scene = board_scene(71, 4)
    fit = adjust(scene.problem, CAMERA.array, scene.poses, stop=TIGHT_STOP)
    return 0.1**2 * inverse_information(fit.information)


@pytest.fixture(scope="module")
def draws(covariance: FloatArray) -> FloatArray:
    rng = np.random.default_rng(0)
    return rng.multivariate_normal(CAMERA.array, covariance, 1500, method="eigh")


def rays() -> FloatArray:
    u, v = np.meshgrid(np.linspace(0, IMAGE_SIZE[0] - 1, STEPS),
                       np.linspace(0, IMAGE_SIZE[1] - 1, STEPS))  # fmt: skip
    directions, _ = unproject(CAMERA, np.stack([u, v], axis=-1).reshape(-1, 2))
    return np.concatenate([directions, np.ones((len(directions), 1))], axis=1)


def pixels(theta: FloatArray, points: FloatArray) -> FloatArray:
    return opencv_project(theta, np.concatenate([np.eye(3).ravel(), np.zeros(3)]), points)


def worst_direction(offsets: FloatArray) -> FloatArray:
    """(n,) the largest standard deviation of offsets (draws, n, 2) over all directions."""
    blocks = np.einsum("dni,dnj->nij", offsets, offsets) / len(offsets)
    return np.sqrt(np.linalg.eigvalsh(blocks)[:, 1])


def test_with_the_orientation_known(covariance: FloatArray, draws: FloatArray) -> None:
    stated = projection_uncertainty(CAMERA, covariance, IMAGE_SIZE, STEPS)
    points = rays()
    offsets = np.stack([pixels(theta, points) for theta in draws]) - pixels(CAMERA.array, points)
    seen = worst_direction(offsets)
    assert stated.fixed_worst_px == pytest.approx(seen.max(), rel=0.06)
    assert stated.fixed_median_px == pytest.approx(np.median(seen), rel=0.06)


def test_with_the_orientation_free(covariance: FloatArray, draws: FloatArray) -> None:
    """Every drawn camera is turned, numerically, to where it projects most alike."""
    stated = projection_uncertainty(CAMERA, covariance, IMAGE_SIZE, STEPS)
    points, expected = rays(), pixels(CAMERA.array, rays())

    def turned(turn: FloatArray, theta: FloatArray) -> FloatArray:
        rotated = points @ Rotation.from_rotvec(1e-3 * turn).as_matrix().T
        return (pixels(theta, rotated) - expected).ravel()

    offsets = [least_squares(turned, np.zeros(3), args=(theta,)).fun for theta in draws[:600]]
    seen = worst_direction(np.array(offsets).reshape(len(offsets), -1, 2))
    assert stated.worst_px == pytest.approx(seen.max(), rel=0.1)
    assert stated.median_px == pytest.approx(np.median(seen), rel=0.1)
    assert stated.worst_px < 0.7 * stated.fixed_worst_px


def test_a_known_orientation_can_only_show_more(covariance: FloatArray) -> None:
    stated = projection_uncertainty(CAMERA, covariance, IMAGE_SIZE)
    assert 0 < stated.median_px < stated.worst_px < stated.fixed_worst_px
    assert stated.median_px < stated.fixed_median_px < stated.fixed_worst_px


def test_uncertainty_of_the_principal_point_alone() -> None:
    """A shift of the picture by 1 px, nearly all of which a turn undoes on a long lens."""
    long_lens = Intrinsics(30000.0, 30000.0, 639.5, 479.5)
    covariance = np.zeros((8, 8))
    covariance[2, 2] = 1.0
    stated = projection_uncertainty(long_lens, covariance, IMAGE_SIZE)
    assert stated.fixed_worst_px == pytest.approx(1.0)
    assert stated.fixed_median_px == pytest.approx(1.0)
    assert stated.worst_px < 1e-3


def test_pixels_beyond_the_fold_are_left_out() -> None:
    """Some corners of the picture see nothing; the rest still has its uncertainty."""
    folding = Intrinsics(500.0, 500.0, 639.5, 479.5, -0.3)
    covariance = np.diag([1.0, 1.0, 1.0, 1.0, 0, 0, 0, 0])
    stated = projection_uncertainty(folding, covariance, IMAGE_SIZE)
    assert np.isfinite([stated.worst_px, stated.fixed_worst_px]).all()


def test_inverse_information_is_the_inverse() -> None:
    rng = np.random.default_rng(2)
    root = rng.standard_normal((30, 8)) * 10.0 ** np.arange(-4, 4)
    information = root.T @ root
    inverse = inverse_information(information)
    np.testing.assert_allclose(inverse, inverse.T, rtol=0)
    scale = np.sqrt(np.diag(information))
    product = (inverse * np.outer(scale, scale)) @ (information / np.outer(scale, scale))
    np.testing.assert_allclose(product, np.eye(8), atol=1e-9)


def test_no_information_is_a_huge_finite_variance() -> None:
    information = np.diag([1.0, 4.0, 0.0])
    inverse = inverse_information(information)
    assert np.isfinite(inverse).all()
    np.testing.assert_allclose(np.diag(inverse)[:2], [1, 0.25])
    assert inverse[2, 2] > 1e12


def test_only_the_direction_without_information_suffers() -> None:
    singular = np.array([[2.0, 2.0], [2.0, 2.0]])
    inverse = inverse_information(singular)
    assert np.isfinite(inverse).all()
    along, across = np.array([1, 1]), np.array([1, -1])
    assert along @ inverse @ along / 4 == pytest.approx(0.125, rel=0.1)
    assert across @ inverse @ across > 1e12
