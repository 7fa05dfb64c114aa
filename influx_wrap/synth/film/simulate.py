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


@dataclass(frozen=True)
class CellsRequest:
    """What to simulate.

    breathing     largest relative departure of the focal length from a thin lens
    fd_jitter     relative standard deviation of the focus distances from the planned ones
    pp_offset_px  principal point's distance from the image centre
    board         how a board is filmed; None: no footage, but what a detector would report
    night         how a flight is filmed, for a video; None with stills, where drones are left out
    """

    plan: Plan
    cells: Sequence[Cell]
    noise: Noise
    seed: int
    breathing: float = 0.0
    fd_jitter: float = 0.0
    pp_offset_px: tuple[float, float] = (0.0, 0.0)
    board: BoardFootage | None = None
    night: NightFootage | None = None

    def simulations(self) -> tuple[Simulation, ...]:
        """One for every cell."""
        return simulations(
            self.plan,
            self.cells,
            self.noise,
            seed=self.seed,
            breathing=self.breathing,
            fd_jitter=self.fd_jitter,
            pp_offset_px=self.pp_offset_px,
        )

    def settings(self) -> dict[str, object]:
        """What else than lens, camera and noise determines the files."""
        settings: dict[str, object] = {
            "breathing": self.breathing,
            "fd_jitter": self.fd_jitter,
            "pp_offset_px": list(self.pp_offset_px),
            "seed": self.seed,
        }
        if self.board is not None:
            settings["footage"] = self.board.as_dict()
        if self.night is not None:
            settings["night"] = self.night.as_dict()
        return settings


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


def prepare_cells(request: CellsRequest, folder: Path) -> PreparedCells:
    """Plan everything, and make ``folder`` this simulation's."""
    todo = request.simulations()
    films: list[Film] = []
    left_out: tuple[str, ...] = ()
    if request.board is not None and request.night is not None:
        check_codec(request.night.codec, request.plan.camera.image_size)
        films = [_planned(simulation, request.board, request.night) for simulation in todo]
    elif request.board is not None:
        left_out = tuple(one.cell.name for one in todo if one.cell.board is None)
        todo = tuple(one for one in todo if one.cell.board is not None)
        if not todo:
            raise InputError("these cells are flown by the drone, which is filmed: use --video.")
        films = [plan_film(simulation, request.board) for simulation in todo]
    claim_folder(folder, request.plan, request.noise, request.settings())
    return PreparedCells(folder, todo, films, left_out)


def _planned(simulation: Simulation, board: BoardFootage, night: NightFootage) -> Film:
    if simulation.cell.board is None:
        return plan_night(simulation, night)
    return plan_film(simulation, board)
