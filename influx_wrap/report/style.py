"""The look of matplotlib's figures: the pages' own colours, quiet axes, words from the left.

The colours are those of ``shared/page.css``, ``scores/scores.css`` and ``shared/figures.js`` in
``assets``, after Okabe and Ito's. No figure tells by hue alone: ramps go by lightness, series have
a dash or a marker each.
"""

from __future__ import annotations

from typing import Any

from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, QUIET, LINE = "#1d2327", "#66707a", "#d9dcdf"
MARK = "#0072b2"
SERIES = ("#0072b2", "#d55e00", "#00805f", "#b5488a")
DASHES = ("-", "--", ":", "-.")
BOARD_RAMP = colormaps["Blues"]
DRONE_COLOUR, DRONE_MARKER = "#e69f00", "^"
EMPTY_COLOUR = "#eeeeee"

# "value" and "error" of the pages: what a thing is, and how wrong it is.
VALUE_RAMP = colormaps["cividis"]
ERROR_RAMP = colormaps["YlOrBr"]

FAILED_STYLE: dict[str, Any] = {"facecolor": "white", "edgecolor": INK, "hatch": "////"}
MISSING_STYLE: dict[str, Any] = {"facecolor": "none", "edgecolor": LINE}

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "figure.titlesize": 12,
    "figure.titleweight": "bold",
    "figure.labelsize": 10,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": QUIET,
    "axes.labelsize": 10,
    "axes.edgecolor": LINE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.8,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": QUIET,
    "ytick.labelcolor": QUIET,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "hatch.linewidth": 0.8,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 2,
}

styled = rc_context(_STYLE)
"""Decorates the functions that draw."""


def new_figure(width_in: float, height_in: float, title: str = "") -> Figure:
    """A figure whose parts make room for each other, with a title at its left."""
    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    if title:
        figure.suptitle(title, x=0.005, ha="left")
    return figure


def frame_picture(axes: Axes, image_size: tuple[int, int], names: str) -> None:
    """Axes as a camera's picture, with two letters as the names of right and down, in pixels."""
    width, height = image_size
    axes.set_xlim(-0.5, width - 0.5)
    axes.set_ylim(height - 0.5, -0.5)
    axes.set_aspect("equal")
    axes.spines[:].set(visible=True, color=QUIET)
    axes.set_xlabel(f"{names[0]} (px)")
    axes.set_ylabel(f"{names[1]} (px)")
