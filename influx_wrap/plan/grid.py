"""The plan of a lens: every sampled LFL with every sampled FD, and its target.

Experiments are dense at short LFL and at near focus. LFL steps double (1, 2, 4, ... mm), since at
short focal length an error of the intrinsics moves unprojected points most. FD is uniform in
disparity 1 / FD, since CFL departs from LFL most at near focus (the paper's section on LFL and
FD sampling).

The target is the largest board that fits, or the drone. The board is held centred on the plane
in focus, parallel to the sensor and tilted by 45 degrees either way about its two sides. Its
sheet must lie wholly inside the picture each time; a tilted board's near edge looks larger, so
the sheet's corners are projected rather than compared with the footprint. Where the picture's
lower edge meets the ground before the plane in focus, no board can cover it and the drone flies
instead.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.experiment import Cell, Plan
from influx_wrap.model.hardware import Board, Camera, Lens
from influx_wrap.model.optics import lens_to_object_m, thin_lens_cfl_mm
from influx_wrap.model.pose import TILTS_DEG, rotation_matrix, transform

N_DISPARITIES = 9


def make_plan(lens: Lens, camera: Camera, boards: Iterable[Board]) -> Plan:
    """All experiments of ``lens`` on ``camera``, zoom by zoom and near to far."""
    lfls, fds, boards = sample_lfl_mm(lens), sample_fd_m(lens), tuple(boards)
    cells = tuple(
        Cell(i, j, lfl, fd, choose_board(thin_lens_cfl_mm(lfl, fd), fd, camera, boards))
        for i, lfl in enumerate(lfls)
        for j, fd in enumerate(fds)
    )
    return Plan(lens, camera, lfls, fds, cells)


def select_cells(plan: Plan, names: str) -> tuple[Cell, ...]:
    """The cells named in ``names`` (``z3f2,z0f9`` or ``all``), in the plan's order."""
    if names.strip() == "all":
        return plan.cells
    wanted = {plan.cell(name.strip()) for name in names.split(",")}
    return tuple(cell for cell in plan.cells if cell in wanted)


def sample_lfl_mm(lens: Lens) -> tuple[float, ...]:
    """Lens focal lengths in mm, ascending: the shortest, doubling steps, the longest."""
    values = []
    lfl, step = float(lens.lfl_min_mm), 1.0
    while lfl < lens.lfl_max_mm:
        values.append(lfl)
        lfl, step = lfl + step, 2 * step
    return (*values, float(lens.lfl_max_mm))


def sample_fd_m(lens: Lens) -> tuple[float, ...]:
    """Focus distances in m, near to far: the nearest, then nine uniform in disparity.

    The nine run from ``fd_lower_m`` to nine times that; the nearest is listed once
    if it is ``fd_lower_m`` itself.
    """
    uniform = tuple(N_DISPARITIES * lens.fd_lower_m / i for i in range(N_DISPARITIES, 0, -1))
    return uniform if lens.fd_min_m == lens.fd_lower_m else (float(lens.fd_min_m), *uniform)


def needs_drone(cfl_mm: float, fd_m: float, camera: Camera) -> bool:
    """Whether the picture's lower edge runs into the ground before the plane in focus."""
    return fd_m > 2 * camera.height_above_ground_m * cfl_mm / camera.sensor_height_mm


def fits(board: Board, cfl_mm: float, fd_m: float, camera: Camera) -> bool:
    """Whether the sheet lies inside the picture in all five orientations."""
    signs = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    sheet = signs * np.array([board.width_mm, board.height_mm, 0]) / 2
    centre = np.array([0, 0, 1e3 * lens_to_object_m(cfl_mm, fd_m)])
    orientations = rotation_matrix(np.radians(TILTS_DEG))
    corners = transform(orientations, np.tile(centre, (len(orientations), 1)), sheet)
    depth = corners[..., 2]
    reach = np.abs(corners[..., :2]) * cfl_mm
    edge = depth[..., None] * np.array(camera.sensor_mm) / 2
    return bool(np.all(depth > 0) and np.all(reach <= edge))


def choose_board(
    cfl_mm: float, fd_m: float, camera: Camera, boards: Iterable[Board]
) -> Board | None:
    """The largest board that fits, the smallest if none does, None for the drone."""
    if needs_drone(cfl_mm, fd_m, camera):
        return None
    by_size = sorted(boards, key=lambda board: board.width_mm * board.height_mm)
    if not by_size:
        raise InputError("there is no board to choose from. Add one to the catalogue.")
    fitting = [board for board in by_size if fits(board, cfl_mm, fd_m, camera)]
    return fitting[-1] if fitting else by_size[0]
