"""A simulated experiment before it is made: everything that determines its files.

It becomes either what a detector would report (``Simulation.write``), or the footage that
a detector is to be tried on (``film``): a recording, rendered frame by frame, of a board
that is moved (here) or of the drone at night (``night``). A frame depends on nothing but
its number and the settings, so frames are made in any order by any number of processes,
and those on disk need not be made again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from influx_wrap import __version__
from influx_wrap.compute.processes import WorkerDied, parallel
from influx_wrap.errors import InputError
from influx_wrap.formats.experiment import write_experiment
from influx_wrap.formats.files import (
    make_folder,
    read_json,
    remove_leftovers,
    write_bytes,
    write_json,
)
from influx_wrap.formats.influx import write_lens_settings
from influx_wrap.formats.lens_metadata import LensMetadata
from influx_wrap.formats.recording import write_recording
from influx_wrap.formats.recording_truth import RecordingTruth
from influx_wrap.formats.recording_yaml import RECORDING
from influx_wrap.formats.video import SUFFIXES, write_video
from influx_wrap.model.experiment import Cell, Plan
from influx_wrap.model.hardware import Board, Camera
from influx_wrap.model.intrinsics import FloatArray, Intrinsics
from influx_wrap.model.truth import Noise
from influx_wrap.synth.experiment import cell_generator, simulate
from influx_wrap.synth.lens import simulated_lens, with_fd_jitter
from influx_wrap.synth.motion import FPS, Trajectory, jerky, standing
from influx_wrap.synth.render import RenderOptions, ray_grid, render_moving

SETTINGS = "simulation.json"
FRAMES = "frames"
TREMOR_PX = 0.2

Picture = NDArray[np.uint8]


@dataclass(frozen=True)
class Simulation:
    """One cell of a lens on a camera whose true intrinsics are ``truth``."""

    lens: str
    camera: Camera
    cell: Cell
    truth: Intrinsics
    noise: Noise
    seed: int

    def write(self, folder: Path) -> None:
        """Simulate, and write what a real experiment would give plus the truth."""
        rng = cell_generator(self.seed, self.cell)
        experiment = simulate(self.cell, self.camera, self.truth, self.noise, rng)
        write_experiment(
            folder, self.cell, self.camera, self.lens, experiment.observations, experiment.truth
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain nested dictionary, for provenance."""
        return asdict(self)


def simulations(
    plan: Plan,
    cells: Iterable[Cell],
    noise: Noise,
    *,
    seed: int,
    breathing: float = 0.0,
    pp_offset_px: tuple[float, float] = (0.0, 0.0),
    fd_jitter: float = 0.0,
) -> tuple[Simulation, ...]:
    """What to simulate for ``cells``; a cell is the same whatever other cells are chosen."""
    # The lens is the planned one, however inexactly its rings are set.
    lens = simulated_lens(plan, breathing=breathing, pp_offset_px=pp_offset_px)
    if fd_jitter > 0:
        plan = with_fd_jitter(plan, fd_jitter, seed)
        cells = [plan.cell(cell.name) for cell in cells]
    return tuple(
        Simulation(
            plan.lens.name,
            plan.camera,
            cell,
            lens.intrinsics(cell.lfl_mm, cell.fd_m),
            noise,
            seed,
        )
        for cell in cells
    )


def claim_folder(folder: Path, plan: Plan, noise: Noise, settings: Mapping[str, object]) -> None:
    """Make ``folder`` a simulation's, with the plan and all settings in it: cells that do not
    belong together must not lie side by side."""
    claim(folder, plan, {"noise": asdict(noise), **settings})
    write_lens_settings(folder / "plan.json", plan)


def claim(folder: Path, plan: Plan, settings: Mapping[str, object]) -> None:
    """Write lens, camera and settings into ``folder``, unless it holds anything else or has
    other settings, which is refused."""
    description = {
        "influx_wrap": __version__,
        "lens": asdict(plan.lens),
        "camera": asdict(plan.camera),
        **settings,
    }
    make_folder(folder)
    path = folder / SETTINGS
    if path.exists():
        if read_json(path).values != description:
            raise InputError(
                f"{folder} holds a simulation with other settings (see its {SETTINGS}). "
                "Choose another --out."
            )
    elif any(folder.iterdir()):
        raise InputError(
            f"{folder} is not empty and was not made by simulate. Choose another --out."
        )
    write_json(path, description)


@dataclass(frozen=True)
class Footage:
    """How an experiment is filmed.

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


class Rendering(ABC):
    """Frames about to be rendered."""

    @property
    @abstractmethod
    def codec(self) -> str | None:
        """Of the video; None for stills."""

    @property
    @abstractmethod
    def n_frames(self) -> int:
        """How many frames there are to render."""

    @property
    def can_render_here(self) -> bool:
        """False if the renderer needs a process of its own."""
        return True

    def of_frame(self, frame: int) -> Rendering:
        """What is needed of all this to render one frame, to be sent to a worker."""
        return self

    @abstractmethod
    def picture(self, frame: int) -> Picture:
        """Render a frame; ``of_frame`` suffices."""


@dataclass(frozen=True, eq=False)
class Film(Rendering):
    """A cell about to be filmed."""

    simulation: Simulation

    @abstractmethod
    def complete(self, folder: Path, footage: str) -> None:
        """Make a recording of a folder in which the footage is already."""

    def frame_generator(self, frame: int) -> np.random.Generator:
        """The frame's own random numbers."""
        cell = self.simulation.cell
        return np.random.default_rng(
            [self.simulation.seed, cell.zoom_index, cell.focus_index, 1 + frame]
        )

    def lens_metadata(self) -> LensMetadata:
        """What the lens reports in every frame: it is not moved."""
        cell, n = self.simulation.cell, self.n_frames
        return LensMetadata(np.arange(n), np.full(n, cell.lfl_mm), np.full(n, cell.fd_m))


@dataclass(frozen=True, eq=False)
class BoardFilm(Film):
    """A board cell about to be filmed: where the board is in each frame."""

    footage: Footage
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

    def picture(self, frame: int) -> Picture:
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


def plan_film(simulation: Simulation, footage: Footage) -> BoardFilm:
    """Place the board as ``Simulation.write`` does, in all poses in which it shows its face
    and enough of its tags, or in ``footage.views`` of them."""
    cell, intrinsics, seed = simulation.cell, simulation.truth, simulation.seed
    if cell.board is None:
        raise InputError(f"cell {cell.name} is flown by the drone; it has no board to film.")
    bent = Noise(bow_mm=simulation.noise.bow_mm)
    rng = cell_generator(seed, cell)
    truth = simulate(cell, simulation.camera, intrinsics, bent, rng).truth
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


def film(
    films: Sequence[Film], folder: Path, *, processes: int, report: Callable[[int], None]
) -> None:
    """Make a recording of each in the sub-folder of its cell; those that are there are left.

    ``report`` hears how many frames more are done.
    """
    todo = []
    for one in films:
        place = folder / one.simulation.cell.name
        if (place / RECORDING).exists():
            report(one.n_frames)
        else:
            make_folder(place)
            remove_leftovers(place)
            todo.append(one)
    for one in todo:
        place = folder / one.simulation.cell.name
        if one.codec is None:
            name = FRAMES
            _shoot_stills(one, place / name, processes, report)
        else:
            name = f"clip{SUFFIXES[one.codec]}"
            shoot_video(one, place / name, one.codec, processes, report)
        one.complete(place, name)


def shoot_video(
    one: Rendering, path: Path, codec: str, processes: int, report: Callable[[int], None]
) -> None:
    """Render all frames into a video; ``report`` hears how many more are done."""
    tasks = [_Shot(one, frame, None) for frame in range(one.n_frames)]
    write_video(path, _shots(tasks, processes, report), FPS, codec)


def _shoot_stills(one: Film, folder: Path, processes: int, report: Callable[[int], None]) -> None:
    make_folder(folder)
    shots = [_Shot(one, k, folder / f"{k:06d}.png") for k in range(one.n_frames)]
    missing = [shot for shot in shots if shot.path is not None and not shot.path.exists()]
    report(len(shots) - len(missing))
    for _ in _shots(missing, processes, report):
        pass


@dataclass(frozen=True, eq=False)
class _Shot:
    """One frame of a film; written to ``path``, or handed back if that is None."""

    film: Rendering
    frame: int
    path: Path | None


def _shots(
    tasks: Sequence[_Shot], processes: int, report: Callable[[int], None]
) -> Iterator[Picture]:
    """The pictures of the tasks that have no path, in the order of the tasks."""
    ahead: dict[int, Picture] = {}
    waiting = iter([task.frame for task in tasks])
    expected = next(waiting, None)
    slim = [replace(task, film=task.film.of_frame(task.frame)) for task in tasks]
    # One process needs no other: to start it takes longer than a small picture.
    here = processes == 1 and all(task.film.can_render_here for task in tasks)
    alone = ((task, _shoot(task)) for task in slim)
    with closing(alone if here else parallel(_shoot, slim, processes)) as finished:
        for task, picture in finished:
            if isinstance(picture, WorkerDied):
                raise InputError(
                    f"the process that rendered frame {task.frame} ended (exit code "
                    f"{picture.exitcode}); if memory ran out, use fewer --jobs."
                )
            if isinstance(picture, InputError):
                raise picture
            report(1)
            if picture is None:
                continue
            ahead[task.frame] = picture
            while expected in ahead:
                yield ahead.pop(expected)
                expected = next(waiting, None)


def _shoot(task: _Shot) -> Picture | InputError | None:
    """What a worker does with a frame."""
    try:
        picture = task.film.picture(task.frame)
        if task.path is None:
            return picture
        # Noise does not compress: more effort would cost time and save nothing.
        _, data = cv2.imencode(".png", picture, [cv2.IMWRITE_PNG_COMPRESSION, 1])
        write_bytes(task.path, data.tobytes())
    except InputError as error:
        return error
    return None


@lru_cache(maxsize=1)
def _blender(
    truth: Intrinsics, image_size: tuple[int, int], board: Board, options: RenderOptions
) -> Any:
    # Blender is large and seldom wanted; the frames are spread over the cores already.
    from influx_wrap.synth.blender import BlenderRenderer

    return BlenderRenderer(truth, image_size, board.grid, options, threads=1)
