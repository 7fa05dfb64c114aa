"""What the figures over the LFL x FD grid share: axes, cells, maps of numbers, saving."""

from __future__ import annotations

import io
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import Normal, Stroke

from influx_wrap.errors import InputError
from influx_wrap.formats.files import write_bytes
from influx_wrap.model.experiment import Cell, Plan
from influx_wrap.report.style import EMPTY_COLOUR, ERROR_RAMP, FAILED_STYLE, INK, MARK

FD_LABEL, LFL_LABEL = "focus distance FD (m)", "lens focal length LFL (mm)"

# Blue stands out from all of the ramp's yellows and browns for every kind of colour vision, and
# its white rim does in a print without colours.
BORDER_STYLE: dict[str, Any] = {
    "color": MARK,
    "linewidth": 2.5,
    "solid_capstyle": "round",
    "path_effects": [Stroke(linewidth=5, foreground="white"), Normal()],
}


def frame_grid(axes: Axes, plan: Plan, *, labels: bool = True) -> None:
    """Ticks and limits of the plan's grid: FD to the right, LFL upwards."""
    n_rows, n_cols = len(plan.lfl_mm), len(plan.fd_m)
    axes.set_xlim(-0.5, n_cols - 0.5)
    axes.set_ylim(-0.5, n_rows - 0.5)
    axes.set_xticks(range(n_cols), [f"{fd:.2f}" for fd in plan.fd_m])
    axes.set_yticks(range(n_rows), [f"{lfl:g}" for lfl in plan.lfl_mm])
    if labels:
        axes.set_xlabel(FD_LABEL)
        axes.set_ylabel(LFL_LABEL)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def label_panels(figure: Figure) -> None:
    """Name the axes of LFL x FD planes side by side once for all of them."""
    figure.supxlabel(FD_LABEL)
    figure.supylabel(LFL_LABEL)


def fill_cell(axes: Axes, cell: Cell, colour: str, text: str = "", size: float = 10) -> None:
    """Colour one cell and write into it."""
    corner = (cell.focus_index - 0.5, cell.zoom_index - 0.5)
    axes.add_patch(Rectangle(corner, 1, 1, facecolor=colour, edgecolor="white", linewidth=1.5))
    ink = INK if _luminance(colour) > 0.5 else "white"
    axes.text(
        cell.focus_index, cell.zoom_index, text, ha="center", va="center", color=ink, fontsize=size
    )


def draw_map(
    axes: Axes,
    plan: Plan,
    values: Mapping[str, float],
    failed: Collection[str],
    norm: LogNorm,
    *,
    numbers: bool,
    labels: bool,
) -> None:
    """The plan's grid, its cells coloured by positive values; failed ones are hatched and crossed.

    ``numbers`` are written into the cells, ``labels`` at the axes.
    """
    for cell in plan.cells:
        if cell.name in failed:
            corner = (cell.focus_index - 0.5, cell.zoom_index - 0.5)
            axes.add_patch(Rectangle(corner, 1, 1, linewidth=0.5, **FAILED_STYLE))
            axes.plot(cell.focus_index, cell.zoom_index, "x", color=INK, markersize=7)
        elif cell.name in values:
            value = values[cell.name]
            text = _short(value) if numbers else ""
            fill_cell(axes, cell, to_hex(ERROR_RAMP(norm(value))), text, size=8)
        else:
            fill_cell(axes, cell, EMPTY_COLOUR)
    _draw_target_border(axes, plan)
    frame_grid(axes, plan, labels=labels)


def _draw_target_border(axes: Axes, plan: Plan) -> None:
    """A line between cells shot with the drone and cells shot with a board."""
    is_drone = {(cell.zoom_index, cell.focus_index): cell.board is None for cell in plan.cells}
    x: list[float] = []
    y: list[float] = []
    for (zoom, focus), drone in is_drone.items():
        if is_drone.get((zoom + 1, focus), drone) != drone:
            x += [focus - 0.5, focus + 0.5, math.nan]
            y += [zoom + 0.5, zoom + 0.5, math.nan]
        if is_drone.get((zoom, focus + 1), drone) != drone:
            x += [focus + 0.5, focus + 0.5, math.nan]
            y += [zoom - 0.5, zoom + 0.5, math.nan]
    axes.plot(x, y, **BORDER_STYLE)


def map_legend(figure: Figure, plan: Plan, *, failed: bool) -> None:
    """What the border and the hatching mean, as far as they occur."""
    handles = []
    if len({cell.board is None for cell in plan.cells}) == 2:
        label = "border of drone (right, below) and board cells"
        handles.append(Patch(facecolor=MARK, label=label))
    if failed:
        handles.append(Patch(label="failed", **FAILED_STYLE))
    if handles:
        figure.legend(handles=handles, loc="outside lower right", ncols=2)


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure; the extension of ``path`` chooses png, pdf, svg, ..."""
    kind = path.suffix.removeprefix(".").lower()
    known = sorted(figure.canvas.get_supported_filetypes())
    if kind not in known:
        raise InputError(f"{path}: cannot draw a {kind!r} file; known are {', '.join(known)}.")
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, dpi=120)
    write_bytes(path, picture.getvalue())


def _short(value: float) -> str:
    return f"{value:.1g}" if value < 0.001 else f"{value:.3f}" if value < 1 else f"{value:.2f}"


def _luminance(colour: str) -> float:
    red, green, blue = to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue
