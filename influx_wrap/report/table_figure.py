"""A lens's table seen: its regions, its intrinsics, and its leave-one-out errors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from influx_wrap.formats.files import make_folder
from influx_wrap.lut.judge import Judgement
from influx_wrap.lut.lookup import Lookup
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.table import Table
from influx_wrap.report.grid import FD_LABEL, LFL_LABEL, label_panels, save_figure
from influx_wrap.report.style import (
    DRONE_COLOUR,
    DRONE_MARKER,
    ERROR_RAMP,
    INK,
    LINE,
    QUIET,
    VALUE_RAMP,
    new_figure,
    styled,
)

UNITS = ("px", "px", "px", "px", "", "", "", "")
BOARD_STYLE: dict[str, Any] = {"marker": "s", "color": INK, "markersize": 4}
DRONE_STYLE: dict[str, Any] = {
    "marker": DRONE_MARKER, "color": DRONE_COLOUR, "markersize": 6, "markeredgecolor": INK,
    "markeredgewidth": 0.7,
}  # fmt: skip
BILINEAR_COLOUR, BARYCENTRIC_COLOUR = "#b9d3e8", "#f4ead0"


@styled
def draw_regions(lookup: Lookup, path: Path) -> None:
    """The LFL x FD plane with all regions and experiments."""
    table = lookup.table
    figure = new_figure(9, 6)
    axes = figure.subplots()
    quads = lookup.regions.is_quad
    for some, colour, label in (
        (quads, BILINEAR_COLOUR, "bilinear"),
        (~quads, BARYCENTRIC_COLOUR, "barycentric"),
    ):
        shapes = [
            np.column_stack([table.fd_m[v], table.lfl_mm[v]])
            for v in (row[row >= 0] for row in lookup.regions.vertices[some])
            if len(v) > 2
        ]
        axes.add_collection(
            PolyCollection(shapes, facecolor=colour, edgecolor="white", label=label)
        )
    _mark_experiments(axes, table)
    _frame_plane(axes)
    axes.set_xlabel(FD_LABEL)
    axes.set_ylabel(LFL_LABEL)
    axes.set_title(f"{table.lens} on {table.camera}: regions of scheme {lookup.scheme.name}")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    save_figure(figure, path)


@styled
def draw_intrinsics(lookup: Lookup, path: Path) -> None:
    """Maps of the eight intrinsics over the table's bounds."""
    table = lookup.table
    fd = np.geomspace(table.fd_m.min(), table.fd_m.max(), 160)
    lfl = np.geomspace(table.lfl_mm.min(), table.lfl_mm.max(), 120)
    grid_fd, grid_lfl = np.meshgrid(fd, lfl)
    answers = lookup.query(grid_lfl.ravel(), grid_fd.ravel())
    values = np.where(answers.status[:, None] == 0, answers.intrinsics, np.nan)
    figure = new_figure(15, 7, f"{table.lens}: intrinsics, scheme {lookup.scheme.name}")
    panels = figure.subplots(2, 4, sharex=True, sharey=True).ravel()
    for axes, name, unit, column in zip(panels, NAMES, UNITS, values.T, strict=True):
        mesh = axes.pcolormesh(fd, lfl, column.reshape(len(lfl), len(fd)), cmap=VALUE_RAMP)
        axes.plot(
            table.fd_m, table.lfl_mm, "o", color="white", markersize=2.6, markeredgecolor=INK,
            markeredgewidth=0.6,
        )  # fmt: skip
        _frame_plane(axes)
        axes.set_title(name + (f" ({unit})" if unit else ""))
        figure.colorbar(mesh, ax=axes)
    label_panels(figure)
    save_figure(figure, path)


@styled
def draw_left_out(table: Table, judgement: Judgement, path: Path) -> None:
    """The paper's maps of leave-one-out errors, one for each intrinsic."""
    figure = new_figure(
        15,
        7,
        f"{table.lens}: leave-one-out errors, scheme {judgement.scheme} "
        "(triangle: predicted from a triangle; small and grey: not enclosed by others)",
    )
    panels = figure.subplots(2, 4, sharex=True, sharey=True).ravel()
    judged = judgement.left_out.judged
    triangle = judged & ~judgement.left_out.is_bilinear
    for k, (axes, name) in enumerate(zip(panels, NAMES, strict=True)):
        errors = judgement.errors[:, k]
        norm = _norm(errors[judged])
        axes.plot(table.fd_m[~judged], table.lfl_mm[~judged], "o", color=LINE, markersize=3)
        for some, marker in ((judged & ~triangle, "o"), (triangle, "^")):
            axes.scatter(
                table.fd_m[some], table.lfl_mm[some], c=errors[some], cmap=ERROR_RAMP, norm=norm,
                s=42, marker=marker, edgecolors=QUIET, linewidths=0.5,
            )  # fmt: skip
        _frame_plane(axes)
        axes.set_title(f"{name} ({'%' if k < 4 else 'absolute'})")
        figure.colorbar(ScalarMappable(norm, ERROR_RAMP), ax=axes).minorticks_off()
    label_panels(figure)
    save_figure(figure, path)


def _frame_plane(axes: Axes) -> None:
    """Both axes logarithmic, with plain numbers at their ticks."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())


def _mark_experiments(axes: Axes, table: Table) -> None:
    for drone, style, label in ((False, BOARD_STYLE, "board"), (True, DRONE_STYLE, "drone")):
        some = table.is_drone == drone
        if some.any():
            axes.plot(table.fd_m[some], table.lfl_mm[some], linestyle="", label=label, **style)


def _norm(errors: FloatArray) -> Normalize:
    positive = errors[errors > 0]
    if not positive.size:
        return Normalize(0, 1)
    return LogNorm(positive.min() / 1.01, positive.max() * 1.01)


def draw_table(table: Table, judgements: Sequence[Judgement], folder: Path) -> None:
    """All pictures of a table, as far as there is something to see."""
    draw_all_left_out(table.finite, judgements, folder)
    if len(table.finite.columns) > 1:
        lookup = judgements[0].lookup
        draw_regions(lookup, folder / "regions.png")
        draw_intrinsics(lookup, folder / "intrinsics.png")


def draw_all_left_out(table: Table, judgements: Sequence[Judgement], folder: Path) -> None:
    """What each scheme says of the experiments left out, a picture each in ``folder``."""
    make_folder(folder)
    for judgement in judgements:
        if judgement.judged:
            draw_left_out(table, judgement, folder / f"left_out_{judgement.scheme}.png")
