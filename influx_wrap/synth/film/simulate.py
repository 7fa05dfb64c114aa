"""Cells of a lens simulated into a folder: what ``influx-calib simulate`` does without --clip.

``prepare_cells`` plans everything and claims the folder; what it returns is then written, or
filmed if footage is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.formats.video import check_codec
from influx_wrap.model.experiment import Cell, Plan
from influx_wrap.model.truth import Noise
from influx_wrap.synth.film.board import BoardFootage, plan_film
from influx_wrap.synth.film.cells import Film, shoot_films
from influx_wrap.synth.film.night import NightFootage, plan_night
from influx_wrap.synth.film.simulation import Simulation, claim_folder, simulations
from influx_wrap.synth.lens import LensOptions


@dataclass(frozen=True, eq=False)
class PreparedCells:
    """Cells about to be made in a folder.

    films     one for every cell; none if there is to be no footage
    left_out  names of the drone's cells, of which there are no stills
    """

    folder: Path
    simulations: Sequence[Simulation]
    films: Sequence[Film] = ()
    left_out: tuple[str, ...] = ()

    def write(self) -> Iterator[str]:
        """Write what a detector would report of each cell; yields the names of cells done."""
        for simulation in self.simulations:
            name = simulation.cell.name
            try:
                simulation.write(self.folder / name)
            except InputError as error:
                raise InputError(f"cell {name}: {error}") from None
            yield name

    def film(self, *, processes: int, progress: Progress) -> None:
        """Make all recordings."""
        shoot_films(self.films, self.folder, processes=processes, progress=progress)


def prepare_cells(
    plan: Plan,
    cells: Sequence[Cell],
    folder: Path,
    noise: Noise,
    *,
    seed: int,
    options: LensOptions,
    fd_jitter: float,
    board: BoardFootage | None,
    night: NightFootage | None,
) -> PreparedCells:
    """Plan everything, and make ``folder`` this simulation's.

    options    of the lens
    fd_jitter  relative standard deviation of the focus distances from the planned ones
    board      how a board is filmed; None: no footage, but what a detector would report
    night      how a flight is filmed, for a video; None with stills, where drones are left out
    """
    settings: dict[str, object] = {**options.as_dict(), "fd_jitter": fd_jitter, "seed": seed}
    todo = simulations(plan, cells, noise, seed=seed, options=options, fd_jitter=fd_jitter)
    films: list[Film] = []
    left_out: tuple[str, ...] = ()
    if board is not None and night is not None:
        check_codec(night.codec, plan.camera.image_size)
        films = [_planned(simulation, board, night) for simulation in todo]
    elif board is not None:
        left_out = tuple(one.cell.name for one in todo if one.cell.board is None)
        todo = tuple(one for one in todo if one.cell.board is not None)
        if not todo:
            raise InputError("these cells are flown by the drone, which is filmed: use --video.")
        films = [plan_film(simulation, board) for simulation in todo]
    if board is not None:
        settings["footage"] = board.as_dict()
    if night is not None:
        settings["night"] = night.as_dict()
    claim_folder(folder, plan, noise, settings)
    return PreparedCells(folder, todo, films, left_out)


def _planned(simulation: Simulation, board: BoardFootage, night: NightFootage) -> Film:
    if simulation.cell.board is None:
        return plan_night(simulation, night)
    return plan_film(simulation, board)
