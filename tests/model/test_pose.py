"""Rotations against OpenCV, and poses of points."""

import cv2
import numpy as np
import pytest

from influx_wrap.model.pose import rotation_matrix, skew, transform


@pytest.mark.parametrize("scale", [0.0, 1e-12, 1e-6, 1e-3, 1.0, 3.1])
def test_rotation_matrix_agrees_with_opencv(scale: float) -> None:
    vectors = scale * np.random.default_rng(0).normal(size=(5, 3))
    matrices = rotation_matrix(vectors)
    for vector, matrix in zip(vectors, matrices, strict=True):
        np.testing.assert_allclose(matrix, cv2.Rodrigues(vector)[0], atol=1e-12)


def test_skew_is_the_cross_product() -> None:
    a, b = np.random.default_rng(1).normal(size=(2, 4, 3))
    np.testing.assert_allclose(np.einsum("nij,nj->ni", skew(a), b), np.cross(a, b))


def test_transform_poses_every_point_in_every_view() -> None:
    rng = np.random.default_rng(2)
    rotations, translations = rotation_matrix(rng.normal(size=(3, 3))), rng.normal(size=(3, 3))
    points = rng.normal(size=(5, 3))
    posed = transform(rotations, translations, points)
    assert posed.shape == (3, 5, 3)
    np.testing.assert_allclose(posed[1, 4], rotations[1] @ points[4] + translations[1])
