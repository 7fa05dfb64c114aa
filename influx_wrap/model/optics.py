"""Thin-lens optics: what focus does to focal length, and how much the camera sees.

LFL is the lens focal length, CFL the camera focal length (lens to sensor), FD the
focus distance measured from the sensor. The thin-lens equation

    1 / LFL = 1 / CFL + 1 / (FD - CFL)

is a quadratic in CFL (the paper's equation 1); the smaller root is the camera.
"""

from __future__ import annotations

import math

from influx_wrap.errors import InputError

WIDEST, LONGEST = 0.1, 100.0
"""Focal lengths of cameras, in widths of their pictures."""


def thin_lens_cfl_mm(lfl_mm: float, fd_m: float) -> float:
    """Camera focal length of a thin lens; ``fd_m`` may be ``math.inf``."""
    _check_positive("LFL", lfl_mm, "mm")
    _check_positive("FD", fd_m, "m", infinite=True)
    discriminant = 1 - 4 * lfl_mm / (1e3 * fd_m)
    if discriminant < 0:
        raise InputError(
            f"a thin lens of {lfl_mm:g} mm cannot focus at {fd_m:g} m: "
            f"FD must be at least four times LFL ({4e-3 * lfl_mm:g} m). Check the units."
        )
    # The textbook root (FD - sqrt(FD^2 - 4 FD LFL)) / 2 loses digits for distant
    # focus and fails at infinity; this is the same root.
    return 2 * lfl_mm / (1 + math.sqrt(discriminant))


def thin_lens_focal_px(lfl_mm: float, fd_m: float, pixel_um: float) -> float:
    """Thin-lens CFL in pixels: where a calibration starts."""
    _check_positive("pixel size", pixel_um, "um")
    return 1e3 * thin_lens_cfl_mm(lfl_mm, fd_m) / pixel_um


def check_focal_px(focal_px: float, image_size: tuple[int, int]) -> None:
    """Refuse a focal length that no camera with pictures of ``image_size`` has, before it is
    where a calibration starts."""
    width = max(image_size)
    if WIDEST * width <= focal_px <= LONGEST * width:
        return
    degrees = math.degrees(2 * math.atan(width / 2 / focal_px)) if focal_px > 0 else 180.0
    raise InputError(
        f"a focal length of {focal_px:.4g} px is no start for pictures {width} px wide: they would "
        f"show {degrees:.3g} degrees. Check the focal length, and the pixel size in micrometres."
    )


def lens_to_object_m(cfl_mm: float, fd_m: float) -> float:
    """LTO: distance from the optical centre to the plane in focus."""
    return fd_m - 1e-3 * cfl_mm


def footprint_m(cfl_mm: float, fd_m: float, sensor_mm: tuple[float, float]) -> tuple[float, float]:
    """Field-of-view footprint (FSF): (width, height) seen in the plane in focus."""
    scale = lens_to_object_m(cfl_mm, fd_m) / cfl_mm
    return scale * sensor_mm[0], scale * sensor_mm[1]


def _check_positive(what: str, value: float, unit: str, *, infinite: bool = False) -> None:
    if not value > 0 or (math.isinf(value) and not infinite):
        raise InputError(f"{what} must be a positive number of {unit}, got {value:g}.")
