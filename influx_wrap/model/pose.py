"""Rigid poses as rotation matrices (..., 3, 3) and translations (..., 3).

A pose takes target points to camera space: P = R X + t.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from influx_wrap.model.arrays import FloatArray

TILTS_DEG = np.array([[0, 0, 0], [45, 0, 0], [-45, 0, 0], [0, 45, 0], [0, -45, 0]], dtype=float)
"""Rotation vectors (5, 3) of the paper's board orientations: parallel to the sensor, and
tilted either way about the picture's two axes."""


def skew(vectors: ArrayLike) -> FloatArray:
    """Cross-product matrices (..., 3, 3) of vectors (..., 3)."""
    v = np.asarray(vectors, dtype=float)
    matrix = np.zeros((*v.shape, 3))
    matrix[..., 0, 1], matrix[..., 0, 2] = -v[..., 2], v[..., 1]
    matrix[..., 1, 0], matrix[..., 1, 2] = v[..., 2], -v[..., 0]
    matrix[..., 2, 0], matrix[..., 2, 1] = -v[..., 1], v[..., 0]
    return matrix


def rotation_matrix(rotation_vectors: ArrayLike) -> FloatArray:
    """Rodrigues: rotation vectors (..., 3) in radians to matrices (..., 3, 3)."""
    w = np.asarray(rotation_vectors, dtype=float)
    angle = np.linalg.norm(w, axis=-1)[..., None, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        sine = np.where(angle > 1e-8, np.sin(angle) / angle, 1 - angle**2 / 6)
        versine = np.where(angle > 1e-4, (1 - np.cos(angle)) / angle**2, 0.5 - angle**2 / 24)
    cross = skew(w)
    result: FloatArray = np.eye(3) + sine * cross + versine * (cross @ cross)
    return result


def transform(rotations: ArrayLike, translations: ArrayLike, points: ArrayLike) -> FloatArray:
    """Points (T, 3) under poses (V, 3, 3), (V, 3): (V, T, 3)."""
    rotated = np.einsum("vij,tj->vti", np.asarray(rotations), np.asarray(points))
    result: FloatArray = rotated + np.asarray(translations)[:, None, :]
    return result
