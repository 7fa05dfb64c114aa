"""Cells as recordings: what a film of a cell is, and all films of a simulation shot.

A board that is moved is ``board``'s, the drone at night ``night``'s.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from influx_wrap.compute.progress import Progress, adding, no_progress
from influx_wrap.formats.files import make_folder, remove_leftovers
from influx_wrap.formats.recording_yaml import RECORDING
from influx_wrap.formats.video import SUFFIXES
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.synth.film.rendering import Rendering, shoot_stills, shoot_video
from influx_wrap.synth.film.simulation import Simulation

FRAMES = "frames"


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


def shoot_films(
    films: Sequence[Film], folder: Path, *, processes: int, progress: Progress = no_progress
) -> None:
    """Make a recording of each in the sub-folder of its cell; those that are there are left.

    ``progress`` hears of the frames of all.
    """
    done = adding(progress, sum(one.n_frames for one in films))
    todo = []
    for one in films:
        place = folder / one.simulation.cell.name
        if (place / RECORDING).exists():
            done(one.n_frames)
        else:
            make_folder(place)
            remove_leftovers(place)
            todo.append(one)
    for one in todo:
        place = folder / one.simulation.cell.name
        if one.codec is None:
            name = FRAMES
            shoot_stills(one, place / name, processes, done)
        else:
            name = f"clip{SUFFIXES[one.codec]}"
            shoot_video(one, place / name, one.codec, processes, done)
        one.complete(place, name)
