"""A simulated board cell as footage: a board that is moved from pose to pose, or its stills."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from influx_wrap.errors import InputError
from influx_wrap.formats.recording import write_recording
from influx_wrap.formats.recording_truth import RecordingTruth
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.hardware import Board
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.truth import Noise
from influx_wrap.synth.film.cells import Film
from influx_wrap.synth.film.simulation import Simulation
from influx_wrap.synth.motion import Trajectory, jerky, standing
from influx_wrap.synth.render import RenderOptions, ray_grid, render_moving

TREMOR_PX = 0.2


@dataclass(frozen=True)
class BoardFootage:
    """How a board is filmed.

    codec     of a video in which the board is moved jerkily; None: stills of every pose
    renderer  ``fast``, or ``blender`` for stills
    options   of the renderer, but for the sheet, which is the board's
    views     how many of the experiment's poses; None: all
    """

    options: RenderOptions
    codec: str | None = None
    renderer: str = "fast"
    views: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain nested dictionary, for the settings of a simulation."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class BoardFilm(Film):
    """A board cell about to be filmed: where the board is in each frame."""

    footage: BoardFootage
    board: Board
    trajectory: Trajectory
    bow_m: FloatArray

    @property
    def codec(self) -> str | None:
        return self.footage.codec

    @property
    def n_frames(self) -> int:
        return len(self.trajectory.pose)

    @property
    def can_render_here(self) -> bool:
        # Blender is silenced by turning off all output of its process, and a progress bar is
        # in ours.
        return self.footage.renderer != "blender"

    def of_frame(self, frame: int) -> BoardFilm:
        whole, here = self.trajectory, slice(frame, frame + 1)
        own = Trajectory(whole.rotations[here], whole.translations[here], whole.pose[here])
        return replace(self, trajectory=own)

    def picture(self, frame: int) -> NDArray[np.uint8]:
        simulation, board = self.simulation, self.board
        rng = self.frame_generator(frame)
        sheet_m = (board.width_mm / 1e3, board.height_mm / 1e3)
        options = replace(self.footage.options, sheet_m=sheet_m)
        rotations, translations = self.trajectory.rotations[0], self.trajectory.translations[0]
        size = simulation.camera.image_size
        if self.footage.renderer == "blender":
            blender = _blender(simulation.truth, size, board, options)
            return blender.render(rotations[0], translations[0], rng)
        rays = ray_grid(simulation.truth, size)
        return render_moving(
            rays, board.grid, rotations, translations, options, rng, bow_m=self.bow_m
        )

    def complete(self, folder: Path, footage: str) -> None:
        simulation = self.simulation
        rotations, translations = self.trajectory.mid_exposure()
        write_recording(
            folder,
            footage=footage,
            metadata=self.lens_metadata(),
            board=self.board.name,
            lens=simulation.lens,
            camera=simulation.camera.name,
            cell=simulation.cell.name,
            truth=RecordingTruth(
                simulation.truth, rotations, translations, self.trajectory.pose, self.bow_m
            ),
        )


def plan_film(simulation: Simulation, footage: BoardFootage) -> BoardFilm:
    """Place the board as ``Simulation.write`` does, in all poses in which it shows its face
    and enough of its tags, or in ``footage.views`` of them."""
    cell, intrinsics, seed = simulation.cell, simulation.truth, simulation.seed
    if cell.board is None:
        raise InputError(f"cell {cell.name} is flown by the drone; it has no board to film.")
    bent = Noise(bow_mm=simulation.noise.bow_mm)
    truth = simulation.experiment(bent).truth
    points = cell.board.grid.points
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    faces = np.einsum("vi,vi->v", truth.rotations[:, :, 2], truth.translations) < 0
    rotations, translations = truth.rotations[faces], truth.translations[faces]
    if footage.views is not None:
        chosen = _spread(rotations, rotations @ middle + translations, footage.views)
        rotations, translations = rotations[chosen], translations[chosen]
    if footage.codec is None:
        trajectory = standing(rotations, translations)
    else:
        tremor_rad = TREMOR_PX / intrinsics.fx
        rng = np.random.default_rng([seed, cell.zoom_index, cell.focus_index, 0])
        trajectory = jerky(rotations, translations, middle, tremor_rad, rng)
    return BoardFilm(simulation, footage, cell.board, trajectory, truth.bow_m)


def _spread(rotations: FloatArray, centres: FloatArray, n: int) -> NDArray[np.int64]:
    """``n`` of the poses, in their order, that differ most in where the board's centre (P, 3)
    is in the picture and where the board looks."""
    place = centres[:, :2] / centres[:, 2:]
    features = np.hstack([place / np.ptp(place, axis=0).max(), rotations[:, :, 2]])
    chosen = [int(np.argmin(np.linalg.norm(features - features.mean(axis=0), axis=1)))]
    distance = np.linalg.norm(features - features[chosen[0]], axis=1)
    while len(chosen) < min(n, len(features)):
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(features - features[chosen[-1]], axis=1))
    return np.sort(chosen)


@lru_cache(maxsize=1)
def _blender(
    truth: Intrinsics, image_size: tuple[int, int], board: Board, options: RenderOptions
) -> Any:
    # Blender is large and seldom wanted; the frames are spread over the cores already.
    from influx_wrap.synth.blender import BlenderRenderer

    return BlenderRenderer(truth, image_size, board.grid, options, threads=1)
