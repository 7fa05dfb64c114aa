"""The drone's flight: hover points in camera space (x right, y down, z forward, metres).

Two flights, both from the footprint of the field of view: the test flight to the four
corners at the plane in focus, and the 24 hover points at two depths about it (the paper's
supplement, "3D Flight Path Computation"). A ``Mission`` is such a flight with its order and
its place on the Earth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.optics import footprint_m, lens_to_object_m

MARGIN_M = 0.2
DEPTH_FACTORS = (0.75, 1.25)
COLUMNS, ROWS = 4, 3
CORNERS = ("top-left", "top-right", "bottom-right", "bottom-left")


def hover_points_m(cfl_mm: float, fd_m: float, sensor_mm: tuple[float, float]) -> FloatArray:
    """(24, 3): a 4 x 3 grid over the footprint at each of two depths (the paper's equation 2)."""
    layers = []
    for p in DEPTH_FACTORS:
        half_width, half_height, depth = _reach_m(cfl_mm, fd_m, sensor_mm, p)
        y, x = np.meshgrid(np.arange(3) - 1.0, (np.arange(4) - 1.5) / 1.5, indexing="ij")
        layer = [x * half_width, y * half_height, np.full_like(x, depth)]
        layers.append(np.stack(layer, axis=-1).reshape(-1, 3))
    return np.concatenate(layers)


def corner_points_m(cfl_mm: float, fd_m: float, sensor_mm: tuple[float, float]) -> FloatArray:
    """(4, 3): the test flight, once round the picture's corners in the order of ``CORNERS``."""
    half_width, half_height, depth = _reach_m(cfl_mm, fd_m, sensor_mm, 1.0)
    return np.array([[-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]]) * np.array(
        [half_width, half_height, depth]
    )


def outline_m(
    cfl_mm: float, fd_m: float, sensor_mm: tuple[float, float], depth_factor: float
) -> FloatArray:
    """(4, 3): corners of what the camera sees at a depth, in the order of ``CORNERS``."""
    width, height = footprint_m(cfl_mm, fd_m, sensor_mm)
    depth = lens_to_object_m(cfl_mm, fd_m)
    corners = np.array([[-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]])
    return corners * np.array([width / 2, height / 2, depth]) * depth_factor


def boustrophedon_orders() -> IntArray:
    """(128, 24): ways through the hover points layer by layer, as an ox ploughs.

    Every layer by rows or by columns from any of its corners, either layer first. No point
    comes twice, and two in a row are neighbours except where the layer changes.
    """
    grid = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    furrows = []
    for lines in (grid, grid.T):
        for corner in (lines, lines[::-1], lines[:, ::-1], lines[::-1, ::-1]):
            turned = [line[:: 1 if i % 2 == 0 else -1] for i, line in enumerate(corner)]
            furrows.append(np.concatenate(turned))
    return np.array(
        [
            np.concatenate([first + shift, second + grid.size - shift])
            for shift in (0, grid.size)
            for first in furrows
            for second in furrows
        ]
    )


@dataclass(frozen=True, eq=False)
class Mission:
    """A flight ready to be written: N way points in the order they are flown.

    World is metres east, north and up of the ground below the camera; geodetic is latitude
    and longitude in degrees and metres above that ground, which is taken to be level.
    """

    title: str
    cfl_mm: float
    fd_m: float
    camera: tuple[float, float, float]
    """Geodetic."""
    heading_deg: float
    tilt_deg: float
    points_m: FloatArray
    """(N, 3) camera space."""
    world_m: FloatArray
    """(N, 3)."""
    geodetic: FloatArray
    """(N, 3)."""
    outlines_m: FloatArray
    """(L, 4, 3) camera space: what the camera sees at each depth that is flown."""
    outlines_geodetic: FloatArray
    """(L, 4, 3)."""
    home_world_m: FloatArray
    """(3,): where it takes off and lands, on the ground."""
    home: tuple[float, float]
    """Latitude and longitude of it."""
    fence: FloatArray
    """(4, 2) latitudes and longitudes: the flight is inside, with room to spare."""
    keep_out_m: float
    """Radius about the camera that the fence keeps free of the drone."""
    min_height_m: float
    hold_s: float
    speed_m_s: float

    @property
    def take_off_height_m(self) -> float:
        """Straight up from home to the height of the first way point."""
        return float(self.geodetic[0, 2])

    @property
    def yaw_deg(self) -> float:
        """Compass heading of the drone throughout: away from the camera.

        The antenna is above the drone and the LED below it; as the drone never turns, from
        one to the other is the same step at all points, which the camera's pose absorbs.
        """
        return self.heading_deg % 360


def _reach_m(
    cfl_mm: float, fd_m: float, sensor_mm: tuple[float, float], depth_factor: float
) -> tuple[float, float, float]:
    """Half width and half height that are flown at a depth, and the depth itself."""
    width, height = (depth_factor * side for side in footprint_m(cfl_mm, fd_m, sensor_mm))
    depth = lens_to_object_m(cfl_mm, fd_m)
    half_width, half_height = width / 2 - MARGIN_M, height / 2 - MARGIN_M
    if min(half_width, half_height) <= 0:
        raise InputError(
            f"the field of view at {depth_factor:g} x {depth:.2f} m is only {width:.2f} x "
            f"{height:.2f} m: too small for a drone with a margin of {MARGIN_M:g} m. "
            "Use a board."
        )
    return half_width, half_height, depth_factor * depth
