"""How well the intrinsics are known, and what that means in pixels."""

from __future__ import annotations

import numpy as np

from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.intrinsics import Intrinsics, project_with_jacobians, unproject
from influx_wrap.model.result import ProjectionUncertainty


def inverse_information(information: FloatArray) -> FloatArray:
    """Inverse (n, n) of an information matrix whose parameters have different units.

    Directions without any information get a huge but finite variance.
    """
    diagonal = np.diag(information)
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(information * scale[:, None] * scale[None, :])
    values = np.maximum(values, 1e-15 * values[-1])
    inverse = (vectors / values) @ vectors.T
    result: FloatArray = inverse * scale[:, None] * scale[None, :]
    return (result + result.T) / 2


def projection_uncertainty(
    intrinsics: Intrinsics, covariance: FloatArray, image_size: tuple[int, int], steps: int = 21
) -> ProjectionUncertainty:
    """Propagate a covariance (8, 8) of the intrinsics to a grid over the image."""
    _, free, fixed = _on_grid(intrinsics, covariance, image_size, steps)
    return ProjectionUncertainty(
        worst_px=float(free.max()),
        median_px=float(np.median(free)),
        fixed_worst_px=float(fixed.max()),
        fixed_median_px=float(np.median(fixed)),
    )


def uncertainty_map(
    intrinsics: Intrinsics, covariance: FloatArray, image_size: tuple[int, int], steps: int = 21
) -> FloatArray:
    """(steps, steps) what ``worst_px`` and ``median_px`` are of, in pixels, row by row.

    The grid runs from the centre of the first pixel to that of the last. NaN where no
    direction leads to.
    """
    reachable, free, _ = _on_grid(intrinsics, covariance, image_size, steps)
    values = np.full(steps * steps, np.nan)
    values[reachable] = free
    return values.reshape(steps, steps)


def _on_grid(
    intrinsics: Intrinsics, covariance: FloatArray, image_size: tuple[int, int], steps: int
) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Which pixels (steps * steps,) can be reached, and the uncertainty of these in pixels:
    up to a common rotation, and with a fixed orientation."""
    width, height = image_size
    u, v = np.meshgrid(np.linspace(0, width - 1, steps), np.linspace(0, height - 1, steps))
    rays, valid = unproject(intrinsics, np.stack([u, v], axis=-1).reshape(-1, 2))
    rays = rays[valid]
    points = np.concatenate([rays, np.ones((len(rays), 1))], axis=1)
    _, _, d_theta, d_point = project_with_jacobians(intrinsics, points)
    # A small rotation w moves a point by w x P: d uv = (P x d_point) . w.
    d_rotation = np.cross(points[:, None, :], d_point)
    flat_theta, flat_rotation = d_theta.reshape(-1, 8), d_rotation.reshape(-1, 3)
    undone = flat_rotation @ np.linalg.lstsq(flat_rotation, flat_theta, rcond=None)[0]
    free = _worst_direction(flat_theta - undone, covariance)
    fixed = _worst_direction(flat_theta, covariance)
    return valid, free, fixed


def _worst_direction(jacobian: FloatArray, covariance: FloatArray) -> FloatArray:
    """Square root of the larger eigenvalue of every point's 2 x 2 covariance."""
    j = jacobian.reshape(-1, 2, 8)
    blocks = j @ covariance @ np.swapaxes(j, 1, 2)
    largest: FloatArray = np.sqrt(np.maximum(np.linalg.eigvalsh(blocks)[:, 1], 0))
    return largest
