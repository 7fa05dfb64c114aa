"""The drone's 24 hover points in camera space (x right, y down, z forward, metres)."""

from __future__ import annotations

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.intrinsics import FloatArray
from influx_wrap.model.optics import footprint_m, lens_to_object_m

MARGIN_M = 0.2
DEPTH_FACTORS = (0.75, 1.25)


def hover_points_m(cfl_mm: float, fd_m: float, sensor_mm: tuple[float, float]) -> FloatArray:
    """(24, 3): a 4 x 3 grid over the footprint at each of two depths (the paper's equation 2)."""
    width, height = footprint_m(cfl_mm, fd_m, sensor_mm)
    depth = lens_to_object_m(cfl_mm, fd_m)
    layers = []
    for p in DEPTH_FACTORS:
        half_width, half_height = p * width / 2 - MARGIN_M, p * height / 2 - MARGIN_M
        if min(half_width, half_height) <= 0:
            raise InputError(
                f"the field of view at {p:g} x {depth:.2f} m is only {p * width:.2f} x "
                f"{p * height:.2f} m: too small for a drone with a margin of {MARGIN_M:g} m. "
                "Use a board."
            )
        y, x = np.meshgrid(np.arange(3) - 1.0, (np.arange(4) - 1.5) / 1.5, indexing="ij")
        layer = [x * half_width, y * half_height, np.full_like(x, p * depth)]
        layers.append(np.stack(layer, axis=-1).reshape(-1, 3))
    return np.concatenate(layers)
