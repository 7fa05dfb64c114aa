"""All views at once: the maximum-likelihood answer, with the errors real data have.

Gross outliers are found by their residuals and left out, the sag of a board that is not flat
is estimated along with the intrinsics, and a soft prior keeps the principal point near the
centre where the views cannot tell. With clean corners this is the least-squares optimum over
everything that was seen. Its covariance has the model's own error in it (``model_error``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from influx_wrap.calibrate.adjust import TIGHT_STOP, Adjustment, Prior, adjust
from influx_wrap.calibrate.kernels import residuals as kernel_residuals
from influx_wrap.calibrate.model_error import Spread, outlines_of, spread, view_information
from influx_wrap.calibrate.outliers import Rings, corner_weights, make_rings
from influx_wrap.calibrate.pose import estimate_poses
from influx_wrap.calibrate.problem import Problem
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.intrinsics import image_centre

MAX_ROUNDS = 20
SAME_WEIGHT = 0.01
"""Weights that differ by less are the same."""
BOW_EVIDENCE = 30.0
"""Squared length of the three bow parameters, in their standard deviations, that is believed.

By chance alone they reach it once in a million experiments.
"""
CLEAR_BOW = 120.0
"""The same where the lens model is seen not to fit: its error can look like a bow. Of a flat board
in a lens with more distortion than k1 and k2 it reaches 90; of bent sheets it is 170 and more."""
MOST_BOW = 0.01
"""The largest bow a board has, in lengths of its longer side."""


@dataclass(frozen=True)
class PrincipalPointPrior:
    """A soft wish that the principal point is within ``sigma_px`` of the picture's centre.

    With ``always`` it counts in every case, else only where the views leave cx or cy less
    certain than that.
    """

    sigma_px: float
    always: bool = False

    def as_prior(self, image_size: tuple[int, int], corner_sigma_px: float, n: int) -> Prior:
        """Of n shared parameters; the cost is in px^2 of corner residuals."""
        mean, information = np.zeros(n), np.zeros(n)
        mean[2:4] = image_centre(image_size)
        information[2:4] = (corner_sigma_px / self.sigma_px) ** 2
        return Prior(mean, information)


@dataclass(frozen=True, eq=False)
class BatchFit:
    """Result of the batch stage.

    weights      (C, CHUNK) 1 or less for corners used, 0 for outliers, dropped views and padding
    dropped      (D,) views left out as a whole
    sigma_px     corner noise estimated from the residuals
    covariance   (8, 8) of the intrinsics, with the model's own error
    bow          (3,) in metres, or None if the board was taken as flat
    refused_bow  (3,) the bow that was found but is not believed, as no board has it
    prior_used   whether the principal point was kept near the centre by the prior
    groups       how many different views there are, near-identical ones counted once
    inflation    by how much the model's error enlarged a variance at most; None: cannot be told
    """

    theta: FloatArray
    poses: FloatArray
    weights: FloatArray
    dropped: IntArray
    sigma_px: float
    covariance: FloatArray
    bow: FloatArray | None
    refused_bow: FloatArray | None
    prior_used: bool
    groups: int
    inflation: float | None
    converged: bool


@dataclass(frozen=True, eq=False)
class _State:
    """Where a fit is, or begins."""

    theta: FloatArray
    poses: FloatArray
    bow: FloatArray | None
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class _Task:
    """What is fitted: the problem, the corners that may take part (C, CHUNK), the target's points
    (T, 3), and the prior that holds now."""

    problem: Problem
    rings: Rings
    allowed: BoolArray
    points: FloatArray
    prior: PrincipalPointPrior | None


@dataclass(frozen=True, eq=False)
class _Converged:
    """A fit whose corners are settled."""

    state: _State
    sigma_px: float
    spread: Spread
    converged: bool


def fit_batch(
    problem: Problem,
    points: FloatArray,
    theta: FloatArray,
    *,
    weights: FloatArray | None = None,
    bow: str = "off",
    prior: PrincipalPointPrior | None = None,
) -> BatchFit:
    """Fit all views from intrinsics ``theta`` (8,).

    points   (T, 3) of the target
    weights  (C, CHUNK) to begin with; views of which all are 0 are left out for good
    bow      auto, on or off
    """
    weights = problem.weights if weights is None else weights
    trusted = np.add.reduceat((weights > 0).sum(axis=1), problem.first[:-1]) > 0
    allowed = (problem.point >= 0) & trusted[problem.view_of_chunk][:, None]
    always = prior if prior is not None and prior.always else None
    task = _Task(problem, make_rings(problem), allowed, points, always)
    poses = estimate_poses(problem, theta)
    start = _State(theta, poses, None if bow == "off" else np.zeros(3), weights)
    fit, refused, doubt = _fit_with_bow(task, start, bow)
    worst = float(np.sqrt(np.diag(fit.spread.covariance)[2:4].max()))
    prior_used = always is not None
    if prior is not None and not prior_used and not worst <= prior.sigma_px:
        prior_used = True
        fit, refused, doubt = _fit_with_bow(replace(task, prior=prior), start, bow)
    used = np.add.reduceat((fit.state.weights > 0).sum(axis=1), problem.first[:-1])
    return BatchFit(
        theta=fit.state.theta,
        poses=fit.state.poses,
        weights=fit.state.weights,
        dropped=np.flatnonzero(used == 0),
        sigma_px=fit.sigma_px,
        covariance=fit.spread.covariance[:8, :8] + np.outer(doubt, doubt),
        bow=fit.state.bow,
        refused_bow=refused,
        prior_used=prior_used,
        groups=fit.spread.groups,
        inflation=fit.spread.inflation,
        converged=fit.converged,
    )


def _fit_with_bow(
    task: _Task, start: _State, bow: str
) -> tuple[_Converged, FloatArray | None, FloatArray]:
    """The fit, flat if the bow is off, not there or not to be believed; a bow that no board has;
    and by how much the intrinsics (8,) would differ with a bow that is in doubt."""
    fit, sure = _fit_without_outliers(task, start), np.zeros(8)
    shape = fit.state.bow
    if shape is None:
        return fit, None, sure
    side = float((task.points.max(axis=0) - task.points.min(axis=0)).max())
    impossible = bool(np.abs(shape).max() > MOST_BOW * side)
    length = float(shape @ np.linalg.solve(fit.spread.halves[8:, 8:], shape))
    fits_else = fit.spread.halves_inflation in (None, 1)
    enough = BOW_EVIDENCE if fits_else else CLEAR_BOW
    if not impossible and (bow == "on" or length >= enough):
        return fit, None, sure
    flat = _fit_without_outliers(task, _State(start.theta, start.poses, None, start.weights))
    if not impossible and length >= BOW_EVIDENCE:
        return flat, None, fit.state.theta - flat.state.theta
    return flat, shape if impossible else None, sure


def _fit_without_outliers(task: _Task, start: _State) -> _Converged:
    """Alternate between fitting and leaving out corners until the set stays the same.

    The noise level comes from the median residual, which outliers hardly move, so the
    first rounds may leave out too much; later rounds take back what fits after all.
    """
    problem, state, sigma = task.problem, start, 1.0
    for _ in range(MAX_ROUNDS):
        fit = _adjust(task, state, sigma)
        state = _State(fit.theta, fit.poses, None if state.bow is None else fit.bow, state.weights)
        sigma = _sigma(problem, fit, state.weights)
        residual = kernel_residuals(
            fit.theta, fit.bow, fit.poses, problem.data, problem.count, problem.first
        )
        weights = corner_weights(
            problem, task.rings, fit.theta[2:4], residual, state.weights > 0, task.allowed
        )
        same = np.array_equal(weights > 0, state.weights > 0)
        if not weights.any() or (same and np.abs(weights - state.weights).max() < SAME_WEIGHT):
            break
        state = replace(state, weights=weights)
    return _Converged(state, sigma, _spread(task, state, sigma), fit.converged)


def _spread(task: _Task, state: _State, sigma_px: float) -> Spread:
    problem = task.problem
    views = view_information(problem, state.theta, state.bow, state.poses, state.weights)
    n = views.score.shape[1]
    prior = np.zeros(n)
    if task.prior is not None:
        prior = task.prior.as_prior(problem.image_size, sigma_px, n).information
    used = np.add.reduceat((state.weights > 0).sum(axis=1), problem.first[:-1]) > 0
    outlines = outlines_of(task.points, state.theta, state.poses)
    diagonal_px = float(np.hypot(*problem.image_size))
    return spread(views, outlines, np.flatnonzero(used), diagonal_px, sigma_px, prior)


def _adjust(task: _Task, start: _State, sigma_px: float) -> Adjustment:
    problem, weights = task.problem, start.weights
    prior = None
    if task.prior is not None:
        n = 8 if start.bow is None else 11
        prior = task.prior.as_prior(problem.image_size, sigma_px, n)
    # A view without corners has no pose to solve for; it stays where it is.
    active = np.add.reduceat((weights > 0).sum(axis=1), problem.first[:-1]) > 0
    if active.all():
        return adjust(
            problem, start.theta, start.poses,
            stop=TIGHT_STOP, weights=weights, bow=start.bow, prior=prior,
        )  # fmt: skip
    subset, chunks = problem.some_views(active)
    fit = adjust(
        subset, start.theta, start.poses[active],
        stop=TIGHT_STOP, weights=weights[chunks], bow=start.bow, prior=prior,
    )  # fmt: skip
    poses = start.poses.copy()
    poses[active] = fit.poses
    return replace(fit, poses=poses)


def _sigma(problem: Problem, fit: Adjustment, weights: FloatArray) -> float:
    """Corner noise per axis from the cost and the degrees of freedom."""
    used_views = np.add.reduceat((weights > 0).sum(axis=1), problem.first[:-1]) > 0
    parameters = len(fit.information) + 6 * int(used_views.sum())
    dof = 2 * int((weights > 0).sum()) - parameters
    return float(np.sqrt(fit.cost / max(dof, 1)))
