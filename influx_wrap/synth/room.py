"""A textured room, and a camera that walks through it: pictures that any method can be tried on.

What structure from motion needs is in it: walls, floor and boxes at many depths, some of them
around the point the camera looks at, so that a long lens sees depth too; paint with detail at
every scale; and a camera that moves sideways, up and down and forward while it turns a little.
All of it is sharp: there is neither defocus nor motion blur, as with a small aperture and a
short exposure.

World space is that of a level camera: x to the right, y down, z forward, in metres. Its origin
is at the camera's height in the middle of its path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics, pixel_rays
from influx_wrap.model.pose import rotation_matrix
from influx_wrap.synth.render import NORMAL
from influx_wrap.synth.room_kernels import (
    N_OCTAVES,
    develop_colour,
    expose_room,
    find_surfaces,
)

ROOM_M = ((-5.0, 5.0), (-2.0, math.nan), (-3.0, 9.5))
"""Walls left and right, ceiling, walls behind and ahead; the floor is the camera's height below."""
LOOK_AT_M = (0.0, 0.1, 6.5)
N_AROUND, N_NEAR_AXIS = 26, 12
WALK_M = (0.9, 0.15, 0.4)
"""How far the camera gets from the middle of its path, in x, y and z."""
ROLL_RAD = math.radians(1.5)
LIGHT = np.array([0.35, -0.8, -0.5])
"""Where the light comes from: above, right, and behind the camera."""

_NEAR_M = 1e-3


@dataclass(frozen=True, eq=False)
class Room:
    """Boxes (B,), the first of which is the room itself.

    rotations  (B, 3, 3) from the boxes' axes to the world's
    centres_m  (B, 3)
    half_m     (B, 3) half of their sizes
    tints      (B, 3) brightness, blue first, of 255
    painted    (B,) how much the paint changes it, from 0 to 1
    seed       of the paint
    """

    rotations: FloatArray
    centres_m: FloatArray
    half_m: FloatArray
    tints: FloatArray
    painted: FloatArray
    seed: int


def make_room(floor_m: float, rng: np.random.Generator) -> Room:
    """A room whose floor is ``floor_m`` below the camera, with boxes that stand and hang in it."""
    low, high = np.array(ROOM_M).T
    high[1] = floor_m
    half = rng.uniform([0.12, 0.15, 0.12], [0.45, 0.7, 0.45], (N_AROUND, 3))
    depth = rng.uniform(3.2, 9.0, N_AROUND)
    aside = np.sign(rng.uniform(-1, 1, N_AROUND)) * rng.uniform(0.6, 0.6 * depth)
    aside = np.clip(aside, low[0] + 0.5, high[0] - 0.5)
    stands = rng.uniform(size=N_AROUND) < 0.6
    level = np.where(stands, floor_m - half[:, 1], rng.uniform(-1.6, 0.6, N_AROUND))
    around = np.column_stack([aside, level, depth])

    small_half = rng.uniform(0.05, 0.16, (N_NEAR_AXIS, 3))
    small_depth = np.linspace(4.2, 9.0, N_NEAR_AXIS)
    small = np.array(LOOK_AT_M) * np.array([1, 1, 0]) + np.column_stack(
        [rng.uniform(-0.55, 0.55, N_NEAR_AXIS), rng.uniform(-0.4, 0.4, N_NEAR_AXIS), small_depth]
    )
    n = 1 + N_AROUND + N_NEAR_AXIS
    turns = np.zeros((n, 3))
    turns[1:, 1] = rng.uniform(-0.8, 0.8, n - 1)
    return Room(
        rotation_matrix(turns),
        np.vstack([(low + high) / 2, around, small]),
        np.vstack([(high - low) / 2, half, small_half]),
        rng.uniform(85, 150, (n, 3)),
        np.ones(n),
        int(rng.integers(1 << 32)),
    )


def walk(n_frames: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Poses (F, 3, 3), (F, 3) from the world to the camera, in F frames of a smooth walk."""
    time = np.linspace(0, 1, n_frames) if n_frames > 1 else np.zeros(1)
    phase = rng.uniform(0, 2 * math.pi, 5)
    side = 1 if rng.uniform() < 0.5 else -1
    swings = [
        -side * np.cos(math.pi * time),
        np.sin(2 * math.pi * time + phase[0]),
        np.sin(math.pi * time + phase[1]),
    ]
    positions = np.array(WALK_M) * np.column_stack(swings)
    wander = np.sin(2 * math.pi * time[:, None] + phase[2:4]) * [0.2, 0.12]
    look = np.array(LOOK_AT_M) + np.column_stack([wander, np.zeros(n_frames)]) - positions
    yaw = np.arctan2(look[:, 0], look[:, 2])
    pitch = -np.arctan2(look[:, 1], np.hypot(look[:, 0], look[:, 2]))
    roll = ROLL_RAD * np.sin(2 * math.pi * time + phase[4])
    axes = np.eye(3)
    to_world = (
        rotation_matrix(yaw[:, None] * axes[1])
        @ rotation_matrix(pitch[:, None] * axes[0])
        @ rotation_matrix(roll[:, None] * axes[2])
    )
    rotations = to_world.transpose(0, 2, 1)
    return rotations, -np.einsum("fij,fj->fi", rotations, positions)


def render_room(
    room: Room,
    intrinsics: Intrinsics,
    image_size: tuple[int, int],
    rotation: FloatArray,
    translation: FloatArray,
    rng: np.random.Generator,
    *,
    noise: float = 0.0,
    vignetting: float = 0.0,
) -> NDArray[np.uint8]:
    """Picture (H, W, 3), blue first, of (width, height) pixels from the pose ``rotation`` (3, 3),
    ``translation`` (3,), which takes the world to camera space.

    ``noise`` is a standard deviation, of 255, and ``rng`` drawn from only if there is any;
    ``vignetting`` the part of the light that is lost in the corners. Pixels that no ray
    reaches are black.
    """
    width, height = image_size
    a, b = pixel_rays(intrinsics, (width + 1, height + 1), (-0.5, -0.5))
    surfaces = np.empty(a.shape, dtype=np.int32)
    light = np.empty((height, 3, width), dtype=np.float32)
    solids, bounds = _solids(room, rotation, translation), _bounds(room, rotation, translation)
    find_surfaces(a, b, solids, bounds, surfaces)
    keys = np.random.default_rng(room.seed).integers(
        1 << 32, size=(6 * len(room.half_m), N_OCTAVES), dtype=np.uint32
    )
    expose_room(a, b, surfaces, solids, bounds, _lit(room), room.painted, keys, light)
    corner = max((width - 1) ** 2 + (height - 1) ** 2, 1)
    shape = light.shape if noise > 0 else (0, 0, 0)
    draws = rng.integers(0, len(NORMAL), shape, dtype=np.uint16)
    grain = (noise * NORMAL).astype(np.float32)
    picture = np.empty((height, width, 3), dtype=np.uint8)
    develop_colour(light, vignetting / corner, grain, draws, picture)
    return picture


def _solids(room: Room, rotation: FloatArray, translation: FloatArray) -> FloatArray:
    """(B, 15) what the kernel knows of the boxes: camera, rays and half sizes in their axes."""
    camera = -rotation.T @ translation
    to_box = room.rotations.transpose(0, 2, 1)
    origins = np.einsum("bij,bj->bi", to_box, camera - room.centres_m)
    rays = (to_box @ rotation.T).reshape(-1, 9)
    return np.hstack([origins, rays, room.half_m])


def _bounds(room: Room, rotation: FloatArray, translation: FloatArray) -> FloatArray:
    """(B, 4) ranges of a and b that the boxes are seen in; everything if one reaches behind the
    camera, nothing if it is all there."""
    signs = np.array(list(product((-1, 1), repeat=3)))
    corners = np.einsum("bij,bkj->bki", room.rotations, signs * room.half_m[:, None])
    xyz = (corners + room.centres_m[:, None]) @ rotation.T + translation
    depth = xyz[..., 2]
    ab = xyz[..., :2] / np.maximum(depth, _NEAR_M)[..., None]
    bounds = np.stack([ab.min(axis=1), ab.max(axis=1)], axis=-1).reshape(-1, 4)
    everything = np.tile([-np.inf, np.inf], 2)
    bounds[(depth <= _NEAR_M).any(axis=1)] = everything
    bounds[(depth <= _NEAR_M).all(axis=1)] = -everything
    return bounds


def _lit(room: Room) -> NDArray[np.float32]:
    """(6 B, 3) brightness of all faces, lit from ``LIGHT``."""
    faces = np.repeat(np.eye(3), 2, axis=0) * np.tile([-1, 1], 3)[:, None]
    normals = np.einsum("bij,fj->bfi", room.rotations, faces)
    # The room is seen from inside.
    normals[0] *= -1
    lit = 0.75 + 0.25 * normals @ (LIGHT / np.linalg.norm(LIGHT))
    return (lit[..., None] * room.tints[:, None]).reshape(-1, 3).astype(np.float32)
