"""Lattices of corners, and the kernel against plain numpy."""

import cv2
import numpy as np
import pytest

from influx_wrap.model.target import Checkerboard
from influx_wrap.observe.crossing_kernels import RING, RING_PX, crossing_response
from influx_wrap.observe.crossings import find_lattices
from tests.observe.test_checkerboard import picture


def plain_response(image: np.ndarray, least: int) -> np.ndarray:
    """The response by shifting whole pictures."""
    grey = image.astype(int)
    height, width = grey.shape
    inner = slice(RING_PX, height - RING_PX), slice(RING_PX, width - RING_PX)

    def shifted(x: int, y: int) -> np.ndarray:
        return np.roll(grey, (-y, -x), axis=(0, 1))[inner]

    one = np.array([shifted(x, y) for x, y in RING])
    other = np.array([shifted(-x, -y) for x, y in RING])
    turned = np.abs((one + other)[:4] - (one + other)[4:])
    middle = sum(shifted(x, y) for x, y in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)))
    score = turned.sum(axis=0) - np.abs(one - other).sum(axis=0)
    score -= np.abs((one + other).sum(axis=0) - 16 * middle // 5)
    response = np.zeros(grey.shape, dtype=int)
    strong = np.maximum(turned[0], turned[2]) >= 2 * least
    response[inner] = np.where(strong, np.maximum(score, 0), 0)
    return response


def test_the_kernel_says_what_numpy_says() -> None:
    image = picture(Checkerboard(6, 5, 0.06, 0.06))[0][250:450, 350:650]
    noisy = cv2.add(image, np.random.default_rng(0).integers(0, 60, image.shape, dtype=np.uint8))
    for grey in (image, noisy):
        response = crossing_response(grey, 12)
        assert (response == plain_response(grey, 12)).all()
        assert response.max() > 500


@pytest.mark.parametrize(("cols", "rows"), [(10, 7), (5, 4), (3, 3)])
def test_a_board_is_one_lattice(cols: int, rows: int) -> None:
    board = Checkerboard(cols, rows, 0.06, 0.06)
    image, uv = picture(board, (0.5, -0.4), 0.9)
    lattice = find_lattices(image)[0]
    assert sorted(lattice.shape[:2]) == sorted((rows, cols))
    distance = np.linalg.norm(lattice.reshape(-1, 1, 2) - uv, axis=2)
    assert distance.min(axis=1).max() < 2
    # Along a row of the lattice the board's corners follow each other.
    numbers = distance.argmin(axis=1).reshape(lattice.shape[:2])
    steps = np.unique(np.abs(np.diff(numbers, axis=1)))
    assert steps.tolist() in ([1], [cols])


def test_pictures_without_a_board_have_no_large_lattice() -> None:
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 255, (480, 640), dtype=np.uint8)
    stripes = np.tile(np.repeat([20, 230], 20), 16)[None].repeat(480, axis=0).astype(np.uint8)
    for image in (noise, cv2.GaussianBlur(noise, (0, 0), 3), stripes, noise[:8, :8]):
        assert max((lattice[..., 0].size for lattice in find_lattices(image)), default=0) < 30
