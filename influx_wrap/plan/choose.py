"""A plan of few experiments, chosen before anything is measured.

What lenses are like is known: their amplitudes and lengths (``USUAL``) are about those that the
smooth lens found in full tables of ray-traced zooms, its widening included. The offset of focus
distances is not known before there are data; designs are judged by all of them, averaged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from influx_wrap.compute.progress import Progress, no_progress
from influx_wrap.errors import InputError
from influx_wrap.lut.smooth.fit import FEWEST, OFFSETS
from influx_wrap.lut.smooth.outputs import FOCAL, N_OUTPUTS, Outputs
from influx_wrap.lut.smooth.places import Places
from influx_wrap.lut.smooth.prior import N_HYPER
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.experiment import Cell, Plan
from influx_wrap.model.hardware import Board, Camera, Lens
from influx_wrap.model.words import counted
from influx_wrap.plan.candidates import Candidate, Reach, candidates
from influx_wrap.plan.design import DesignProblem, Known, add, exchange
from influx_wrap.plan.processes import PAIR, RADIAL, make_process, prior_pair

MOST = 40
"""Experiments that a plan is chosen of; with more, the paper's is as good."""

KERNEL = "matern"
"""The more cautious one."""
USUAL = {
    FOCAL: (0.02, 0.75, 0.55, 0.97, 0.75, 1.1, 1.3, 2e-4),
    RADIAL: (0.6, 0.6, 0.4, 1.0, 1.0, 0.9, 1.2, 2e-4),
}
"""Hyper-parameters s0, s1, s2, l0, l1, l2, l3, s3 of ``lut.smooth.prior`` of the two outputs."""


@dataclass(frozen=True)
class ChosenPlan:
    """A plan, and what will be known of the corner's position once it is carried out."""

    plan: Plan
    expected: Known


@threadpool_limits.wrap(limits=1)
def choose_plan(
    lens: Lens,
    camera: Camera,
    boards: Iterable[Board],
    experiments: int,
    *,
    boards_only: bool = False,
    progress: Progress = no_progress,
) -> ChosenPlan:
    """The plan of so many experiments after which the lens is known best."""
    asked = candidates(Reach.of(lens), camera, boards, boards_only=boards_only)
    if not FEWEST <= experiments <= min(MOST, len(asked)):
        raise InputError(
            f"a plan is chosen of {FEWEST} to {min(MOST, len(asked))} experiments, not of "
            f"{experiments}. The paper's plan, without --experiments, has more."
        )
    problem = _problem(Reach.of(lens), camera, asked)
    design = exchange(problem, add(problem, [], experiments), progress)
    return ChosenPlan(_plan(lens, camera, asked, design), problem.known(design))


@threadpool_limits.wrap(limits=1)
def choose_accurate_plan(
    lens: Lens,
    camera: Camera,
    boards: Iterable[Board],
    accuracy_px: float,
    *,
    boards_only: bool = False,
    progress: Progress = no_progress,
) -> ChosenPlan:
    """The plan of as few experiments as give that accuracy: the largest sigma of the corner's
    position."""
    asked = candidates(Reach.of(lens), camera, boards, boards_only=boards_only)
    problem = _problem(Reach.of(lens), camera, asked)
    most = min(MOST, len(asked))
    order = add(problem, [], most)
    enough = next(
        (n for n in range(FEWEST, most + 1) if _reaches(problem, order[:n], accuracy_px)), most
    )
    best = exchange(problem, add(problem, [], enough), progress)
    if not _reaches(problem, best, accuracy_px):
        raise InputError(
            f"no plan of {counted(len(best), 'experiment')} makes {lens.name} known to "
            f"{accuracy_px:g} px everywhere: {problem.known(best).largest_px:.2g} px is what is "
            "expected of the best. Ask for less, or add larger boards to the catalogue."
        )
    # Fewer may do, exchanged for better ones.
    too_few = FEWEST - 1
    while len(best) - too_few > 1:
        n = (too_few + len(best)) // 2
        fewer = exchange(problem, add(problem, [], n), progress)
        if _reaches(problem, fewer, accuracy_px):
            best = fewer
        else:
            too_few = len(fewer)
    return ChosenPlan(_plan(lens, camera, asked, best), problem.known(best))


def _reaches(problem: DesignProblem, design: list[int], accuracy_px: float) -> bool:
    return problem.known(design).largest_px <= accuracy_px


def _problem(reach: Reach, camera: Camera, asked: list[Candidate]) -> DesignProblem:
    outputs = Outputs(camera.image_size, camera.pitch_um)
    places = reach.places()
    settings = np.vstack([[(one.lfl_mm, one.fd_m) for one in asked], places])
    scale = outputs.scale[list(PAIR)]
    displaced = np.tile([-outputs.corner_px * scale[0], scale[1]], (len(places), 1))
    hyper, processes = usual_hyper(), []
    for offset in OFFSETS:
        x = Places(reach.lfl_mm, reach.nearest_m, offset).all(*settings.T)
        joint = np.zeros((2, len(x), 2, len(x)))
        for i, own in enumerate(prior_pair(KERNEL, hyper, x, x)):
            joint[i, :, i] = own
        weight = 1 / len(OFFSETS)
        processes.append(make_process(weight, joint, asked, displaced, hyper, scale))
    is_drone = np.array([one.board is None for one in asked])
    lfl_mm = np.array([one.lfl_mm for one in asked])
    end = np.where(lfl_mm == reach.lfl_mm[1], 2, np.where(lfl_mm == reach.lfl_mm[0], 1, 0))
    return DesignProblem(tuple(processes), np.zeros(len(places)), reach.weight(), is_drone, end)


def usual_hyper() -> FloatArray:
    """(8, 8) hyper-parameters of a lens that nobody has measured; those of outputs that do not
    displace the corner are NaN."""
    hyper = np.full((N_OUTPUTS, N_HYPER), np.nan)
    for j, values in USUAL.items():
        hyper[j] = np.log(values)
    return hyper


def _plan(lens: Lens, camera: Camera, asked: list[Candidate], design: list[int]) -> Plan:
    """The chosen experiments in a grid of the settings that occur."""
    chosen = [asked[index] for index in design]
    lfls = tuple(sorted({one.lfl_mm for one in chosen}))
    fds = tuple(sorted({one.fd_m for one in chosen}))
    cells = (
        Cell(lfls.index(one.lfl_mm), fds.index(one.fd_m), one.lfl_mm, one.fd_m, one.board)
        for one in chosen
    )
    ordered = sorted(cells, key=lambda cell: (cell.zoom_index, cell.focus_index))
    return Plan(lens, camera, lfls, fds, tuple(ordered))
