"""Kinds of clips in which a board is filmed, small or large: held, moved, blurred, or gone.

A board is held in poses from which a lens can be calibrated, and carried from one to the next, or
it is waved in front of the camera without pause. Where it is in each frame is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.pose import rotation_matrix
from influx_wrap.model.target import AprilGrid
from influx_wrap.synth.board import FRONTAL
from influx_wrap.synth.motion import SHUTTER, Trajectory, jerky
from influx_wrap.synth.render import RenderOptions, ray_grid, render_moving

TILTS_DEG = (0.0, 0.0), (24.0, 0.0), (-24.0, 0.0), (0.0, 24.0), (0.0, -24.0)
PLACES = (-0.5, -0.4), (0.5, -0.4), (0.0, 0.0), (-0.5, 0.4), (0.5, 0.4)


@dataclass(frozen=True, eq=False)
class Clip:
    """A clip to be filmed.

    camera, size  what films it: intrinsics, and (width, height) in pixels
    shown         (F,) in which frames the board is there at all
    """

    grid: AprilGrid
    camera: Intrinsics
    size: tuple[int, int]
    path: Trajectory
    options: RenderOptions
    shown: BoolArray

    @property
    def n_frames(self) -> int:
        """How many there are."""
        return len(self.path.pose)

    def first(self, n_frames: int) -> Clip:
        """So many frames of it, or all."""
        path, some = self.path, slice(n_frames)
        begun = Trajectory(path.rotations[some], path.translations[some], path.pose[some])
        return replace(self, path=begun, shown=self.shown[some])

    def pictures(self, rng: np.random.Generator) -> Iterator[NDArray[np.uint8]]:
        """Frame by frame (H, W)."""
        rays, options = ray_grid(self.camera, self.size), self.options
        for frame, is_there in enumerate(self.shown):
            if is_there:
                pose = self.path.rotations[frame], self.path.translations[frame]
                yield render_moving(rays, self.grid, *pose, options, rng)
                continue
            noise = rng.normal(options.background, options.noise, self.size[::-1])
            yield np.clip(np.rint(noise), 0, 255).astype(np.uint8)


@dataclass(frozen=True)
class Scene:
    """What clips of one kind have in common.

    fills  how much of the picture's width a frontal board takes
    reach  how far from the picture's middle it is held, in parts of the usual
    """

    grid: AprilGrid
    camera: Intrinsics
    size: tuple[int, int]
    n_poses: int = 10
    fills: float = 0.55
    reach: float = 0.55
    options: RenderOptions = field(default_factory=lambda: RenderOptions(blur_px=0.6, noise=2.0))

    @property
    def middle(self) -> FloatArray:
        """(3,) of the board."""
        return np.asarray(self.grid.points.mean(axis=0))

    @property
    def depth_m(self) -> float:
        """At which the board fills as much as it should."""
        return float(np.ptp(self.grid.points[:, 0]) * self.camera.fx / (self.fills * self.size[0]))

    def clip(self, path: Trajectory, shown: BoolArray | None = None) -> Clip:
        """Of a board that is moved along a path."""
        everywhere = np.ones(len(path.pose), dtype=bool)
        return Clip(
            self.grid, self.camera, self.size, path, self.options,
            everywhere if shown is None else shown,
        )  # fmt: skip

    def poses(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """(P, 3, 3), (P, 3) in which the board is held: tilts and places by turns."""
        n = np.arange(self.n_poses)
        tilts = np.array(TILTS_DEG)[n % len(TILTS_DEG)]
        turns = np.column_stack([tilts, np.zeros(len(n))]) + rng.uniform(-4, 4, (len(n), 3))
        rotations = rotation_matrix(np.radians(turns)) @ FRONTAL
        places = np.array(PLACES)[(n + n // len(PLACES)) % len(PLACES)] * self.reach
        half = np.array(self.size) / 2 / self.camera.fx
        depth_m = self.depth_m * rng.uniform(0.9, 1.15, len(n))
        centres = np.column_stack([places * half * depth_m[:, None], depth_m])
        return rotations, centres - rotations @ self.middle

    def held(self, rng: np.random.Generator, tremor_px: float = 0.2) -> Trajectory:
        """From pose to pose, by a hand that trembles."""
        return jerky(*self.poses(rng), self.middle, tremor_px / self.camera.fx, rng)

    def waved(self, rng: np.random.Generator, turns: float, n_frames: int) -> Trajectory:
        """Without any pause, so many times to and fro."""
        time = np.arange(n_frames)[:, None] + np.array([0.0, SHUTTER])
        angle = 2 * math.pi * turns * time[..., None] / n_frames
        phase, rate = rng.uniform(0, 2 * math.pi, 6), np.array([1.0, 1.31, 0.5, 0.83, 0.71, 0.4])
        swing = np.sin(rate * angle + phase)
        rotvec = np.radians([30.0, 30.0, 10.0]) * swing[..., :3]
        rotations = Rotation.from_rotvec(rotvec.reshape(-1, 3)).as_matrix() @ FRONTAL
        rotations = rotations.reshape(n_frames, 2, 3, 3)
        half = np.array([*(np.array(self.size) / 2 / self.camera.fx), 1.0])
        amplitude = half * np.array([0.45, 0.45, 0.18]) * np.array([self.reach, self.reach, 1.0])
        centres = self.depth_m * (np.array([0.0, 0.0, 1.0]) + amplitude * swing[..., 3:])
        return Trajectory(rotations, centres - rotations @ self.middle, np.full(n_frames, -1))


def kinds(scene: Scene) -> dict[str, Callable[[np.random.Generator], Clip]]:
    """By name, how a clip of each kind is made."""
    soft = replace(scene.options, blur_px=2.0 * scene.size[0] / 1000 + 0.5, noise=3.0)
    noisy = replace(scene.options, noise=8.0, black=60.0, white=170.0)

    def with_absences(rng: np.random.Generator) -> Clip:
        """The board is put away between poses, for one to three seconds."""
        path = scene.held(rng)
        starts = np.flatnonzero(np.diff(path.pose, prepend=-2) > 0)[::3]
        keep = np.ones(len(path.pose), dtype=int)
        keep[starts] += rng.integers(24, 72, len(starts))
        frames = np.repeat(np.arange(len(path.pose)), keep)
        shown = np.ones(len(frames), dtype=bool)
        for start, n in zip(np.cumsum(keep)[starts] - keep[starts], keep[starts], strict=True):
            shown[start : start + n - 1] = False
        longer = Trajectory(path.rotations[frames], path.translations[frames], path.pose[frames])
        return scene.clip(replace(longer, pose=np.where(shown, longer.pose, -1)), shown)

    def twice(rng: np.random.Generator) -> Clip:
        """The same poses in the same order a second time."""
        rotations, translations = scene.poses(rng)
        n = len(rotations) // 2
        again = np.concatenate([np.arange(n), np.arange(n)])
        tremor_rad = 0.2 / scene.camera.fx
        return scene.clip(
            jerky(rotations[again], translations[again], scene.middle, tremor_rad, rng)
        )

    def some_rests(rng: np.random.Generator) -> Clip:
        """Waved, but held still four times."""
        path = scene.waved(rng, 2.0, 100)
        still = np.ones(100, dtype=int)
        still[[15, 40, 62, 90]] = 10
        frames = np.repeat(np.arange(100), still)
        rotations, translations = path.rotations[frames], path.translations[frames]
        resting = np.repeat(still > 1, still)
        rotations[resting, 1], translations[resting, 1] = (
            rotations[resting, 0], translations[resting, 0],
        )  # fmt: skip
        return scene.clip(Trajectory(rotations, translations, np.full(len(frames), -1)))

    return {
        "jerky": lambda rng: scene.clip(scene.held(rng)),
        "trembling": lambda rng: scene.clip(scene.held(rng, 0.8 * scene.size[0] / 1000)),
        "smooth": lambda rng: scene.clip(scene.waved(rng, 2.0, 140)),
        "slow": lambda rng: scene.clip(scene.waved(rng, 0.8, 140)),
        "some rests": some_rests,
        "blurred": lambda rng: replace(scene.clip(scene.held(rng)), options=soft),
        "noisy": lambda rng: replace(scene.clip(scene.held(rng)), options=noisy),
        "at the rim": lambda rng: replace(scene, reach=1.25).clip(
            replace(scene, reach=1.25).held(rng)
        ),
        "small": lambda rng: replace(scene, fills=0.3, reach=0.9).clip(
            replace(scene, fills=0.3, reach=0.9).held(rng)
        ),
        "put away": with_absences,
        "twice": twice,
    }
