"""Plans for QGroundControl: the keys it wants, the same places when read back."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from influx_wrap.formats.mission import write_plan
from influx_wrap.model.flight import Mission
from influx_wrap.plan.flight import plan_flight
from influx_wrap.plan.mission import Request
from tests.plans import read_plan

REQUEST = Request(-33.8568, 151.2153, 1.44, 250.0, 58.0, 17.0215, 13.5, (28.25, 18.17))


@pytest.fixture(scope="module")
def mission() -> Mission:
    return plan_flight(REQUEST)


@pytest.fixture
def plan(mission: Mission, tmp_path: Path) -> Path:
    path = tmp_path / "mission.plan"
    write_plan(path, mission)
    return path


def test_read_back(mission: Mission, plan: Path) -> None:
    back = read_plan(plan)
    assert_allclose(back.geodetic, mission.geodetic, rtol=0, atol=1e-12)
    assert back.home == mission.home
    assert back.hold_s.tolist() == [10.0] * 24
    assert back.yaw_deg.tolist() == [250.0] * 24


def test_what_is_in_the_file(mission: Mission, plan: Path) -> None:
    values = json.loads(plan.read_text())
    assert (values["fileType"], values["version"]) == ("Plan", 1)
    assert values["geoFence"]["version"] == values["rallyPoints"]["version"] == 2
    inner = values["mission"]
    assert (inner["version"], inner["firmwareType"], inner["vehicleType"]) == (2, 12, 2)
    assert inner["plannedHomePosition"][:2] == list(mission.home)
    items = inner["items"]
    assert [item["command"] for item in items] == [22, 178, *[16] * 24, 20]
    assert [item["doJumpId"] for item in items] == list(range(1, 28))
    assert all(item["type"] == "SimpleItem" and item["autoContinue"] for item in items)
    assert all(len(item["params"]) == 7 for item in items)
    assert items[0]["params"][3:] == [250.0, *mission.home, mission.geodetic[0, 2]]
    assert items[1]["params"][:2] == [1, 2.0]
    for item in [items[0], *items[2:-1]]:
        assert item["frame"] == 3
        assert item["AltitudeMode"] == 1
        assert item["Altitude"] == item["params"][6]


def test_the_fence_is_round_the_flight_and_not_round_the_camera(
    mission: Mission, plan: Path
) -> None:
    fence = json.loads(plan.read_text())["geoFence"]
    (polygon,), (circle,) = fence["polygons"], fence["circles"]
    assert polygon["inclusion"] is True
    latitudes, longitudes = np.transpose(polygon["polygon"])
    for latitude, longitude in [*mission.geodetic[:, :2], mission.home]:
        assert latitudes.min() < latitude < latitudes.max()
        assert longitudes.min() < longitude < longitudes.max()
    assert circle["inclusion"] is False
    assert circle["circle"] == {"center": [-33.8568, 151.2153], "radius": 1.5}
    write_plan(plan, replace(mission, keep_out_m=0.0))
    assert json.loads(plan.read_text())["geoFence"]["circles"] == []
