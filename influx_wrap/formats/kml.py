"""KML of a flight, for a look at it on a map: camera, footprint, path, way points, fence.

Coordinates are longitude, latitude, height above the ground, in this order.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from influx_wrap.formats.files import write_bytes
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.flight import Mission

NAMESPACE = "http://www.opengis.net/kml/2.2"

# Opacity, blue, green, red: KML's own order.
PATH_COLOUR, FOOTPRINT_COLOUR, FENCE_COLOUR = "ff009fe6", "40b27200", "00ffffff"
FENCE_LINE_COLOUR = "ff005ed5"


def write_kml(path: Path, mission: Mission) -> None:
    """Write the mission as places, lines and areas."""
    ET.register_namespace("", NAMESPACE)
    root = ET.Element(_tag("kml"))
    document = _child(root, "Document")
    _child(document, "name", mission.title)
    home = np.array([*mission.home, 0.0])
    above_home = np.array([*mission.home, mission.take_off_height_m])
    _add_point(document, "camera", np.array(mission.camera))
    _add_point(document, "home", home)
    for number, place in enumerate(mission.geodetic, 1):
        _add_point(document, str(number), place)
    path_placemark = _placemark(document, "path", PATH_COLOUR)
    line = _child(path_placemark, "LineString")
    _add_coordinates(line, [home, above_home, *mission.geodetic])
    for outline in mission.outlines_geodetic:
        _add_polygon(document, "footprint", outline, FOOTPRINT_COLOUR, PATH_COLOUR)
    fence = np.column_stack([mission.fence, np.zeros(len(mission.fence))])
    _add_polygon(document, "fence", fence, FENCE_COLOUR, FENCE_LINE_COLOUR)
    ET.indent(root)
    write_bytes(path, ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


def _add_point(document: ET.Element, name: str, place: FloatArray) -> None:
    point = _child(_placemark(document, name), "Point")
    _add_coordinates(point, [place])


def _add_polygon(
    document: ET.Element, name: str, corners: FloatArray, fill: str, border: str
) -> None:
    polygon = _child(_placemark(document, name, border, fill), "Polygon")
    _child(polygon, "altitudeMode", "relativeToGround")
    ring = _child(_child(polygon, "outerBoundaryIs"), "LinearRing")
    _child(ring, "coordinates", _coordinates([*corners, corners[0]]))


def _placemark(
    document: ET.Element, name: str, line: str | None = None, fill: str | None = None
) -> ET.Element:
    placemark = _child(document, "Placemark")
    _child(placemark, "name", name)
    if line is not None:
        style = _child(placemark, "Style")
        line_style = _child(style, "LineStyle")
        _child(line_style, "color", line)
        _child(line_style, "width", "2")
        if fill is not None:
            _child(_child(style, "PolyStyle"), "color", fill)
    return placemark


def _add_coordinates(geometry: ET.Element, places: Iterable[FloatArray]) -> None:
    _child(geometry, "altitudeMode", "relativeToGround")
    _child(geometry, "coordinates", _coordinates(places))


def _coordinates(places: Iterable[FloatArray]) -> str:
    """Nine decimals of a degree are a tenth of a millimetre."""
    return " ".join(
        f"{longitude:.9f},{latitude:.9f},{height:.4f}"
        for latitude, longitude, height in (place.tolist() for place in places)
    )


def _child(parent: ET.Element, name: str, text: str | None = None) -> ET.Element:
    child = ET.SubElement(parent, _tag(name))
    child.text = text
    return child


def _tag(name: str) -> str:
    return f"{{{NAMESPACE}}}{name}"
