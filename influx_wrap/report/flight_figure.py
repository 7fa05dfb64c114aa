"""A flight in camera space: as the camera sees it, and from its right-hand side."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Polygon

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.flight import Mission
from influx_wrap.report.grid import save_figure
from influx_wrap.report.style import INK, QUIET, SERIES, new_figure, styled

# Far is darker, and has another marker.
LAYER_COLOURS, LAYER_MARKERS = ("#56b4e9", SERIES[0]), ("o", "D")
FLIGHT_COLOUR = SERIES[1]
GROUND_COLOUR = "#6b4f2a"


@styled
def draw_flight(mission: Mission, path: Path) -> None:
    """Write the figure; the extension of ``path`` chooses png, pdf, svg, ..."""
    heights = mission.geodetic[:, 2]
    figure = new_figure(
        14,
        6.6,
        f"{mission.title}: {len(heights)} points, {heights.min():.1f} to {heights.max():.1f} m "
        f"above the ground\ncamera at {mission.camera[2]:g} m, heading {mission.heading_deg:g} "
        f"deg, tilt {mission.tilt_deg:g} deg",
    )
    front, side = figure.subplots(1, 2)
    _draw_front(front, mission)
    _draw_side(side, mission)
    handles, labels = side.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    save_figure(figure, path)


def _draw_front(axes: Axes, mission: Mission) -> None:
    points, up = mission.points_m, -mission.points_m[:, 1]
    for outline, colour in zip(mission.outlines_m, _colours(mission), strict=True):
        frame = np.column_stack([outline[:, 0], -outline[:, 1]])
        axes.add_patch(Polygon(frame, fill=False, edgecolor=colour, linewidth=1.5))
        ground = _ground_up_m(mission, outline[:1, 2])
        if ground is not None and np.ptp(frame[:, 1]) > abs(ground[0]):
            axes.plot(
                frame[:2, 0], np.tile(ground, 2), color=GROUND_COLOUR, linewidth=1.5, zorder=0.5
            )
    _draw_path(axes, points[:, 0], up)
    _draw_points(axes, mission, points[:, 0], up)
    axes.margins(0.08)
    axes.set_aspect("equal")
    axes.set_xlabel("right (m)")
    axes.set_ylabel("up in the picture (m)")
    axes.set_title("as the camera sees it")


def _draw_side(axes: Axes, mission: Mission) -> None:
    forward, up = mission.points_m[:, 2], -mission.points_m[:, 1]
    far = mission.outlines_m[..., 2].max()
    deepest = mission.outlines_m[mission.outlines_m[:, 0, 2].argmax()]
    for edge in (deepest[0], deepest[2]):
        axes.plot([0, edge[2]], [0, -edge[1]], color=QUIET, linewidth=0.8, linestyle=":")
    for outline, colour in zip(mission.outlines_m, _colours(mission), strict=True):
        axes.plot(outline[[0, 2], 2], -outline[[0, 2], 1], color=colour, linewidth=1.5)
    along = np.array([0.0, 1.08 * far])
    for height, style, label in (
        (0.0, "-", "ground, taken to be level"),
        (mission.min_height_m, "--", f"{mission.min_height_m:g} m above it, the least height"),
    ):
        line = _ground_up_m(mission, along, height)
        if line is not None:
            axes.plot(along, line, color=GROUND_COLOUR, linestyle=style, linewidth=1.5, label=label)
    _draw_path(axes, forward, up)
    _draw_points(axes, mission, forward, up, labels=False)
    axes.plot(0, 0, marker=">", markersize=11, color=INK, linestyle="", label="camera")
    axes.set_aspect("equal")
    axes.set_xlabel("forward along the optical axis (m)")
    axes.set_ylabel("up in the picture (m)")
    axes.set_title("from the camera's right-hand side")


def _draw_path(axes: Axes, x: FloatArray, y: FloatArray) -> None:
    axes.plot(x, y, color=FLIGHT_COLOUR, linewidth=1.3, label="path", zorder=1.5)


def _draw_points(
    axes: Axes, mission: Mission, x: FloatArray, y: FloatArray, *, labels: bool = True
) -> None:
    depths = mission.outlines_m[:, 0, 2]
    markers = LAYER_MARKERS[-len(depths) :]
    for depth, colour, marker in zip(depths, _colours(mission), markers, strict=True):
        here = np.isclose(mission.points_m[:, 2], depth)
        label = f"{np.count_nonzero(here)} points at {depth:.2f} m and their footprint"
        axes.plot(x[here], y[here], marker, color=colour, markersize=5, label=label)
    if labels:
        for number, place in enumerate(zip(x, y, strict=True), 1):
            axes.annotate(str(number), place, (4, 4), textcoords="offset points", fontsize=9)


def _colours(mission: Mission) -> tuple[str, ...]:
    return LAYER_COLOURS[-len(mission.outlines_m) :]


def _ground_up_m(
    mission: Mission, forward_m: FloatArray, height_m: float = 0.0
) -> FloatArray | None:
    """Where a height above the ground is in the picture's up direction, at depths (N,)."""
    tilt = math.radians(mission.tilt_deg)
    if math.sin(tilt) < 1e-3:
        return None
    up: FloatArray = (height_m - mission.camera[2] - forward_m * math.cos(tilt)) / math.sin(tilt)
    return up
