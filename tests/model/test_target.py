"""Target points by hand-written coordinates, and the shapes of a bent board."""

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.model.target import (
    AprilGrid,
    Checkerboard,
    PointCloud,
    bow_basis,
    is_collinear,
    is_planar,
)


def test_aprilgrid_numbering_by_hand() -> None:
    grid = AprilGrid(tag_cols=3, tag_rows=2, tag_size_m=0.1, tag_spacing=0.5)
    assert grid.grid_shape == (4, 6)
    assert grid.points.shape == (24, 3)
    expected = {
        0: (0.0, 0.0),
        1: (0.1, 0.0),
        2: (0.15, 0.0),
        5: (0.4, 0.0),
        6: (0.0, 0.1),
        12: (0.0, 0.15),
        15: (0.25, 0.15),
        23: (0.4, 0.25),
    }
    for index, xy in expected.items():
        np.testing.assert_allclose(grid.points[index], (*xy, 0), atol=1e-15)


def test_aprilgrid_tags_by_hand() -> None:
    grid = AprilGrid(tag_cols=3, tag_rows=2, tag_size_m=0.1, tag_spacing=0.5)
    assert grid.tag_of_point.tolist() == [
        *(0, 0, 1, 1, 2, 2),
        *(0, 0, 1, 1, 2, 2),
        *(3, 3, 4, 4, 5, 5),
        *(3, 3, 4, 4, 5, 5),
    ]


def test_the_rigs_board_has_352_points() -> None:
    grid = AprilGrid(tag_cols=11, tag_rows=8, tag_size_m=0.006, tag_spacing=0.3)
    assert len(grid.points) == 352
    np.testing.assert_allclose(grid.points[-1], [0.084, 0.0606, 0])


def test_checkerboard_by_hand() -> None:
    board = Checkerboard(cols=3, rows=2, col_spacing_m=0.1, row_spacing_m=0.2)
    expected = [[0, 0], [0.1, 0], [0.2, 0], [0, 0.2], [0.1, 0.2], [0.2, 0.2]]
    np.testing.assert_allclose(board.points[:, :2], expected)


@pytest.mark.parametrize(
    "values", [(0, 2, 0.1, 0.3), (2, 0, 0.1, 0.3), (2, 2, 0.0, 0.3), (2, 2, 0.1, -0.3)]
)
def test_senseless_aprilgrids_are_refused(values: tuple[int, int, float, float]) -> None:
    with pytest.raises(InputError):
        AprilGrid(*values)


def test_senseless_checkerboards_are_refused() -> None:
    with pytest.raises(InputError):
        Checkerboard(1, 5, 0.1, 0.1)
    with pytest.raises(InputError):
        Checkerboard(5, 5, 0.1, float("nan"))


def test_senseless_point_clouds_are_refused() -> None:
    points = np.random.default_rng(0).normal(size=(5, 3))
    with pytest.raises(InputError, match="at least 4 points"):
        PointCloud(points[:3])
    with pytest.raises(InputError, match="at least 4 points"):
        PointCloud(points[:, :2])
    with pytest.raises(InputError, match="point_sigma"):
        PointCloud(points, point_sigma=-1.0)
    with pytest.raises(InputError, match="unit_m"):
        PointCloud(points, unit_m=0.0)
    covariance = np.tile(np.eye(3), (5, 1, 1))
    with pytest.raises(InputError, match="not both"):
        PointCloud(points, point_sigma=0.1, point_covariance=covariance)
    with pytest.raises(InputError, match="as many"):
        PointCloud(points, point_covariance=covariance[:4])
    covariance[2] = [[1, 2, 0], [2, 1, 0], [0, 0, 1]]
    with pytest.raises(InputError, match="of point 2"):
        PointCloud(points, point_covariance=covariance)
    points[3, 1] = np.nan
    with pytest.raises(InputError, match="point 3"):
        PointCloud(points)


def test_planar_and_collinear() -> None:
    rng = np.random.default_rng(1)
    cloud = rng.normal(size=(10, 3))
    plane = cloud[:, :1] * [1, 2, 3] + cloud[:, 1:2] * [0, 1, -1]
    line = cloud[:, :1] * [1, 2, 3] + [5, 5, 5]
    assert not is_planar(cloud)
    assert is_planar(plane)
    assert not is_collinear(plane)
    assert is_collinear(line)


def test_bow_basis_by_hand() -> None:
    points = np.array([[0, 0, 0], [4, 0, 0], [2, 1, 0], [0, 2, 0], [4, 2, 0], [3, 1, 0]], float)
    expected = [[0, 0, 1], [0, 0, -1], [1, 1, 0], [0, 0, -1], [0, 0, 1], [0.75, 1, 0]]
    np.testing.assert_allclose(bow_basis(points), expected, atol=1e-15)
