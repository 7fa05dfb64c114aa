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
from influx_wrap.model.robust import MAD_SIGMA, MEDIAN_LENGTH

OUTLIER_SIGMAS = 4.5
MIN_CORNERS_PER_VIEW = 6
MIN_INLIER_SHARE = 0.5
RINGS = 8
MIN_CORNERS_PER_RING = 30
"""A ring with fewer has the noise of the ring within it."""
EIGHTY_PERCENT_LENGTH = math.sqrt(2 * math.log(5))
"""Length that 80 % of two-dimensional Gaussian vectors stay below, in standard deviations."""
TREND_TERMS = 6
"""Odd powers of the radius, from 1 to 11: k1 and k2 are 3 and 5, the first three are what a fit of
these and of the poses changes on account of the others."""
TREND_SIGMAS = 3.0
"""Residuals that are further from the trend than this, in its noise, hardly take part in it."""
TREND_ROUNDS = 30


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


def corner_weights(
    problem: Problem, rings: Rings, principal_point: FloatArray, residual: FloatArray,
    active: BoolArray, allowed: BoolArray,
) -> FloatArray:  # fmt: skip
    """(C, CHUNK) weights of corners with residuals (C, CHUNK, 2): 0 of outliers, and of all corners
    of views that are mostly outliers, else 1. Where only the trend speaks for a corner it is less,
    the square of the limit over the residual: the further the model is off, the less it is bent.

    active   corners that took part in the fit; allowed those that may
    """
    squared = (residual**2).sum(axis=2)
    overall, noise = ring_noise(problem, rings, squared, active)
    reach = _outlier_reach(problem, rings, squared, overall, noise)[rings.of_corner]
    limit = OUTLIER_SIGMAS * reach
    inlier = allowed & (squared <= limit**2)
    weights = inlier.astype(float)
    doubtful = allowed & ~inlier & (reach > overall)
    if doubtful.any():
        beside, sigma = _beside_trend(problem, principal_point, residual, allowed, doubtful)
        near = np.linalg.norm(beside, axis=1) <= OUTLIER_SIGMAS * np.hypot(reach[doubtful], sigma)
        weights[doubtful] = near * limit[doubtful] ** 2 / squared[doubtful]
    seen = np.add.reduceat(problem.count, problem.first[:-1])
    kept = np.add.reduceat((weights > 0).sum(axis=1), problem.first[:-1])
    hopeless = (kept < MIN_CORNERS_PER_VIEW) | (kept < MIN_INLIER_SHARE * seen)
    weights[hopeless[problem.view_of_chunk]] = 0.0
    return weights


def _beside_trend(
    problem: Problem, principal_point: FloatArray, residual: FloatArray, allowed: BoolArray,
    doubtful: BoolArray,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """(n, 2) residuals of the n doubtful corners, less what the others lead to expect there, and
    (n,) how well that is known, a standard deviation in pixels.

    The trend is radial, robust, and each corner's own say in it is taken out.
    """
    pixels = problem.data.reshape(len(problem.data), -1, problem.point.shape[1])[:, 3:5]
    from_centre = np.moveaxis(pixels, 1, 2)[allowed] - principal_point
    radius = np.linalg.norm(from_centre, axis=1)
    outward = from_centre / np.maximum(radius, 1e-9)[:, None]
    radial = (residual[allowed] * outward).sum(axis=1)
    powers = (radius / radius.max())[:, None] ** np.arange(1, 2 * TREND_TERMS, 2)
    # At first the doubtful ones have no say at all: among few corners two can outvote the rest.
    weights = 1.0 - doubtful[allowed]
    beside, unsure = radial, np.zeros(len(radius))
    for _ in range(TREND_ROUNDS):
        normal = np.linalg.pinv((powers.T * weights) @ powers, hermitian=True)
        spread = np.einsum("ni,ij,nj->n", powers, normal, powers)
        others = np.maximum(1 - weights * spread, 1e-3)
        beside = (radial - powers @ (normal @ (powers.T @ (weights * radial)))) / others
        noise = max(MAD_SIGMA * float(np.median(np.abs(beside))), 1e-9)
        unsure = noise * np.sqrt(spread / others)
        weights = 1 / (1 + (beside / (TREND_SIGMAS * np.hypot(noise, unsure))) ** 2)
    at = doubtful[allowed]
    expected = (radial - beside)[at, None] * outward[at]
    return np.asarray(residual[doubtful] - expected), unsure[at]
