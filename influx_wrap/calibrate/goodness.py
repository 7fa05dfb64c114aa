"""How well the model fits: are the residuals noise, or is there structure in them?

Noise has no memory: its mean over many corners is zero wherever these lie. A mean that is not
zero, in a ring around the picture's centre or at a place of the picture, is what lens model or
board file cannot explain. It is measured here in pixels, for the answer of any recipe, with the
pose of every view fitted to that answer and with the corners it left out looked at again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from influx_wrap.calibrate.kernels import residuals as kernel_residuals
from influx_wrap.calibrate.outliers import RINGS, corner_weights, make_rings, ring_noise
from influx_wrap.calibrate.pose import refine_poses
from influx_wrap.calibrate.problem import Problem
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.intrinsics import image_centre

PLACES = (8, 6)
"""Columns and rows of the places that the picture is divided into."""
MIN_CORNERS_PER_PLACE = 12
OUTLYING_VIEW = 2.5
"""RMS of a view, in units of the median one, from which on it is named."""


@dataclass(frozen=True, eq=False)
class Goodness:
    """Residuals of an answer, looked at for structure.

    noise_px        per axis, from the median residual
    rings_px        (RINGS,) outer radii of the rings
    ring_noise_px   (RINGS,) noise of each, at least ``noise_px``
    ring_mean_px    (RINGS,) mean residual away from the centre, less what chance explains
    ring_corners    (RINGS,) how many corners were seen in each
    ring_removed    (RINGS,) share of them left out as outliers; 0 where there is none
    place_excess    (rows, columns) squared mean residual less what chance gives it, px^2, which
                    may be negative; NaN where there are too few corners
    outlying        (n,) views whose residuals are much larger than the others'
    seen            (rows, columns) places that have corners
    """

    noise_px: float
    rings_px: FloatArray
    ring_noise_px: FloatArray
    ring_mean_px: FloatArray
    ring_corners: IntArray
    ring_removed: FloatArray
    place_excess: FloatArray
    outlying: IntArray
    seen: BoolArray

    def reach_px(self, ratio: float) -> float | None:
        """From which radius on noise is ``ratio`` times the picture's or more; None: nowhere."""
        far = np.flatnonzero(self.ring_noise_px >= ratio * self.noise_px)
        if not len(far):
            return None
        return float(self.rings_px[far[0] - 1]) if far[0] else 0.0

    @property
    def corners_of_used_views(self) -> int:
        """How many corners were seen in views that are used."""
        return int(self.ring_corners.sum())

    @property
    def systematic_px(self) -> float:
        """Structure in the residuals, RMS over the picture's places."""
        excess = self.place_excess[np.isfinite(self.place_excess)]
        return float(np.sqrt(max(excess.mean(), 0.0))) if excess.size else 0.0


def goodness_of(
    problem: Problem, theta: FloatArray, bow: FloatArray | None, poses: FloatArray,
    weights: FloatArray,
) -> Goodness:  # fmt: skip
    """Goodness of intrinsics ``theta`` (8,) and the board's ``bow``.

    poses    (V, 12) to begin with; fitted anew
    weights  (C, CHUNK) of the corners that the poses are fitted to
    """
    shape = np.zeros(3) if bow is None else bow
    used = np.add.reduceat((weights > 0).sum(axis=1), problem.first[:-1]) > 0
    # A view that nothing is used of is fitted to all of its corners.
    whole = np.where(used[problem.view_of_chunk][:, None], weights, problem.weights)
    poses = refine_poses(problem, theta, poses, whole, shape)
    residual = kernel_residuals(theta, shape, poses, problem.data, problem.count, problem.first)
    rings = make_rings(problem)
    seen = problem.point >= 0
    active = seen & used[problem.view_of_chunk][:, None]
    inlier = corner_weights(problem, rings, theta[2:4], residual, active, active) > 0
    squared = (residual**2).sum(axis=2)
    noise, by_ring = ring_noise(problem, rings, squared, active)
    corners = np.bincount(rings.of_corner[active], minlength=RINGS)
    taken = np.bincount(rings.of_corner[active & (weights > 0)], minlength=RINGS)
    removed = np.where(corners > 0, 1 - taken / np.maximum(corners, 1), 0.0)
    pixels = problem.data.reshape(len(problem.data), -1, problem.point.shape[1])[:, 3:5]
    uv = np.moveaxis(pixels, 1, 2)
    return Goodness(
        noise_px=noise,
        rings_px=rings.outer_px,
        ring_noise_px=by_ring,
        ring_mean_px=_ring_means(problem, uv, residual, inlier, rings.of_corner),
        ring_corners=corners,
        ring_removed=removed,
        place_excess=_place_excess(problem, uv, residual, inlier),
        outlying=_outlying_views(problem, squared, inlier),
        seen=_seen_places(problem, uv, seen),
    )


def _ring_means(
    problem: Problem, uv: FloatArray, residual: FloatArray, inlier: BoolArray, ring: IntArray
) -> FloatArray:
    outward = uv - np.array(image_centre(problem.image_size))
    outward /= np.maximum(np.linalg.norm(outward, axis=-1, keepdims=True), 1e-9)
    radial = (residual * outward).sum(axis=-1)
    means = np.zeros(RINGS)
    for k in range(RINGS):
        values = radial[inlier & (ring == k)]
        if len(values) >= MIN_CORNERS_PER_PLACE:
            excess = values.mean() ** 2 - values.var() / len(values)
            means[k] = np.sign(values.mean()) * np.sqrt(max(excess, 0.0))
    return means


def _place_of(problem: Problem, uv: FloatArray) -> IntArray:
    columns, rows = PLACES
    size = np.array(problem.image_size)
    place = np.clip(
        ((uv + 0.5) / size * (columns, rows)).astype(np.int64), 0, (columns - 1, rows - 1)
    )
    return place[..., 1] * columns + place[..., 0]


def _place_excess(
    problem: Problem, uv: FloatArray, residual: FloatArray, inlier: BoolArray
) -> FloatArray:
    columns, rows = PLACES
    place = _place_of(problem, uv)
    excess = np.full(columns * rows, np.nan)
    for k in range(columns * rows):
        values = residual[inlier & (place == k)]
        if len(values) >= MIN_CORNERS_PER_PLACE:
            chance = values.var(axis=0, ddof=1).sum() / len(values)
            excess[k] = (values.mean(axis=0) ** 2).sum() - chance
    return excess.reshape(rows, columns)


def _seen_places(problem: Problem, uv: FloatArray, seen: BoolArray) -> BoolArray:
    columns, rows = PLACES
    count = np.bincount(_place_of(problem, uv)[seen], minlength=columns * rows)
    return (count > 0).reshape(rows, columns)


def _outlying_views(problem: Problem, squared: FloatArray, inlier: BoolArray) -> IntArray:
    first = problem.first[:-1]
    corners = np.add.reduceat(inlier.sum(axis=1), first)
    total = np.add.reduceat(np.where(inlier, squared, 0.0).sum(axis=1), first)
    rms = np.sqrt(total / np.maximum(corners, 1))
    typical = np.median(rms[corners > 0]) if (corners > 0).any() else np.inf
    return np.flatnonzero(rms > OUTLYING_VIEW * typical)
