"""Recipes side by side: maps of their errors (the paper's Figure 6) and end-point errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm

from influx_wrap.evaluate.cells import SHOWN, CellResult
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.experiment import Plan
from influx_wrap.report.grid import (
    draw_map,
    label_panels,
    map_legend,
    save_figure,
)
from influx_wrap.report.style import DASHES, ERROR_RAMP, SERIES, new_figure, styled

# Percent errors span from a telephoto's frozen principal point to a recipe gone wrong;
# one scale for all maps lets them be compared, and its ends take what lies beyond.
SCALE_PERCENT = (1e-3, 10.0)
RECIPE_ORDER = ("influx", "stock", "batch", "paper")
LINES = dict(zip(RECIPE_ORDER, zip(SERIES, DASHES, strict=True), strict=True))
LINES["kalibr"] = ("#444444", "-")


@styled
def draw_errors(plan: Plan, results: Mapping[str, Sequence[CellResult]], path: Path) -> None:
    """Write maps of the absolute errors in per cent: recipes down, parameters across."""
    n_rows, n_cols = len(plan.lfl_mm), len(plan.fd_m)
    figure = new_figure(
        2.0 + 4 * (0.3 + 0.4 * n_cols),
        1.6 + len(results) * (0.5 + 0.28 * n_rows),
        f"{plan.lens.name} on {plan.camera.name}: |error| of every cell, in per cent",
    )
    panels = figure.subplots(len(results), len(SHOWN), sharex=True, sharey=True, squeeze=False)
    norm = LogNorm(*SCALE_PERCENT, clip=True)
    any_failed = False
    for row, (recipe, cells) in zip(panels, results.items(), strict=True):
        failed = {cell.cell for cell in cells if cell.reason is not None}
        any_failed |= bool(failed)
        for axes, name in zip(row, SHOWN, strict=True):
            errors = {cell.cell: cell.error_percent(name) for cell in cells}
            values = {cell: abs(error) for cell, error in errors.items() if error is not None}
            draw_map(axes, plan, values, failed, norm, numbers=False, labels=False)
            axes.tick_params(axis="x", labelrotation=90, labelsize=8)
            axes.tick_params(axis="y", labelsize=8)
            axes.set_title(f"{recipe}: {name}")
    label_panels(figure)
    figure.colorbar(ScalarMappable(norm, ERROR_RAMP), ax=panels, label="%", extend="both", pad=0.01)
    map_legend(figure, plan, failed=any_failed)
    save_figure(figure, path)


@styled
def draw_epe(
    title: str, thresholds_px: FloatArray, shares: Mapping[str, FloatArray], path: Path
) -> None:
    """Write the cumulative curves: share (k,) of points within each threshold (k,)."""
    figure = new_figure(7.0, 4.6)
    axes = figure.add_subplot()
    for recipe, share in shares.items():
        colour, style = LINES[recipe]
        axes.plot(thresholds_px, 100 * share, color=colour, linestyle=style, label=recipe)
    axes.set_xscale("log")
    axes.set_xlim(thresholds_px[0], thresholds_px[-1])
    axes.set_ylim(0, 101)
    axes.set_xlabel("end-point error (px)")
    axes.set_ylabel("points within it (%), all cells")
    axes.set_title(f"{title}\nfailed cells count as infinitely far off")
    axes.grid()
    axes.legend(loc="upper left")
    save_figure(figure, path)
