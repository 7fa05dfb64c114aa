"""Pictures of boards as cameras take them, a fisheye among them, whose answer is known."""

from __future__ import annotations

import math
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.pattern import cell_pattern
from influx_wrap.model.target import BoardTarget
from influx_wrap.synth.render import RenderOptions, ray_grid, render_board
from tests.boards import ink

SIZE = (640, 480)
CAMERA = Intrinsics(560.0, 559.0, 325.0, 236.0, -0.12, 0.05, 4e-4, -3e-4)
FISHEYE_DEG = 170.0
"""Over the diagonal."""
SAMPLES = 3
PAPER_M = 0.05


def poses(
    target: BoardTarget, n: int, reach_deg: tuple[float, float], distance: tuple[float, float]
) -> list[tuple[FloatArray, FloatArray]]:
    """Rotations (3, 3) and translations (3,) of a board, tilted and all over the picture.

    The board's middle is up to ``reach_deg`` to the side and up or down, and between two
    ``distance``s away, in lengths of its longer side.
    """
    rng = np.random.default_rng(3)
    middle = target.points.mean(axis=0)
    side_m = float(np.ptp(target.points[:, :2], axis=0).max())
    made = []
    for _ in range(n):
        yaw, pitch = np.radians(rng.uniform(-1, 1, 2) * reach_deg)
        look = cv2.Rodrigues(np.array([-pitch, 0, 0]))[0] @ cv2.Rodrigues(np.array([0, yaw, 0]))[0]
        tilt = cv2.Rodrigues(np.array([*rng.uniform(-0.5, 0.5, 2), 0.0]))[0]
        turn = cv2.Rodrigues(np.array([0, 0, rng.uniform(-0.3, 0.3)]))[0]
        rotation = look @ np.diag([1.0, -1.0, -1.0]) @ tilt @ turn
        away = side_m * rng.uniform(*distance) * look[:, 2]
        made.append((rotation, away - rotation @ middle))
    return made


def pinhole_poses(target: BoardTarget, n: int) -> list[tuple[FloatArray, FloatArray]]:
    """How the board is held in ``pinhole_pictures``."""
    return poses(target, n, (15, 10), (1.2, 1.8))


def pinhole_pictures(target: BoardTarget, n: int = 12) -> list[NDArray[np.uint8]]:
    """Pictures (H, W) of ``CAMERA``."""
    rng = np.random.default_rng(0)
    options = RenderOptions(blur_px=0.6, noise=2)
    return [
        render_board(ray_grid(CAMERA, SIZE), target, rotation, translation, options, rng)
        for rotation, translation in pinhole_poses(target, n)
    ]


def fisheye_pictures(target: BoardTarget, n: int = 14) -> list[NDArray[np.uint8]]:
    """Pictures (H, W) of an equidistant lens: a ray is as many pixels from the middle as it has
    radians from the axis, times the focal length."""
    return [_fisheye(target, *pose) for pose in poses(target, n, (45, 32), (0.55, 0.9))]


def _fisheye(
    target: BoardTarget, rotation: FloatArray, translation: FloatArray
) -> NDArray[np.uint8]:
    width, height = SIZE
    focal_px = math.hypot(*SIZE) / 2 / math.radians(FISHEYE_DEG / 2)
    u, v = ((np.arange(n * SAMPLES) + 0.5) / SAMPLES - n / 2 for n in (width, height))
    x, y = np.meshgrid(u, v)
    angle = np.hypot(x, y) / focal_px
    sideways = np.sinc(angle / np.pi) / focal_px
    rays = np.stack([x * sideways, y * sideways, np.cos(angle)], axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        depth = (translation @ rotation[:, 2]) / (rays @ rotation[:, 2])
        on_board = (rays * depth[..., None] - translation) @ rotation
    pattern = cell_pattern(target)
    low = np.array([pattern.x_m[0], pattern.y_m[0]]) - PAPER_M
    high = np.array([pattern.x_m[-1], pattern.y_m[-1]]) + PAPER_M
    seen = (depth > 0) & ((on_board[..., :2] > low) & (on_board[..., :2] < high)).all(axis=-1)
    light = np.full(seen.shape, 110.0)
    light[seen] = np.where(ink(target, *on_board[seen][:, :2].T), 20.0, 235.0)
    means = light.reshape(height, SAMPLES, width, SAMPLES).mean(axis=(1, 3))
    return np.round(means).astype(np.uint8)


def write_photographs(folder: Path, pictures: list[NDArray[np.uint8]], name: str = "photo") -> Path:
    """Write pictures as photo00.png and so on into a new folder."""
    folder.mkdir(parents=True)
    for i, picture in enumerate(pictures):
        cv2.imwrite(str(folder / f"{name}{i:02d}.png"), picture)
    return folder
