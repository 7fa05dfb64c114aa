"""How a board is moved in front of a running camera: jerkily (the paper's supplement).

It is held in a pose for a few frames, by a hand that trembles by a fraction of a pixel,
and then moved to the next pose within a few frames, speeding up and slowing down
smoothly. The shutter is open for the first half of every frame, so the board is sharp
while it is held and smeared while it is moved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray, IntArray

FPS = 24
SHUTTER = 0.5
"""The part of a frame's time in which the shutter is open: 180 degrees of its turn."""

HOLD_FRAMES = (6, 14)
MOVE_FRAMES = (3, 8)
TREMOR_HZ = 9.0


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The poses of a board in F frames.

    rotations     (F, 2, 3, 3) and
    translations  (F, 2, 3): from board to camera space when the shutter opens and closes
    pose          (F,) number of the pose the board is held in; -1: it is moved
    """

    rotations: FloatArray
    translations: FloatArray
    pose: IntArray

    def mid_exposure(self) -> tuple[FloatArray, FloatArray]:
        """Poses (F, 3, 3), (F, 3) half-way between the shutter's opening and closing."""
        opened, closed = self.rotations[:, 0], self.rotations[:, 1]
        step = Rotation.from_matrix(opened.transpose(0, 2, 1) @ closed).as_rotvec()
        return opened @ Rotation.from_rotvec(0.5 * step).as_matrix(), self.translations.mean(axis=1)


def standing(rotations: FloatArray, translations: FloatArray) -> Trajectory:
    """One frame for each of the poses (P, 3, 3), (P, 3), in which the board stands still."""
    return Trajectory(
        np.repeat(rotations[:, None], 2, axis=1),
        np.repeat(translations[:, None], 2, axis=1),
        np.arange(len(rotations)),
    )


def jerky(
    rotations: FloatArray,
    translations: FloatArray,
    middle: ArrayLike,
    tremor_rad: float,
    rng: np.random.Generator,
) -> Trajectory:
    """From one of the poses (P, 3, 3), (P, 3) to the next.

    ``middle`` (3,) is the board's point that is led along straight lines, ``tremor_rad`` the
    amplitude of its trembling as seen by the camera.
    """
    n_poses = len(rotations)
    if n_poses == 0:
        raise InputError("a board's motion needs at least one pose.")
    middle = np.asarray(middle, dtype=float)
    centres = rotations @ middle + translations
    turns = Rotation.from_matrix(rotations)
    held = rng.integers(*HOLD_FRAMES, n_poses, endpoint=True)
    moved = rng.integers(*MOVE_FRAMES, n_poses, endpoint=True)
    moved[-1] = 0

    start = np.concatenate([[0], np.cumsum(held + moved)])
    number = np.repeat(np.arange(n_poses), held + moved)
    frame = np.arange(start[-1])
    since = frame - start[number]
    time = since[:, None] + np.array([0.0, SHUTTER])
    progress = np.clip((time - held[number][:, None]) / np.maximum(moved[number], 1)[:, None], 0, 1)
    eased = progress**2 * (3 - 2 * progress)

    after = np.minimum(number + 1, n_poses - 1)
    step = (turns[number].inv() * turns[after]).as_rotvec()
    turned = turns[np.repeat(number, 2)] * Rotation.from_rotvec(
        (eased[..., None] * step[:, None]).reshape(-1, 3)
    )
    path = centres[number][:, None] + eased[..., None] * (centres[after] - centres[number])[:, None]
    path = path + _tremor(frame[:, None] + time - since[:, None], path, tremor_rad, rng)

    matrices = turned.as_matrix().reshape(-1, 2, 3, 3)
    pose = np.where(since < held[number], number, -1)
    return Trajectory(matrices, path - matrices @ middle, pose)


def _tremor(
    time: FloatArray, path: FloatArray, tremor_rad: float, rng: np.random.Generator
) -> FloatArray:
    """Displacements (F, 2, 3) at ``time`` (F, 2) in frames of a point on ``path`` (F, 2, 3)."""
    phase = rng.uniform(0, 2 * math.pi, 3)
    # The axes tremble at rates of their own, or the point would run on a line.
    rate_hz = TREMOR_HZ * np.array([1.0, 1.13, 0.91])
    swing = np.sin(2 * math.pi * rate_hz * time[..., None] / FPS + phase)
    result: FloatArray = tremor_rad * np.linalg.norm(path, axis=-1, keepdims=True) * swing
    return result


def between(
    rotations: FloatArray, translations: FloatArray, parts: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Poses (n, 3, 3), (n, 3) on the way from the first of two to the second, at ``parts``
    (n,) of the way."""
    parts = np.asarray(parts, dtype=float)
    step = Rotation.from_matrix(rotations[0].T @ rotations[1]).as_rotvec()
    turned = rotations[0] @ Rotation.from_rotvec(parts[:, None] * step).as_matrix()
    path = translations[0] + parts[:, None] * (translations[1] - translations[0])
    return turned, path
