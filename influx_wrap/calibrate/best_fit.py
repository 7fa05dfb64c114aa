"""The maximum-likelihood fit to all views that are trusted, whatever the kind of target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from influx_wrap.calibrate.batch import fit_batch
from influx_wrap.calibrate.points import fit_points
from influx_wrap.calibrate.pose import estimate_poses
from influx_wrap.calibrate.start import Start
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.target import PointCloud

_OUTLYING_VIEW = "most of its corners are outliers"


@dataclass(frozen=True, eq=False)
class Fit:
    """Intrinsics with the state behind them.

    unused says why a view is not part of the fit, None for those that are.
    """

    theta: FloatArray
    poses: FloatArray
    weights: FloatArray
    bow: FloatArray | None
    unused: tuple[str | None, ...]


@dataclass(frozen=True, eq=False)
class BestFit(Fit):
    """The fit to all views, the only one that knows its covariance.

    groups, inflation, refused_bow and prior_used are as ``batch.BatchFit`` has them; of measured
    points nothing is known of the model's own error.
    """

    covariance: FloatArray
    sigma_px: float
    converged: bool
    groups: int
    inflation: float | None
    refused_bow: FloatArray | None
    prior_used: bool


def best_fit(
    start: Start,
    theta: FloatArray,
    *,
    weights: FloatArray | None = None,
    unused: tuple[str | None, ...] | None = None,
) -> BestFit:
    """Fit everything, begun at ``theta`` (8,).

    weights  (C, CHUNK) of the corners to begin with
    unused   why a view is not to be used, None for those that are
    """
    problem, target = start.problem, start.observations.target
    if isinstance(target, PointCloud) and target.covariance is not None:
        return _fit_measured_points(start, target, theta)
    bow = "off" if isinstance(target, PointCloud) else start.recipe.bow
    unused = unused or (None,) * problem.n_views
    weights = problem.weights if weights is None else weights
    trusted = np.array([reason is None for reason in unused])[problem.view_of_chunk]
    fit = fit_batch(
        problem, target.points, theta,
        weights=weights * trusted[:, None], bow=bow, prior=start.prior,
    )  # fmt: skip
    dropped = set(fit.dropped.tolist())
    return BestFit(
        theta=fit.theta,
        poses=fit.poses,
        weights=fit.weights,
        bow=fit.bow,
        unused=tuple(
            reason or (_OUTLYING_VIEW if view in dropped else None)
            for view, reason in enumerate(unused)
        ),
        covariance=fit.covariance,
        sigma_px=fit.sigma_px,
        converged=fit.converged,
        groups=fit.groups,
        inflation=fit.inflation,
        refused_bow=fit.refused_bow,
        prior_used=fit.prior_used,
    )


def _fit_measured_points(start: Start, target: PointCloud, theta: FloatArray) -> BestFit:
    problem, observations = start.problem, start.observations
    assert target.covariance is not None
    data = (target.points, target.covariance, observations.uv, observations.valid)
    poses = estimate_poses(problem, theta)
    prior, prior_used = None, False
    if start.prior is not None and start.prior.always:
        prior, prior_used = start.prior.as_prior(problem.image_size, 1.0, 8), True
    points = fit_points(*data, theta, poses, prior=prior)
    worst = float(np.sqrt(np.diag(points.covariance)[2:4].max()))
    if start.prior is not None and not prior_used and not worst <= start.prior.sigma_px:
        prior, prior_used = start.prior.as_prior(problem.image_size, 1.0, 8), True
        points = fit_points(*data, theta, poses, prior=prior)
    return BestFit(
        theta=points.theta,
        poses=points.poses,
        weights=problem.weights,
        bow=None,
        unused=(None,) * problem.n_views,
        covariance=points.covariance,
        sigma_px=points.sigma_px,
        converged=points.converged,
        groups=problem.n_views,
        inflation=None,
        refused_bow=None,
        prior_used=prior_used,
    )
