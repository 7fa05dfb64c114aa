"""How well an experiment will measure a lens, before it is made.

Two numbers matter at the picture's corner: the focal length, and K1, what radial distortion
displaces there. With the board's width w on a plane at distance D, of which it fills the share s
of the picture's width, tilted views tell the focal length by perspective, that is by s and by
w / D, and distortion by s alone:

    sigma of ln f = FOCAL / (s w / D)
    sigma of K1   = hypot(RADIAL, RADIAL_FILL / s^2)

The constants are those of boards filmed as the recipes ask for, with corners found to 0.1 px; they
fit the covariances of calibrations of 73 to 290 mm at 1.2 to 20 m mostly within a factor of 1.2, at
worst of 4. A drone is a few lights: it says the same wherever it flies.
"""

from __future__ import annotations

import numpy as np

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.hardware import Board, Camera
from influx_wrap.model.optics import footprint_m, lens_to_object_m

FOCAL, RADIAL, RADIAL_FILL = 4.7e-6, 0.010, 0.0033
MOST_FILL = 0.75
"""Share of the picture's width: of a board that is larger, no more is seen in tilted views."""
DRONE_FOCAL, DRONE_RADIAL, DRONE_CORRELATION = 1.4e-3, 2.1, -0.75
CORNER_PX = 2035.0
"""From the centre to the corner of the pictures that the constants are for."""


def expected_covariance(
    board: Board | None, cfl_mm: float, fd_m: float, camera: Camera
) -> FloatArray:
    """(2, 2) of ln f and of K1 in px, with a board or, without one, the drone."""
    pictures = CORNER_PX / (np.hypot(*camera.image_size) / 2)
    if board is None:
        focal, radial, correlation = pictures * DRONE_FOCAL, DRONE_RADIAL, DRONE_CORRELATION
    else:
        width_m = footprint_m(cfl_mm, fd_m, camera.sensor_mm)[0]
        fill = min(1e-3 * board.width_mm / width_m, MOST_FILL)
        depth = fill * width_m / lens_to_object_m(cfl_mm, fd_m)
        focal = pictures * FOCAL / (fill * depth)
        radial, correlation = np.hypot(RADIAL, RADIAL_FILL / fill**2), 0.0
    both = correlation * focal * radial
    return np.array([[focal**2, both], [both, radial**2]])
