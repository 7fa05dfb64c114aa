"""Which corners are outliers.

A corner is an outlier if its residual is far larger than those around it. "Around" matters: where
the lens model does not reach, mostly near the picture's rim, all residuals are large, and what
they show is the model's error, not the corners'. So the noise level is taken from the median
residual of every ring around the picture's centre, and a ring that is worse than the picture as a
whole keeps its corners.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from influx_wrap.calibrate.problem import Problem
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.intrinsics import image_centre
from influx_wrap.model.robust import MEDIAN_LENGTH

OUTLIER_SIGMAS = 4.5
MIN_CORNERS_PER_VIEW = 6
MIN_INLIER_SHARE = 0.5
RINGS = 8
MIN_CORNERS_PER_RING = 30
"""A ring with fewer has the noise of the ring within it."""
EIGHTY_PERCENT_LENGTH = math.sqrt(2 * math.log(5))
"""Length that 80 % of two-dimensional Gaussian vectors stay below, in standard deviations."""


@dataclass(frozen=True, eq=False)
class Rings:
    """Rings of equal width around the picture's centre.

    of_corner   (C, CHUNK) the ring that each corner lies in
    outer_px    (RINGS,) outer radius
    corners     (RINGS,) how many corners were seen there
    """

    of_corner: IntArray
    outer_px: FloatArray
    corners: IntArray


def make_rings(problem: Problem) -> Rings:
    """The rings of a problem, out to the corner that is farthest from the centre."""
    seen = problem.point >= 0
    pixels = problem.data.reshape(len(problem.data), -1, problem.point.shape[1])[:, 3:5]
    cx, cy = image_centre(problem.image_size)
    radius = np.hypot(pixels[:, 0] - cx, pixels[:, 1] - cy)
    outer = np.linspace(0, radius[seen].max(), RINGS + 1)[1:]
    of_corner = np.minimum(np.searchsorted(outer, radius), RINGS - 1)
    return Rings(of_corner, outer, np.bincount(of_corner[seen], minlength=RINGS))


def ring_noise(
    problem: Problem, rings: Rings, squared: FloatArray, active: BoolArray
) -> tuple[float, FloatArray]:
    """Noise per axis of the picture as a whole, and of every ring (RINGS,), at least as large.

    squared  (C, CHUNK) squared lengths of the residuals
    active   (C, CHUNK) corners that the picture's noise is taken from
    """
    overall = float(np.sqrt(np.median(squared[active]))) / MEDIAN_LENGTH
    noise = np.full(RINGS, overall)
    seen = problem.point >= 0
    for ring in range(RINGS):
        here = seen & (rings.of_corner == ring)
        n = int(rings.corners[ring])
        if n < MIN_CORNERS_PER_RING:
            noise[ring] = noise[max(ring - 1, 0)]
            continue
        own = float(np.sqrt(np.median(squared[here]))) / MEDIAN_LENGTH
        # A median of n has a chance of its own: four of its standard deviations.
        if own > overall * (1 + 2.9 / np.sqrt(n)):
            noise[ring] = own
    return overall, noise


def _outlier_reach(
    problem: Problem, rings: Rings, squared: FloatArray, overall: float, noise: FloatArray
) -> FloatArray:
    """(RINGS,) the noise that outliers are judged by. Where the model does not reach, residuals
    grow within a ring, and the median says too little of its outer part."""
    reach = noise.copy()
    for ring in np.flatnonzero((noise > overall) & (rings.corners >= MIN_CORNERS_PER_RING)):
        here = (problem.point >= 0) & (rings.of_corner == ring)
        far = math.sqrt(float(np.quantile(squared[here], 0.8))) / EIGHTY_PERCENT_LENGTH
        reach[ring] = max(noise[ring], far)
    return np.maximum.accumulate(reach)


def inlying_corners(
    problem: Problem, rings: Rings, residual: FloatArray, active: BoolArray, allowed: BoolArray
) -> BoolArray:
    """(C, CHUNK) which corners with residuals (C, CHUNK, 2) are no outliers; of views that are
    mostly outliers, none.

    active   corners that took part in the fit; allowed those that may
    """
    squared = (residual**2).sum(axis=2)
    overall, noise = ring_noise(problem, rings, squared, active)
    reach = _outlier_reach(problem, rings, squared, overall, noise)
    inlier = allowed & (squared <= (OUTLIER_SIGMAS * reach[rings.of_corner]) ** 2)
    seen = np.add.reduceat(problem.count, problem.first[:-1])
    kept = np.add.reduceat(inlier.sum(axis=1), problem.first[:-1])
    hopeless = (kept < MIN_CORNERS_PER_VIEW) | (kept < MIN_INLIER_SHARE * seen)
    inlier[hopeless[problem.view_of_chunk]] = False
    return inlier
