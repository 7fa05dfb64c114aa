"""How well the drone's positions are known, and the camera that is fitted to them."""

from __future__ import annotations

import numpy as np

from influx_wrap.calibrate.one_view import OneView, fit_one_view
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.flashes import Readings

LED_SIGMA_PX = 0.5
"""How well the centre of the LED is known, before anything is known of the footage."""

ASSUMED_SIGMA_M = 0.02
"""How well a position is known that does not say so: an RTK receiver's usual word."""

LEAST_SIGMA_M = 1e-4
POOR_SIGMA_M, POOR_RATIO = 0.05, 5.0
"""A position is poor if it is known less well than this, and than this times most others."""


class CameraFit:
    """Fits a camera to readings (P,) seen at uv (P, 2); metres about ``centre_m``."""

    def __init__(
        self, image_size: tuple[int, int], readings: Readings, focal_px: float | None
    ) -> None:
        self.centre_m = readings.xyz_m.mean(axis=0)
        self._points_m = readings.xyz_m - self.centre_m
        self._sigma_m = position_sigma_m(readings)
        self._image_size = image_size
        self._focal_px = focal_px

    def __call__(self, readings: IntArray, uv: FloatArray) -> OneView | None:
        return fit_one_view(
            self._points_m[readings],
            uv,
            self._sigma_m[readings],
            self._image_size,
            focal_px=self._focal_px,
            sigma_px=LED_SIGMA_PX,
        )


def position_covariance_m2(readings: Readings) -> FloatArray:
    """(R, 3, 3) of the positions: assumed where it is not known, never singular."""
    covariance = np.tile(ASSUMED_SIGMA_M**2 * np.eye(3), (len(readings.ids), 1, 1))
    if readings.covariance_m2 is not None:
        known = np.isfinite(readings.covariance_m2).all(axis=(1, 2))
        covariance[known] = readings.covariance_m2[known]
    symmetric = (covariance + np.swapaxes(covariance, 1, 2)) / 2
    result: FloatArray = symmetric + LEAST_SIGMA_M**2 * np.eye(3)
    return result


def position_sigma_m(readings: Readings) -> FloatArray:
    """(R,) standard deviation of a coordinate."""
    covariance = position_covariance_m2(readings)
    result: FloatArray = np.sqrt(np.trace(covariance, axis1=1, axis2=2) / 3)
    return result


def is_poor(readings: Readings) -> BoolArray:
    """(R,) positions that are known much less well than the others."""
    sigma_m = position_sigma_m(readings)
    return (sigma_m > POOR_SIGMA_M) & (sigma_m > POOR_RATIO * np.median(sigma_m))
