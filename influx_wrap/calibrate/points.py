"""Point targets whose 3D points are measured, not exact (a drone's RTK fixes).

Ignoring the noise of the points treats a near point, where a millimetre is a large
angle, like a far one. Here the true points are unknowns too, each tied to its
measurement, and are eliminated from the normal equations like poses are for boards:

    minimise  sum |uv - project(theta, pose, X)|^2 / sigma_px^2 + sum (X - M)' C^-1 (X - M)

C, the covariance of a point, is known from the receiver (which is worse at heights than
along the ground); sigma_px is found such that the minimum equals its expectation, the
degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from influx_wrap.calibrate.adjust import Prior
from influx_wrap.calibrate.kernels import move_pose
from influx_wrap.calibrate.uncertainty import inverse_information
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.intrinsics import Intrinsics, project_with_jacobians
from influx_wrap.model.pose import skew, transform

SIGMA_PX_RANGE = (0.02, 20.0)
MAX_ITERATIONS = 60


@dataclass(frozen=True, eq=False)
class PointFit:
    """Intrinsics (8,), poses (V, 12), points (T, 3), noise level and covariance (8, 8)."""

    theta: FloatArray
    poses: FloatArray
    points: FloatArray
    sigma_px: float
    covariance: FloatArray
    converged: bool


@dataclass(frozen=True, eq=False)
class _State:
    theta: FloatArray
    poses: FloatArray
    points: FloatArray


def fit_points(
    measured: FloatArray,
    covariance: FloatArray,
    uv: FloatArray,
    valid: BoolArray,
    theta: FloatArray,
    poses: FloatArray,
    *,
    sigma_px: float | None = None,
    prior: Prior | None = None,
) -> PointFit:
    """Fit measured points (T, 3) with covariances (T, 3, 3) seen at uv (V, T, 2).

    With ``sigma_px`` None the pixel noise is estimated. ``prior`` is a wish for the eight
    intrinsics.
    """
    state = _State(theta.copy(), poses.copy(), measured.copy())
    prior = Prior(np.zeros(8), np.zeros(8)) if prior is None else prior
    data = (measured, np.asarray(np.linalg.inv(covariance)), uv, valid, prior)
    low, high = np.log(SIGMA_PX_RANGE)
    dof = 2 * int(valid.sum()) - 8 - 6 * len(uv)
    if sigma_px is None:
        for _ in range(14):
            middle = (low + high) / 2
            state, chi2, _, _ = _minimise(state, float(np.exp(middle)), *data)
            low, high = (middle, high) if chi2 > dof else (low, middle)
        sigma_px = float(np.exp((low + high) / 2))
    state, _, information, converged = _minimise(state, sigma_px, *data)
    return PointFit(
        theta=state.theta,
        poses=state.poses,
        points=state.points,
        sigma_px=sigma_px,
        covariance=inverse_information(information)[:8, :8],
        converged=converged,
    )


def point_information(
    intrinsics: Intrinsics,
    poses: FloatArray,
    points: FloatArray,
    valid: BoolArray,
    sigma_px: float,
    covariance: FloatArray,
) -> FloatArray:
    """Fisher information (8 + 6V, 8 + 6V) of intrinsics and poses with the points eliminated,
    whose covariances are (T, 3, 3)."""
    state = _State(intrinsics.array, poses, points)
    uv, weights = np.zeros((*valid.shape, 2)), np.asarray(np.linalg.inv(covariance))
    nothing = Prior(np.zeros(8), np.zeros(8))
    return _system(state, sigma_px, points, weights, uv, valid, nothing).information


@dataclass(frozen=True, eq=False)
class _System:
    """Reduced normal equations at a state, and what is needed to recover the points."""

    information: FloatArray
    gradient: FloatArray
    chi2: float
    point_inverse: FloatArray
    coupling: FloatArray
    point_gradient: FloatArray


def _residuals(state: _State, uv: FloatArray, valid: BoolArray) -> FloatArray:
    rotations = state.poses[:, :9].reshape(-1, 3, 3)
    camera = transform(rotations, state.poses[:, 9:], state.points)
    projected, _, _, _ = project_with_jacobians(Intrinsics.from_array(state.theta), camera)
    residual: FloatArray = (uv - projected)[valid]
    return residual


def _prior_chi2(state: _State, prior: Prior) -> float:
    return float(prior.information @ (state.theta - prior.mean) ** 2)


def _chi2(state: _State, sigma_px: float, measured: FloatArray, weights: FloatArray,
          uv: FloatArray, valid: BoolArray, prior: Prior) -> float:  # fmt: skip
    residual = _residuals(state, uv, valid)
    shift = state.points - measured
    value = float((residual**2).sum() / sigma_px**2) + _prior_chi2(state, prior)
    value += float(np.einsum("ni,nij,nj->", shift, weights, shift))
    return value if np.isfinite(value) else np.inf


def _system(state: _State, sigma_px: float, measured: FloatArray, weights: FloatArray,
            uv: FloatArray, valid: BoolArray, prior: Prior) -> _System:  # fmt: skip
    n_views, n_points = valid.shape
    size = 8 + 6 * n_views
    rotations = state.poses[:, :9].reshape(-1, 3, 3)
    camera = transform(rotations, state.poses[:, 9:], state.points)
    projected, _, d_theta, d_camera = project_with_jacobians(
        Intrinsics.from_array(state.theta), camera
    )
    view, point = np.nonzero(valid)
    d_camera = d_camera[valid] / sigma_px
    rotated = camera[valid] - state.poses[view, 9:]
    jacobian = np.zeros((len(view), 2, size))
    jacobian[:, :, :8] = d_theta[valid] / sigma_px
    d_pose = np.concatenate([-d_camera @ skew(rotated), d_camera], axis=2)
    columns = 8 + 6 * view[:, None] + np.arange(6)
    jacobian[np.arange(len(view))[:, None], :, columns] = np.swapaxes(d_pose, 1, 2)
    d_point = d_camera @ rotations[view]
    residual = ((uv - projected)[valid]) / sigma_px

    curvature = weights.copy()
    np.add.at(curvature, point, np.swapaxes(d_point, 1, 2) @ d_point)
    coupling = np.zeros((n_points, size, 3))
    np.add.at(coupling, point, np.swapaxes(jacobian, 1, 2) @ d_point)
    point_gradient = np.einsum("nij,nj->ni", weights, measured - state.points)
    np.add.at(point_gradient, point, np.einsum("nij,ni->nj", d_point, residual))

    inverse = np.linalg.inv(curvature)
    flat = jacobian.reshape(-1, size)
    eliminated = coupling @ inverse
    information = flat.T @ flat - np.einsum("nik,njk->ij", eliminated, coupling)
    gradient = flat.T @ residual.ravel() - np.einsum("nik,nk->i", eliminated, point_gradient)
    information[:8, :8] += np.diag(prior.information)
    gradient[:8] += prior.information * (prior.mean - state.theta)
    shift = state.points - measured
    chi2 = float((residual**2).sum() + np.einsum("ni,nij,nj->", shift, weights, shift))
    chi2 += _prior_chi2(state, prior)
    return _System(information, gradient, chi2, np.asarray(inverse), coupling, point_gradient)


def _moved(state: _State, system: _System, step: FloatArray) -> _State:
    poses = np.empty_like(state.poses)
    for view, pose in enumerate(state.poses):
        move_pose(pose, step[8 + 6 * view : 14 + 6 * view], poses[view])
    pull = system.point_gradient - np.einsum("njk,j->nk", system.coupling, step)
    points = state.points + np.einsum("njk,nk->nj", system.point_inverse, pull)
    return _State(state.theta + step[:8], poses, points)


def _minimise(state: _State, sigma_px: float, measured: FloatArray, weights: FloatArray,
              uv: FloatArray, valid: BoolArray, prior: Prior
              ) -> tuple[_State, float, FloatArray, bool]:  # fmt: skip
    """Levenberg-Marquardt on the reduced system; returns the state and its chi squared."""
    data = (measured, weights, uv, valid, prior)
    system = _system(state, sigma_px, *data)
    damping = 1e-6
    for _ in range(MAX_ITERATIONS):
        scale = 1 / np.sqrt(np.diag(system.information))
        scaled = system.information * scale[:, None] * scale[None, :]
        scaled[np.diag_indices_from(scaled)] += damping
        step = scale * np.linalg.solve(scaled, scale * system.gradient)
        promised = float(step @ system.gradient)
        trial = _moved(state, system, step)
        chi2 = _chi2(trial, sigma_px, *data)
        if chi2 <= system.chi2 * (1 + 1e-12):
            state = trial
            system = _system(state, sigma_px, *data)
            damping = max(damping / 100, 1e-14)
            if promised < 1e-8:
                return state, chi2, system.information, True
        else:
            if promised < 1e-8:
                return state, system.chi2, system.information, True
            damping *= 10
    return state, system.chi2, system.information, False
