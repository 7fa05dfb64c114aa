"""Which experiments to shoot for a lens, each with which target."""

from influx_wrap.plan.grid import make_plan as make_plan
from influx_wrap.plan.grid import select_cells as select_cells
