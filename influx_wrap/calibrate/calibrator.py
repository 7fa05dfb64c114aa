"""The four stages in a row: observations and a recipe in, a ``Calibration`` out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from threadpoolctl import threadpool_limits

from influx_wrap.calibrate import initialise, kernels
from influx_wrap.calibrate.batch import fit_batch
from influx_wrap.calibrate.focal import FocalLengthError, vanishing_point_focal_px
from influx_wrap.calibrate.incremental import Rollout, Verdict
from influx_wrap.calibrate.points import fit_points
from influx_wrap.calibrate.pose import PoseError, estimate_poses
from influx_wrap.calibrate.problem import Problem, pack
from influx_wrap.calibrate.recipe import Recipe
from influx_wrap.calibrate.result import (
    Calibration,
    CalibrationError,
    ResidualStatistics,
    RolloutReport,
    ViewReport,
)
from influx_wrap.calibrate.rollouts import (
    Progress,
    principal_point_drift_percent,
    run_rollouts,
    select_rollout,
)
from influx_wrap.calibrate.uncertainty import projection_uncertainty
from influx_wrap.errors import InputError
from influx_wrap.model.intrinsics import FloatArray, Intrinsics
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import PointCloud, is_planar

_INITIALISERS = {"single": initialise.single, "fixed-point": initialise.fixed_point}
_REASONS = {
    Verdict.LITTLE_INFORMATION: "adds too little information",
    Verdict.COST_ROSE: "the error grew with it",
    Verdict.NO_CONVERGENCE: "the optimisation did not converge with it",
    Verdict.TOO_FEW_CORNERS: "fewer than 4 corners left after outlier removal",
}


@dataclass(frozen=True, eq=False)
class _Fit:
    """An answer and the state behind it; weights and points say what it was fitted to."""

    theta: FloatArray
    poses: FloatArray
    weights: FloatArray
    covariance: FloatArray
    sigma_px: float
    bow: FloatArray | None
    converged: bool


def calibrate(
    observations: Observations,
    recipe: Recipe,
    *,
    focal_px: float | None,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Calibration:
    """Calibrate one experiment.

    focal_px is the first guess of the focal length (thin lens); only a recipe that
    starts from vanishing points can do without. The answer depends on the arguments
    up to ``seed``, never on ``jobs``. Raises ``CalibrationError`` if there is none.
    """
    _check_enough(observations)
    problem = pack(observations)
    # Small matrices gain nothing from BLAS threads, and the sums would depend on them.
    with threadpool_limits(limits=1):
        try:
            focal_px = _focal(observations, recipe, focal_px)
            initial = _INITIALISERS[recipe.initialise](problem, focal_px)
            if recipe.joint == "batch":
                return _batch(observations, problem, recipe, focal_px, initial, seed)
            return _incremental(
                observations, problem, recipe, focal_px, initial, seed, jobs, progress
            )
        except PoseError as error:
            raise CalibrationError(
                "pose", str(error), "Leave the view out, or check that the target file is right."
            ) from error
        except np.linalg.LinAlgError as error:
            raise CalibrationError(
                "adjustment", f"the equations are singular ({error})",
                "The views do not determine the intrinsics: add tilted views.",
            ) from error  # fmt: skip


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
                "focal length", str(error), "Use the thin-lens focal length (--set focal=thin-lens)."
            ) from error
    if focal_px is None:
        raise InputError(
            f"recipe {recipe.name} starts from the lens's focal length: give LFL, FD and the "
            "pixel size, or a focal length in pixels."
        )
    if not (math.isfinite(focal_px) and focal_px > 0):
        raise InputError(f"the focal length must be a positive number of pixels, got {focal_px:g}.")
    return focal_px


def _check_answer(theta: FloatArray, stage: str, problem: Problem) -> None:
    """Refuse what is no camera, whatever the residuals say."""
    plausible = np.isfinite(theta).all() and (theta[:2] > 0).all()
    plausible = plausible and max(abs(theta[2]), abs(theta[3])) < 10 * max(problem.image_size)
    if not plausible:
        raise CalibrationError(
            stage,
            "it ended at intrinsics that no camera has "
            f"(fx {theta[0]:.4g}, fy {theta[1]:.4g}, cx {theta[2]:.4g}, cy {theta[3]:.4g})",
            "Start from a better focal length, or add tilted views that cover the whole picture.",
        )


def _best_fit(
    observations: Observations, problem: Problem, recipe: Recipe, theta: FloatArray
) -> _Fit:
    """Maximum-likelihood fit to all views from ``theta``."""
    target = observations.target
    if isinstance(target, PointCloud) and target.point_sigma:
        points = fit_points(
            target.points, target.point_sigma, observations.uv, observations.valid, theta,
            estimate_poses(problem, theta),
        )  # fmt: skip
        return _Fit(
            points.theta, points.poses, problem.weights, points.covariance, points.sigma_px,
            None, points.converged,
        )  # fmt: skip
    bow = "off" if isinstance(target, PointCloud) else recipe.bow
    fit = fit_batch(problem, theta, bow=bow, pp_prior_px=recipe.pp_prior_px)
    return _Fit(
        fit.theta, fit.poses, fit.weights, fit.covariance, fit.sigma_px, fit.bow, fit.converged
    )


def _batch(
    observations: Observations,
    problem: Problem,
    recipe: Recipe,
    focal_px: float,
    initial: FloatArray,
    seed: int,
) -> Calibration:
    fit = _best_fit(observations, problem, recipe, initial)
    _check_answer(fit.theta, "joint adjustment", problem)
    warnings = [] if fit.converged else ["the adjustment stopped before it had converged"]
    reason = "most of its corners are outliers"
    views = _view_reports(observations, problem, fit, np.arange(problem.n_views), reason)
    if sum(v.used for v in views) < 2 and problem.n_views > 1:
        raise CalibrationError(
            "outliers", "hardly any view fits the target", "Check the target file and the images."
        )
    return _calibration(
        observations, problem, recipe, focal_px, initial, seed, fit, fit, "batch", (), views, warnings
    )


def _incremental(
    observations: Observations,
    problem: Problem,
    recipe: Recipe,
    focal_px: float,
    initial: FloatArray,
    seed: int,
    jobs: int,
    progress: Progress | None,
) -> Calibration:
    _check_answer(initial, "initialisation", problem)
    poses = estimate_poses(problem, initial)
    rollouts = run_rollouts(
        problem, initial, poses, n_rollouts=recipe.rollouts, shuffle=recipe.shuffle,
        options=recipe.incremental, seed=seed, jobs=jobs, progress=progress,
    )  # fmt: skip
    chosen, inside, scores = select_rollout(rollouts)
    if chosen is None:
        raise CalibrationError(
            "joint optimisation",
            f"none of {len(rollouts)} rollouts converged",
            "Start from a better focal length, or use the batch recipe.",
        )
    rollout = rollouts[chosen]
    _check_answer(rollout.theta, "joint optimisation", problem)
    reports = tuple(
        _rollout_report(problem, r, bool(i), float(s))
        for r, i, s in zip(rollouts, inside, scores, strict=True)
    )
    warnings = []
    drift = principal_point_drift_percent(rollout.theta, problem.image_size)
    fallback = recipe.fallback_percent is not None and drift > recipe.fallback_percent
    best = _best_fit(observations, problem, recipe, initial if fallback else rollout.theta)
    if fallback:
        warnings.append(
            f"the principal point of the chosen rollout is {drift:.2f} % off the centre "
            f"(more than {recipe.fallback_percent:g} %): the initialisation is used instead"
        )
        fit = _Fit(initial, poses, problem.weights, best.covariance, best.sigma_px, None, True)
        views = _view_reports(observations, problem, fit, np.arange(problem.n_views), "")
    else:
        fit = _fit_of_rollout(problem, rollout, poses, best)
        views = _view_reports(observations, problem, fit, rollout.kept, "", rollout)
    selected = "initialization" if fallback else chosen
    return _calibration(
        observations, problem, recipe, focal_px, initial, seed, fit, best, selected, reports, views,
        warnings,
    )  # fmt: skip


def _fit_of_rollout(problem: Problem, rollout: Rollout, poses: FloatArray, best: _Fit) -> _Fit:
    all_poses = poses.copy()
    all_poses[rollout.kept] = rollout.poses
    return _Fit(
        rollout.theta, all_poses, rollout.weights, best.covariance, best.sigma_px, None, True
    )


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


def _view_reports(
    observations: Observations,
    problem: Problem,
    fit: _Fit,
    candidates: FloatArray,
    reason: str,
    rollout: Rollout | None = None,
) -> tuple[ViewReport, ...]:
    """Reports of all views; those among ``candidates`` that have corners left are used."""
    squared = _residuals(problem, fit) ** 2
    reports = []
    for view, view_id in enumerate(observations.view_ids):
        chunks = slice(problem.first[view], problem.first[view + 1])
        active = fit.weights[chunks] > 0
        removed = problem.point[chunks][(problem.point[chunks] >= 0) & ~active]
        used = bool(active.any()) and view in candidates
        if rollout is not None and not used:
            reason = _REASONS[Verdict(int(rollout.verdict[view]))]
        reports.append(
            ViewReport(
                view=int(view_id),
                used=used,
                reason=None if used else reason,
                corners_used=int(active.sum()) if used else 0,
                corners_removed=tuple(int(p) for p in np.sort(removed)),
                rms_px=float(np.sqrt(squared[chunks][active].mean())) if used else None,
            )
        )
    return tuple(reports)


def _residuals(problem: Problem, fit: _Fit) -> FloatArray:
    """Residuals (C, CHUNK, 2) at a fit."""
    bow = np.zeros(3) if fit.bow is None else fit.bow
    result: FloatArray = kernels.residuals(
        fit.theta, bow, fit.poses, problem.data, problem.count, problem.first
    )
    return result


def _calibration(
    observations: Observations,
    problem: Problem,
    recipe: Recipe,
    focal_px: float,
    initial: FloatArray,
    seed: int,
    fit: _Fit,
    best: _Fit,
    selected: int | Literal["batch", "initialization"],
    rollouts: tuple[RolloutReport, ...],
    views: tuple[ViewReport, ...],
    warnings: list[str],
) -> Calibration:
    apart = fit.theta - best.theta
    covariance = best.covariance + np.outer(apart, apart)
    intrinsics = Intrinsics.from_array(fit.theta)
    used = np.array([v.used for v in views])[problem.view_of_chunk]
    corners = (fit.weights > 0) & used[:, None]
    stages = {"initialisation": Intrinsics.from_array(initial)}
    if recipe.joint == "incremental":
        stages["all_views"] = Intrinsics.from_array(best.theta)
    stages["result"] = intrinsics
    return Calibration(
        recipe=recipe,
        seed=seed,
        image_size=observations.image_size,
        focal_start_px=focal_px,
        intrinsics=intrinsics,
        covariance=covariance,
        selected=selected,
        rollouts=rollouts,
        views=views,
        residuals=ResidualStatistics.of(_residuals(problem, fit)[corners]),
        projection_uncertainty=projection_uncertainty(
            intrinsics, covariance, observations.image_size
        ),
        stages=stages,
        corner_sigma_px=best.sigma_px,
        bow_m=None if best.bow is None else tuple(best.bow.tolist()),
        warnings=tuple(warnings),
    )
