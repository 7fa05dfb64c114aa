"""What at least one of many cameras sees: the union of their fields of view.

A camera's field of view, as seen along its axis, reaches out to some radius in every direction
around the axis; that of many cameras reaches out to the largest of their radii. So the union of
143 000 frames is a table of radii over the directions, and a point takes one look into it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.intrinsics import fold_radii

N_COARSE, N_FINE = 64, 8192
"""In how many directions the widest cameras are looked for, and how many the table has."""
CORNER_TOLERANCE = 5e-4
"""How far a corner may be outside the table, as a share of its radius: about a pixel."""
CHUNK, FEW = 512, 4
LARGEST_RADIUS = 1e3


@dataclass(frozen=True, eq=False)
class Field:
    """``radius`` (K,): how far hypot(x, y) / z goes at the angles 2 pi k / K from x to y."""

    radius: FloatArray

    def contains(self, points: FloatArray) -> BoolArray:
        """(n,) which points (n, 3) in camera space are inside."""
        x, y, z = points.T
        inside = np.zeros(len(points), dtype=bool)
        # Most points of a scan are far outside: they need no angle.
        near = np.flatnonzero((z > 0) & (x * x + y * y <= np.square(self.radius.max() * z)))
        x, y, z = x[near], y[near], z[near]
        inside[near] = np.hypot(x, y) <= self.edge(np.arctan2(y, x)) * z
        return inside

    def edge(self, angle: FloatArray) -> FloatArray:
        """The radii at any angles, between the known ones."""
        place = angle / (2 * np.pi) % 1.0 * len(self.radius)
        below = place.astype(np.int64) % len(self.radius)
        share = place - np.floor(place)
        above: FloatArray = self.radius[(below + 1) % len(self.radius)]
        return (1 - share) * self.radius[below] + share * above


def union_field(theta: FloatArray, image_size: tuple[int, int]) -> Field:
    """The field of view of cameras (n, 8), of which those with NaN do not count.

    The cameras that are widest in some of ``N_COARSE`` directions make the table, and those
    whose corners, which may be between the directions, are outside of it.
    """
    known = theta[np.isfinite(theta).all(axis=1)]
    # From an axis outside the picture, the picture does not reach out in every direction.
    known = known[(_margins(known, image_size) > 0).all(axis=1)]
    if not len(known):
        raise InputError(
            "no frame has true intrinsics with the principal point inside the picture, so no "
            "point is in view. Do the truth and the picture's size belong together?"
        )
    # Sorted by focal length: the widest come first, and few of the others need a close look.
    known = np.unique(known, axis=0)
    coarse = 2 * np.pi * np.arange(N_COARSE) / N_COARSE
    best, widest = np.zeros(N_COARSE), np.zeros(N_COARSE, dtype=np.int64)
    for start in range(0, len(known), CHUNK):
        chunk = known[start : start + CHUNK]
        wider = start + np.flatnonzero(_inside(chunk, image_size, coarse, best).any(axis=1))
        if len(wider):
            radius = edge_radius(known[wider], image_size, coarse)
            first = radius.argmax(axis=0)
            here = radius[first, np.arange(N_COARSE)]
            better = here > best
            best[better], widest[better] = here[better], wider[first[better]]
    fine = 2 * np.pi * np.arange(N_FINE) / N_FINE
    field = Field(edge_radius(known[np.unique(widest)], image_size, fine).max(axis=0))
    for start in range(0, len(known), CHUNK):
        chunk = known[start : start + CHUNK]
        while len(rows := _with_corners_outside(chunk, image_size, field)):
            # A few at a time: the others' corners may be inside then.
            more = edge_radius(chunk[rows[:FEW]], image_size, fine)
            field = Field(np.maximum(field.radius, more.max(axis=0)))
            chunk = np.delete(chunk, rows[:FEW], axis=0)
    return field


def _with_corners_outside(theta: FloatArray, image_size: tuple[int, int], field: Field) -> IntArray:
    """Which cameras (n, 8) have a corner farther out than the field."""
    left, right, top, bottom = _margins(theta, image_size).T
    x = np.column_stack([left, right, left, right]) * [-1, 1, -1, 1]
    y = np.column_stack([top, top, bottom, bottom]) * [-1, -1, 1, 1]
    angle = np.arctan2(y, x)
    radius = (1 + CORNER_TOLERANCE) * field.edge(angle)
    return np.flatnonzero(_inside(theta, image_size, angle, radius).any(axis=1))


def edge_radius(theta: FloatArray, image_size: tuple[int, int], angle: FloatArray) -> FloatArray:
    """(n, k) how far cameras (n, 8) see at the angles (k,) around their axes.

    That is to the edge of the picture, or to the fold of the distortion if it comes first.
    """
    low = np.zeros((len(theta), len(angle)))
    high = np.minimum(fold_radii(theta), LARGEST_RADIUS)[:, None] + low
    for _ in range(44):
        middle = (low + high) / 2
        inside = _inside(theta, image_size, angle, middle)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return low


def _inside(
    theta: FloatArray, image_size: tuple[int, int], angle: FloatArray, radius: FloatArray
) -> BoolArray:
    """(n, k) whether cameras (n, 8) have a direction inside their folds in the picture.

    The direction is ``radius`` from the axis at ``angle``, both (n, k) or (k,). This is
    ``model.intrinsics.project`` for many cameras at once, each with directions of its own.
    """
    left, right, top, bottom = _margins(theta, image_size).T[:, :, None]
    k1, k2, p1, p2 = theta[:, 4:].T[:, :, None]
    a, b, r2 = radius * np.cos(angle), radius * np.sin(angle), radius * radius
    radial, slope = 1 + r2 * (k1 + k2 * r2), 2 * k1 + 4 * k2 * r2
    across = a * radial + 2 * p1 * a * b + p2 * (r2 + 2 * a * a)
    along = b * radial + p1 * (r2 + 2 * b * b) + 2 * p2 * a * b
    across_a = radial + a * a * slope + 2 * p1 * b + 6 * p2 * a
    across_b = a * b * slope + 2 * p1 * a + 2 * p2 * b
    along_b = radial + b * b * slope + 6 * p1 * b + 2 * p2 * a
    inside = (across >= -left) & (across <= right) & (along >= -top) & (along <= bottom)
    inside &= (across_a * along_b > across_b * across_b) & (radius < fold_radii(theta)[:, None])
    return np.asarray(inside)


def _margins(theta: FloatArray, image_size: tuple[int, int]) -> FloatArray:
    """(n, 4) from the axis to the left, right, top and bottom edge, in focal lengths."""
    fx, fy, cx, cy = theta[:, :4].T
    width, height = image_size
    edges = [(cx + 0.5) / fx, (width - 0.5 - cx) / fx, (cy + 0.5) / fy, (height - 0.5 - cy) / fy]
    return np.column_stack(edges)
