"""What an RTK receiver says of one epoch: when, where, how sure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

Covariance = tuple[tuple[float, float, float], ...]

YEAR_2018, YEAR_2080 = 1_514_764_800.0, 3_471_292_800.0
HEIGHTS_M = (-1000.0, 20_000.0)
ROUNDING = 1e-5
"""How far below zero a determinant may be, in parts of the diagonal's product: receivers send
covariances in single precision."""


class Quality(StrEnum):
    """How the position was found; only the last two follow the carrier's phase."""

    NONE = "none"
    AUTONOMOUS = "autonomous"
    FLOAT = "float"
    FIXED = "fixed"


@dataclass(frozen=True)
class Fix:
    """A receiver's position (WGS84) at one epoch.

    With ``Quality.NONE`` the receiver says that it has no position: the three coordinates are
    NaN, and so is the time if it has none either.
    """

    time_unix_s: float
    """UTC of the epoch."""
    latitude_deg: float
    longitude_deg: float
    height_m: float
    """Above the ellipsoid."""
    quality: Quality
    covariance_m2: Covariance | None
    """3 x 3: east, north, up; None if the receiver did not tell it with this epoch."""
    n_satellites: int | None


def no_position(time_unix_s: float, n_satellites: int | None) -> Fix:
    """The receiver said that it has no position."""
    nan = math.nan
    return Fix(time_unix_s, nan, nan, nan, Quality.NONE, None, n_satellites)


def is_plausible(fix: Fix) -> bool:
    """A position on earth in our time, with a covariance that can be one."""
    if fix.quality is Quality.NONE:
        return math.isnan(fix.time_unix_s) or YEAR_2018 <= fix.time_unix_s <= YEAR_2080
    return (
        YEAR_2018 <= fix.time_unix_s <= YEAR_2080
        and abs(fix.latitude_deg) <= 90
        and abs(fix.longitude_deg) <= 180
        and HEIGHTS_M[0] <= fix.height_m <= HEIGHTS_M[1]
        and (fix.covariance_m2 is None or _is_positive_semidefinite(fix.covariance_m2))
    )


def _is_positive_semidefinite(covariance: Covariance) -> bool:
    """By the principal minors of the symmetric 3 x 3 matrix."""
    (a, d, e), (_, b, f), (_, _, c) = covariance
    if not all(math.isfinite(value) for value in (a, b, c, d, e, f)):
        return False
    minors = ((a * b - d * d, a * b), (a * c - e * e, a * c), (b * c - f * f, b * c))
    determinant = a * b * c + 2 * d * e * f - a * f * f - b * e * e - c * d * d
    return min(a, b, c) >= 0 and all(
        minor >= -ROUNDING * scale for minor, scale in (*minors, (determinant, a * b * c))
    )
