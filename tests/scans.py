"""Laser scans of a simulated room: rays from a scanner at the origin, z up."""

from __future__ import annotations

import numpy as np

from influx_wrap.model.arrays import FloatArray

# Lowest and highest corners in metres around a scanner on the floor; things are around azimuth 0.
BOXES = (
    ((2.0, -1.2, 0.0), (2.4, -0.7, 1.2)),
    ((3.0, -0.3, 0.0), (3.3, 0.2, 2.0)),
    ((2.5, 0.5, 0.0), (2.8, 0.9, 1.5)),
    ((4.5, -2.0, 0.0), (5.0, -1.3, 2.2)),
    ((4.0, 1.2, 0.0), (4.6, 1.8, 1.8)),
    ((5.5, 0.3, 1.4), (5.9, 1.0, 2.3)),
)
ROOM = ((-3.0, -3.5, 0.0), (7.0, 3.5, 2.8))


def scan_room(height_m: float, step_deg: float = 0.5) -> FloatArray:
    """Points (n, 3) that a scanner ``height_m`` above the floor measures."""
    azimuth = np.radians(np.arange(0, 360, step_deg) + 0.1)
    elevation = np.radians(np.arange(-60, 90, step_deg) + 0.1)
    a, e = (grid.ravel() for grid in np.meshgrid(azimuth, elevation, indexing="ij"))
    rays = np.column_stack([np.cos(a) * np.cos(e), np.sin(a) * np.cos(e), np.sin(e)])
    offset = np.array([0.0, 0.0, height_m])
    ends = np.stack([(np.array(corner) - offset) / rays for corner in ROOM])
    distance = ends.max(axis=0).min(axis=1)
    for low, high in BOXES:
        ends = np.stack([(np.array(corner) - offset) / rays for corner in (low, high)])
        enter, leave = ends.min(axis=0).max(axis=1), ends.max(axis=0).min(axis=1)
        hit = (enter <= leave) & (enter > 0)
        distance = np.where(hit, np.minimum(distance, enter), distance)
    return rays * distance[:, None]


def turned(points: FloatArray, angle_deg: float) -> FloatArray:
    """Points (n, 3) turned about the vertical."""
    c, s = np.cos(np.radians(angle_deg)), np.sin(np.radians(angle_deg))
    result: FloatArray = points @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
    return result
