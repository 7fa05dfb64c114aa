"""QGroundControl's ``.plan``: a mission with its geofence, as JSON.

Take-off, the speed, a hold at every way point, return. Altitudes are relative to home, where
the drone is armed (MAVLink's frame 3). Each hold has a yaw, the same everywhere, and a small
acceptance radius: with PX4's own of several metres, the hold would begin on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from influx_wrap.formats.files import write_json
from influx_wrap.model.flight import Mission

WAYPOINT, RETURN, TAKE_OFF, CHANGE_SPEED = 16, 20, 22, 178
MISSION_FRAME, RELATIVE_FRAME = 2, 3
RELATIVE_ALTITUDE = 1
PX4, QUADROTOR = 12, 2
ACCEPTANCE_M = 0.5
GROUND_SPEED, KEEP_THROTTLE = 1, -1


def write_plan(path: Path, mission: Mission) -> None:
    """Write the mission for QGroundControl, or for anything that reads its plans."""
    latitude, longitude = mission.home
    yaw, height = mission.yaw_deg, mission.take_off_height_m
    items = [
        _item(TAKE_OFF, RELATIVE_FRAME, (0, 0, 0, yaw, latitude, longitude, height)),
        _item(
            CHANGE_SPEED,
            MISSION_FRAME,
            (GROUND_SPEED, mission.speed_m_s, KEEP_THROTTLE, 0, 0, 0, 0),
        ),
        *(
            _item(WAYPOINT, RELATIVE_FRAME, (mission.hold_s, ACCEPTANCE_M, 0, yaw, *place))
            for place in mission.geodetic.tolist()
        ),
        _item(RETURN, MISSION_FRAME, (0, 0, 0, 0, 0, 0, 0)),
    ]
    for number, item in enumerate(items, 1):
        item["doJumpId"] = number
    values = {
        "fileType": "Plan",
        "version": 1,
        "groundStation": "QGroundControl",
        "geoFence": _fence(mission),
        "rallyPoints": {"version": 2, "points": []},
        "mission": {
            "version": 2,
            "firmwareType": PX4,
            "vehicleType": QUADROTOR,
            "globalPlanAltitudeMode": RELATIVE_ALTITUDE,
            "cruiseSpeed": mission.speed_m_s,
            "hoverSpeed": mission.speed_m_s,
            # Its height above the sea is not known, and not needed for relative altitudes.
            "plannedHomePosition": [latitude, longitude, 0],
            "items": items,
        },
    }
    write_json(path, values)


def _item(command: int, frame: int, params: Sequence[float]) -> dict[str, object]:
    item: dict[str, object] = {
        "type": "SimpleItem",
        "command": command,
        "frame": frame,
        "params": list(params),
        "autoContinue": True,
    }
    if frame == RELATIVE_FRAME:
        item |= {
            "Altitude": params[6],
            "AltitudeMode": RELATIVE_ALTITUDE,
            "AMSLAltAboveTerrain": None,
        }
    return item


def _fence(mission: Mission) -> dict[str, object]:
    """Inside a polygon round the flight, outside a circle round the camera."""
    latitude, longitude, _ = mission.camera
    keep_out = {"center": [latitude, longitude], "radius": mission.keep_out_m}
    circle = {"version": 1, "inclusion": False, "circle": keep_out}
    return {
        "version": 2,
        "polygons": [{"version": 1, "inclusion": True, "polygon": mission.fence.tolist()}],
        "circles": [circle] if mission.keep_out_m > 0 else [],
    }
