"""All views at once: the maximum-likelihood answer, with the errors real data have.

Gross outliers are found by their residuals and left out, the sag of a board that is
not flat is estimated along with the intrinsics, and a soft prior may keep the principal
point near the centre where the data cannot tell. With clean corners this is the
least-squares optimum over everything that was seen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from influx_wrap.calibrate.adjust import TIGHT_STOP, Adjustment, Prior, adjust
from influx_wrap.calibrate.kernels import residuals as kernel_residuals
from influx_wrap.calibrate.pose import estimate_poses
from influx_wrap.calibrate.problem import Problem
from influx_wrap.calibrate.uncertainty import inverse_information
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.intrinsics import image_centre

OUTLIER_SIGMAS = 4.5
MAX_ROUNDS = 20
BOW_EVIDENCE = 30.0
"""Drop of the cost, in units of the corner variance, that three bow parameters must earn.

By chance alone they reach it once in a million experiments.
"""
MIN_CORNERS_PER_VIEW = 6
MIN_INLIER_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class BatchFit:
    """Result of the batch stage.

    weights      (C, CHUNK) 1 for corners used, 0 for outliers, dropped views and padding
    dropped      (D,) views left out as a whole
    sigma_px     corner noise estimated from the residuals
    covariance   (8, 8) of the intrinsics
    bow          (3,) in metres, or None if the board was taken as flat
    """

    theta: FloatArray
    poses: FloatArray
    weights: FloatArray
    dropped: IntArray
    sigma_px: float
    covariance: FloatArray
    bow: FloatArray | None
    converged: bool


def fit_batch(
    problem: Problem,
    theta: FloatArray,
    *,
    bow: str = "off",
    pp_prior_px: float | None = None,
) -> BatchFit:
    """Fit all views from intrinsics ``theta`` (8,); ``bow`` is auto, on or off."""
    poses = estimate_poses(problem, theta)
    start = _Start(theta, poses, None if bow == "off" else np.zeros(3))
    fit, weights = _fit_without_outliers(problem, start, problem.weights, pp_prior_px)
    if bow != "off":
        flat_start = _Start(fit.theta, fit.poses, None)
        flat = _adjust(problem, flat_start, weights, _sigma(problem, fit, weights), pp_prior_px)
        evidence = (flat.cost - fit.cost) / _sigma(problem, fit, weights) ** 2
        if bow == "auto" and evidence < BOW_EVIDENCE:
            flat_start = _Start(flat.theta, flat.poses, None)
            fit, weights = _fit_without_outliers(problem, flat_start, weights, pp_prior_px)
            bow = "off"
    sigma = _sigma(problem, fit, weights)
    used = np.add.reduceat((weights > 0).sum(axis=1), problem.first[:-1])
    return BatchFit(
        theta=fit.theta,
        poses=fit.poses,
        weights=weights,
        dropped=np.flatnonzero(used == 0),
        sigma_px=sigma,
        covariance=sigma**2 * inverse_information(fit.information)[:8, :8],
        bow=None if bow == "off" else fit.bow,
        converged=fit.converged,
    )


@dataclass(frozen=True, eq=False)
class _Start:
    theta: FloatArray
    poses: FloatArray
    bow: FloatArray | None


def _adjust(
    problem: Problem,
    start: _Start,
    weights: FloatArray,
    sigma_px: float,
    pp_prior_px: float | None,
) -> Adjustment:
    prior = None
    if pp_prior_px is not None:
        n = 8 if start.bow is None else 11
        mean, information = np.zeros(n), np.zeros(n)
        mean[2:4] = image_centre(problem.image_size)
        # The cost is in px^2 of corner residuals, so the prior is weighed against them.
        information[2:4] = (sigma_px / pp_prior_px) ** 2
        prior = Prior(mean, information)
    # A view without corners has no pose to solve for; it stays where it is.
    active = np.add.reduceat((weights > 0).sum(axis=1), problem.first[:-1]) > 0
    if active.all():
        return adjust(
            problem, start.theta, start.poses,
            stop=TIGHT_STOP, weights=weights, bow=start.bow, prior=prior,
        )  # fmt: skip
    subset, chunks = _subset(problem, active)
    fit = adjust(
        subset, start.theta, start.poses[active],
        stop=TIGHT_STOP, weights=weights[chunks], bow=start.bow, prior=prior,
    )  # fmt: skip
    poses = start.poses.copy()
    poses[active] = fit.poses
    return replace(fit, poses=poses)


def _subset(problem: Problem, active: BoolArray) -> tuple[Problem, BoolArray]:
    """The problem of the active views alone, and the mask of its chunks."""
    chunks = active[problem.view_of_chunk]
    lengths = np.diff(problem.first)[active]
    subset = Problem(
        data=problem.data[chunks],
        count=problem.count[chunks],
        first=np.concatenate([[0], np.cumsum(lengths)]),
        point=problem.point[chunks],
        weights=problem.weights[chunks],
        n_target_points=problem.n_target_points,
        image_size=problem.image_size,
    )
    return subset, chunks


def _fit_without_outliers(
    problem: Problem, start: _Start, weights: FloatArray, pp_prior_px: float | None
) -> tuple[Adjustment, FloatArray]:
    """Alternate between fitting and leaving out corners until the set stays the same.

    The noise level comes from the median residual, which outliers hardly move, so the
    first rounds may leave out too much; later rounds take back what fits after all.
    """
    sigma = 1.0
    for _ in range(MAX_ROUNDS):
        fit = _adjust(problem, start, weights, sigma, pp_prior_px)
        residual = kernel_residuals(
            fit.theta, fit.bow, fit.poses, problem.data, problem.count, problem.first
        )
        inliers = _inliers(problem, residual, weights)
        start = _Start(fit.theta, fit.poses, None if start.bow is None else fit.bow)
        sigma = _sigma(problem, fit, weights)
        if np.array_equal(inliers, weights):
            break
        weights = inliers
    return fit, weights


def _inliers(problem: Problem, residual: FloatArray, weights: FloatArray) -> FloatArray:
    """Weights 1 for corners within ``OUTLIER_SIGMAS``; views that lost too many get none."""
    squared = (residual**2).sum(axis=2)
    # Median of a two-dimensional Gaussian's squared length: 2 ln 2 sigma^2.
    sigma_squared = np.median(squared[weights > 0]) / (2 * np.log(2))
    inlier = (problem.point >= 0) & (squared <= OUTLIER_SIGMAS**2 * sigma_squared)
    seen = np.add.reduceat(problem.count, problem.first[:-1])
    kept = np.add.reduceat(inlier.sum(axis=1), problem.first[:-1])
    hopeless = (kept < MIN_CORNERS_PER_VIEW) | (kept < MIN_INLIER_SHARE * seen)
    inlier[hopeless[problem.view_of_chunk]] = False
    return inlier.astype(float)


def _sigma(problem: Problem, fit: Adjustment, weights: FloatArray) -> float:
    """Corner noise per axis from the cost and the degrees of freedom."""
    used_views = np.add.reduceat((weights > 0).sum(axis=1), problem.first[:-1]) > 0
    parameters = len(fit.information) + 6 * int(used_views.sum())
    dof = 2 * int((weights > 0).sum()) - parameters
    return float(np.sqrt(fit.cost / max(dof, 1)))
