"""Which experiments to shoot for a lens, each with which target."""

from influx_wrap.plan.grid import make_plan, select_cells
from influx_wrap.plan.sampling import sample_fd_m, sample_lfl_mm
from influx_wrap.plan.targets import choose_board, fits, needs_drone

__all__ = [
    "choose_board",
    "fits",
    "make_plan",
    "needs_drone",
    "sample_fd_m",
    "sample_lfl_mm",
    "select_cells",
]
