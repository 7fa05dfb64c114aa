"""What is to be done for a run: a job for each cell, simulated or recorded."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from influx_wrap.calibrate.recipe import Recipe
from influx_wrap.engines.engine import Engine
from influx_wrap.engines.native import NativeEngine
from influx_wrap.errors import InputError
from influx_wrap.formats import experiment as files
from influx_wrap.formats.files import PICTURES
from influx_wrap.formats.recording_yaml import RECORDING, VIDEOS, read_setting, suffixes
from influx_wrap.model.hardware import Rig
from influx_wrap.model.words import by_reason
from influx_wrap.observe.sources import OTHER_PICTURES
from influx_wrap.run.workspace import Workspace
from influx_wrap.synth.film.simulation import Simulation

_CELL_FILES = files.EXPERIMENT, RECORDING
_FOOTAGE = {*VIDEOS, *PICTURES, *OTHER_PICTURES}


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
        unused = unused_footage(folder)
        raise InputError(
            f"{folder} has no sub-folder with an {files.EXPERIMENT} or a {RECORDING}: there is "
            "no cell in it. Make one with influx-calib simulate, or calibrate a single camera with "
            "influx-calib camera."
            + "".join(f" {text[0].upper()}{text[1:]}." for text in by_reason(unused)),
            command=f"influx-calib camera {shlex.quote(str(folder))}" if unused else None,
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


def unused_footage(folder: Path) -> dict[str, str]:
    """What a folder of cells holds that looks like footage and belongs to no cell, and why."""
    unused = {}
    for path in sorted(folder.iterdir(), key=lambda path: by_number(path.name)):
        if path.name.startswith("."):
            continue
        if path.is_file() and path.suffix.lower() in _FOOTAGE:
            unused[path.name] = f"it needs a folder of its own with a {RECORDING}"
        elif path.is_dir() and not any((path / name).exists() for name in _CELL_FILES):
            inside = [path, *(sub for sub in path.iterdir() if sub.is_dir())]
            if any((sub / name).exists() for sub in inside for name in _CELL_FILES):
                unused[f"{path.name}/"] = "its cells lie a folder deeper, give it as --data"
            elif any(suffixes(sub) & _FOOTAGE for sub in inside):
                unused[f"{path.name}/"] = f"there is footage but no {RECORDING} in it"
    return unused


def by_number(name: str) -> list[str | int]:
    """A key that sorts z2f10 after z2f9."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]
