"""The four stages in a row: observations and a recipe in, a ``Calibration`` out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from influx_wrap.calibrate import initialise, kernels
from influx_wrap.calibrate.batch import fit_batch
from influx_wrap.calibrate.focal import FocalLengthError, vanishing_point_focal_px
from influx_wrap.calibrate.incremental import Rollout, Verdict
from influx_wrap.calibrate.points import fit_points
from influx_wrap.calibrate.pose import PoseError, estimate_poses
from influx_wrap.calibrate.problem import Problem, pack
from influx_wrap.calibrate.recipe import Recipe, recipe_named
from influx_wrap.calibrate.result import Calibration, CalibrationError
from influx_wrap.calibrate.rollouts import (
    principal_point_drift_percent,
    run_rollouts,
    select_rollout,
)
from influx_wrap.calibrate.uncertainty import projection_uncertainty
from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.observations import Observations
from influx_wrap.model.result import ResidualStatistics, RolloutReport, Selected, ViewReport
from influx_wrap.model.target import PointCloud, is_planar

_INITIALISERS = {"single": initialise.single, "fixed-point": initialise.fixed_point}
_REASONS = {
    Verdict.LITTLE_INFORMATION: "adds too little information",
    Verdict.COST_ROSE: "the error grew with it",
    Verdict.NO_CONVERGENCE: "the optimisation did not converge with it",
    Verdict.TOO_FEW_CORNERS: "fewer than 4 corners left after outlier removal",
}
_OUTLYING_VIEW = "most of its corners are outliers"

Orders = Callable[[Problem, FloatArray, FloatArray], list[Rollout]]
"""Rollouts of a problem, begun at the intrinsics (8,) and poses (V, 12) of stage 3."""


@dataclass(frozen=True, eq=False)
class _Start:
    """What the joint stage begins with: stages 2 and 3 are done."""

    observations: Observations
    problem: Problem
    recipe: Recipe
    seed: int
    focal_px: float
    theta: FloatArray


@dataclass(frozen=True, eq=False)
class _Fit:
    """Intrinsics with the state behind them.

    unused says why a view is not part of the fit, None for those that are.
    """

    theta: FloatArray
    poses: FloatArray
    weights: FloatArray
    bow: FloatArray | None
    unused: tuple[str | None, ...]


@dataclass(frozen=True, eq=False)
class _BestFit(_Fit):
    """The maximum-likelihood fit to all views, the only one that knows its covariance."""

    covariance: FloatArray
    sigma_px: float
    converged: bool


def calibrate(
    observations: Observations,
    recipe: str | Recipe = "influx",
    *,
    focal_px: float | None = None,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
    orders: Orders | None = None,
    pp_prior_px: float | None = None,
) -> Calibration:
    """Calibrate one experiment.

    recipe    what happens at every stage: a name (``influx``, ``stock``, ``batch``) or a recipe
    focal_px  first guess of the focal length (thin lens); only a recipe that starts from
              vanishing points can do without
    jobs      how many rollouts are computed at once; the answer does not depend on it
    progress  hears how many rollouts are done
    orders    runs the rollouts of an incremental recipe in place of our own stage 4
    pp_prior_px  how close to the middle the camera's principal point is expected, a sigma

    Raises ``CalibrationError`` if there is no answer.

    Example:
        fit = iw.calibrate(seen.keyframes(), focal_px=4300)
        print(fit.intrinsics.fx, "+-", fit.sigma[0])
    """
    recipe = recipe_named(recipe) if isinstance(recipe, str) else recipe
    _check_enough(observations)
    # Small matrices gain nothing from BLAS threads, and the sums would depend on them.
    with threadpool_limits(limits=1):
        try:
            problem = pack(observations)
            focal_px = _focal(observations, recipe, focal_px)
            theta = _INITIALISERS[recipe.initialise](problem, focal_px)
            start = _Start(observations, problem, recipe, seed, focal_px, theta)
            if recipe.joint == "batch":
                return _batch(start)
            return _incremental(start, orders or _own_orders(start, jobs, progress))
        except PoseError as error:
            raise CalibrationError(
                "pose", str(error), "Leave the view out, or check that the target file is right."
            ) from error
        except np.linalg.LinAlgError as error:
            raise CalibrationError(
                "adjustment",
                f"the equations are singular ({error})",
                "The views do not determine the intrinsics: add tilted views.",
            ) from error


def _check_enough(observations: Observations) -> None:
    equations = 2 * observations.n_corners
    unknowns = 8 + 6 * observations.n_views
    if equations <= unknowns:
        raise CalibrationError(
            "observations",
            f"{observations.n_corners} points in {observations.n_views} views give {equations} "
            f"equations for {unknowns} unknowns",
            "More points or more views are needed.",
        )
    if observations.n_views == 1 and is_planar(observations.target.points):
        raise CalibrationError(
            "observations",
            "one view of a flat target does not determine a focal length",
            "Film the target from more directions.",
        )


def _focal(observations: Observations, recipe: Recipe, focal_px: float | None) -> float:
    if recipe.focal == "vanishing-point":
        try:
            return vanishing_point_focal_px(observations)
        except FocalLengthError as error:
            raise CalibrationError(
                "focal length", str(error), "Start from the lens: --set focal=thin-lens."
            ) from error
    if focal_px is None:
        raise InputError(
            f"recipe {recipe.name} starts from the lens's focal length: give LFL, FD and the "
            "pixel size, or a focal length in pixels."
        )
    if not (math.isfinite(focal_px) and focal_px > 0):
        raise InputError(f"the focal length must be a positive number of pixels, got {focal_px:g}.")
    return focal_px


def _check_answer(theta: FloatArray, stage: str, image_size: tuple[int, int]) -> None:
    """Refuse what is no camera, whatever the residuals say."""
    plausible = np.isfinite(theta).all() and (theta[:2] > 0).all()
    plausible = plausible and np.abs(theta[2:4]).max() < 10 * max(image_size)
    if not plausible:
        raise CalibrationError(
            stage,
            "it ended at intrinsics that no camera has "
            f"(fx {theta[0]:.4g}, fy {theta[1]:.4g}, cx {theta[2]:.4g}, cy {theta[3]:.4g})",
            "Start from a better focal length, or add tilted views that cover the whole picture.",
        )


def _best_fit(start: _Start, theta: FloatArray) -> _BestFit:
    """Maximum-likelihood fit to all views, begun at ``theta``."""
    problem, target = start.problem, start.observations.target
    if isinstance(target, PointCloud) and target.covariance is not None:
        observations = start.observations
        points = fit_points(
            target.points, target.covariance, observations.uv, observations.valid,
            theta, estimate_poses(problem, theta),
        )  # fmt: skip
        return _BestFit(
            theta=points.theta,
            poses=points.poses,
            weights=problem.weights,
            bow=None,
            unused=(None,) * problem.n_views,
            covariance=points.covariance,
            sigma_px=points.sigma_px,
            converged=points.converged,
        )
    bow = "off" if isinstance(target, PointCloud) else start.recipe.bow
    fit = fit_batch(problem, theta, bow=bow, pp_prior_px=start.recipe.pp_prior_px)
    dropped = set(fit.dropped.tolist())
    return _BestFit(
        theta=fit.theta,
        poses=fit.poses,
        weights=fit.weights,
        bow=fit.bow,
        unused=tuple(_OUTLYING_VIEW if v in dropped else None for v in range(problem.n_views)),
        covariance=fit.covariance,
        sigma_px=fit.sigma_px,
        converged=fit.converged,
    )


def _batch(start: _Start) -> Calibration:
    fit = _best_fit(start, start.theta)
    _check_answer(fit.theta, "joint adjustment", start.problem.image_size)
    if len(fit.unused) > 1 and fit.unused.count(None) < 2:
        raise CalibrationError(
            "outliers", "hardly any view fits the target", "Check the target file and the images."
        )
    return _calibration(start, fit, fit, "batch", (), [])


def _own_orders(start: _Start, jobs: int, progress: Progress | None) -> Orders:
    recipe = start.recipe

    def run(problem: Problem, theta: FloatArray, poses: FloatArray) -> list[Rollout]:
        return run_rollouts(
            problem, theta, poses,
            n_rollouts=recipe.rollouts, shuffle=recipe.shuffle, options=recipe.incremental,
            seed=start.seed, jobs=jobs, progress=progress,
        )  # fmt: skip

    return run


def _incremental(start: _Start, orders: Orders) -> Calibration:
    problem, recipe = start.problem, start.recipe
    _check_answer(start.theta, "initialisation", problem.image_size)
    poses = estimate_poses(problem, start.theta)
    rollouts = orders(problem, start.theta, poses)
    chosen, inside, scores = select_rollout(rollouts)
    if chosen is None:
        raise CalibrationError(
            "joint optimisation",
            f"none of {len(rollouts)} rollouts converged",
            "Start from a better focal length, or use the batch recipe.",
        )
    theta = rollouts[chosen].theta
    _check_answer(theta, "joint optimisation", problem.image_size)
    reports = tuple(
        _rollout_report(problem, rollout, bool(inside[i]), float(scores[i]))
        for i, rollout in enumerate(rollouts)
    )
    drift = principal_point_drift_percent(theta, problem.image_size)
    if recipe.fallback_percent is not None and drift > recipe.fallback_percent:
        warning = (
            f"the principal point of the chosen rollout is {drift:.2f} % off the centre "
            f"(more than {recipe.fallback_percent:g} %): the initialisation is used instead"
        )
        everything = (None,) * problem.n_views
        fit = _Fit(start.theta, poses, problem.weights, None, everything)
        best = _best_fit(start, start.theta)
        return _calibration(start, fit, best, "initialization", reports, [warning])
    best = _best_fit(start, theta)
    return _calibration(start, _fit_of(rollouts[chosen], poses), best, chosen, reports, [])


def _fit_of(rollout: Rollout, poses: FloatArray) -> _Fit:
    all_poses = poses.copy()
    all_poses[rollout.kept] = rollout.poses
    unused = tuple(_REASONS.get(Verdict(code)) for code in rollout.verdict.tolist())
    return _Fit(rollout.theta, all_poses, rollout.weights, None, unused)


def _rollout_report(problem: Problem, r: Rollout, inside: bool, score: float) -> RolloutReport:
    kept = np.isin(problem.view_of_chunk, r.kept)
    return RolloutReport(
        intrinsics=Intrinsics.from_array(r.theta) if r.converged else None,
        views_used=len(r.kept),
        corners_removed=int((problem.weights - r.weights)[kept].sum()),
        restarts=r.restarts,
        inside_fences=inside,
        score=score if math.isfinite(score) else None,
    )


def _view_reports(start: _Start, fit: _Fit, residuals: FloatArray) -> tuple[ViewReport, ...]:
    problem = start.problem
    reports = []
    for view, (view_id, reason) in enumerate(
        zip(start.observations.view_ids, fit.unused, strict=True)
    ):
        chunks = slice(problem.first[view], problem.first[view + 1])
        active = fit.weights[chunks] > 0
        point = problem.point[chunks]
        used = reason is None
        reports.append(
            ViewReport(
                view=int(view_id),
                used=used,
                reason=reason,
                corners_used=int(active.sum()) if used else 0,
                corners_removed=tuple(np.sort(point[(point >= 0) & ~active]).tolist()),
                rms_px=float(np.sqrt((residuals[chunks][active] ** 2).mean())) if used else None,
            )
        )
    return tuple(reports)


def _calibration(
    start: _Start,
    fit: _Fit,
    best: _BestFit,
    selected: Selected,
    rollouts: tuple[RolloutReport, ...],
    warnings: list[str],
) -> Calibration:
    problem, image_size = start.problem, start.problem.image_size
    if not best.converged:
        warnings = [*warnings, "the adjustment of all views stopped before it had converged"]
    apart = fit.theta - best.theta
    covariance = best.covariance + np.outer(apart, apart)
    intrinsics = Intrinsics.from_array(fit.theta)

    bow = np.zeros(3) if fit.bow is None else fit.bow
    residuals = kernels.residuals(
        fit.theta, bow, fit.poses, problem.data, problem.count, problem.first
    )
    used = np.array([reason is None for reason in fit.unused])[problem.view_of_chunk]
    stages = {"initialisation": Intrinsics.from_array(start.theta)}
    if selected != "batch":
        stages["all_views"] = Intrinsics.from_array(best.theta)
    stages["result"] = intrinsics
    return Calibration(
        recipe=start.recipe,
        seed=start.seed,
        poses=fit.poses,
        image_size=image_size,
        focal_start_px=start.focal_px,
        intrinsics=intrinsics,
        covariance=covariance,
        selected=selected,
        rollouts=rollouts,
        views=_view_reports(start, fit, residuals),
        residuals=ResidualStatistics.of(residuals[(fit.weights > 0) & used[:, None]]),
        projection_uncertainty=projection_uncertainty(intrinsics, covariance, image_size),
        stages=stages,
        corner_sigma_px=best.sigma_px,
        bow_m=None if best.bow is None else tuple(best.bow.tolist()),
        warnings=tuple(warnings),
    )
