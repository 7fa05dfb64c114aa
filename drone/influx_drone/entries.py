"""What stands in the journals of drone and ground, and what makes sense as an entry.

    sent      id, point                      the ground: before a trigger is sent
    started   id, flight, point, fix         the drone: before the LED is turned on
    reading   id, flight, n, point, fix,     its answer, when the LED is off
              led_on_clock_s, led_off_clock_s
    refused   id, flight, n, point, reason   or that there was no flash

A line may have a good checksum, or none at all in an old journal, and still be something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from influx_drone import protocol
from influx_drone.fix import Quality
from influx_drone.protocol import ProtocolError


def is_entry(entry: Mapping[str, Any]) -> bool:
    """Whether an entry has all that its kind needs."""
    try:
        protocol.name(entry, "id")
        protocol.whole(entry, "point")
        if entry.get("kind") == "sent":
            return True
        protocol.name(entry, "flight")
        if entry.get("kind") == "started":
            return entry.get("fix") is None or is_fix(entry["fix"])
        if protocol.whole(entry, "n") == 0:
            return False
        if entry.get("kind") == "refused":
            return isinstance(entry.get("reason"), str)
        protocol.number(entry, "led_on_clock_s")
        if entry.get("led_off_clock_s") is not None:
            protocol.number(entry, "led_off_clock_s")
        return entry.get("kind") == "reading" and is_fix(entry.get("fix"), has_position=True)
    except ProtocolError:
        return False


def is_fix(fix: object, *, has_position: bool = False) -> bool:
    """Whether this is a fix as it is written down, with a position if it must have one."""
    if not isinstance(fix, dict):
        return False
    names = ("time_unix_s", "latitude_deg", "longitude_deg", "height_m")
    covariance = fix.get("covariance_m2")
    return (
        all(
            protocol.is_number(fix.get(name)) or not (has_position or fix.get(name))
            for name in names
        )
        and protocol.is_number(fix.get("clock_s"))
        and fix.get("quality") in [str(quality) for quality in Quality]
        and (covariance is None or _is_matrix(covariance))
    )


def _is_matrix(rows: object) -> bool:
    return (
        isinstance(rows, list)
        and len(rows) == 3
        and all(isinstance(row, list) and len(row) == 3 for row in rows)
        and all(protocol.is_number(value) for row in rows for value in row)
    )
