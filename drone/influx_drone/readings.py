"""A flight's readings as ``flash_rtk.json`` has them: Cartesian and geodetic, with covariance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from influx_drone.geodesy import geodetic_to_world
from influx_drone.protocol import Message


def as_rows(readings: Sequence[Message]) -> list[dict[str, Any]]:
    """One row per reading, in the order of time.

    x is east, y north and alt up, in the plane that touches the Earth at the first reading,
    alt counted from the ellipsoid there. The time is that of the LED, by the receiver's clock:
    the fix's own, and what the drone's clock says lies between the two.
    """
    if not readings:
        return []
    ordered = sorted(readings, key=_time_s)
    geodetic = np.array(
        [
            [entry["fix"][key] for key in ("latitude_deg", "longitude_deg", "height_m")]
            for entry in ordered
        ]
    )
    xyz = geodetic_to_world(geodetic, *geodetic[0, :2])
    return [
        {
            "x": x,
            "y": y,
            "alt": alt,
            "timestamp": _time_s(entry),
            "latitude_deg": entry["fix"]["latitude_deg"],
            "longitude_deg": entry["fix"]["longitude_deg"],
            "height_m": entry["fix"]["height_m"],
            "covariance_m2": entry["fix"]["covariance_m2"],
            "fix": entry["fix"]["quality"],
            "id": entry["id"],
            "point": entry["point"],
        }
        for entry, (x, y, alt) in zip(ordered, xyz.tolist(), strict=True)
    ]


def _time_s(entry: Message) -> float:
    fix = entry["fix"]
    return float(fix["time_unix_s"] + entry["led_on_clock_s"] - fix["clock_s"])
