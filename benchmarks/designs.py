"""Designs that the tool chooses against the paper's plan, on lenses whose every setting is known.

    python -m benchmarks.designs FOLDER [--experiments 20] [--draws 5]

FOLDER has, for each lens, NAME-plan.json (its table by the paper's plan) and NAME-truth.csv (see
``lens_truth``). The truth between its settings is interpolated; an experiment of a design measures
it with the covariance of the plan's experiment next to it. Two designs are made: chosen before
anything is measured, as ``plan --experiments N`` does, and grown from eight as ``plan next`` says,
four at a time. The paper's plan is measured in the same way.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table as Printed
from scipy.interpolate import RBFInterpolator
from threadpoolctl import threadpool_limits

from benchmarks.lens_truth import Truth, compare, read_truth
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.lut import read_table
from influx_wrap.lut.lens_model import smooth_lens
from influx_wrap.lut.smooth.fit import Measured
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.experiment import Cell
from influx_wrap.model.hardware import Lens
from influx_wrap.model.table import Table, grid_of
from influx_wrap.plan.candidates import Reach
from influx_wrap.plan.choose import choose_plan
from influx_wrap.plan.next_experiments import next_experiments, table_camera

FIRST, STEP = 8, 4
NEIGHBOURS = 60


@dataclass(frozen=True, eq=False)
class Setup:
    """A lens whose truth is known, and its table by the paper's plan."""

    plan: Table
    truth: Truth

    @property
    def lens(self) -> Lens:
        """As a catalogue would have it."""
        plan = self.plan
        nearest = float(plan.fd_m.min())
        return Lens(plan.lens, plan.lfl_mm.min(), plan.lfl_mm.max(), nearest, nearest)

    def measure(self, settings: FloatArray, is_drone: BoolArray, seed: int) -> Table:
        """A table of experiments at LFL and FD (n, 2), with errors of their own."""
        plan, rng = self.plan, np.random.default_rng(seed)
        measured, lfl_mm = Measured.of(plan), settings[:, 0]
        outputs = measured.outputs
        truth = RBFInterpolator(
            self._places(self.truth.lfl_mm, self.truth.fd_m),
            outputs.outputs(self.truth.values, self.truth.lfl_mm),
            neighbors=NEIGHBOURS,
            kernel="quintic",
        )
        true = truth(self._places(*settings.T))
        there = self._places(plan.lfl_mm, plan.fd_m)
        found, noise = [], []
        for k, place in enumerate(self._places(*settings.T)):
            away = np.linalg.norm(there - place, axis=1)
            away[plan.is_drone != is_drone[k]] = np.inf
            noise.append(measured.noise[int(np.argmin(away))])
            found.append(rng.multivariate_normal(true[k], noise[-1]))
        values = outputs.intrinsics(np.array(found), lfl_mm)
        slope = outputs.slope(values, lfl_mm)
        covariance = slope @ np.array(noise) @ slope.transpose(0, 2, 1)
        return Table(
            plan.lens, plan.camera, plan.image_size, plan.pixel_um,
            tuple(f"e{k}" for k in range(len(values))), lfl_mm, settings[:, 1], values,
            covariance, is_drone, grid_of(lfl_mm, settings[:, 1]),
        )  # fmt: skip

    def _places(self, lfl_mm: FloatArray, fd_m: FloatArray) -> FloatArray:
        ends = np.log([self.plan.lfl_mm.min(), self.plan.lfl_mm.max()])
        u = (np.log(lfl_mm) - ends[0]) / (ends[1] - ends[0])
        return np.column_stack([u, self.plan.fd_m.min() / fd_m])

    def errors(self, table: Table) -> list[float]:
        """fx in per cent (95 % and largest) and the corner in px (95 %), inside; the largest of
        both beyond."""
        lens, truth = smooth_lens(table), self.truth
        answers = lens.query(truth.lfl_mm, truth.fd_m)
        errors = compare(truth, answers.intrinsics, np.full_like(answers.intrinsics, np.nan))
        inside, beyond = (
            errors.at(truth.where == where).summary(table.image_size)
            for where in ("inside", "beyond")
        )
        assert inside.answered + beyond.answered == np.isin(truth.where, ("inside", "beyond")).sum()
        return [
            *inside.fx_percent[1:], inside.corner_px[1], beyond.fx_percent[2], beyond.corner_px[2]
        ]  # fmt: skip


def chosen(setup: Setup, experiments: int, seed: int) -> Table:
    """A table of experiments chosen before anything is measured."""
    cells = _chosen_cells(setup, experiments)
    settings = np.array([(cell.lfl_mm, cell.fd_m) for cell in cells])
    return setup.measure(settings, np.array([cell.board is None for cell in cells]), seed)


@lru_cache
def _chosen_cells(setup: Setup, experiments: int) -> tuple[Cell, ...]:
    boards = load_catalogue().boards.values()
    return choose_plan(setup.lens, table_camera(setup.plan), boards, experiments).plan.cells


def grown(setup: Setup, experiments: int, seed: int) -> Table:
    """A table that began with few, to which those proposed were added."""
    boards = tuple(load_catalogue().boards.values())
    table = chosen(setup, FIRST, seed)
    while len(table.names) < experiments:
        proposals = next_experiments(
            smooth_lens(table), boards, reach=Reach.of(setup.lens),
            count=min(STEP, experiments - len(table.names)),
        )  # fmt: skip
        new = np.array([(one.lfl_mm, one.fd_m) for one in proposals])
        old = np.column_stack([table.lfl_mm, table.fd_m])
        drone = np.append(table.is_drone, [one.target == "drone" for one in proposals])
        # The same seed gives the earlier experiments the same errors.
        table = setup.measure(np.vstack([old, new]), drone, seed)
    return table


def print_lens(console: Console, setup: Setup, experiments: Sequence[int], draws: int) -> None:
    """The paper's plan and designs of so many experiments; medians over draws of errors."""
    printed = Printed(
        "design", "experiments", "fx % inside: 95 %", "largest", "corner px: 95 %",
        "fx % beyond: largest", "corner px: largest",
        title=f"{setup.plan.lens}, median of {draws} draws", box=None,
    )  # fmt: skip
    paper = np.column_stack([setup.plan.lfl_mm, setup.plan.fd_m])
    designs = {
        ("the paper's", len(paper)): lambda n, s: setup.measure(paper, setup.plan.is_drone, s)
    }
    for n in experiments:
        designs["chosen before", n] = lambda n, s: chosen(setup, n, s)
        designs["grown from 8", n] = lambda n, s: grown(setup, n, s)
    for (name, n), make in designs.items():
        found = np.median([setup.errors(make(n, seed)) for seed in range(draws)], axis=0)
        printed.add_row(name, str(n), *(f"{value:.3g}" for value in found))
    console.print(printed)


def main() -> None:
    """Print it for every lens of a folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.designs")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--experiments", type=int, nargs="+", default=[16, 20, 24])
    parser.add_argument("--draws", type=int, default=5)
    arguments = parser.parse_args()
    for path in sorted(arguments.folder.glob("*-plan.json")):
        truth = read_truth(path.with_name(path.name.replace("-plan.json", "-truth.csv")))
        with threadpool_limits(limits=1):
            print_lens(
                Console(width=140), Setup(read_table(path), truth), arguments.experiments,
                arguments.draws,
            )  # fmt: skip


if __name__ == "__main__":
    main()
