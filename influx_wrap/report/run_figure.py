"""A run as a picture: how far off fx and cx are in every cell, or how well they are known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm

from influx_wrap.evaluate.cells import CellResult
from influx_wrap.model.experiment import Plan
from influx_wrap.report.grid import draw_map, map_legend, save_figure
from influx_wrap.report.style import ERROR_RAMP, new_figure, styled

DRAWN = ("fx", "cx")
SMALLEST = 1e-4
"""Per cent; what is smaller is drawn like this, so that no error at all has a colour too."""


@styled
def draw_run(plan: Plan, cells: Sequence[CellResult], title: str, path: Path) -> None:
    """Write the figure: errors in per cent where the truth is known, else sigmas."""
    with_truth = any(cell.truth is not None for cell in cells)
    failed = {cell.cell for cell in cells if cell.reason is not None}
    n_rows, n_cols = len(plan.lfl_mm), len(plan.fd_m)
    figure = new_figure(2.2 + 1.3 * n_cols, 1.9 + 0.42 * n_rows, title)
    panels = figure.subplots(1, len(DRAWN), sharey=True)
    maps = [_percents(cells, name, with_truth) for name in DRAWN]
    shown = [value for values in maps for value in values.values()] or [1.0]
    norm = LogNorm(min(shown) / 1.01, max(shown) * 1.01)
    for axes, name, values in zip(panels, DRAWN, maps, strict=True):
        draw_map(axes, plan, values, failed, norm, numbers=True, labels=True)
        axes.set_title(f"|error of {name}| (%)" if with_truth else f"sigma of {name} (%)")
    panels[-1].set_ylabel("")
    figure.colorbar(ScalarMappable(norm, ERROR_RAMP), ax=panels, label="%", pad=0.01)
    map_legend(figure, plan, failed=bool(failed))
    save_figure(figure, path)


def _percents(cells: Sequence[CellResult], name: str, with_truth: bool) -> dict[str, float]:
    values = {
        cell.cell: cell.error_percent(name) if with_truth else cell.sigma_percent(name)
        for cell in cells
    }
    return {cell: max(abs(v), SMALLEST) for cell, v in values.items() if v is not None}
