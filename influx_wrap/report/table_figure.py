"""A lens's table seen: its regions, its intrinsics, and its leave-one-out errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from influx_wrap.lut.judge import Judgement
from influx_wrap.lut.lookup import Lookup
from influx_wrap.model.intrinsics import NAMES, FloatArray
from influx_wrap.model.table import Table
from influx_wrap.report.grid import BORDER_COLOUR, RAMP, save_figure

UNITS = ("px", "px", "px", "px", "", "", "", "")
BOARD_STYLE = {"marker": "s", "color": "black"}
DRONE_STYLE = {"marker": "^", "color": BORDER_COLOUR}


def draw_regions(lookup: Lookup, path: Path) -> None:
    """The LFL x FD plane with all regions and experiments."""
    table = lookup.table
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots()
    quads = lookup.regions.is_quad
    for some, colour, label in (
        (quads, RAMP(0.35), "bilinear"),
        (~quads, RAMP(0.1), "barycentric"),
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
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("focus distance FD (m)")
    axes.set_ylabel("lens focal length LFL (mm)")
    axes.set_title(f"{table.lens} on {table.camera}: regions of scheme {lookup.scheme.name}")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    save_figure(figure, path)


def draw_intrinsics(lookup: Lookup, path: Path) -> None:
    """Maps of the eight intrinsics over the table's bounds."""
    table = lookup.table
    fd = np.geomspace(table.fd_m.min(), table.fd_m.max(), 160)
    lfl = np.geomspace(table.lfl_mm.min(), table.lfl_mm.max(), 120)
    grid_fd, grid_lfl = np.meshgrid(fd, lfl)
    answers = lookup.query(grid_lfl.ravel(), grid_fd.ravel())
    values = np.where(answers.status[:, None] == 0, answers.intrinsics, np.nan)
    figure = Figure(figsize=(15, 7), layout="constrained")
    figure.suptitle(f"{table.lens}: intrinsics, scheme {lookup.scheme.name}")
    panels = figure.subplots(2, 4, sharex=True, sharey=True).ravel()
    for axes, name, unit, column in zip(panels, NAMES, UNITS, values.T, strict=True):
        mesh = axes.pcolormesh(fd, lfl, column.reshape(len(lfl), len(fd)), cmap=RAMP)
        axes.plot(table.fd_m, table.lfl_mm, ".", color="black", markersize=2)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(name + (f" ({unit})" if unit else ""))
        figure.colorbar(mesh, ax=axes)
    figure.supxlabel("focus distance FD (m)")
    figure.supylabel("lens focal length LFL (mm)")
    save_figure(figure, path)


def draw_left_out(table: Table, judgement: Judgement, path: Path) -> None:
    """The paper's maps of leave-one-out errors, one for each intrinsic."""
    figure = Figure(figsize=(15, 7), layout="constrained")
    figure.suptitle(
        f"{table.lens}: leave-one-out errors, scheme {judgement.scheme} "
        "(teal rim: from a triangle; grey: not enclosed by others)"
    )
    panels = figure.subplots(2, 4, sharex=True, sharey=True).ravel()
    judged = judgement.left_out.judged
    triangle = judged & ~judgement.left_out.is_bilinear
    for k, (axes, name) in enumerate(zip(panels, NAMES, strict=True)):
        errors = judgement.errors[:, k]
        norm = _norm(errors[judged])
        axes.plot(table.fd_m[~judged], table.lfl_mm[~judged], "o", color="#cccccc", markersize=4)
        for some, rim in ((judged & ~triangle, "white"), (triangle, BORDER_COLOUR)):
            axes.scatter(
                table.fd_m[some], table.lfl_mm[some], c=errors[some], cmap=RAMP, norm=norm,
                s=60, edgecolors=rim, linewidths=1.5,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(f"{name} ({'%' if k < 4 else 'absolute'})")
        figure.colorbar(ScalarMappable(norm, RAMP), ax=axes)
    figure.supxlabel("focus distance FD (m)")
    figure.supylabel("lens focal length LFL (mm)")
    save_figure(figure, path)


def _mark_experiments(axes: object, table: Table) -> None:
    for drone, style, label in ((False, BOARD_STYLE, "board"), (True, DRONE_STYLE, "drone")):
        some = table.is_drone == drone
        if some.any():
            axes.plot(table.fd_m[some], table.lfl_mm[some], linestyle="", markersize=4,  # type: ignore[attr-defined]
                      label=label, **style)  # fmt: skip


def _norm(errors: FloatArray) -> Normalize:
    positive = errors[errors > 0]
    if not positive.size:
        return Normalize(0, 1)
    return LogNorm(positive.min() / 1.01, positive.max() * 1.01)
