"""The four stages in a row: observations and a recipe in, a ``Calibration`` out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from influx_wrap.calibrate import kernels
from influx_wrap.calibrate.assess import Evidence, assess
from influx_wrap.calibrate.best_fit import BestFit, Fit, best_fit
from influx_wrap.calibrate.goodness import goodness_of
from influx_wrap.calibrate.incremental import Rollout, Verdict
from influx_wrap.calibrate.pose import PoseError, estimate_poses
from influx_wrap.calibrate.problem import Problem
from influx_wrap.calibrate.recipe import Recipe, recipe_named
from influx_wrap.calibrate.result import Calibration, CalibrationError
from influx_wrap.calibrate.rollouts import (
    RolloutStore,
    principal_point_drift_percent,
    run_rollouts,
    select_rollout,
)
from influx_wrap.calibrate.start import Start, make_start
from influx_wrap.calibrate.two_cameras import two_cameras, upside_down
from influx_wrap.calibrate.uncertainty import projection_uncertainty
from influx_wrap.compute.progress import Progress
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import NAMES, Intrinsics, image_centre
from influx_wrap.model.observations import Observations
from influx_wrap.model.result import (
    PICK_SIGMAS,
    Assessment,
    PaperPick,
    PickDifference,
    ProjectionUncertainty,
    ResidualStatistics,
    RolloutReport,
    Selected,
    ViewReport,
)
from influx_wrap.model.target import PointCloud

_REASONS = {
    Verdict.LITTLE_INFORMATION: "adds too little information",
    Verdict.COST_ROSE: "the error grew with it",
    Verdict.NO_CONVERGENCE: "the optimisation did not converge with it",
    Verdict.TOO_FEW_CORNERS: "fewer than 4 corners left after outlier removal",
}
_UNTRUSTED = (Verdict.COST_ROSE, Verdict.NO_CONVERGENCE, Verdict.TOO_FEW_CORNERS)

Orders = Callable[[Start, FloatArray], tuple[FloatArray, list[Rollout]]]
"""Rollouts, for what stage 3 ended with and its poses (V, 12); and the intrinsics (8,) that they
did begin at."""


def calibrate(
    observations: Observations,
    recipe: str | Recipe = "influx",
    *,
    focal_px: float | None = None,
    pp_prior_px: float | None = None,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
    orders: Orders | None = None,
    store: RolloutStore | None = None,
) -> Calibration:
    """Calibrate one experiment.

    recipe       what happens at every stage: a name (``influx``, ``paper``, ``stock``, ``batch``)
                 or a recipe
    focal_px     first guess of the focal length (thin lens); without one, the views give it
    pp_prior_px  how far from the picture's centre the camera's principal point may be (a standard
                 deviation), for views that hardly tell; 1 % of the picture's width if None
    jobs         how many rollouts are computed at once; the answer does not depend on it
    progress     hears how many rollouts are done
    orders       runs the rollouts of an incremental recipe in place of our own stage 4
    store        keeps our own rollouts for another recipe for the same observations

    Raises ``CalibrationError`` if there is no answer.

    Example:
        fit = iw.calibrate(seen.keyframes(), focal_px=4300)
        print(fit.intrinsics.fx, "+-", fit.sigma[0])
    """
    recipe = recipe_named(recipe) if isinstance(recipe, str) else recipe
    # Small matrices gain nothing from BLAS threads, and the sums would depend on them.
    with threadpool_limits(limits=1):
        try:
            start = make_start(
                observations, recipe, focal_px=focal_px, seed=seed, pp_prior_px=pp_prior_px
            )
            if recipe.joint == "batch":
                return _batch(start)
            return _incremental(start, orders or _own_orders(jobs, progress, store))
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


def _batch(start: Start) -> Calibration:
    return _answer_of_all_views(start, best_fit(start, start.theta), "batch")


def _answer_of_all_views(
    start: Start,
    fit: BestFit,
    selected: Selected,
    rollouts: tuple[RolloutReport, ...] = (),
    pick: tuple[PaperPick, int] | None = None,
) -> Calibration:
    _check_answer(fit.theta, "joint adjustment", start.problem.image_size)
    if len(fit.unused) > 1 and fit.unused.count(None) < 2:
        raise CalibrationError(
            "outliers", "hardly any view fits the target", "Check the target file and the images."
        )
    return _calibration(start, fit, fit, selected, rollouts, [], pick)


def _own_orders(jobs: int, progress: Progress | None, store: RolloutStore | None) -> Orders:
    store = RolloutStore() if store is None else store

    def run(start: Start, poses: FloatArray) -> tuple[FloatArray, list[Rollout]]:
        recipe = start.recipe
        key = start.theta.tobytes(), recipe.rollouts, recipe.shuffle, recipe.incremental, start.seed
        return start.theta, store.obtain(
            key,
            lambda: run_rollouts(
                start.problem, start.theta, poses,
                n_rollouts=recipe.rollouts, shuffle=recipe.shuffle, options=recipe.incremental,
                seed=start.seed, jobs=jobs, progress=progress,
            ),
        )  # fmt: skip

    return run


def _incremental(start: Start, orders: Orders) -> Calibration:
    problem, recipe = start.problem, start.recipe
    _check_answer(start.theta, "initialisation", problem.image_size)
    poses = estimate_poses(problem, start.theta)
    begun, rollouts = orders(start, poses)
    if begun is not start.theta:
        start = replace(start, theta=begun)
        poses = estimate_poses(problem, begun)
    chosen, inside, scores = select_rollout(rollouts)
    if chosen is None:
        raise CalibrationError(
            "joint optimisation",
            f"none of {len(rollouts)} rollouts converged",
            "Start from a better focal length, or use the batch recipe.",
        )
    rollout = rollouts[chosen]
    reports = tuple(
        _rollout_report(problem, one, bool(inside[i]), float(scores[i]))
        for i, one in enumerate(rollouts)
    )
    drift = principal_point_drift_percent(rollout.theta, problem.image_size)
    falls_back = recipe.fallback_percent is not None and drift > recipe.fallback_percent
    if recipe.answer == "all-views":
        fit = best_fit(
            start, rollout.theta, weights=rollout.weights,
            unused=_untrusted([one for i, one in enumerate(rollouts) if inside[i]]),
        )  # fmt: skip
        camera = Intrinsics.from_array(start.theta if falls_back else rollout.theta)
        pick = PaperPick("initialization" if falls_back else chosen, camera, None)
        return _answer_of_all_views(start, fit, "all-views", reports, (pick, len(rollout.kept)))
    _check_answer(rollout.theta, "joint optimisation", problem.image_size)
    if falls_back:
        warning = (
            f"the principal point of the chosen rollout is {drift:.2f} % off the centre "
            f"(more than {recipe.fallback_percent:g} %): the initialisation is used instead"
        )
        everything = (None,) * problem.n_views
        paper = Fit(start.theta, poses, problem.weights, None, everything)
        best = best_fit(start, start.theta)
        return _calibration(start, paper, best, "initialization", reports, [warning])
    best = best_fit(start, rollout.theta)
    return _calibration(start, _fit_of(rollout, poses), best, chosen, reports, [])


def _untrusted(rollouts: list[Rollout]) -> tuple[str | None, ...]:
    """Why a view is not to be trusted: most rollouts could not take it. None for the others."""
    verdicts = np.stack([rollout.verdict for rollout in rollouts], axis=1)
    reasons: list[str | None] = []
    for row in verdicts.tolist():
        bad = Counter(code for code in row if code in _UNTRUSTED)
        distrusted = 2 * sum(bad.values()) > len(row)
        reasons.append(_REASONS[Verdict(bad.most_common(1)[0][0])] if distrusted else None)
    return tuple(reasons)


def _fit_of(rollout: Rollout, poses: FloatArray) -> Fit:
    all_poses = poses.copy()
    all_poses[rollout.kept] = rollout.poses
    unused = tuple(_REASONS.get(Verdict(code)) for code in rollout.verdict.tolist())
    return Fit(rollout.theta, all_poses, rollout.weights, None, unused)


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


def _view_reports(start: Start, fit: Fit, residuals: FloatArray) -> tuple[ViewReport, ...]:
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
                name=start.observations.view_names[view],
            )
        )
    return tuple(reports)


def _calibration(
    start: Start,
    fit: Fit,
    best: BestFit,
    selected: Selected,
    rollouts: tuple[RolloutReport, ...],
    warnings: list[str],
    pick: tuple[PaperPick, int] | None = None,
) -> Calibration:
    """What comes back; ``pick`` is the paper's answer and how many views it is made from."""
    problem, image_size = start.problem, start.problem.image_size
    warnings = [*start.notes, *warnings]
    if not best.converged:
        warnings.append("the adjustment of all views stopped before it had converged")
    if best.prior_used:
        warnings.append(
            "the views hardly determine the principal point: a prior keeps it near the centre"
        )
    apart = fit.theta - best.theta
    covariance = best.covariance + np.outer(apart, apart)
    if not np.isfinite(covariance).all():
        raise CalibrationError(
            "adjustment",
            "the corners do not fit the target: the uncertainty of the answer is infinite",
            "Check the target file, and look at the pictures.",
        )
    intrinsics = Intrinsics.from_array(fit.theta)
    paper_pick = None
    if pick is not None:
        paper_pick = _compared(pick, fit.theta, covariance, problem.n_views, image_size)
        warnings += filter(None, [paper_pick.warning])

    bow = np.zeros(3) if fit.bow is None else fit.bow
    residuals = kernels.residuals(
        fit.theta, bow, fit.poses, problem.data, problem.count, problem.first
    )
    used = np.array([reason is None for reason in fit.unused])[problem.view_of_chunk]
    projection = projection_uncertainty(intrinsics, covariance, image_size)
    stages = {"initialisation": Intrinsics.from_array(start.theta)}
    if selected not in ("batch", "all-views"):
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
        projection_uncertainty=projection,
        stages=stages,
        corner_sigma_px=best.sigma_px,
        bow_m=None if best.bow is None else tuple(best.bow.tolist()),
        warnings=tuple(warnings),
        assessment=_assessed(start, fit, best, covariance, projection),
        paper_pick=paper_pick,
    )


def _compared(
    pick: tuple[PaperPick, int],
    theta: FloatArray,
    covariance: FloatArray,
    n_views: int,
    image_size: tuple[int, int],
) -> PaperPick:
    """The paper's pick, with how it differs from the answer."""
    paper, views = pick
    apart = (paper.intrinsics.array - theta) / np.sqrt(np.diag(covariance))
    largest = int(np.argmax(np.abs(apart[:4])))
    if abs(apart[largest]) <= PICK_SIGMAS:
        return paper
    why = "it is made from some of the views only"
    detail: str | None = f"{views} of {n_views}"
    off_px = np.abs(paper.intrinsics.array[2:4] - image_centre(image_size)).max()
    if paper.selected == "initialization":
        why, detail = "its rule against principal points off the centre puts it there", None
    elif off_px < 1e-3 * max(image_size):
        why, detail = "it leaves the principal point where it starts, at the picture's centre", None
    difference = PickDifference(NAMES[largest], float(abs(apart[largest])), why, detail)
    return PaperPick(paper.selected, paper.intrinsics, difference)


def _assessed(
    start: Start,
    fit: Fit,
    best: BestFit,
    covariance: FloatArray,
    projection: ProjectionUncertainty,
) -> Assessment:
    target, problem = start.observations.target, start.problem
    goodness = None
    if not (isinstance(target, PointCloud) and target.covariance is not None):
        goodness = goodness_of(problem, fit.theta, best.bow, best.poses, best.weights)
    apart, turned = None, None
    # Where noise alone explains how the views differ, they are of one camera.
    if best.inflation is not None and best.inflation > 1:
        apart = two_cameras(problem, best.theta, best.poses, best.weights)
        if apart is None:
            is_board = not isinstance(target, PointCloud)
            turned = upside_down(
                problem, best.theta, best.poses, best.weights, may_be_bent=is_board
            )
    extent = target.points.max(axis=0) - target.points.min(axis=0)
    return assess(
        Evidence(
            theta=fit.theta,
            covariance=covariance,
            projection=projection,
            best=best,
            goodness=goodness,
            image_size=problem.image_size,
            board_m=None if isinstance(target, PointCloud) else float(extent.max()),
            two_cameras=apart,
            upside_down=turned,
            is_kept_central=best.prior_used and start.recipe.pp_prior == "auto",
            view_names=start.observations.view_names,
        )
    )
