"""The printed pattern, as cells, as rectangles and point by point."""

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.model.pattern import black_rectangles, cell_pattern, ink
from influx_wrap.model.tag36h11 import tag_cells
from influx_wrap.model.target import AprilGrid, Checkerboard, PointCloud, Target

GRID = AprilGrid(tag_cols=5, tag_rows=3, tag_size_m=0.06, tag_spacing=0.3)
TARGETS = [
    GRID,
    AprilGrid(tag_cols=2, tag_rows=4, tag_size_m=0.012, tag_spacing=0.05),
    AprilGrid(tag_cols=3, tag_rows=2, tag_size_m=0.1, tag_spacing=0.0),
    AprilGrid(tag_cols=1, tag_rows=1, tag_size_m=0.1, tag_spacing=1.7),
    Checkerboard(cols=7, rows=4, col_spacing_m=0.03, row_spacing_m=0.04),
]


@pytest.mark.parametrize("target", TARGETS)
def test_rectangles_cover_the_ink(target: Target) -> None:
    pattern = cell_pattern(target)
    rng = np.random.default_rng(1)
    margin = 0.1 * np.ptp(pattern.x_m)
    x = rng.uniform(pattern.x_m[0] - margin, pattern.x_m[-1] + margin, 5000)
    y = rng.uniform(pattern.y_m[0] - margin, pattern.y_m[-1] + margin, 5000)
    x0, y0, x1, y1 = black_rectangles(target).T
    covered = (x >= x0[:, None]) & (x < x1[:, None]) & (y >= y0[:, None]) & (y < y1[:, None])
    np.testing.assert_array_equal(ink(target, x, y), covered.any(axis=0))


@pytest.mark.parametrize("target", TARGETS)
def test_adjacent_black_cells_share_a_rectangle(target: Target) -> None:
    """Nothing is left for a smoothing viewer to draw a seam along."""
    pattern = cell_pattern(target)
    rectangles = black_rectangles(target)
    assert (rectangles[:, :2] < rectangles[:, 2:]).all()
    assert len(np.unique(rectangles, axis=0)) == len(rectangles)
    xc, yc = ((line[1:] + line[:-1]) / 2 for line in (pattern.x_m, pattern.y_m))
    x0, y0, x1, y1 = rectangles.T
    in_x = (xc[:, None] > x0) & (xc[:, None] < x1)
    in_y = (yc[:, None] > y0) & (yc[:, None] < y1)
    for row, col in np.argwhere(pattern.black[:, :-1] & pattern.black[:, 1:]):
        assert (in_y[row] & in_x[col] & in_x[col + 1]).any()
    for row, col in np.argwhere(pattern.black[:-1] & pattern.black[1:]):
        assert (in_y[row] & in_y[row + 1] & in_x[col]).any()


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
