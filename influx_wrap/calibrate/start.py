"""Where a calibration begins: are there enough observations, and stages 2 and 3 for them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from influx_wrap.calibrate import initialise
from influx_wrap.calibrate.batch import PrincipalPointPrior
from influx_wrap.calibrate.focal import (
    FocalLengthError,
    scanned_focal_px,
    vanishing_point_focal_px,
)
from influx_wrap.calibrate.kernels import residuals as kernel_residuals
from influx_wrap.calibrate.pose import NO_BOW, PoseError, estimate_poses
from influx_wrap.calibrate.problem import Problem, pack
from influx_wrap.calibrate.recipe import Recipe
from influx_wrap.calibrate.result import CalibrationError
from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import is_planar

PP_PRIOR_SHARE = 0.01
"""Standard deviation of a principal point about the centre, in picture widths."""
FAR_OFF = 1.5
"""Factor between a given focal length and what came of it from which on it is doubted."""

_INITIALISERS = {"single": initialise.single, "fixed-point": initialise.fixed_point}


@dataclass(frozen=True, eq=False)
class Start:
    """What the joint stage begins with: stages 2 and 3 are done.

    theta  (8,) intrinsics of stage 3
    notes  what the user should know of how they were found
    """

    observations: Observations
    problem: Problem
    recipe: Recipe
    seed: int
    focal_px: float
    theta: FloatArray
    prior: PrincipalPointPrior | None
    notes: tuple[str, ...] = ()


def make_start(
    observations: Observations,
    recipe: Recipe,
    *,
    focal_px: float | None,
    seed: int,
    pp_prior_px: float | None,
) -> Start:
    """Stages 2 and 3; raises ``CalibrationError`` where the observations cannot do."""
    _check_enough(observations)
    problem = pack(observations)
    given = focal_px
    focal_px = _focal(observations, recipe, focal_px)
    theta, focal_px = _initialised(observations, problem, recipe, focal_px, given is not None)
    notes: tuple[str, ...] = ()
    if given is not None and recipe.focal == "thin-lens" and focal_px != given:
        notes = (
            f"the given focal length of {given:.4g} px leads nowhere: {theta[0]:.4g} px, found in "
            "the pictures, was the start",
        )
    return Start(
        observations=observations,
        problem=problem,
        recipe=recipe,
        seed=seed,
        focal_px=focal_px,
        theta=theta,
        prior=_prior(recipe, pp_prior_px, problem.image_size),
        notes=notes,
    )


def _prior(
    recipe: Recipe, camera_px: float | None, image_size: tuple[int, int]
) -> PrincipalPointPrior | None:
    if recipe.pp_prior == "off":
        return None
    sigma_px = recipe.pp_prior_px or camera_px or PP_PRIOR_SHARE * max(image_size)
    return PrincipalPointPrior(sigma_px, always=recipe.pp_prior == "on")


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
        return _scanned(observations)
    if not (math.isfinite(focal_px) and focal_px > 0):
        raise InputError(f"the focal length must be a positive number of pixels, got {focal_px:g}.")
    return focal_px


def _scanned(observations: Observations) -> float:
    try:
        return scanned_focal_px(observations)
    except FocalLengthError as error:
        raise CalibrationError(
            "focal length", str(error), "Check that the target file is right."
        ) from error


def _initialised(
    observations: Observations, problem: Problem, recipe: Recipe, focal_px: float, given: bool
) -> tuple[FloatArray, float]:
    """Intrinsics (8,) of stage 3 and the focal length they began at: the caller's, unless a search
    through the pictures finds a better one."""
    run = _INITIALISERS[recipe.initialise]
    if not given or recipe.focal != "thin-lens" or recipe.initialise != "fixed-point":
        return run(problem, focal_px), focal_px
    try:
        theta = run(problem, focal_px)
        rms_px = _rms_px(problem, theta)
    except (PoseError, np.linalg.LinAlgError):
        theta, rms_px = np.full(8, np.nan), math.inf
    ratio = theta[0] / focal_px
    if math.isfinite(rms_px) and 1 / FAR_OFF < ratio < FAR_OFF:
        return theta, focal_px
    other_px = _scanned(observations)
    other = run(problem, other_px)
    if not _rms_px(problem, other) < 0.9 * rms_px:
        return theta, focal_px
    return other, other_px


def _rms_px(problem: Problem, theta: FloatArray) -> float:
    """RMS of the residuals with the best poses; infinite if the intrinsics are no camera's."""
    if not (np.isfinite(theta).all() and (theta[:2] > 0).all()):
        return math.inf
    poses = estimate_poses(problem, theta)
    residual = kernel_residuals(theta, NO_BOW, poses, problem.data, problem.count, problem.first)
    return float(np.sqrt((residual**2).sum() / (2 * problem.count.sum())))
