"""How fast pictures are made, and how near their corners are to the projection.

Pictures of scene A's camera and board. Times are the processor's on one core, and the
shortest of several, so that a busy machine disturbs them little.
Corners are measured by a method that shares nothing with the renderer: two crossing
edges, blurred by the error function, are fitted to the pixels around each corner.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import cv2
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import least_squares
from scipy.special import ndtr
from threadpoolctl import threadpool_limits

from benchmarks.report import verdict
from benchmarks.scene import BOARD, CAMERA, DEPTH_M, TRUTH
from benchmarks.timing import shortest
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import project
from influx_wrap.synth.board import board_poses
from influx_wrap.synth.render import RenderOptions, ray_grid, render_board, render_moving

MOST_SECONDS = 0.25
MOST_SECONDS_RAYS = 0.4
MOST_SECONDS_MOVING = 1.0
MOST_ERROR_PX = 0.01

STILL = {
    "blur 0.7 px, noise": RenderOptions(blur_px=0.7, noise=2),
    "blur 0.7 px, noise, vignetting": RenderOptions(blur_px=0.7, noise=2, vignetting=0.3),
    "defocus 3 px, blur 0.5 px, noise": RenderOptions(blur_px=0.5, defocus_px=3, noise=2),
}
MOVING = RenderOptions(blur_px=0.7, noise=2)
SMEARS_M = (0.002, 0.006, 0.04)


def fitted_corner(picture: NDArray[np.uint8], near: FloatArray, radius: int = 5) -> FloatArray:
    """The crossing (2,) of two blurred edges that fits the pixels around ``near`` best."""
    column, row = np.rint(near).astype(int)
    window = picture[row - radius : row + radius + 1, column - radius : column + radius + 1]
    v, u = np.mgrid[-radius : radius + 1, -radius : radius + 1].astype(float)

    def misfit(p: FloatArray) -> FloatArray:
        x, y, one, other, contrast, level, sigma = p
        edges = (
            2 * ndtr(((u - x) * np.sin(t) - (v - y) * np.cos(t)) / sigma) - 1 for t in (one, other)
        )
        first, second = edges
        return (level + contrast * first * second - window).ravel()

    angles = np.linspace(0, np.pi, 24, endpoint=False)
    start_xy = near - (column, row)
    starts = [
        np.array([*start_xy, one, other, 100.0, 127.0, 0.8])
        for one in angles
        for other in (one + np.pi / 3, one + np.pi / 2, one + 2 * np.pi / 3)
    ]
    start = min(starts, key=lambda p: float(np.sum(misfit(p) ** 2)))
    x, y = least_squares(misfit, start, method="lm").x[:2]
    return np.array([column + x, row + y])


def run(console: Console) -> bool:
    """Print the report; returns whether all limits are kept."""
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        with threadpool_limits(limits=1):
            passed = [*_speed(console), _corners(console)]
    finally:
        cv2.setNumThreads(threads)
    return all(passed)


def _speed(console: Console) -> list[bool]:
    rotations, translations = board_poses(BOARD, CAMERA, TRUTH, DEPTH_M, np.random.default_rng(0))
    # A tilted board in the middle of the picture.
    rotation, translation = rotations[27], translations[27]
    rng = np.random.default_rng(0)
    scene = ray_grid(TRUTH, CAMERA.image_size), BOARD.grid
    works: list[tuple[str, Callable[[], object], float]]
    works = [("rays of a camera", _fresh_rays, MOST_SECONDS_RAYS)]
    for name, options in STILL.items():
        still = partial(render_board, *scene, rotation, translation, options, rng)
        works.append((name, still, MOST_SECONDS))
    for length_m in SMEARS_M:
        path = translation + np.array([[0.0, 0.0, 0.0], [length_m, 0.0, 0.0]])
        moving = partial(render_moving, *scene, np.stack([rotation] * 2), path, MOVING, rng)
        name = f"moving by {length_m / DEPTH_M * TRUTH.fx:.0f} px, blur 0.7 px, noise"
        works.append((name, moving, MOST_SECONDS_MOVING))
    width, height = CAMERA.image_size
    table = Table("picture", "seconds", "limit", "", title=f"{width} x {height} pixels, one core")
    passed = []
    for name, work, limit in works:
        seconds = shortest(work)
        passed.append(seconds <= limit)
        table.add_row(name, f"{seconds:.3f}", f"<= {limit:g}", verdict(passed[-1]))
    console.print(table)
    return passed


def _fresh_rays() -> None:
    ray_grid.cache_clear()
    ray_grid(TRUTH, CAMERA.image_size)


def _corners(console: Console) -> bool:
    """Errors of corners in every tenth view of scene A, without noise."""
    rotations, translations = board_poses(BOARD, CAMERA, TRUTH, DEPTH_M, np.random.default_rng(0))
    rays, options = ray_grid(TRUTH, CAMERA.image_size), RenderOptions(blur_px=0.7)
    errors = []
    for rotation, translation in zip(rotations[::10], translations[::10], strict=True):
        picture = render_board(
            rays, BOARD.grid, rotation, translation, options, np.random.default_rng(0)
        )
        uv, valid = project(TRUTH, BOARD.grid.points @ rotation.T + translation)
        inside = valid & (uv > 10).all(axis=1) & (uv < np.array(CAMERA.image_size) - 11).all(axis=1)
        errors += [fitted_corner(picture, near) - near for near in uv[inside][::12]]
    apart = np.array(errors)
    worst = float(np.abs(apart).max())
    console.print(
        f"{len(apart)} corners, blur 0.7 px: {np.sqrt(np.mean(apart**2)):.4f} px RMS from the "
        f"projection, shifted by {np.abs(apart.mean(axis=0)).max():.4f} px, the worst "
        f"{worst:.4f} px off (<= {MOST_ERROR_PX:g}) {verdict(worst <= MOST_ERROR_PX)}"
    )
    return worst <= MOST_ERROR_PX
