"""Photographs of a board, taken well and in seven wrong ways, for docs/is-it-good.md.

``python -m docs.calibrations photos`` renders them, a folder each: a camera of 960 x 640 pixels and
an AprilGrid of 5 x 7 tags, 16 photographs of every kind. Only what is wrong differs. ``figure``
draws what a calibration makes of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import influx_wrap as iw  # before numpy: then results are the same on every processor

# isort: split
import cv2
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from influx_wrap.calibrate.uncertainty import uncertainty_map
from influx_wrap.model.arrays import FloatArray, Picture
from influx_wrap.model.pose import rotation_matrix
from influx_wrap.model.target import AprilGrid
from influx_wrap.report.binned import arrows
from influx_wrap.report.style import ERROR_RAMP, INK, MARK, new_figure, styled
from influx_wrap.run.page import used_residuals
from influx_wrap.synth.board import FRONTAL
from influx_wrap.synth.render import (
    MARGIN_PX,
    RayGrid,
    RenderOptions,
    ray_grid,
    render_board,
    render_moving,
)

TARGET = AprilGrid(tag_cols=7, tag_rows=5, tag_size_m=0.04, tag_spacing=0.3)
SIZE = (960, 640)
TRUTH = iw.Intrinsics(fx=900, fy=901, cx=483, cy=316, k1=-0.25, k2=0.08)
SHARP = RenderOptions(blur_px=0.7, noise=3)
N_PHOTOS = 16
FISHEYE_PX = 400.0
"""Focal length of the fisheye: pixels per radian of the angle off the axis."""

_CENTRE = (TARGET.points.min(axis=0) + TARGET.points.max(axis=0)) / 2


@dataclass(frozen=True)
class Hold:
    """How the board is held, at random within limits.

    tilt_deg   about each of its axes
    reach_m    how far its middle is to the side and up or down
    away_m     distances of its middle, the nearest and the farthest
    """

    tilt_deg: float = 35.0
    reach_m: tuple[float, float] = (0.21, 0.13)
    away_m: tuple[float, float] = (0.42, 0.6)


def poses(hold: Hold, seed: int = 0) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Rotation (3, 3) and translation (3,) in m of the board in every photograph."""
    rng = np.random.default_rng(seed)
    for _ in range(N_PHOTOS):
        turn = rng.uniform(-hold.tilt_deg, hold.tilt_deg, 3)
        rotation = rotation_matrix(np.radians(turn)) @ FRONTAL
        side = rng.uniform(-1, 1, 2) * hold.reach_m
        place = np.array([*side, rng.uniform(*hold.away_m)])
        yield rotation, place - rotation @ _CENTRE


def photographed(
    hold: Hold,
    rays: RayGrid | None = None,
    bow_m: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> Iterator[Picture]:
    """The board as it is held, by a camera of these rays; of ``TRUTH`` if None."""
    rng = np.random.default_rng(1)
    for pose in poses(hold):
        yield render_board(rays or ray_grid(TRUTH, SIZE), TARGET, *pose, SHARP, rng, bow_m=bow_m)


def good() -> Iterator[Picture]:
    """Everywhere in the picture, tilted in all directions, sharp."""
    return photographed(Hold())


def middle() -> Iterator[Picture]:
    """Far away, in the middle of the picture."""
    return photographed(Hold(reach_m=(0.06, 0.04), away_m=(1.0, 1.3)))


def flat() -> Iterator[Picture]:
    """Parallel to the sensor, always."""
    return photographed(Hold(tilt_deg=1.0))


def same() -> Iterator[Picture]:
    """On a table, where nobody moves it."""
    return photographed(Hold(tilt_deg=0.3, reach_m=(0.002, 0.002), away_m=(0.45, 0.452)))


def fisheye() -> Iterator[Picture]:
    """A lens that k1, k2, p1 and p2 do not describe."""
    return photographed(Hold(reach_m=(0.24, 0.16), away_m=(0.22, 0.32)), fisheye_rays())


def bent() -> Iterator[Picture]:
    """A sheet of paper that is not glued to anything: its middle is 2 mm off its edges."""
    return photographed(Hold(), bow_m=(0.002, 0.0, 0.0))


def moved() -> Iterator[Picture]:
    """Never at rest while the shutter is open: corners are smeared over about 10 pixels."""
    rng = np.random.default_rng(2)
    for rotation, translation in poses(Hold()):
        step = np.array([*rng.uniform(-1, 1, 2), 0.0])
        step *= 0.0055 / np.linalg.norm(step)
        turned = rotation_matrix(np.radians(rng.uniform(-0.5, 0.5, 3))) @ rotation
        ends = np.stack([rotation, turned]), np.stack([translation, translation + step])
        yield render_moving(ray_grid(TRUTH, SIZE), TARGET, *ends, SHARP, rng)


def zoomed() -> Iterator[Picture]:
    """The zoom ring was touched after the first half."""
    longer = replace(TRUTH, fx=1.05 * TRUTH.fx, fy=1.05 * TRUTH.fy)
    rng = np.random.default_rng(1)
    for k, pose in enumerate(poses(Hold())):
        camera = TRUTH if k < N_PHOTOS // 2 else longer
        yield render_board(ray_grid(camera, SIZE), TARGET, *pose, SHARP, rng)


def fisheye_rays() -> RayGrid:
    """Of an equidistant fisheye: so many pixels off the middle as the angle is wide."""
    u, v = (np.arange(-MARGIN_PX, n + MARGIN_PX + 1) - 0.5 for n in SIZE)
    x, y = np.meshgrid(u - (SIZE[0] - 1) / 2, v - (SIZE[1] - 1) / 2)
    radius_px = np.hypot(x, y)
    angle = radius_px / FISHEYE_PX
    with np.errstate(invalid="ignore"):
        scale = np.where(
            angle < np.radians(88), np.tan(angle) / np.maximum(radius_px, 1e-9), np.nan
        )
    return RayGrid(SIZE, scale * x, scale * y)


KINDS: dict[str, Callable[[], Iterator[Picture]]] = {
    kind.__name__: kind for kind in (good, middle, flat, same, fisheye, bent, moved, zoomed)
}


SHOWN = 4
UNCERTAIN_PX = 0.003, 30.0
"""The ends of the colours, the same in all figures."""


@styled
def figure(photos: Path, board: str | None = None) -> Figure:
    """Some photographs, how well a projected point is known where, and what is left over.

    board  what is said about the board, if something is
    """
    camera = iw.calibrate_camera(photos, board)
    fit, seen = camera.calibration, camera.views.observations
    assert camera.assessment is not None
    drawn = new_figure(12.0, 2.9)
    axes = drawn.subplots(1, 3)
    _draw_photos(axes[0], [cv2.imread(str(path)) for path in sorted(photos.glob("*.png"))[:SHOWN]])
    known = uncertainty_map(fit.intrinsics, fit.covariance, SIZE, 41)
    shown = axes[1].imshow(
        known, ERROR_RAMP, LogNorm(*UNCERTAIN_PX), extent=(0, SIZE[0], SIZE[1], 0)
    )
    axes[1].plot(*seen.uv[seen.valid].T, ".", color=INK, markersize=1, alpha=0.35)
    drawn.colorbar(shown, ax=axes[1], label="px", fraction=0.031, ticks=[0.01, 0.1, 1, 10])
    axes[1].set_title("corners, and how uncertain a point is")
    _draw_residuals(axes[2], *used_residuals(seen, fit, fit.poses))
    for panel in axes[1:]:
        panel.set(xlim=(0, SIZE[0]), ylim=(SIZE[1], 0), xticks=[], yticks=[], aspect="equal")
    return drawn


def _draw_photos(axes: Axes, pictures: list[Picture]) -> None:
    """In two rows."""
    half = len(pictures) // 2
    small = [
        cv2.resize(one, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA) for one in pictures
    ]
    framed = [
        cv2.copyMakeBorder(one, 6, 6, 6, 6, cv2.BORDER_CONSTANT, value=(255,) * 3) for one in small
    ]
    axes.imshow(np.vstack([np.hstack(framed[:half]), np.hstack(framed[half:])]))
    axes.set_title("some of the photographs")
    axes.axis("off")


def _draw_residuals(axes: Axes, uv: FloatArray, residuals: FloatArray) -> None:
    """Mean residuals of the parts of the picture, the typical one a thirtieth of its width."""
    means = arrows(uv, residuals, SIZE)
    typical = float(np.median(np.linalg.norm(means[:, 2:4], axis=1)))
    quiver = axes.quiver(
        *means[:, :4].T, angles="xy", scale_units="xy", scale=30 * typical / SIZE[0],
        color=MARK, width=0.004,
    )  # fmt: skip
    key_px = float(f"{2 * typical:.1g}")
    axes.quiverkey(quiver, 0.78, 1.06, key_px, f"{key_px:g} px", labelpos="E", labelcolor=INK)
    axes.set_title("residuals of the fit")


def write(folder: Path) -> None:
    """``folder/KIND/00.png`` and on."""
    for name, kind in KINDS.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for k, picture in enumerate(kind()):
            cv2.imwrite(str(folder / name / f"{k:02d}.png"), picture)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
