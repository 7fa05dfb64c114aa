"""The printed pattern, as cells, as outlines and point by point."""

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.charuco import charuco_board
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.pattern import black_outlines, cell_pattern
from influx_wrap.model.tag36h11 import tag_cells
from influx_wrap.model.target import AprilGrid, Checkerboard, PointCloud, Target
from tests.boards import ink

GRID = AprilGrid(tag_cols=5, tag_rows=3, tag_size_m=0.06, tag_spacing=0.3)
TARGETS = [
    GRID,
    AprilGrid(tag_cols=2, tag_rows=4, tag_size_m=0.012, tag_spacing=0.05),
    AprilGrid(tag_cols=3, tag_rows=2, tag_size_m=0.1, tag_spacing=0.0),
    AprilGrid(tag_cols=1, tag_rows=1, tag_size_m=0.1, tag_spacing=1.7),
    AprilGrid(tag_cols=3, tag_rows=2, tag_size_m=0.1, tag_spacing=0.3, border_cells=1),
    charuco_board(5, 4, 0.04, 0.03, "4X4_50"),
    Checkerboard(cols=7, rows=4, col_spacing_m=0.03, row_spacing_m=0.04),
]


@pytest.mark.parametrize("target", TARGETS)
def test_outlines_surround_the_ink(target: Target) -> None:
    """A point is black exactly if the outlines go round it once."""
    pattern = cell_pattern(target)
    rng = np.random.default_rng(1)
    margin = 0.1 * np.ptp(pattern.x_m)
    x = rng.uniform(pattern.x_m[0] - margin, pattern.x_m[-1] + margin, 5000)
    y = rng.uniform(pattern.y_m[0] - margin, pattern.y_m[-1] + margin, 5000)
    winding = np.zeros(len(x), dtype=int)
    for outline in black_outlines(target):
        (x0, y0), (x1, y1) = outline.T, np.roll(outline, -1, axis=0).T
        upright = x0 == x1
        assert (upright ^ (y0 == y1)).all()
        assert (upright != np.roll(upright, 1)).all()
        for at, low, high in zip(x0[upright], y0[upright], y1[upright], strict=True):
            crosses = (x < at) & (y >= min(low, high)) & (y < max(low, high))
            winding += crosses * int(np.sign(high - low))
    np.testing.assert_array_equal(winding, ink(target, x, y))


@pytest.mark.parametrize("target", TARGETS)
def test_black_cells_are_joined_but_not_across_a_corner(target: Target) -> None:
    """As many outlines around black as OpenCV finds 4-connected black regions."""
    padded = np.pad(cell_pattern(target).black, 1).astype(np.uint8)
    n_black = cv2.connectedComponents(padded, connectivity=4)[0] - 1
    n_white = cv2.connectedComponents(1 - padded, connectivity=8)[0] - 1
    areas = np.array([_signed_area(outline) for outline in black_outlines(target)])
    assert (areas > 0).sum() == n_black
    assert (areas < 0).sum() == n_white - 1


def _signed_area(outline: FloatArray) -> float:
    x, y = outline.T
    return float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))) / 2


@pytest.mark.parametrize("target", [t for t in TARGETS if getattr(t, "tag_spacing", 1) > 0])
def test_every_point_is_a_saddle(target: AprilGrid | Checkerboard) -> None:
    step = 1e-4
    x, y = target.points[:, 0], target.points[:, 1]
    above_right, below_left = ink(target, x + step, y + step), ink(target, x - step, y - step)
    above_left, below_right = ink(target, x - step, y + step), ink(target, x + step, y - step)
    np.testing.assert_array_equal(above_right, below_left)
    np.testing.assert_array_equal(above_left, below_right)
    assert (above_right != above_left).all()


def test_tags_stand_where_the_points_are() -> None:
    centres = (np.arange(10) + 0.5) / 10 * GRID.tag_size_m
    for tag_id in range(15):
        x, y = GRID.points[GRID.tag_of_point == tag_id][0, :2]
        printed = ink(GRID, x + centres, (y + centres[::-1])[:, None])
        np.testing.assert_array_equal(printed, tag_cells(tag_id))


def test_squares_stand_around_the_outside_too() -> None:
    """As on calib.io's print: the pattern is one gap wider than the tags on every side."""
    pattern = cell_pattern(GRID)
    gap = 0.018
    np.testing.assert_allclose(pattern.x_m[[0, -1]], [-gap, 5 * 0.06 + 4 * gap + gap])
    np.testing.assert_allclose(pattern.y_m[[0, -1]], [-gap, 3 * 0.06 + 2 * gap + gap])
    assert ink(GRID, -gap / 2, -gap / 2)
    assert not ink(GRID, -gap / 2, 0.03)
    assert not ink(GRID, -1.01 * gap, -gap / 2)


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(InputError, match="600 tags"):
        cell_pattern(AprilGrid(tag_cols=30, tag_rows=20, tag_size_m=0.1, tag_spacing=0.3))
    with pytest.raises(InputError, match="only an AprilGrid"):
        cell_pattern(PointCloud(np.eye(4, 3)))


@pytest.mark.parametrize(
    ("cols", "rows", "legacy"), [(7, 5, False), (6, 8, True), (6, 8, False), (5, 7, True)]
)
def test_a_charuco_board_is_opencv_s(cols: int, rows: int, legacy: bool) -> None:
    """Markers of 7 cells of 4 px in squares of 40 px: every cell is whole pixels."""
    target = charuco_board(cols, rows, 0.04, 0.028, "5X5_100", legacy=legacy)
    pattern = cell_pattern(target)
    x, y = (-0.04 + 0.001 * (np.arange(40 * n) + 0.5) for n in (cols, rows))
    row, col = np.searchsorted(pattern.y_m, y) - 1, np.searchsorted(pattern.x_m, x) - 1
    drawn = np.where(pattern.black[row[:, None], col], 0, 255)[::-1]
    markers = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_5X5_100)
    board = cv2.aruco.CharucoBoard((cols, rows), 0.04, 0.028, markers)
    board.setLegacyPattern(legacy)
    np.testing.assert_array_equal(drawn, board.generateImage((40 * cols, 40 * rows)))
