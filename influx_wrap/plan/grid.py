"""The plan of a lens: every sampled LFL with every sampled FD, and its target."""

from __future__ import annotations

from collections.abc import Iterable

from influx_wrap.model.experiment import Cell, Plan
from influx_wrap.model.hardware import Board, Camera, Lens
from influx_wrap.model.optics import thin_lens_cfl_mm
from influx_wrap.plan.sampling import sample_fd_m, sample_lfl_mm
from influx_wrap.plan.targets import choose_board


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
