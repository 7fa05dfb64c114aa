"""The quantities that the smooth lens models: intrinsics, rewritten so that none blows up.

With f = sqrt(fx fy), R the distance in px from the picture's centre to its corner, rho = R / f:

    LFL / CFL - 1               zoom and focus change it little, and for a lens that focuses with
                                its front group it is linear in the group's shift
    ln(fy / fx)                 of the pixels' shape; a property of the sensor
    cx, cy                      from the picture's centre
    K1 = R (k1 rho^2 + k2 rho^4)  displacement in px at the corner by radial distortion
    K2 = R k2 rho^4             the part of it that is of fourth order
    P1, P2 = 3 p R rho          displacement in px at the corner by tangential distortion

Each is divided by what would be much for a lens (``_MUCH``), so that one prior serves all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.table import Table

N_OUTPUTS = 8
FOCAL, ASPECT = 0, 1

# Relative for the focal length and the pixels' shape; of R for what is in px.
_MUCH = np.array([0.1, 0.002, 5e-3, 5e-3, 15e-3, 5e-3, 1.5e-3, 1.5e-3])


@dataclass(frozen=True)
class Outputs:
    """The rewriting for one camera: the picture's size in px, and its pixels' pitch in um."""

    image_size: tuple[int, int]
    pixel_um: tuple[float, float]

    @classmethod
    def of(cls, table: Table) -> Outputs:
        """That of a table's camera."""
        return cls(table.image_size, table.pixel_um)

    @property
    def corner_px(self) -> float:
        """R, from the picture's centre to its corner."""
        return math.hypot(*self.image_size) / 2

    @property
    def scale(self) -> FloatArray:
        """(8,) what an output of one stands for: a relative change, or px."""
        return _MUCH * np.where(np.arange(N_OUTPUTS) < 2, 1.0, self.corner_px)

    @property
    def _centre(self) -> FloatArray:
        return (np.array(self.image_size) - 1) / 2

    @property
    def _pitch_mm(self) -> float:
        return 1e-3 * math.sqrt(self.pixel_um[0] * self.pixel_um[1])

    @property
    def _log_aspect(self) -> float:
        """ln(fy / fx) of a lens that is the same in x and y."""
        return math.log(self.pixel_um[0] / self.pixel_um[1])

    def outputs(self, values: FloatArray, lfl_mm: FloatArray) -> FloatArray:
        """(n, 8) outputs of intrinsics (n, 8) at focal lengths (n,)."""
        fx, fy, cx, cy, k1, k2, p1, p2 = values.T
        focal = np.sqrt(fx * fy)
        corner = self.corner_px
        rho = corner / focal
        return (
            np.stack(
                [
                    lfl_mm / (focal * self._pitch_mm) - 1,
                    np.log(fy / fx) - self._log_aspect,
                    cx - self._centre[0],
                    cy - self._centre[1],
                    corner * (k1 * rho**2 + k2 * rho**4),
                    corner * k2 * rho**4,
                    3 * p1 * corner * rho,
                    3 * p2 * corner * rho,
                ],
                axis=-1,
            )
            / self.scale
        )

    def intrinsics(self, outputs: FloatArray, lfl_mm: FloatArray) -> FloatArray:
        """(n, 8) intrinsics of outputs (n, 8) at focal lengths (n,)."""
        g = outputs * self.scale
        focal = lfl_mm / (self._pitch_mm * (1 + g[:, 0]))
        half = 0.5 * (g[:, 1] + self._log_aspect)
        corner = self.corner_px
        rho = corner / focal
        return np.stack(
            [
                focal * np.exp(-half),
                focal * np.exp(half),
                g[:, 2] + self._centre[0],
                g[:, 3] + self._centre[1],
                (g[:, 4] - g[:, 5]) / (corner * rho**2),
                g[:, 5] / (corner * rho**4),
                g[:, 6] / (3 * corner * rho),
                g[:, 7] / (3 * corner * rho),
            ],
            axis=-1,
        )

    def slope(self, values: FloatArray, lfl_mm: FloatArray) -> FloatArray:
        """(n, 8, 8) derivative of ``intrinsics`` by the outputs, at intrinsics (n, 8)."""
        fx, fy, _, _, k1, k2, p1, p2 = values.T
        focal = np.sqrt(fx * fy)
        corner = self.corner_px
        rho = corner / focal
        # By LFL / CFL - 1, of which the focal length is the reciprocal.
        inverse = focal * self._pitch_mm / lfl_mm
        slope = np.zeros((len(values), N_OUTPUTS, N_OUTPUTS))
        for row, value in enumerate((-fx, -fy, None, None, -2 * k1, -4 * k2, -p1, -p2)):
            if value is not None:
                slope[:, row, 0] = value * inverse
        slope[:, 0, 1], slope[:, 1, 1] = -fx / 2, fy / 2
        slope[:, 2, 2] = slope[:, 3, 3] = 1
        slope[:, 4, 4] = 1 / (corner * rho**2)
        slope[:, 4, 5] = -slope[:, 4, 4]
        slope[:, 5, 5] = 1 / (corner * rho**4)
        slope[:, 6, 6] = slope[:, 7, 7] = 1 / (3 * corner * rho)
        return slope * self.scale

    def covariance(
        self, values: FloatArray, lfl_mm: FloatArray, covariance: FloatArray
    ) -> FloatArray:
        """(n, 8, 8) covariance of the outputs, of intrinsics (n, 8) that have this one."""
        inverse = np.linalg.inv(self.slope(values, lfl_mm))
        return inverse @ covariance @ inverse.transpose(0, 2, 1)
