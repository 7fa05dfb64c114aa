"""A mission as files: QGroundControl's ``.plan`` to fly it, KML for a look at it on a map.

The plan is JSON: take-off, the speed, a hold at every way point, return, and a geofence. Altitudes
are relative to home, where the drone is armed (MAVLink's frame 3). Each hold has a yaw, the same
everywhere, and a small acceptance radius: with PX4's own of several metres, the hold would begin
on the way.

The map has camera, footprint, path, way points and fence. Coordinates there are longitude,
latitude, height above the ground, in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from influx_wrap.formats.files import write_bytes, write_json
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.flight import Mission

WAYPOINT, RETURN, TAKE_OFF, CHANGE_SPEED = 16, 20, 22, 178
MISSION_FRAME, RELATIVE_FRAME = 2, 3
RELATIVE_ALTITUDE = 1
PX4, QUADROTOR = 12, 2
ACCEPTANCE_M = 0.5
GROUND_SPEED, KEEP_THROTTLE = 1, -1

NAMESPACE = "http://www.opengis.net/kml/2.2"
# Opacity, blue, green, red: KML's own order.
PATH_COLOUR, FOOTPRINT_COLOUR, FENCE_COLOUR = "ff009fe6", "40b27200", "00ffffff"
FENCE_LINE_COLOUR = "ff005ed5"


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


def write_kml(path: Path, mission: Mission) -> None:
    """Write the mission as places, lines and areas on a map."""
    home = np.array([*mission.home, 0.0])
    above_home = np.array([*mission.home, mission.take_off_height_m])
    flown = [home, above_home, *mission.geodetic]
    fence = np.column_stack([mission.fence, np.zeros(len(mission.fence))])
    footprint = partial(_area, line=PATH_COLOUR, fill=FOOTPRINT_COLOUR)
    root = _element(
        "kml",
        _element(
            "Document",
            _element("name", mission.title),
            _placemark("camera", _line("Point", [np.array(mission.camera)])),
            _placemark("home", _line("Point", [home])),
            *(
                _placemark(str(number), _line("Point", [place]))
                for number, place in enumerate(mission.geodetic, 1)
            ),
            _placemark("path", _line("LineString", flown), _style(PATH_COLOUR)),
            *(footprint("footprint", outline) for outline in mission.outlines_geodetic),
            _area("fence", fence, line=FENCE_LINE_COLOUR, fill=FENCE_COLOUR),
        ),
        xmlns=NAMESPACE,
    )
    ET.indent(root)
    write_bytes(path, ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


def _area(name: str, corners: FloatArray, line: str, fill: str) -> ET.Element:
    ring = _element("LinearRing", _coordinates([*corners, corners[0]]))
    shape = _element("Polygon", _above_ground(), _element("outerBoundaryIs", ring))
    return _placemark(name, shape, _style(line, _element("PolyStyle", _element("color", fill))))


def _placemark(name: str, shape: ET.Element, *style: ET.Element) -> ET.Element:
    return _element("Placemark", _element("name", name), *style, shape)


def _style(line: str, *more: ET.Element) -> ET.Element:
    lines = _element("LineStyle", _element("color", line), _element("width", "2"))
    return _element("Style", lines, *more)


def _line(kind: str, places: Iterable[FloatArray]) -> ET.Element:
    return _element(kind, _above_ground(), _coordinates(places))


def _above_ground() -> ET.Element:
    return _element("altitudeMode", "relativeToGround")


def _coordinates(places: Iterable[FloatArray]) -> ET.Element:
    """Nine decimals of a degree are a tenth of a millimetre."""
    texts = (
        f"{longitude:.9f},{latitude:.9f},{height:.4f}"
        for latitude, longitude, height in (place.tolist() for place in places)
    )
    return _element("coordinates", " ".join(texts))


def _element(tag: str, *content: ET.Element | str, **attributes: str) -> ET.Element:
    """An element that holds a text, or others."""
    element = ET.Element(tag, attributes)
    for part in content:
        if isinstance(part, str):
            element.text = part
        else:
            element.append(part)
    return element
