"""The parts of the smooth lens against closed forms, finite differences and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gamma, kv

from influx_wrap.lut.smooth import hull
from influx_wrap.lut.smooth.fit import Measured
from influx_wrap.lut.smooth.grid_kernels import interpolate
from influx_wrap.lut.smooth.hyper import USUAL, OutputData
from influx_wrap.lut.smooth.outputs import ASPECT, Outputs
from influx_wrap.lut.smooth.places import Places
from influx_wrap.lut.smooth.posterior import condition
from influx_wrap.lut.smooth.prior import KERNELS, basis, correlation, covariance, linear_variance
from tests.lut.smooth.measured import settings, table_at

OUTPUTS = Outputs((3424, 2202), (8.25, 8.26))
VALUES = np.array(
    [
        [4300.0, 4310.0, 1700.0, 1110.0, -0.12, 0.3, 1e-4, -2e-4],
        [12000.0, 11950.0, 1720.0, 1090.0, 0.2, -4.0, 3e-4, 1e-4],
    ]
)
LFL = np.array([35.0, 98.0])


def test_outputs_and_back() -> None:
    back = OUTPUTS.intrinsics(OUTPUTS.outputs(VALUES, LFL), LFL)
    np.testing.assert_allclose(back, VALUES, rtol=1e-12)


def test_outputs_say_what_they_are() -> None:
    g = OUTPUTS.outputs(VALUES, LFL) * OUTPUTS.scale
    focal = np.sqrt(VALUES[:, 0] * VALUES[:, 1])
    corner = np.hypot(3424, 2202) / 2
    radius = corner / focal
    moved = focal * radius * (1 + VALUES[:, 4] * radius**2 + VALUES[:, 5] * radius**4) - corner
    np.testing.assert_allclose(g[:, 4], moved, rtol=1e-9)
    np.testing.assert_allclose(g[:, 0], LFL / (focal * 8.255e-3) - 1, atol=1e-6)
    np.testing.assert_allclose(g[:, 2], VALUES[:, 2] - 1711.5)


def test_slope_by_finite_differences() -> None:
    outputs = OUTPUTS.outputs(VALUES, LFL)
    slope = OUTPUTS.slope(VALUES, LFL)
    for j in range(8):
        step = np.zeros(8)
        step[j] = 1e-5
        up, down = OUTPUTS.intrinsics(outputs + step, LFL), OUTPUTS.intrinsics(outputs - step, LFL)
        np.testing.assert_allclose(slope[:, :, j], (up - down) / 2e-5, rtol=1e-6, atol=1e-9)


def test_correlations_have_their_closed_form() -> None:
    d = np.linspace(0.01, 4, 50)
    # Matern's, for any nu.
    nu = 4.5
    a = np.sqrt(2 * nu) * d
    matern = 2 ** (1 - nu) / gamma(nu) * a**nu * kv(nu, a)
    np.testing.assert_allclose(correlation("matern", d)[0], matern, rtol=1e-10)
    np.testing.assert_allclose(correlation("gauss", d)[0], np.exp(-(d**2) / 2))


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradient_of_the_likelihood(kernel: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (15, 3))
    evidence = OutputData(
        kernel, x, rng.normal(size=15), np.full(15, 0.1), USUAL[0], linear_variance(0)
    )
    hyper = np.log([0.4, 0.3, 0.2, 0.7, 0.9, 0.5, 1.2, 0.3])
    _, gradient = evidence.cost(hyper)
    for k in range(8):
        step = np.zeros(8)
        step[k] = 1e-4
        slope = (evidence.cost(hyper + step)[0] - evidence.cost(hyper - step)[0]) / 2e-4
        assert gradient[k] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def _posterior(kernel: str = "gauss"):  # type: ignore[no-untyped-def]
    table = table_at(*settings(4, 3))
    measured, places = Measured.of(table), Places.of(table, 0.2)
    x = places.all(table.lfl_mm, table.fd_m)
    hyper = np.tile(np.log([0.3, 0.2, 0.1, 0.7, 0.9, 0.6, 1.1, 1e-3]), (8, 1))
    args = measured.values, measured.noise
    return condition(kernel, places, hyper, x, *args), x, hyper, *args


@pytest.mark.parametrize("kernel", KERNELS)
def test_posterior_by_brute_force(kernel: str) -> None:
    posterior, x, hyper, values, noise = _posterior(kernel)
    asked = posterior.coordinates.moved(np.array([[0.3, 0.0], [0.9, 1.2]]), 0.2)
    both = np.concatenate([x, asked])
    n, m = len(x), len(both)
    prior = np.zeros((8, m, 8, m))
    for j in range(8):
        wide = linear_variance(j)
        smooth = 0 if j == ASPECT else covariance(kernel, hyper[j], both, both)
        prior[j, :, j] = smooth + basis(both) @ np.diag(wide) @ basis(both).T
    own = np.zeros((8, n, 8, n))
    for k in range(n):
        own[:, k, :, k] = noise[k] + np.diag(np.exp(2 * hyper[:, 7]) + 1e-8)
    total = (prior[:, :n, :, :n] + own).reshape(8 * n, 8 * n)
    between = prior[:, n:, :, :n].reshape(16, 8 * n)
    mean = (between @ np.linalg.solve(total, values.T.ravel())).reshape(8, 2).T
    rest = prior[:, n:, :, n:].reshape(16, 16) - between @ np.linalg.solve(total, between.T)
    spread = rest.reshape(8, 2, 8, 2)
    found, found_spread = posterior.mean_and_covariance(asked)
    np.testing.assert_allclose(found, mean, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(posterior.mean(asked), mean, rtol=1e-6, atol=1e-7)
    for k in range(2):
        scale = np.sqrt(np.diag(spread[:, k, :, k]))
        wanted = spread[:, k, :, k] / np.outer(scale, scale)
        np.testing.assert_allclose(
            found_spread[k] / np.outer(scale, scale), wanted, rtol=0, atol=1e-4
        )


def test_leaving_out_by_really_leaving_out() -> None:
    posterior, x, hyper, values, noise = _posterior()
    difference, spread = posterior.left_out()
    for row in (0, 5, 11):
        rest = np.arange(len(x)) != row
        args = hyper, x[rest], values[rest], noise[rest]
        others = condition("gauss", posterior.coordinates, *args)
        mean, own = others.mean_and_covariance(x[[row]])
        np.testing.assert_allclose(difference[row], values[row] - mean[0], rtol=1e-4, atol=1e-6)
        wanted = own[0] + noise[row] + np.diag(np.exp(2 * hyper[:, 7]) + 1e-8)
        np.testing.assert_allclose(np.diag(spread[row]), np.diag(wanted), rtol=1e-3)


def test_a_polynomial_of_fifth_order_is_interpolated_exactly() -> None:
    x, y = np.meshgrid(np.arange(9.0), np.arange(8.0), indexing="ij")
    nodes = np.stack([x**5 - 3 * y**4 * x, 2 + y**5], axis=-1)
    at = np.array([[0.0, 0.0], [3.3, 4.7], [8.0, 7.0], [7.9, 0.1]])
    found = interpolate(nodes, at[:, 0], at[:, 1])
    a, b = at.T
    wanted = np.column_stack([a**5 - 3 * b**4 * a, 2 + b**5])
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-8)


def test_infinity_is_an_ordinary_place_and_offsets_agree() -> None:
    places = Places((20.0, 100.0), 1.5, 0.4)
    fd = np.array([1.3, 1.5, 4.0, np.inf])
    x = places.all(np.full(4, 50.0), fd)
    np.testing.assert_allclose(x[[1, 3], 1], [1.0, 0.0])
    for offset in (0.0, 0.6):
        other = Places((20.0, 100.0), 1.5, offset).all(np.full(4, 50.0), fd)
        np.testing.assert_allclose(places.moved(x, offset), other, rtol=1e-12, atol=1e-15)


def test_hull() -> None:
    square = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    places = np.array([[0.5, 0.5], [1.0, 1.0], [1.01, 0.5], [np.nan, 0.5]])
    assert hull.make_hull(square).holds(places).tolist() == [True, True, False, False]
    line = np.array([[2.0, 0.1], [2.0, 0.5], [2.0, 0.3]])
    on_line = np.array([[2.0, 0.2], [2.0, 0.6], [2.1, 0.2]])
    assert hull.make_hull(line).holds(on_line).tolist() == [True, False, False]
