"""Which target an experiment needs: the largest board that fits, or the drone.

The board is held centred on the plane in focus, parallel to the sensor and tilted
by 45 degrees either way about its two sides. Its sheet must lie wholly inside the
picture each time; a tilted board's near edge looks larger, so the sheet's corners
are projected rather than compared with the footprint. Where the picture's lower
edge meets the ground before the plane in focus, no board can cover it and the
drone flies instead.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.hardware import Board, Camera
from influx_wrap.model.optics import lens_to_object_m
from influx_wrap.model.pose import TILTS_DEG, rotation_matrix, transform


def needs_drone(cfl_mm: float, fd_m: float, camera: Camera) -> bool:
    """Whether the picture's lower edge runs into the ground before the plane in focus."""
    return fd_m > 2 * camera.height_above_ground_m * cfl_mm / camera.sensor_height_mm


def fits(board: Board, cfl_mm: float, fd_m: float, camera: Camera) -> bool:
    """Whether the sheet lies inside the picture in all five orientations."""
    signs = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    sheet = signs * np.array([board.width_mm, board.height_mm, 0]) / 2
    centre = np.array([0, 0, 1e3 * lens_to_object_m(cfl_mm, fd_m)])
    orientations = rotation_matrix(np.radians(TILTS_DEG))
    corners = transform(orientations, np.tile(centre, (len(orientations), 1)), sheet)
    depth = corners[..., 2]
    reach = np.abs(corners[..., :2]) * cfl_mm
    edge = depth[..., None] * np.array(camera.sensor_mm) / 2
    return bool(np.all(depth > 0) and np.all(reach <= edge))


def choose_board(
    cfl_mm: float, fd_m: float, camera: Camera, boards: Iterable[Board]
) -> Board | None:
    """The largest board that fits, the smallest if none does, None for the drone."""
    if needs_drone(cfl_mm, fd_m, camera):
        return None
    by_size = sorted(boards, key=lambda board: board.width_mm * board.height_mm)
    if not by_size:
        raise InputError("there is no board to choose from. Add one to the catalogue.")
    fitting = [board for board in by_size if fits(board, cfl_mm, fd_m, camera)]
    return fitting[-1] if fitting else by_size[0]
