"""The plan in somebody else's hands: MAVSDK imports it and uploads it to an autopilot.

Both ends are MAVSDK's, on loopback: a ground station reads the file and uploads it, an
autopilot receives the items over MAVLink.
"""

import queue
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mavsdk
import numpy as np
import pytest
from mavsdk.plugins.mission_raw import MissionRaw, MissionRawError, MissionRawResult
from mavsdk.plugins.mission_raw_server import MissionRawServer, MissionRawServerResult
from numpy.testing import assert_allclose

from influx_wrap.formats.mission import write_plan
from influx_wrap.plan.flight import plan_flight
from influx_wrap.plan.mission import Request, Rules

TIMEOUT_S = 20.0
PLACES = [(40.343, -74.655, 30.0), (-33.8568, 151.2153, 250.0), (64.1, 179.99995, 90.0)]


@contextmanager
def instance(kind: mavsdk.ComponentType) -> Iterator[mavsdk.Mavsdk]:
    """One end of a link."""
    end = mavsdk.Mavsdk(mavsdk.Configuration.create_with_component_type(kind))
    try:
        yield end
    finally:
        end.destroy()


def connect(end: mavsdk.Mavsdk, address: str) -> None:
    assert end.add_any_connection(address) == mavsdk.ConnectionResult.SUCCESS


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def upload(send: Callable[[list[Any]], Any], items: list[Any]) -> None:
    """Upload once the ground station has learnt what the autopilot can do, soon after hello."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            assert send(items) == MissionRawResult.SUCCESS
        except MissionRawError as error:
            unknown = error.result == MissionRawResult.INT_MESSAGES_NOT_SUPPORTED
            if not unknown or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def uploaded(path: Path) -> tuple[list[Any], list[Any]]:
    """Items that arrive at the autopilot, and items of the fence."""
    kinds, port = mavsdk.ComponentType, free_port()
    arrived: queue.Queue[tuple[Any, Any]] = queue.Queue()
    with instance(kinds.GROUND_STATION) as ground, instance(kinds.AUTOPILOT) as drone:
        # The autopilot says what it can do when the link is made: it takes missions by then.
        server = MissionRawServer(drone.server_component_by_type(kinds.AUTOPILOT))
        server.subscribe_incoming_mission(lambda result, plan, _: arrived.put((result, plan)))
        connect(ground, f"udpin://127.0.0.1:{port}")
        connect(drone, f"udpout://127.0.0.1:{port}")
        autopilot = ground.first_autopilot(TIMEOUT_S)
        assert autopilot is not None
        link = MissionRaw(autopilot)
        imported = link.import_qgroundcontrol_mission(str(path))
        upload(link.upload_mission, imported.mission_items)
        result, plan = arrived.get(timeout=TIMEOUT_S)
        assert result == MissionRawServerResult.SUCCESS
        upload(link.upload_geofence, imported.geofence_items)
    return list(plan.mission_items), list(imported.geofence_items)


@pytest.mark.parametrize(("latitude", "longitude", "heading"), PLACES)
@pytest.mark.parametrize("test_flight", [False, True])
def test_holds_arrive_at_their_places(
    tmp_path: Path, latitude: float, longitude: float, heading: float, test_flight: bool
) -> None:
    mission = plan_flight(
        Request(
            latitude,
            longitude,
            1.44,
            heading,
            58.0,
            17.0215,
            13.5,
            (28.25, 18.17),
            test_flight=test_flight,
            rules=Rules(hold_s=9, speed_m_s=2.5),
        )
    )
    path = tmp_path / "mission.plan"
    write_plan(path, mission)
    items, fence = uploaded(path)
    n = 4 if test_flight else 24
    assert [item.command for item in items] == [22, 178, *[16] * n, 20]
    assert [item.seq for item in items] == list(range(n + 3))
    holds = items[2:-1]
    placed = np.array([(item.x, item.y) for item in holds]) * 1e-7
    assert_allclose(placed, mission.geodetic[:, :2], rtol=0, atol=0.51e-7)
    assert_allclose([item.z for item in holds], mission.geodetic[:, 2], rtol=1e-6)
    assert {item.frame for item in holds} == {3}
    assert {item.param1 for item in holds} == {9.0}
    assert {item.param2 for item in holds} == {0.5}
    assert {item.param4 for item in holds} == {heading}
    take_off, speed = items[:2]
    assert_allclose([take_off.x * 1e-7, take_off.y * 1e-7], mission.home, rtol=0, atol=0.51e-7)
    assert take_off.z == pytest.approx(mission.geodetic[0, 2], rel=1e-6)
    assert (speed.param1, speed.param2) == (1.0, 2.5)
    inside, outside = 5001, 5004
    assert [item.command for item in fence] == [inside] * 4 + [outside]
    corners = np.array([(item.x, item.y) for item in fence[:4]]) * 1e-7
    assert_allclose(corners, mission.fence, rtol=0, atol=0.51e-7)
