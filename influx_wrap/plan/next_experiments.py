"""Which experiments to add to the table of a lens.

The table's own smooth lens says how uncertain it is where, and what an experiment would change.
Experiments to come are taken to be as exact as the table's own are, compared with what
``measuring`` expects of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from threadpoolctl import threadpool_limits

from influx_wrap.errors import InputError
from influx_wrap.lut.smooth.lens import SmoothLens
from influx_wrap.lut.smooth.outputs import FOCAL, N_OUTPUTS, Outputs
from influx_wrap.lut.smooth.posterior import Posterior
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.hardware import Board, Camera
from influx_wrap.model.table import SAME_LFL, Table
from influx_wrap.plan.candidates import Candidate, Reach, candidates
from influx_wrap.plan.design import DesignProblem, Known, add
from influx_wrap.plan.grid import choose_board
from influx_wrap.plan.measuring import expected_covariance
from influx_wrap.plan.processes import PAIR, RADIAL, make_process, prior_pair

SAME_FD = 0.02
"""Focus distances that differ by less, relatively, are no second experiment."""


@dataclass(frozen=True)
class Proposal:
    """An experiment to add, after those proposed before it.

    target   the board's name, or ``drone``
    before   what is known of the corner's position without it
    after    what will be known with it
    """

    lfl_mm: float
    fd_m: float
    target: str
    before: Known
    after: Known

    @property
    def gain_px(self) -> float:
        """By how much the largest sigma of the corner's position gets smaller."""
        return self.before.largest_px - self.after.largest_px


@threadpool_limits.wrap(limits=1)
def next_experiments(
    lens: SmoothLens,
    boards: Iterable[Board],
    *,
    camera: Camera | None = None,
    reach: Reach | None = None,
    count: int = 3,
    boards_only: bool = False,
) -> list[Proposal]:
    """Experiments to add to a lens's table, the best first.

    camera  that of the table, if its height above the ground is known
    reach   what the lens can be set to; as far as the table reaches, unless given
    """
    boards = tuple(boards)
    camera = table_camera(lens.table) if camera is None else camera
    reach = reach_of(lens.table) if reach is None else reach
    _check_nearest(lens, reach)
    asked = candidates(
        reach,
        camera,
        boards,
        boards_only=boards_only,
        cfl_mm=lambda lfl_mm, fd_m: _cfl_mm(lens, lfl_mm, fd_m),
    )
    asked = [one for one in asked if not _is_there(lens, one)]
    if not asked:
        raise InputError("there is no setting left at which an experiment could be added.")
    problem = _problem(lens, asked, reach, _exactness(lens, camera, boards))
    result: list[Proposal] = []
    made: list[int] = []
    before = problem.known(made)
    for index in add(problem, [], count):
        made.append(index)
        after, one = problem.known(made), asked[index]
        result.append(Proposal(one.lfl_mm, one.fd_m, one.target_name, before, after))
        before = after
    return result


def known_now(lens: SmoothLens, reach: Reach | None = None) -> Known:
    """Sigma of the corner's position, as the table knows it."""
    reach = reach_of(lens.table) if reach is None else reach
    _check_nearest(lens, reach)
    places = reach.places()
    mean, spread = lens.outputs(lens.places.both(*places.T))
    displaced = _displaced_px(lens.measured.outputs, mean)
    pair = spread[:, PAIR][:, :, PAIR]
    sigma = np.sqrt(np.einsum("pi,pij,pj->p", displaced, pair, displaced))
    return Known(float(sigma.max()), float(sigma.mean()))


def _check_nearest(lens: SmoothLens, reach: Reach) -> None:
    """Refuse a table that says nothing of the lens's near focus, as one of drone experiments."""
    if reach.nearest_m < lens.nearest_m:
        raise InputError(
            f"the nearest experiment of {lens.table.lens} is at {lens.places.nearest_m:.3g} m, and "
            f"the lens focuses down to {reach.nearest_m:.3g} m: of what is nearer than "
            f"{lens.nearest_m:.3g} m the table says nothing, not even how wrong it may be. Film "
            "some experiments at the nearest focus first, at the shortest and at the longest LFL."
        )


def reach_of(table: Table) -> Reach:
    """The settings of a table's experiments."""
    ends = float(table.lfl_mm.min()), float(table.lfl_mm.max())
    return Reach(ends, float(table.fd_m.min()))


def table_camera(table: Table) -> Camera:
    """The camera of a table, as far as the table knows it."""
    (width, height), (pitch_x, pitch_y) = table.image_size, table.pixel_um
    sensor_mm = 1e-3 * pitch_x * width, 1e-3 * pitch_y * height
    return Camera(table.camera, *sensor_mm, width, height)


def _displaced_px(outputs: Outputs, mean: FloatArray) -> FloatArray:
    """(p, 2) px at the corner by one of each of the two outputs, where outputs are ``mean``."""
    scale = outputs.scale
    # A ray at the corner moves by the focal length's change and by that of its distortion.
    moved = outputs.corner_px + mean[:, RADIAL : RADIAL + 2] * scale[RADIAL : RADIAL + 2] @ (3, 2)
    focal = -moved * scale[FOCAL] / (1 + mean[:, FOCAL] * scale[FOCAL])
    return np.column_stack([focal, np.full(len(mean), scale[RADIAL])])


def _problem(
    lens: SmoothLens, asked: list[Candidate], reach: Reach, exactness: float
) -> DesignProblem:
    places, outputs = reach.places(), lens.measured.outputs
    settings = np.vstack([[(one.lfl_mm, one.fd_m) for one in asked], places])
    mean, total = lens.outputs(lens.places.both(*places.T))
    displaced, scale = _displaced_px(outputs, mean), outputs.scale[list(PAIR)]
    processes = []
    for member, posterior in zip(lens.fit.members, lens.posteriors, strict=True):
        joint = _joint(posterior, settings)
        processes.append(
            make_process(member.weight, joint, asked, displaced, member.hyper, scale, exactness)
        )
    within = sum(one.weight * one.variance for one in processes)
    pair = total[:, PAIR][:, :, PAIR]
    apart = np.einsum("pi,pij,pj->p", displaced, pair, displaced) - within
    is_drone = np.array([one.board is None for one in asked])
    nowhere = np.zeros(len(asked), dtype=np.int64)
    return DesignProblem(tuple(processes), np.maximum(apart, 0), reach.weight(), is_drone, nowhere)


def _joint(posterior: Posterior, settings: FloatArray) -> FloatArray:
    """(2, k, 2, k) covariance of the two outputs between settings (k, 2)."""
    x = posterior.coordinates.all(*settings.T)
    k, n = len(x), len(posterior.x)
    joint = np.zeros((2, k, 2, k))
    right = np.zeros((N_OUTPUTS, n, 2, k))
    here = prior_pair(posterior.kernel, posterior.hyper, x, x)
    there = prior_pair(posterior.kernel, posterior.hyper, posterior.x, x)
    for i, j in enumerate(PAIR):
        joint[i, :, i] = here[i]
        right[j, :, i] = there[i]
    told = solve_triangular(
        posterior.factor, right.reshape(N_OUTPUTS * n, 2 * k), lower=True, check_finite=False
    )
    return joint - (told.T @ told).reshape(2, k, 2, k)


def _cfl_mm(lens: SmoothLens, lfl_mm: FloatArray, fd_m: FloatArray) -> FloatArray:
    """(n,) camera focal lengths at LFL and FD (n,), as the table knows them."""
    mean, _ = lens.outputs(lens.places.both(lfl_mm, fd_m))
    return np.asarray(lfl_mm / (1 + mean[:, FOCAL] * lens.measured.outputs.scale[FOCAL]))


def _is_there(lens: SmoothLens, one: Candidate) -> bool:
    table = lens.table.rows(lens.kept)
    same = np.abs(np.log(table.lfl_mm / one.lfl_mm)) < SAME_LFL
    return bool((same & (np.abs(np.log(table.fd_m / one.fd_m)) < SAME_FD)).any())


def _exactness(lens: SmoothLens, camera: Camera, boards: tuple[Board, ...]) -> float:
    """Sigma of the table's focal lengths, in units of that expected: the median of boards'."""
    table, measured = lens.table.rows(lens.kept), lens.measured
    if not measured.is_noise_known:
        return 1.0
    cfl_mm = _cfl_mm(lens, table.lfl_mm, table.fd_m)
    sigma = np.sqrt(measured.noise[:, FOCAL, FOCAL]) * measured.outputs.scale[FOCAL]
    ratios = []
    for row in np.flatnonzero(~table.is_drone).tolist():
        cfl, fd = float(cfl_mm[row]), float(table.fd_m[row])
        board = choose_board(cfl, fd, camera, boards)
        if board is not None:
            expected = expected_covariance(board, cfl, fd, camera)[0, 0]
            ratios.append(sigma[row] / np.sqrt(expected))
    return float(np.median(ratios)) if ratios else 1.0
