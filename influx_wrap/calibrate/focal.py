"""Stage 2: a first focal length.

The original guess comes from the picture: on a fisheye, straight rows of corners
become circles, and two circles meet in the vanishing points of the rows' direction,
half a turn apart. On ordinary lenses the rows hardly bend and the guess is far off,
which is why the paper takes the thin-lens focal length instead (``model.optics``).
Who knows neither lens nor camera has the pictures only: ``scanned_focal_px`` tries focal
lengths from a fisheye's to a telescope's and takes the one at which the target's shape fits
the views best.
"""

from __future__ import annotations

import numpy as np

from influx_wrap.calibrate.kernels import residuals as kernel_residuals
from influx_wrap.calibrate.pose import NO_BOW, PoseError, estimate_poses
from influx_wrap.calibrate.problem import Problem, pack
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import image_centre
from influx_wrap.model.observations import Observations

SCAN_WIDTHS = np.geomspace(0.25, 40.0, 24)
"""Focal lengths to try, in picture widths: horizontal fields of view from 127 to 1.4 degrees."""
SCAN_VIEWS = 24


class FocalLengthError(RuntimeError):
    """No focal length could be found in the observations."""


def vanishing_point_focal_px(observations: Observations) -> float:
    """Median over all pairs of corner rows in all complete views."""
    shape = observations.target.grid_shape
    if shape is None:
        raise FocalLengthError("initialisation of the focal length failed: the target has no rows")
    complete = observations.valid.all(axis=1)
    if not complete.any():
        raise FocalLengthError(
            "initialisation of the focal length failed: no view shows the whole board"
        )
    rows = observations.uv[complete].reshape(-1, *shape, 2) - image_centre(observations.image_size)
    guesses = np.concatenate([_row_pair_focals(view) for view in rows])
    if guesses.size == 0:
        raise FocalLengthError("initialisation of the focal length failed: no two rows intersect")
    return float(np.median(guesses))


def scanned_focal_px(observations: Observations) -> float:
    """The focal length, without distortion, at which the target fits the views best."""
    problem = pack(_some_views(observations))
    costs = [_scan_cost(problem, float(f)) for f in SCAN_WIDTHS * max(observations.image_size)]
    if not np.isfinite(costs).any():
        raise FocalLengthError("no focal length fits the views")
    best = int(np.nanargmin(costs))
    return float(SCAN_WIDTHS[best] * max(observations.image_size))


def _some_views(observations: Observations) -> Observations:
    step = max(1, observations.n_views // SCAN_VIEWS)
    return observations.subset(np.arange(0, observations.n_views, step))


def _scan_cost(problem: Problem, focal_px: float) -> float:
    """Mean log of the views' squared residuals, which a few wrong views hardly move."""
    cx, cy = image_centre(problem.image_size)
    theta = np.array([focal_px, focal_px, cx, cy, 0.0, 0.0, 0.0, 0.0])
    try:
        poses = estimate_poses(problem, theta)
    except PoseError:
        return np.nan
    residual = kernel_residuals(theta, NO_BOW, poses, problem.data, problem.count, problem.first)
    squares = np.add.reduceat((residual**2).sum(axis=(1, 2)), problem.first[:-1])
    return float(np.log(np.maximum(squares, 1e-12)).mean())


def _row_pair_focals(rows: FloatArray) -> FloatArray:
    """Focal lengths from rows (R, N, 2) of one view whose circles meet in two points."""
    centres, radii = _fit_circles(rows)
    first, second = np.triu_indices(len(rows), k=1)
    apart = np.linalg.norm(centres[second] - centres[first], axis=1)
    r1, r2 = radii[first], radii[second]
    with np.errstate(invalid="ignore", divide="ignore"):
        along = (r1**2 - r2**2 + apart**2) / (2 * apart)
        chord = 2 * np.sqrt(r1**2 - along**2)
    return chord[np.isfinite(chord) & (chord > 0)] / np.pi


def _fit_circles(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Least-squares circles through each row: centres (R, 2), radii (R,).

    The algebraic fit: x^2 + y^2 = 2 a x + 2 b y + c is linear in a, b and c.
    """
    design = np.concatenate([2 * rows, np.ones((*rows.shape[:2], 1))], axis=2)
    squares = (rows**2).sum(axis=2)
    solution = np.stack(
        [np.linalg.lstsq(a, y, rcond=None)[0] for a, y in zip(design, squares, strict=True)]
    )
    centres = solution[:, :2]
    return centres, np.sqrt(solution[:, 2] + (centres**2).sum(axis=1))
