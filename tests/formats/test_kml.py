"""KML, read by a parser that knows nothing of the writer."""

from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pyproj import Geod

from influx_wrap.formats.mission import write_kml
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.flight import Mission
from influx_wrap.plan.flight import plan_flight
from influx_wrap.plan.mission import Request

KML = {"k": "http://www.opengis.net/kml/2.2"}


@pytest.fixture(scope="module", params=[False, True])
def mission(request: pytest.FixtureRequest) -> Mission:
    sensor_mm = (28.25, 18.17)
    asked = Request(40.343, -74.655, 1.44, 90.0, 58.0, 17.0215, 13.5, sensor_mm, request.param)
    return plan_flight(asked)


@pytest.fixture
def root(mission: Mission, tmp_path: Path) -> ET.Element:
    path = tmp_path / "mission.kml"
    write_kml(path, mission)
    return ET.parse(path).getroot()


def places(root: ET.Element, name: str) -> list[FloatArray]:
    """Coordinates (n, 3) of all placemarks of a name: longitude, latitude, height."""
    found = []
    for placemark in root.iterfind(".//k:Placemark", KML):
        if placemark.findtext("k:name", namespaces=KML) == name:
            text = placemark.findtext(".//k:coordinates", namespaces=KML)
            assert text is not None
            found.append(np.array([[float(v) for v in row.split(",")] for row in text.split()]))
    return found


def test_camera_and_home(mission: Mission, root: ET.Element) -> None:
    (camera,), (home,) = places(root, "camera"), places(root, "home")
    assert_allclose(camera, [[-74.655, 40.343, 1.44]], atol=1e-9)
    assert_allclose(home, [[mission.home[1], mission.home[0], 0]], atol=1e-9)


def test_path_goes_through_the_numbered_points(mission: Mission, root: ET.Element) -> None:
    (path,) = places(root, "path")
    numbered = np.vstack([places(root, str(i))[0] for i in range(1, len(mission.points_m) + 1)])
    assert_allclose(path[2:], numbered)
    assert_allclose(numbered, mission.geodetic[:, [1, 0, 2]], atol=5e-5)
    assert_allclose(numbered[:, :2], mission.geodetic[:, [1, 0]], atol=5.1e-10)
    assert_allclose(path[:2, :2], np.tile(mission.home[::-1], (2, 1)), atol=5.1e-10)
    assert path[0, 2] == 0
    assert path[1, 2] == path[2, 2]


def test_footprints_are_as_wide_as_the_camera_sees(mission: Mission, root: ET.Element) -> None:
    outlines = places(root, "footprint")
    factors = (0.75, 1.25) if len(mission.points_m) == 24 else (1.0,)
    for outline, factor in zip(outlines, factors, strict=True):
        assert len(outline) == 5
        assert_allclose(outline[0], outline[-1])
        (lon0, lat0, top), (lon1, lat1, _), (*_, bottom) = outline[:3]
        _, _, width = Geod(ellps="WGS84").inv(lon0, lat0, lon1, lat1)
        scale = factor * (13.5 - 0.0170215) / 17.0215
        assert width == pytest.approx(scale * 28.25, abs=2e-3)
        assert top - bottom == pytest.approx(scale * 18.17 * np.sin(np.radians(58)), abs=2e-3)


def test_heights_are_above_the_ground(root: ET.Element) -> None:
    modes = [mode.text for mode in root.iterfind(".//k:altitudeMode", KML)]
    geometries = [root.findall(f".//k:{kind}", KML) for kind in ("Point", "LineString", "Polygon")]
    assert modes == ["relativeToGround"] * sum(map(len, geometries))
    assert len(places(root, "fence")[0]) == 5
