"""What is to be done for a run: a job for each cell, simulated or recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from influx_wrap.calibrate.recipe import Recipe
from influx_wrap.engines.engine import Engine
from influx_wrap.engines.native import NativeEngine
from influx_wrap.errors import InputError
from influx_wrap.formats import experiment as files
from influx_wrap.formats.recording_yaml import RECORDING, read_setting
from influx_wrap.model.hardware import Rig
from influx_wrap.run.workspace import Workspace
from influx_wrap.synth.film.simulation import Simulation


@dataclass(frozen=True)
class Job:
    """One cell: where its files are, how they are made if they are not, what to do with them.

    ``recording`` is the folder of the footage they are made from; ``failure`` says why they
    could not be. ``rig`` is what the run is said to be made with, None if nobody says;
    ``is_trusted`` that a person vouches for the recording.
    """

    cell: str
    lens: str
    folder: Path
    simulation: Simulation | None
    recipes: tuple[Recipe, ...]
    seed: int
    recording: Path | None = None
    failure: Exception | None = None
    rig: Rig | None = None
    is_trusted: bool = False
    engine: Engine = field(default_factory=NativeEngine)


def simulated_jobs(
    simulations: Iterable[Simulation], recipes: Sequence[Recipe], workspace: Workspace
) -> list[Job]:
    """A job for every simulation, its files in the workspace."""
    return [
        Job(s.cell.name, s.lens, workspace.data(s.cell.name), s, tuple(recipes), s.seed)
        for s in simulations
    ]


def recorded_jobs(
    folder: Path,
    lens: str,
    cells: str,
    recipes: Sequence[Recipe],
    seed: int,
    workspace: Workspace,
) -> list[Job]:
    """A job for every sub-folder with an ``experiment.yaml`` or a ``recording.yaml``.

    They come zoom by zoom; what is made from a recording goes into the workspace. ``cells``
    names some of them (``z3f2,z0f9``), or is ``all``.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; --data is a folder with one folder per cell.")
    experiments = {path.parent.name for path in folder.glob(f"*/{files.EXPERIMENT}")}
    footage = {path.parent.name for path in folder.glob(f"*/{RECORDING}")} - experiments
    found = experiments | footage
    if not found:
        raise InputError(
            f"{folder} has no sub-folder with an {files.EXPERIMENT} or a {RECORDING}: there is "
            "no cell in it. Make one with influx-calib simulate."
        )
    wanted = set(found) if cells == "all" else {name.strip() for name in cells.split(",")}
    known = sorted(found, key=by_number)
    for name in wanted:
        if name not in found:
            raise InputError(f"{folder} has no cell {name!r}; it has {', '.join(known)}.")
    chosen = [name for name in known if name in wanted]
    return [
        Job(
            name, lens, workspace.data(name), None, tuple(recipes), seed, folder / name,
            is_trusted=read_setting(folder / name).is_trusted,
        )
        if name in footage
        else Job(name, lens, folder / name, None, tuple(recipes), seed)
        for name in chosen
    ]  # fmt: skip


def by_number(name: str) -> list[str | int]:
    """A key that sorts z2f10 after z2f9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
