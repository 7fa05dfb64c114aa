"""How values between experiments are found.

``smooth`` takes the lens as one smooth thing (``lut.smooth``). The other three look between
neighbours: regions and weights are the same for them; each is a change of variables, and says in
which coordinates regions are built and which quantities are blended.

paper      (LFL, FD), intrinsics as they are: as published.
disparity  (LFL, 1 / FD): a lens reacts to the reciprocal of the distance, so that infinity
           is a place like any other.
thin-lens  as disparity, but fx and fy through the focal length that a thin lens would have
           to show them, 1 / LFL = 1 / CFL + 1 / (FD - CFL), which hardly changes with FD.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray

SMOOTH = "smooth"
PAPER = "paper"
REGION_SCHEMES = (PAPER, "disparity", "thin-lens")
SCHEMES = (SMOOTH, *REGION_SCHEMES)
DEFAULT = SMOOTH


@dataclass(frozen=True)
class Scheme:
    """One of ``REGION_SCHEMES``; ``pixel_um`` (2,) is the sensor's pitch in x and in y."""

    name: str
    pixel_um: tuple[float, float]

    def __post_init__(self) -> None:
        if self.name not in REGION_SCHEMES:
            raise InputError(
                f"there is no interpolation scheme {self.name!r}; known: {', '.join(SCHEMES)}."
            )

    def y(self, fd_m: FloatArray) -> FloatArray:
        """The second coordinate of focus distances (q,) in metres."""
        return np.asarray(fd_m if self.name == "paper" else 1 / fd_m)

    def fd(self, y: FloatArray) -> FloatArray:
        """Focus distances (q,) in metres of second coordinates (q,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(y if self.name == "paper" else 1 / y)

    def blended(self, values: FloatArray, fd_m: FloatArray) -> FloatArray:
        """(n, 8) what is interpolated, for intrinsics (n, 8) at focus distances (n,)."""
        result = values.copy()
        if self.name == "thin-lens":
            for axis, pixel_um in enumerate(self.pixel_um):
                result[:, axis] = effective_lfl_mm(1e-3 * pixel_um * values[:, axis], fd_m)
        return result

    def intrinsics(self, blended: FloatArray, fd_m: FloatArray) -> FloatArray:
        """(q, 8) intrinsics from what was interpolated for focus distances (q,)."""
        if self.name != "thin-lens":
            return blended
        result = blended.copy()
        for axis, pixel_um in enumerate(self.pixel_um):
            result[:, axis] = cfl_mm(blended[:, axis], fd_m) / (1e-3 * pixel_um)
        return result

    def slope(self, blended: FloatArray, fd_m: FloatArray) -> FloatArray:
        """(q, 8) derivative of ``intrinsics`` by what was interpolated."""
        slope = np.ones_like(blended)
        if self.name == "thin-lens":
            for axis, pixel_um in enumerate(self.pixel_um):
                cfl = cfl_mm(blended[:, axis], fd_m)
                # d eff / d CFL = eff^2 (1 / CFL^2 - 1 / (FD - CFL)^2)
                with np.errstate(invalid="ignore", divide="ignore"):
                    beyond = np.where(np.isinf(fd_m), np.inf, 1e3 * fd_m - cfl)
                    inverse = (blended[:, axis] / cfl) ** 2 - (blended[:, axis] / beyond) ** 2
                    slope[:, axis] = 1 / inverse / (1e-3 * pixel_um)
        return slope


def effective_lfl_mm(cfl: FloatArray, fd_m: FloatArray) -> FloatArray:
    """Focal length (q,) of the thin lens that shows ``cfl`` (q,) in mm at focus distances (q,)."""
    with np.errstate(invalid="ignore"):
        beyond = np.where(np.isinf(fd_m), np.inf, 1e3 * fd_m - cfl)
    return np.asarray(1 / (1 / cfl + 1 / beyond))


def cfl_mm(effective: FloatArray, fd_m: FloatArray) -> FloatArray:
    """Camera focal length (q,) in mm of thin lenses (q,) at focus distances (q,) in metres.

    (FD - sqrt(FD^2 - 4 FD LFL)) / 2, written without the difference of large numbers, so that
    it is right up to infinity. NaN where the lens cannot focus so near.
    """
    with np.errstate(invalid="ignore"):
        return np.asarray(2 * effective / (1 + np.sqrt(1 - 4e-3 * effective / fd_m)))
