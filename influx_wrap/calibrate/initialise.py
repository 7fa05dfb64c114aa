"""Stage 3: intrinsics that the final stage starts from.

``single`` is the original: one Levenberg-Marquardt run over all views and all eight
intrinsics. ``fixed_point`` is the paper's Algorithm 1: eight such runs, between
which the principal point snaps back to the image centre and the two focal lengths
are averaged; the first three also forget the distortion. Poses are found anew
before every run.

Each run stops when the cost hardly changes (Kalibr's limits), which on telephoto lenses
is long before a wrong focal length has been put right. Where a full adjustment ends at
another focal length, the guess was poor, and the procedure starts over from that one: the
answer then no longer depends on the guess.
"""

from __future__ import annotations

import numpy as np

from influx_wrap.calibrate.adjust import KALIBR_STOP, TIGHT_STOP, adjust
from influx_wrap.calibrate.pose import estimate_poses
from influx_wrap.calibrate.problem import Problem
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import image_centre

RUNS_WITHOUT_DISTORTION = 3
RUNS_WITH_DISTORTION = 4
POOR_GUESS = 0.001
"""Relative error of the focal length from which on the procedure starts over."""


def starting_theta(focal_px: float, image_size: tuple[int, int]) -> FloatArray:
    """(8,) one focal length, principal point at the centre, no distortion."""
    cx, cy = image_centre(image_size)
    return np.array([focal_px, focal_px, cx, cy, 0.0, 0.0, 0.0, 0.0])


def single(problem: Problem, focal_px: float) -> FloatArray:
    """Intrinsics (8,) after one run."""
    return _run(problem, starting_theta(focal_px, problem.image_size))


def fixed_point(problem: Problem, focal_px: float) -> FloatArray:
    """Intrinsics (8,) after the fixed-point procedure; the principal point is the centre."""
    theta = _fixed_point_runs(problem, focal_px)
    full = adjust(problem, theta, estimate_poses(problem, theta), stop=TIGHT_STOP).theta
    better_px = (full[0] + full[1]) / 2
    if abs(theta[0] / better_px - 1) > POOR_GUESS and 0 < better_px < np.inf:
        theta = _fixed_point_runs(problem, better_px)
    return theta


def _fixed_point_runs(problem: Problem, focal_px: float) -> FloatArray:
    theta = starting_theta(focal_px, problem.image_size)
    for _ in range(RUNS_WITHOUT_DISTORTION):
        theta = _recentred(_run(problem, theta), problem.image_size)
        theta[4:] = 0.0
    theta = _run(problem, theta)
    for _ in range(RUNS_WITH_DISTORTION):
        theta = _recentred(_run(problem, theta), problem.image_size)
    return theta


def _run(problem: Problem, theta: FloatArray) -> FloatArray:
    return adjust(problem, theta, estimate_poses(problem, theta), stop=KALIBR_STOP).theta


def _recentred(theta: FloatArray, image_size: tuple[int, int]) -> FloatArray:
    focal = (theta[0] + theta[1]) / 2
    return np.concatenate([[focal, focal], image_centre(image_size), theta[4:]])
