"""The plan as a picture: the LFL x FD grid, each experiment in its target's colour."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from influx_wrap.errors import InputError
from influx_wrap.formats.files import write_bytes
from influx_wrap.model.experiment import Plan

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
        colour = colours[cell.target_name]
        corner = (cell.focus_index - 0.5, cell.zoom_index - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, facecolor=colour, edgecolor="white", linewidth=1.5))
        axes.text(
            cell.focus_index,
            cell.zoom_index,
            f"{cell.cfl_mm:.1f}",
            ha="center",
            va="center",
            color="black" if _luminance(colour) > 0.5 else "white",
        )
    axes.set_xlim(-0.5, n_cols - 0.5)
    axes.set_ylim(-0.5, n_rows - 0.5)
    axes.set_xticks(range(n_cols), [f"{fd:.2f}" for fd in plan.fd_m])
    axes.set_yticks(range(n_rows), [f"{lfl:g}" for lfl in plan.lfl_mm])
    axes.set_xlabel("focus distance FD (m)")
    axes.set_ylabel("lens focal length LFL (mm)")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(
        f"{plan.lens.name} on {plan.camera.name}: {len(plan.cells)} experiments\n"
        "in each cell: thin-lens camera focal length CFL (mm)"
    )
    handles = [_legend_entry(plan, target, colour) for target, colour in colours.items()]
    figure.legend(handles=handles, loc="outside right upper", title="target", frameon=False)
    _save(figure, path)


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


def _luminance(colour: str) -> float:
    red, green, blue = to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def _save(figure: Figure, path: Path) -> None:
    kind = path.suffix.removeprefix(".").lower()
    known = sorted(figure.canvas.get_supported_filetypes())
    if kind not in known:
        raise InputError(f"{path}: cannot draw a {kind!r} file; known are {', '.join(known)}.")
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, dpi=150)
    write_bytes(path, picture.getvalue())
