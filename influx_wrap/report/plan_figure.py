"""The plan as a picture: the LFL x FD grid, each experiment in its target's colour."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from influx_wrap.model.experiment import Plan
from influx_wrap.report.grid import fill_cell, frame_grid, save_figure

# Boards are ordered by size, so they get a ramp of lightness, which every kind of
# colour vision reads; the drone's orange stands apart from the blues in hue.
BOARD_RAMP = colormaps["Blues"]
DRONE_COLOUR = "#e69f00"


def draw_plan(plan: Plan, path: Path) -> None:
    """Write the figure; the extension of ``path`` chooses png, pdf, svg, ..."""
    colours = _target_colours(plan)
    n_rows, n_cols = len(plan.lfl_mm), len(plan.fd_m)
    figure = Figure(figsize=(2.6 + 0.82 * n_cols, 1.7 + 0.48 * n_rows), layout="constrained")
    axes = figure.add_subplot()
    for cell in plan.cells:
        fill_cell(axes, cell, colours[cell.target_name], f"{cell.cfl_mm:.1f}")
    frame_grid(axes, plan)
    axes.set_title(
        f"{plan.lens.name} on {plan.camera.name}: {len(plan.cells)} experiments\n"
        "in each cell: thin-lens camera focal length CFL (mm)"
    )
    handles = [_legend_entry(plan, target, colour) for target, colour in colours.items()]
    figure.legend(handles=handles, loc="outside right upper", title="target", frameon=False)
    save_figure(figure, path)


def _target_colours(plan: Plan) -> dict[str, str]:
    """Colour by target name: boards by size, then the drone."""
    boards = {cell.board.name: cell.board for cell in plan.cells if cell.board}
    by_size = sorted(boards.values(), key=lambda board: board.width_mm * board.height_mm)
    steps = np.linspace(0.15, 0.95, len(by_size))
    colours = {b.name: to_hex(BOARD_RAMP(step)) for b, step in zip(by_size, steps, strict=True)}
    if any(cell.board is None for cell in plan.cells):
        colours["drone"] = DRONE_COLOUR
    return colours


def _legend_entry(plan: Plan, target: str, colour: str) -> Patch:
    count = sum(cell.target_name == target for cell in plan.cells)
    unit = "" if target == "drone" else " mm"
    return Patch(facecolor=colour, edgecolor="grey", label=f"{target}{unit} ({count})")
