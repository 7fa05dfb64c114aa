"""What is said to be too small to be seen is what the detectors cannot find."""

import cv2
import numpy as np
import pytest

from influx_wrap.formats.charuco import charuco_board
from influx_wrap.model.pattern import cell_pattern
from influx_wrap.model.target import AprilGrid, Charuco, Checkerboard
from influx_wrap.observe.detectors import detect_usable
from influx_wrap.plan.boards import MIN_SEEN_PX, MIN_SEEN_SQUARE_PX, cell_mm, too_small

Board = AprilGrid | Charuco | Checkerboard
FX_PX = 1000.0
FINE = 8


def picture(board: Board, cell_px: float) -> np.ndarray:
    """A photograph from straight on, turned a little, with blur and noise."""
    pattern = cell_pattern(board)
    px_per_m = 1e3 * cell_px / cell_mm(board)
    sides_px = [px_per_m * float(np.ptp(lines)) for lines in (pattern.y_m, pattern.x_m)]
    height, width = (int(side) + 80 for side in sides_px)
    y, x = (np.indices((height * FINE, width * FINE)) + 0.5) / FINE - 40.4
    middle_y, middle_x = sides_px[0] / 2, sides_px[1] / 2
    c, s = np.cos(0.12), np.sin(0.12)
    across = middle_x + (x - middle_x) * c + (y - middle_y) * s
    down = middle_y - (x - middle_x) * s + (y - middle_y) * c
    col = np.searchsorted(pattern.x_m - pattern.x_m[0], across / px_per_m) - 1
    row = np.searchsorted(pattern.y_m - pattern.y_m[0], down / px_per_m) - 1
    black = np.pad(pattern.black, 1)[
        np.clip(row + 1, 0, len(pattern.y_m)), np.clip(col + 1, 0, len(pattern.x_m))
    ]
    fine = cv2.GaussianBlur(np.where(black, 40.0, 210.0)[::-1], (0, 0), 0.5 * FINE)
    small = cv2.resize(fine, (width, height), interpolation=cv2.INTER_AREA)
    noise = np.random.default_rng(0).normal(0, 2, small.shape)
    return np.clip(np.rint(small + noise), 0, 255).astype(np.uint8)


@pytest.mark.parametrize(
    ("board", "least_px"),
    [
        (AprilGrid(6, 6, 0.05, 0.3), MIN_SEEN_PX),
        (AprilGrid(6, 6, 0.05, 0.3, border_cells=1), MIN_SEEN_PX),
        (charuco_board(8, 6, 0.03, 0.0225, "DICT_5X5_250"), MIN_SEEN_PX),
        (Checkerboard(8, 5, 0.03, 0.03), MIN_SEEN_SQUARE_PX),
    ],
)
def test_the_limit_is_that_of_the_detector(board: Board, least_px: float) -> None:
    for cell_px, is_seen in ((1.01 * least_px, True), (0.5 * least_px, False)):
        found = detect_usable(board, picture(board, cell_px))
        assert found is not None
        assert (found.found.mean() > 0.9) == is_seen
        distance_m = FX_PX * cell_mm(board) / 1e3 / cell_px
        assert (too_small(board, (distance_m, FX_PX)) == []) == is_seen


def test_nearer_or_larger_is_enough() -> None:
    """The two cures of the sentence, taken from it."""
    board = Checkerboard(8, 5, 0.02, 0.02)
    (fault,) = too_small(board, (5.0, FX_PX))
    nearer_m = float(fault.partition("go nearer than ")[2].split()[0])
    larger = float(fault.partition("take a board ")[2].split()[0])
    assert too_small(board, (0.99 * nearer_m, FX_PX)) == []
    square_m = 1.01 * larger * 0.02
    assert too_small(Checkerboard(8, 5, square_m, square_m), (5.0, FX_PX)) == []
