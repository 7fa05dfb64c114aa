"""A camera from one view: found in spite of wrong points, which are named."""

import numpy as np
import pytest

from influx_wrap.calibrate.one_view import fit_one_view
from tests.flight.flown import FOCAL_PX, SIGMA_M, SIZE, TRUTH, fly

POINT_SIGMA = np.full(24, SIGMA_M)


def flown(seed: int) -> tuple[np.ndarray, np.ndarray]:
    one = fly(seed)
    return one.readings.xyz_m - one.readings.xyz_m.mean(axis=0), one.flashes.uv.copy()


@pytest.mark.parametrize("focal_px", [FOCAL_PX, 0.93 * FOCAL_PX, None])
def test_finds_the_camera(focal_px: float | None) -> None:
    points, uv = flown(1)
    view = fit_one_view(points, uv, POINT_SIGMA, SIZE, focal_px=focal_px, sigma_px=0.2)
    assert view is not None
    assert view.inliers.all()
    assert view.intrinsics.fx == pytest.approx(TRUTH.fx, rel=0.01)
    assert np.allclose(np.linalg.norm(view.see(points) - uv, axis=1), view.residual_px)
    assert view.residual_px.max() < 1.5


def test_residuals_are_in_standard_deviations() -> None:
    """Their squares have a mean of two, in the corners as in the middle."""
    squares = []
    for seed in range(30):
        points, uv = flown(seed)
        view = fit_one_view(points, uv, POINT_SIGMA, SIZE, focal_px=FOCAL_PX, sigma_px=0.2)
        assert view is not None
        squares.append(view.sigmas**2)
    by_point = np.mean(squares, axis=0)
    assert float(np.mean(squares)) == pytest.approx(2.0, abs=0.3)
    assert by_point.max() < 4.5
    assert by_point.min() > 0.6


@pytest.mark.parametrize("n_wrong", [1, 3, 5])
def test_wrong_points_are_named(n_wrong: int) -> None:
    rng = np.random.default_rng(n_wrong)
    for seed in range(5):
        points, uv = flown(seed)
        wrong = rng.choice(24, n_wrong, replace=False)
        angle = rng.uniform(0, 2 * np.pi, n_wrong)
        shift = rng.uniform(25, 400, n_wrong)[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
        uv[wrong] = np.clip(uv[wrong] + shift, 0, np.array(SIZE) - 1)
        view = fit_one_view(points, uv, POINT_SIGMA, SIZE, focal_px=FOCAL_PX, sigma_px=0.2)
        assert view is not None
        assert set(np.flatnonzero(~view.inliers)) == set(wrong.tolist())
        assert (view.sigmas[wrong] > 4.5).all()
        assert view.intrinsics.fx == pytest.approx(TRUTH.fx, rel=0.02)


def test_shuffled_points_fit_no_camera() -> None:
    points, uv = flown(2)
    shuffled = np.random.default_rng(0).permutation(uv)
    found = fit_one_view(points, shuffled, POINT_SIGMA, SIZE, focal_px=FOCAL_PX, sigma_px=0.2)
    assert found is None or np.median(found.sigmas) > 12


def test_a_poor_position_is_expected_to_be_off() -> None:
    points, uv = flown(3)
    points[5] += [0.3, -0.2, 0.2]
    sigma = POINT_SIGMA.copy()
    view = fit_one_view(points, uv, sigma, SIZE, focal_px=FOCAL_PX, sigma_px=0.2)
    assert view is not None
    assert not view.inliers[5]
    sigma[5] = 0.3
    view = fit_one_view(points, uv, sigma, SIZE, focal_px=FOCAL_PX, sigma_px=0.2)
    assert view is not None
    assert view.inliers.all()


@pytest.mark.parametrize("n", [3, 7])
def test_too_few(n: int) -> None:
    points, uv = flown(4)
    assert fit_one_view(points[:n], uv[:n], POINT_SIGMA[:n], SIZE, focal_px=900, sigma_px=1) is None


def test_a_plane_gives_no_camera() -> None:
    points, uv = flown(5)
    points[:, 2] = 0.0
    assert fit_one_view(points, uv, POINT_SIGMA, SIZE, focal_px=900, sigma_px=1) is None
