"""The detector's kernels against plain numpy and scipy."""

import numpy as np
from scipy.optimize import least_squares
from scipy.special import ndtr

from influx_wrap.observe.corner_kernels import fit_corners, tile_extremes
from influx_wrap.observe.lattice import not_below

X_LINES = np.array([-3.0, 0.0, 1.0, 2.0, 3.0, 4.0])
Y_LINES = np.array([-3.0, 0.0, 1.0, 2.0])
CELLS = np.array(
    [
        [1, 1, 1, 1, 1, 1, 1],
        [1, -1, 1, 1, 1, 1, 1],
        [1, 1, -1, -1, -1, -1, 1],
        [1, 1, -1, -1, 1, -1, 1],
        [1, 1, -1, -1, -1, 1, 1],
    ],
    dtype=float,
)
RIGHT, UP = np.array([4.0, 0.7]), np.array([-0.5, -3.1])
HALF = np.array([1.6, 1.9])


def printed(u: np.ndarray, v: np.ndarray, corner: np.ndarray, blur_px: float) -> np.ndarray:
    """What the cells look like at pixels u, v, from their lines one by one."""
    to_board = np.linalg.inv(np.column_stack([RIGHT, UP]))
    s, t = np.einsum("ij,j...->i...", to_board, np.stack([u - corner[0], v - corner[1]]))
    blur_s, blur_t = blur_px * np.linalg.norm(to_board, axis=1)
    share_x = -np.diff([ndtr((s - x) / blur_s) for x in (-np.inf, *X_LINES, np.inf)], axis=0)
    share_y = -np.diff([ndtr((t - y) / blur_t) for y in (-np.inf, *Y_LINES, np.inf)], axis=0)
    return np.einsum("y...,yx,x...->...", share_y, CELLS, share_x)


def picture(corner: np.ndarray, blur_px: float, noise: float = 0.0) -> np.ndarray:
    u, v = np.meshgrid(np.arange(40.0), np.arange(36.0))
    values = 120 + 90 * printed(u, v, corner, blur_px)
    values += noise * np.random.default_rng(0).standard_normal(values.shape)
    return np.clip(values.round(), 0, 255).astype(np.uint8)


def fitted(image: np.ndarray, start: np.ndarray) -> np.ndarray:
    return fit_corners(
        image, start[None], RIGHT[None], UP[None], HALF[None], np.array([[1, 1]]),
        X_LINES, Y_LINES, CELLS, 1.3, 12,
    )[0]  # fmt: skip


def test_a_corner_is_found_where_it_was_drawn() -> None:
    corner = np.array([19.37, 17.82])
    answer = fitted(picture(corner, 1.1), corner + np.array([0.9, -0.7]))
    np.testing.assert_allclose(answer[:2], corner, atol=2e-3)
    np.testing.assert_allclose(answer[2:5], [90, 1.1, 1], rtol=5e-3)


def test_the_fit_is_that_of_scipy() -> None:
    """And the standard deviations are those of its Jacobian."""
    corner, noise = np.array([19.37, 17.82]), 6.0
    image = picture(corner, 1.1, noise)
    answer = fitted(image, corner)
    u, v = np.meshgrid(np.arange(40.0), np.arange(36.0))
    to_board = np.linalg.inv(np.column_stack([RIGHT, UP]))
    s, t = np.einsum("ij,j...->i...", to_board, np.stack([u - answer[0], v - answer[1]]))
    window = (np.abs(s) <= HALF[0]) & (np.abs(t) <= HALF[1])

    def misfit(p: np.ndarray) -> np.ndarray:
        return image[window] - p[2] - p[3] * printed(u[window], v[window], p[:2], p[4])

    best = least_squares(misfit, [*corner, 120, 90, 1.1], x_scale=[1, 1, 100, 100, 1])
    np.testing.assert_allclose(answer[:2], best.x[:2], atol=5e-3)
    variance = (misfit(best.x) ** 2).sum() / (window.sum() - 5)
    sigma = np.sqrt(np.diag(variance * np.linalg.inv(best.jac.T @ best.jac)))
    np.testing.assert_allclose(answer[5:], sigma[:2], rtol=0.05)


def test_no_corner_no_answer() -> None:
    flat = np.full((36, 40), 128, np.uint8)
    assert np.isnan(fitted(flat, np.array([19.0, 17.0]))).all()
    inverted = 255 - picture(np.array([19.0, 17.0]), 1.0)
    assert np.isnan(fitted(inverted, np.array([19.0, 17.0]))).all()
    beyond = fitted(picture(np.array([19.0, 17.0]), 1.0), np.array([-3.0, 500.0]))
    assert np.isnan(beyond).all()


def test_tiles() -> None:
    image = np.random.default_rng(1).integers(0, 255, (22, 31), dtype=np.uint8)
    low, high = tile_extremes(image, 4)
    blocks = image[:20, :28].reshape(5, 4, 7, 4)
    np.testing.assert_array_equal(low, blocks.min(axis=(1, 3)))
    np.testing.assert_array_equal(high, blocks.max(axis=(1, 3)))
    level = np.random.default_rng(2).integers(0, 255, (5, 7), dtype=np.uint8)
    light = not_below(image, level)
    dark = image[:20, :28] < np.kron(level, np.ones((4, 4), np.uint8))
    np.testing.assert_array_equal(light[:20, :28] == 0, dark)
    assert (light[20:] == 255).all()
    assert (light[:, 28:] == 255).all()
