"""QGroundControl's plans, read back."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from influx_wrap.formats.mission import RELATIVE_FRAME, WAYPOINT
from influx_wrap.model.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class PlannedHolds:
    """The holds of a plan, in their order.

    home      latitude and longitude in degrees
    geodetic  (N, 3): latitude, longitude in degrees, metres above home
    hold_s    (N,)
    yaw_deg   (N,)
    """

    home: tuple[float, float]
    geodetic: FloatArray
    hold_s: FloatArray
    yaw_deg: FloatArray


def read_plan(path: Path) -> PlannedHolds:
    """The way points of a plan whose altitudes are relative to home."""
    plan = json.loads(path.read_text())
    assert plan["fileType"] == "Plan"
    latitude, longitude, _ = plan["mission"]["plannedHomePosition"]
    holds = [item for item in plan["mission"]["items"] if item["command"] == WAYPOINT]
    assert all(item["frame"] == RELATIVE_FRAME for item in holds)
    hold_s, _, _, yaw_deg, *geodetic = np.array([item["params"] for item in holds], dtype=float).T
    return PlannedHolds((latitude, longitude), np.stack(geodetic, axis=1), hold_s, yaw_deg)
