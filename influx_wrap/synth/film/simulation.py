"""A simulated experiment before it is made: everything that determines its files.

It becomes either what a detector would report (``Simulation.write``), or the footage that
a detector is to be tried on (``cells``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from influx_wrap import __version__
from influx_wrap.errors import InputError
from influx_wrap.formats.experiment import write_experiment
from influx_wrap.formats.files import make_folder, read_json, write_json
from influx_wrap.formats.influx import write_lens_settings
from influx_wrap.model.experiment import Cell, Plan
from influx_wrap.model.hardware import Camera
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.truth import Noise
from influx_wrap.synth.experiment import Experiment, cell_generator, simulate
from influx_wrap.synth.lens import FD_JITTER, LensOptions, simulated_lens, with_fd_jitter

SETTINGS = "simulation.json"


@dataclass(frozen=True)
class Simulation:
    """One cell of a lens on a camera whose true intrinsics are ``truth``.

    ``depth_m`` is from the centre of projection to the plane in focus.
    """

    lens: str
    camera: Camera
    cell: Cell
    truth: Intrinsics
    noise: Noise
    seed: int
    depth_m: float

    def experiment(self, noise: Noise | None = None) -> Experiment:
        """What a detector would report, and the truth; ``noise`` is for another than its own."""
        rng = cell_generator(self.seed, self.cell)
        noise = self.noise if noise is None else noise
        return simulate(self.cell, self.camera, self.truth, noise, rng, self.depth_m)

    def write(self, folder: Path) -> None:
        """Simulate, and write what a real experiment would give plus the truth."""
        experiment = self.experiment()
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
    options: LensOptions | None = None,
    fd_jitter: float = FD_JITTER,
) -> tuple[Simulation, ...]:
    """What to simulate for ``cells``; a cell is the same whatever other cells are chosen.

    ``fd_jitter`` is the relative standard deviation of the focus distances from the planned ones.
    """
    # The lens is the planned one, however inexactly its rings are set.
    lens = simulated_lens(plan, options)
    if fd_jitter > 0:
        plan = with_fd_jitter(plan, fd_jitter, seed)
        cells = [plan.cell(cell.name) for cell in cells]
    return tuple(
        Simulation(plan.lens.name, plan.camera, cell, state.intrinsics, noise, seed, state.depth_m)
        for cell in cells
        for state in [lens.state(cell.lfl_mm, cell.fd_m)]
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
