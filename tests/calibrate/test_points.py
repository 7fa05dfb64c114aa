"""Measured points: the reduced fit against scipy on the full problem, unreduced."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.optimize import OptimizeResult, brentq, least_squares
from scipy.spatial.transform import Rotation

from influx_wrap.calibrate.points import PointFit, fit_points, point_information
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.target import PointCloud
from influx_wrap.model.truth import Noise
from influx_wrap.plan import make_plan
from influx_wrap.synth.experiment import cell_generator, simulate
from tests.calibrate.scenes import CAMERA, opencv_project
from tests.lenses import true_intrinsics

SIGMA_PX = 0.4


@dataclass(frozen=True, eq=False)
class Flight:
    """Measured points (T, 3) with covariances (T, 3, 3) seen at uv (V, T, 2), and the truth."""

    measured: FloatArray
    covariance: FloatArray
    uv: FloatArray
    valid: BoolArray
    intrinsics: Intrinsics
    poses: FloatArray
    points: FloatArray


def simulated_cell() -> Flight:
    """A drone cell of the short lens, as the simulator gives it."""
    catalogue = load_catalogue()
    camera = catalogue.camera("arri-alexa-mini")
    plan = make_plan(catalogue.lens("canon17"), camera, catalogue.boards.values())
    cell = plan.cell("z2f8")
    noise = Noise(corner_px=SIGMA_PX)
    experiment = simulate(
        cell, camera, true_intrinsics(plan)[cell.name], noise, cell_generator(1, cell)
    )
    observations, truth = experiment.observations, experiment.truth
    assert isinstance(observations.target, PointCloud)
    assert observations.target.covariance is not None
    poses = np.concatenate([truth.rotations.reshape(-1, 9), truth.translations], axis=1)
    return Flight(
        observations.target.points, observations.target.covariance, observations.uv,
        observations.valid, truth.intrinsics, poses, truth.target_points,
    )  # fmt: skip


def two_views(point_sigma: float = 2e-3, n_points: int = 40, sigma_px: float = SIGMA_PX) -> Flight:
    """The same points from two places, some of them seen from one alone."""
    rng = np.random.default_rng(4)
    points = rng.uniform(-1, 1, (n_points, 3)) * [1.2, 0.9, 0.8]
    poses = [
        np.concatenate([Rotation.from_rotvec(turn).as_matrix().ravel(), shift])
        for turn, shift in (([0.1, 0.2, -0.1], [0, 0.1, 4.0]), ([-0.3, 0.5, 0.2], [0.1, 0, 4.5]))
    ]
    uv = np.stack([opencv_project(CAMERA.array, pose, points) for pose in poses])
    uv += sigma_px * rng.standard_normal(uv.shape)
    valid = np.ones(uv.shape[:2], dtype=bool)
    valid[0, :5] = valid[1, -7:] = False
    measured = points + point_sigma * rng.standard_normal(points.shape)
    covariance = np.tile(point_sigma**2 * np.eye(3), (n_points, 1, 1))
    return Flight(measured, covariance, uv, valid, CAMERA, np.array(poses), points)


def unequal_points() -> Flight:
    """Points measured better in one direction than in another, each in its own."""
    flight = two_views()
    rng = np.random.default_rng(5)
    axes = Rotation.random(len(flight.points), rng=rng).as_matrix()
    factor = axes * (1e-3 * rng.uniform([0.3, 1, 3], [0.6, 2, 6], (len(axes), 3)))[:, None]
    measured = flight.points + np.einsum("nij,nj->ni", factor, rng.standard_normal((len(axes), 3)))
    return replace(flight, measured=measured, covariance=factor @ np.swapaxes(factor, 1, 2))


SCALE = np.array([1, 1, 1, 1, 1e-3, 1e-3, 1e-4, 1e-4])


def full_residuals(flight: Flight, x: FloatArray, sigma_px: float) -> FloatArray:
    """Everything that is measured, in sigmas; x is intrinsics / SCALE, poses, points."""
    n = len(flight.uv)
    theta = x[:8] * SCALE
    points = x[8 + 6 * n :].reshape(-1, 3)
    parts = []
    for view in range(n):
        turn, shift = x[8 + 6 * view : 11 + 6 * view], x[11 + 6 * view : 14 + 6 * view]
        rotation = Rotation.from_rotvec(turn).as_matrix() @ flight.poses[view, :9].reshape(3, 3)
        pose = np.concatenate([rotation.ravel(), flight.poses[view, 9:] + shift])
        apart = flight.uv[view] - opencv_project(theta, pose, points)
        parts.append(apart[flight.valid[view]].ravel() / sigma_px)
    factor = np.linalg.cholesky(flight.covariance)
    parts.append(np.linalg.solve(factor, (flight.measured - points)[..., None]).ravel())
    return np.concatenate(parts)


def full_fit(flight: Flight, sigma_px: float) -> OptimizeResult:
    """scipy's optimum of the whole problem: ``x``, ``jac`` and ``cost``, half of chi squared."""
    start = [flight.intrinsics.array / SCALE, np.zeros(6 * len(flight.uv)), flight.measured.ravel()]
    return least_squares(
        lambda x: full_residuals(flight, x, sigma_px), np.concatenate(start), jac="3-point",
        x_scale="jac", ftol=1e-15, xtol=1e-15, gtol=1e-15, max_nfev=100,
    )  # fmt: skip


def dense_covariance(jacobian: FloatArray) -> FloatArray:
    """(8, 8) of the intrinsics from the whole problem's Jacobian."""
    size = np.linalg.norm(jacobian, axis=0)
    inverse = np.linalg.pinv((jacobian / size).T @ (jacobian / size))
    return (inverse / np.outer(size, size))[:8, :8] * np.outer(SCALE, SCALE)


@pytest.fixture(scope="module", params=[simulated_cell, two_views, unequal_points])
def flight(request: pytest.FixtureRequest) -> Flight:
    return request.param()


def our_fit(flight: Flight, sigma_px: float | None) -> PointFit:
    """From a start that is some way off."""
    theta = flight.intrinsics.array * [1.02, 1.02, 1, 1, 0.9, 1, 1, 1]
    data = (flight.measured, flight.covariance, flight.uv, flight.valid)
    return fit_points(*data, theta, flight.poses, sigma_px=sigma_px)


def test_same_optimum_as_the_full_problem(flight: Flight) -> None:
    ours = our_fit(flight, SIGMA_PX)
    full = full_fit(flight, SIGMA_PX)
    theta, points = full.x[:8] * SCALE, full.x[8 + 6 * len(flight.uv) :].reshape(-1, 3)
    sigma = np.sqrt(np.diag(dense_covariance(full.jac)))
    assert ours.converged
    assert ours.sigma_px == SIGMA_PX
    np.testing.assert_allclose(ours.theta[:4], theta[:4], rtol=1e-6)
    assert np.abs((ours.theta - theta) / sigma).max() < 1e-4
    point_sigma = np.sqrt(np.diagonal(flight.covariance, axis1=1, axis2=2))
    assert np.abs((ours.points - points) / point_sigma).max() < 2e-4


def test_covariance_is_that_of_the_full_problem(flight: Flight) -> None:
    ours = our_fit(flight, SIGMA_PX)
    dense = dense_covariance(full_fit(flight, SIGMA_PX).jac)
    scale = np.sqrt(np.diag(dense))
    np.testing.assert_allclose(
        ours.covariance / np.outer(scale, scale), dense / np.outer(scale, scale), atol=1e-4
    )


def test_covariance_agrees_with_the_curvature_of_the_cost() -> None:
    """The Hessian of half of chi squared, by differences of the full residuals alone."""
    flight = simulated_cell()
    ours, full = our_fit(flight, SIGMA_PX), full_fit(flight, SIGMA_PX)
    sizes = 1e-2 / np.linalg.norm(full.jac, axis=0)

    def slope(at: FloatArray) -> FloatArray:
        sides = [
            full_residuals(flight, at + s, SIGMA_PX) - full_residuals(flight, at - s, SIGMA_PX)
            for s in np.diag(sizes)
        ]
        return np.array(sides) @ full_residuals(flight, at, SIGMA_PX) / 2

    hessian = np.array([slope(full.x + s) - slope(full.x - s) for s in np.diag(sizes)]) / 2
    covariance = np.linalg.inv((hessian + hessian.T) / 2) * np.outer(sizes, sizes)
    sigma = np.sqrt(np.diag(covariance)[:8]) * SCALE
    np.testing.assert_allclose(np.sqrt(np.diag(ours.covariance)), sigma, rtol=0.03)


def test_information_at_the_truth(flight: Flight) -> None:
    """The bound's information is the full problem's with the points eliminated."""
    information = point_information(
        flight.intrinsics, flight.poses, flight.points, flight.valid, SIGMA_PX, flight.covariance
    )
    n = len(flight.uv)
    x = np.concatenate([flight.intrinsics.array / SCALE, np.zeros(6 * n), flight.points.ravel()])
    steps = 1e-5 * np.eye(len(x))
    columns = [
        (full_residuals(flight, x + s, SIGMA_PX) - full_residuals(flight, x - s, SIGMA_PX)) / 2e-5
        for s in steps
    ]
    jacobian = np.stack(columns, axis=1)
    expected = dense_covariance(jacobian)
    scale = np.sqrt(np.diag(expected))
    ours = np.linalg.inv(information)[:8, :8]
    np.testing.assert_allclose(
        ours / np.outer(scale, scale), expected / np.outer(scale, scale), atol=1e-4
    )


def test_estimated_pixel_noise_makes_chi_squared_its_expectation() -> None:
    """Against scipy's root of chi^2(sigma) = degrees of freedom."""
    flight = two_views()
    dof = 2 * int(flight.valid.sum()) - 8 - 6 * len(flight.uv)
    root = brentq(lambda log: 2 * full_fit(flight, np.exp(log)).cost - dof, np.log(0.05), np.log(5),
                  xtol=1e-3)  # fmt: skip
    assert our_fit(flight, None).sigma_px == pytest.approx(np.exp(root), rel=2e-3)


@pytest.mark.parametrize("sigma_px", [0.5, 3.0])
def test_pixel_noise_is_found_when_it_dominates(sigma_px: float) -> None:
    """Within three standard deviations, 1 / sqrt(2 dof) each."""
    flight = two_views(point_sigma=1e-5, n_points=120, sigma_px=sigma_px)
    dof = 2 * int(flight.valid.sum()) - 20
    assert our_fit(flight, None).sigma_px == pytest.approx(sigma_px, rel=3 / np.sqrt(2 * dof))


def test_points_known_exactly_are_an_ordinary_adjustment() -> None:
    """With the points nailed down, the answer is the fit that takes them as exact."""
    flight = two_views(point_sigma=1e-7)
    ours = our_fit(flight, SIGMA_PX)
    exact = least_squares(
        lambda y: full_residuals(
            flight, np.concatenate([y, flight.measured.ravel()]), SIGMA_PX
        )[: 2 * flight.valid.sum()],
        np.concatenate([flight.intrinsics.array / SCALE, np.zeros(12)]),
        jac="3-point", x_scale="jac", ftol=1e-15, xtol=1e-15, gtol=1e-15,
    )  # fmt: skip
    np.testing.assert_allclose(ours.theta[:4], exact.x[:4], rtol=1e-6)


def test_noise_of_the_points_is_worth_modelling() -> None:
    """Errors in sigmas of the fit that knows about them are of the size it says."""
    flight = simulated_cell()
    ours = our_fit(flight, SIGMA_PX)
    error = ours.theta - flight.intrinsics.array
    distance = error @ np.linalg.solve(ours.covariance, error)
    assert distance < 8 + 4 * np.sqrt(2 * 8)
