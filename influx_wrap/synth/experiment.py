"""One simulated experiment: what a detector would report, and the truth behind it.

Board experiments follow Kalibr's detection rules: a tag is found whole or not at
all, not within a few pixels of the border, and a view counts only with enough tags.
Drone experiments are one view of the 24 hover points, whose reported positions
carry the receiver's error and are handed over in a frame of their own, scaled into
the unit sphere (the paper's synthetic experiments).

Every random number is drawn whether its noise is switched on or not, so experiments
that differ in their noise settings alone share everything else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.experiment import Cell
from influx_wrap.model.flight import hover_points_m
from influx_wrap.model.hardware import Board, Camera
from influx_wrap.model.intrinsics import Intrinsics, project
from influx_wrap.model.observations import Observations
from influx_wrap.model.optics import lens_to_object_m
from influx_wrap.model.pose import rotation_matrix, transform
from influx_wrap.model.target import PointCloud, bow_basis
from influx_wrap.model.truth import Noise, Truth
from influx_wrap.synth.board import board_poses

BORDER_PX = 4.0


@dataclass(frozen=True, eq=False)
class Experiment:
    """Observations, and what they are observations of."""

    observations: Observations
    truth: Truth


def cell_generator(seed: int, cell: Cell) -> np.random.Generator:
    """The generator of one cell: the same whatever other cells are simulated."""
    return np.random.default_rng([seed, cell.zoom_index, cell.focus_index])


def simulate(
    cell: Cell,
    camera: Camera,
    truth: Intrinsics,
    noise: Noise,
    rng: np.random.Generator,
    depth_m: float | None = None,
) -> Experiment:
    """Simulate the experiment ``cell`` with a camera whose intrinsics are ``truth``.

    ``depth_m`` is from the centre of projection to the plane in focus; None: a thin lens's.
    """
    if math.isinf(cell.fd_m):
        raise InputError(f"cell {cell.name} is focused at infinity, where no target can be held.")
    if depth_m is None:
        depth_m = lens_to_object_m(1e-3 * truth.fx * camera.pixel_um, cell.fd_m)
    if cell.board is None:
        return _simulate_drone(depth_m, camera, truth, noise, rng)
    return _simulate_board(cell.board, depth_m, camera, truth, noise, rng)


def _simulate_board(
    board: Board,
    depth_m: float,
    camera: Camera,
    truth: Intrinsics,
    noise: Noise,
    rng: np.random.Generator,
) -> Experiment:
    grid = board.grid
    rotations, translations = board_poses(board, camera, truth, depth_m, rng)
    bow_m = _bow_m(noise.bow_mm, rng)
    points = grid.points + np.array([0, 0, 1]) * (bow_basis(grid.points) @ bow_m)[:, None]
    exact, valid = project(truth, transform(rotations, translations, points))
    valid &= _inside(exact, camera.image_size, BORDER_PX)

    by_tag = np.argsort(grid.tag_of_point, kind="stable").reshape(-1, 4)
    tags = np.logical_and.reduce(valid[:, by_tag], axis=2)
    tags &= ~_random_share(tags, noise.missing_tags, rng)
    valid = tags[:, grid.tag_of_point]
    uv, outliers = _disturb(exact, valid, camera.image_size, noise, rng)

    kept = tags.sum(axis=1) > max(grid.tag_rows, grid.tag_cols)
    ids = np.flatnonzero(kept)
    return Experiment(
        Observations(grid, uv[kept], valid[kept], camera.image_size, ids),
        Truth(truth, rotations[kept], translations[kept], points, bow_m, outliers[kept], noise),
    )


def _simulate_drone(
    depth_m: float, camera: Camera, truth: Intrinsics, noise: Noise, rng: np.random.Generator
) -> Experiment:
    cfl_mm = 1e-3 * truth.fx * camera.pixel_um
    hovered = hover_points_m(cfl_mm, depth_m + 1e-3 * cfl_mm, camera.sensor_mm)
    exact, valid = project(truth, hovered[None])
    valid &= _inside(exact, camera.image_size, 0.0)

    reported = hovered + noise.rtk_ball_m * _in_unit_ball(len(hovered), rng)
    to_world = _random_rotation(rng)
    centroid = reported.mean(axis=0)
    unit_m = float(np.linalg.norm(reported - centroid, axis=1).max())
    sigma = noise.rtk_ball_m / math.sqrt(5) / unit_m if noise.rtk_ball_m > 0 else None
    target = PointCloud((reported - centroid) @ to_world.T / unit_m, sigma, unit_m)
    true_points = (hovered - centroid) @ to_world.T / unit_m

    uv, outliers = _disturb(exact, valid, camera.image_size, noise, rng)
    return Experiment(
        Observations(target, uv, valid, camera.image_size),
        Truth(
            truth,
            to_world.T[None],
            centroid[None] / unit_m,
            true_points,
            np.zeros(3),
            outliers,
            noise,
        ),
    )


def _disturb(
    exact: FloatArray,
    valid: BoolArray,
    image_size: tuple[int, int],
    noise: Noise,
    rng: np.random.Generator,
) -> tuple[FloatArray, BoolArray]:
    """Pixels (V, T, 2) with noise and outliers, zero where not valid; and the outliers (V, T)."""
    angle = rng.uniform(0, 2 * np.pi, valid.shape)
    length = noise.outlier_px * rng.uniform(0, 1, valid.shape)
    outliers = _random_share(valid, noise.outliers, rng)
    displacement = length[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    uv = exact + noise.corner_px * rng.standard_normal(exact.shape)
    uv = uv + np.where(outliers[..., None], displacement, 0.0)
    uv = np.clip(uv, -0.5, np.array(image_size) - 0.5)
    return np.where(valid[..., None], uv, 0.0), outliers


def _inside(uv: FloatArray, image_size: tuple[int, int], border_px: float) -> BoolArray:
    """(V, T) whether pixels are further than ``border_px`` from the picture's border."""
    u, v = uv[..., 0], uv[..., 1]
    width, height = image_size
    near, far = border_px - 0.5, -border_px - 0.5
    return (u > near) & (v > near) & (u < width + far) & (v < height + far)


def _random_share(candidates: BoolArray, share: float, rng: np.random.Generator) -> BoolArray:
    """A random ``share`` of the True entries, to the nearest whole number."""
    scores = np.where(candidates, rng.uniform(0, 1, candidates.shape), np.inf).ravel()
    chosen = np.zeros(candidates.size, dtype=bool)
    chosen[np.argsort(scores)[: round(share * int(candidates.sum()))]] = True
    return chosen.reshape(candidates.shape)


def _bow_m(bow_mm: float, rng: np.random.Generator) -> FloatArray:
    """(3,) a board bent by ``bow_mm`` about a random axis in its plane.

    z = bow (1 - s^2) with s = x cos + y sin, in the terms of ``bow_basis``.
    """
    angle = rng.uniform(0, np.pi)
    cosine, sine = np.cos(angle), np.sin(angle)
    return 1e-3 * bow_mm * np.array([cosine**2, sine**2, -2 * sine * cosine])


def _in_unit_ball(n: int, rng: np.random.Generator) -> FloatArray:
    """(n, 3) uniform in the unit ball."""
    direction = rng.standard_normal((n, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * np.cbrt(rng.uniform(0, 1, (n, 1)))


def _random_rotation(rng: np.random.Generator) -> FloatArray:
    """(3, 3) uniform over all rotations, from a random unit quaternion."""
    w, *xyz = rng.standard_normal(4)
    sine = float(np.linalg.norm(xyz))
    return rotation_matrix(2 * math.atan2(sine, w) / sine * np.array(xyz))
