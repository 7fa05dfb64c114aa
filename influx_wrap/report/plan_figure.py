"""The plan as a picture: the LFL x FD grid, each experiment in its target's colour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from influx_wrap.model.experiment import Plan
from influx_wrap.report.grid import fill_cell, frame_grid, save_figure
from influx_wrap.report.style import (
    BOARD_RAMP,
    DRONE_COLOUR,
    DRONE_MARKER,
    INK,
    LINE,
    new_figure,
    styled,
)

# Apart from the blues without colours, too.
DRONE_CORNER: dict[str, Any] = {"marker": DRONE_MARKER, "color": INK, "markersize": 4}


@styled
def draw_plan(plan: Plan, path: Path) -> None:
    """Write the figure; the extension of ``path`` chooses png, pdf, svg, ..."""
    colours = _target_colours(plan)
    n_rows, n_cols = len(plan.lfl_mm), len(plan.fd_m)
    figure = new_figure(2.6 + 0.82 * n_cols, 1.7 + 0.48 * n_rows)
    axes = figure.add_subplot()
    for cell in plan.cells:
        fill_cell(axes, cell, colours[cell.target_name], f"{cell.cfl_mm:.1f}")
        if cell.board is None:
            axes.plot(cell.focus_index - 0.4, cell.zoom_index + 0.32, **DRONE_CORNER)
    frame_grid(axes, plan)
    axes.set_title(
        f"{plan.lens.name} on {plan.camera.name}: {len(plan.cells)} experiments\n"
        "in each cell: thin-lens camera focal length CFL (mm)"
    )
    handles, labels = zip(
        *(_legend_entry(plan, target, colour) for target, colour in colours.items()), strict=True
    )
    figure.legend(handles, labels, loc="outside right upper", title="target")
    save_figure(figure, path)


def _target_colours(plan: Plan) -> dict[str, str]:
    """Colour by target name: boards the darker the larger, then the drone."""
    boards = {cell.board.name: cell.board for cell in plan.cells if cell.board}
    by_size = sorted(boards.values(), key=lambda board: board.width_mm * board.height_mm)
    steps = np.linspace(0.15, 0.95, len(by_size))
    colours = {b.name: to_hex(BOARD_RAMP(step)) for b, step in zip(by_size, steps, strict=True)}
    if any(cell.board is None for cell in plan.cells):
        colours["drone"] = DRONE_COLOUR
    return colours


def _legend_entry(plan: Plan, target: str, colour: str) -> tuple[tuple[Artist, ...], str]:
    count = sum(cell.target_name == target for cell in plan.cells)
    patch = Patch(facecolor=colour, edgecolor=LINE)
    if target == "drone":
        return (patch, Line2D([], [], linestyle="", **DRONE_CORNER)), f"drone ({count})"
    return (patch,), f"{target} mm ({count})"
