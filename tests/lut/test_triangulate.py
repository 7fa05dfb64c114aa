"""Triangulation against scipy's, and by counting."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull, Delaunay

from influx_wrap.lut.triangulate import triangulate


def doubled_area(points: np.ndarray, triangle: tuple[int, int, int]) -> float:
    a, b, c = points[list(triangle)]
    return float((b - a)[0] * (c - a)[1] - (b - a)[1] * (c - a)[0])


@pytest.mark.parametrize("n", [3, 4, 7, 30, 120])
def test_delaunay_s_triangles(n: int) -> None:
    points = np.random.default_rng(n).uniform(size=(n, 2))
    ours = {frozenset(triangle) for triangle in triangulate(points)}
    assert ours == {frozenset(simplex) for simplex in Delaunay(points).simplices.tolist()}


@pytest.mark.parametrize("bend", [0.0, 1e-16, 1e-9])
def test_rows_that_are_almost_straight_leave_no_gap(bend: float) -> None:
    x, y = np.meshgrid(np.arange(8.0), np.arange(6.0))
    points = np.column_stack([x.ravel() / 3, y.ravel() / 7 + bend * np.sin(x.ravel())])
    areas = [doubled_area(points, triangle) for triangle in triangulate(points)]
    assert min(areas) > 0
    np.testing.assert_allclose(sum(areas) / 2, ConvexHull(points).volume, rtol=1e-12)


def test_chosen_edges_are_kept() -> None:
    points = np.random.default_rng(3).uniform(size=(40, 2))
    left, right = int(points[:, 0].argmin()), int(points[:, 0].argmax())
    triangles = triangulate(points, [(left, right)])
    assert any({left, right} <= set(triangle) for triangle in triangles)
    areas = [doubled_area(points, triangle) for triangle in triangles]
    assert min(areas) > 0
    np.testing.assert_allclose(sum(areas) / 2, ConvexHull(points).volume, rtol=1e-12)


def test_edges_that_cross_cannot_both_be_kept() -> None:
    square = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    with pytest.raises(ValueError, match="cannot be kept"):
        # The second runs through the point in the middle.
        triangulate(np.vstack([square, [0.5, 0.5]]), [(0, 2)])


def test_points_on_a_line_have_no_triangles() -> None:
    assert triangulate(np.array([[0.0, 0], [1, 1], [2, 2]])) == []
