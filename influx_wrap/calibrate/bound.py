"""The Cramér-Rao bound: how good an unbiased calibration of these observations can be.

Computed from the full Fisher information at the true parameters with the true noise,
poses and whatever else is unknown included. Only simulations know it.
"""

from __future__ import annotations

import numpy as np

from influx_wrap.calibrate import kernels
from influx_wrap.calibrate.points import point_information
from influx_wrap.calibrate.problem import pack
from influx_wrap.calibrate.uncertainty import inverse_information
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import PointCloud
from influx_wrap.model.truth import Truth


def cramer_rao(observations: Observations, truth: Truth, *, bow: bool = False) -> FloatArray:
    """Covariance (8, 8) of the best unbiased estimate of the intrinsics.

    Displaced corners carry no information. With ``bow`` the shape of the board is one
    of the unknowns; measured points (a drone's) are unknowns always.
    """
    rotations = truth.rotations.reshape(-1, 9)
    poses = np.concatenate([rotations, truth.translations], axis=1)
    valid = observations.valid & ~truth.outliers
    target = observations.target
    sigma_px = truth.corner_sigma_px
    if isinstance(target, PointCloud) and target.covariance is not None:
        information = point_information(
            truth.intrinsics, poses, truth.target_points, valid, sigma_px, target.covariance
        )
        return inverse_information(information)[:8, :8]

    problem = pack(observations)
    weights = problem.weights.copy()
    view = np.broadcast_to(problem.view_of_chunk[:, None], problem.point.shape)
    weights[(problem.point >= 0) & ~valid[view, problem.point]] = 0.0
    n_bow = 3 if bow else 0
    size = 8 + n_bow + 6
    h, g = np.empty((len(poses), size, size)), np.empty((len(poses), size))
    kernels.linearise_views(
        truth.intrinsics.array, truth.bow_m, n_bow, poses, problem.data, weights,
        problem.count, problem.first, h, g,
    )  # fmt: skip
    s, r = np.empty((size - 6, size - 6)), np.empty(size - 6)
    w, c = np.empty((len(poses), 6, size - 6)), np.empty((len(poses), 6))
    kernels.reduce_views(h, g, size - 6, np.zeros_like(g), s, r, w, c)
    return sigma_px**2 * inverse_information(s)[:8, :8]
