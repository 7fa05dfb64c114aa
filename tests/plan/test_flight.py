"""Flights: at the right places by an independent route, short, and refused when unsafe."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.path import Path as Outline
from numpy.testing import assert_allclose
from pyproj import Transformer

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.flight import Mission, corner_points_m, hover_points_m
from influx_wrap.model.optics import thin_lens_cfl_mm
from influx_wrap.plan.flight import plan_flight
from influx_wrap.plan.mission import (
    Request,
    Rules,
    crew_distance_m,
    flight_times,
    highest_tilt_deg,
    path_length_m,
)

SENSOR_MM = (28.25, 18.17)
REQUEST = Request(
    latitude_deg=40.343,
    longitude_deg=-74.655,
    height_m=1.44,
    heading_deg=30.0,
    tilt_deg=58.0,
    cfl_mm=thin_lens_cfl_mm(17, 13.5),
    fd_m=13.5,
    sensor_mm=SENSOR_MM,
)
PLACES = [(40.343, -74.655), (-33.9, 151.2), (0.0, 0.0), (64.1, 179.99995), (-54.8, -179.99995)]


def enu_m(geodetic: FloatArray, latitude_deg: float, longitude_deg: float) -> FloatArray:
    """East, north, up of a place on the ellipsoid, by way of geocentric coordinates."""
    to_geocentric = Transformer.from_crs("EPSG:4979", "EPSG:4978")
    places = np.stack(to_geocentric.transform(*geodetic.T), axis=1)
    origin = np.array(to_geocentric.transform(latitude_deg, longitude_deg, 0.0))
    lat, lon = math.radians(latitude_deg), math.radians(longitude_deg)
    east = [-math.sin(lon), math.cos(lon), 0]
    north = [-math.sin(lat) * math.cos(lon), -math.sin(lat) * math.sin(lon), math.cos(lat)]
    up = [math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)]
    return (places - origin) @ np.array([east, north, up]).T


@pytest.mark.parametrize(("latitude", "longitude"), PLACES)
@pytest.mark.parametrize("heading", [0.0, 30.0, 135.0, 250.0])
@pytest.mark.parametrize("test_flight", [False, True])
def test_way_points_are_where_they_are_seen(
    latitude: float, longitude: float, heading: float, test_flight: bool
) -> None:
    mission = plan_flight(
        replace(
            REQUEST,
            latitude_deg=latitude,
            longitude_deg=longitude,
            heading_deg=heading,
            test_flight=test_flight,
        )
    )
    east, north, up = enu_m(mission.geodetic, latitude, longitude).T
    turn, tilt = math.radians(heading), math.radians(58.0)
    right = east * math.cos(turn) - north * math.sin(turn)
    ahead = east * math.sin(turn) + north * math.cos(turn)
    up = up - 1.44
    seen = [
        right,
        ahead * math.cos(tilt) - up * math.sin(tilt),
        ahead * math.sin(tilt) + up * math.cos(tilt),
    ]
    points_of = corner_points_m if test_flight else hover_points_m
    expected = points_of(REQUEST.cfl_mm, 13.5, SENSOR_MM)
    assert_allclose(np.stack(seen, axis=1), mission.points_m, atol=1e-3)
    assert {tuple(p) for p in mission.points_m.tolist()} == {tuple(p) for p in expected.tolist()}
    assert np.all(np.abs(mission.geodetic[:, 1]) <= 180)


def legs(mission: Mission) -> list[tuple[FloatArray, FloatArray]]:
    """From home at take-off height through the way points and back at the last one's height."""
    start, end = mission.home_world_m.copy(), mission.home_world_m.copy()
    start[2], end[2] = mission.world_m[0, 2], mission.world_m[-1, 2]
    places = [start, *mission.world_m, end]
    return list(pairwise(places))


SETTINGS = [(17, 13.5), (17, 4.5), (24, 6.75), (35, 13.5), (80, 22.5)]


def legal(lfl_mm: float, fd_m: float, **more: object) -> Request:
    """A request that is as level as it may be."""
    cfl = thin_lens_cfl_mm(lfl_mm, fd_m)
    tilt = highest_tilt_deg(hover_points_m(cfl, fd_m, SENSOR_MM), 1.44, 2.0)
    assert tilt is not None
    rules = Rules(crew_distance_m=1.0)
    return replace(REQUEST, cfl_mm=cfl, fd_m=fd_m, tilt_deg=tilt - 1e-6, rules=rules, **more)


@pytest.mark.parametrize(("lfl_mm", "fd_m"), SETTINGS)
def test_the_path_is_short_and_no_leg_meets_another_point(lfl_mm: float, fd_m: float) -> None:
    mission = plan_flight(legal(lfl_mm, fd_m))
    flown = sum(np.linalg.norm(b - a) for a, b in legs(mission)[:-1])
    assert path_length_m(mission) == pytest.approx(flown, rel=1e-12)
    assert round_length(np.arange(24), mission) <= 1.03 * improved_length(mission)
    along = np.linspace(0, 1, 401)[:, None]
    for index, (a, b) in enumerate(legs(mission)):
        others = np.delete(mission.world_m, [i for i in (index - 1, index) if 0 <= i < 24], axis=0)
        track = a + along * (b - a)
        assert np.linalg.norm(track[:, None] - others, axis=2).min() > 0.5


def round_length(order: FloatArray, mission: Mission) -> float:
    places = np.vstack([mission.home_world_m, mission.world_m[order], mission.home_world_m])
    return float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum())


def improved_length(mission: Mission) -> float:
    """Local search from some random orders: stretches reversed, points moved."""
    places = np.vstack([mission.world_m, mission.home_world_m])
    far = np.linalg.norm(places[:, None] - places, axis=2)

    def length(order: list[int]) -> float:
        return sum(far[a, b] for a, b in pairwise([24, *order, 24]))

    rng = np.random.default_rng(0)
    best = math.inf
    for start in [list(range(24)), rng.permutation(24).tolist()]:
        order, improving = start, True
        while improving:
            tries = [
                order[:i] + order[i:j][::-1] + order[j:]
                for i in range(24)
                for j in range(i + 2, 25)
            ]
            nearest = min(tries, key=length)
            improving = length(nearest) < length(order) - 1e-9
            order = nearest if improving else order
        best = min(best, length(order))
    return best


def test_the_drone_never_turns_and_climbs_before_it_goes() -> None:
    mission = plan_flight(replace(REQUEST, heading_deg=360.0))
    assert mission.yaw_deg == 0.0
    assert mission.take_off_height_m == pytest.approx(mission.geodetic[0, 2])
    assert mission.take_off_height_m >= 2.0


@pytest.mark.parametrize(("lfl_mm", "fd_m"), SETTINGS)
@pytest.mark.parametrize("heading", [0.0, 200.0])
def test_home_is_beside_the_flight(lfl_mm: float, fd_m: float, heading: float) -> None:
    mission = plan_flight(legal(lfl_mm, fd_m, heading_deg=heading))
    east, north, up = mission.home_world_m
    turn = math.radians(heading)
    right = east * math.cos(turn) - north * math.sin(turn)
    assert up == 0
    assert right > mission.outlines_m[..., 0].max() + 1
    assert np.linalg.norm(mission.world_m[:, :2] - [east, north], axis=1).min() > 2
    back = enu_m(np.array([[*mission.home, 0.0]]), *mission.camera[:2])[0]
    assert_allclose(back[:2], [east, north], atol=1e-3)


@pytest.mark.parametrize("heading", [0.0, 77.0, 359.0])
def test_the_fence_holds_the_flight_and_keeps_the_camera_free(heading: float) -> None:
    mission = plan_flight(replace(REQUEST, heading_deg=heading))
    corners = enu_m(np.column_stack([mission.fence, np.zeros(4)]), *mission.camera[:2])[:, :2]
    places = np.vstack([mission.world_m, mission.home_world_m])[:, :2]
    assert Outline(corners).contains_points(places).all()
    for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        normal = np.array([end[1] - start[1], start[0] - end[0]]) / np.linalg.norm(end - start)
        assert np.abs((places - start) @ normal).min() == pytest.approx(5, abs=1e-3)
    assert mission.keep_out_m == 1.5
    assert crew_distance_m(mission) > 2 * mission.keep_out_m


def test_distance_to_the_crew_is_that_of_the_nearest_place_on_the_path() -> None:
    rng = np.random.default_rng(1)
    mission = plan_flight(REQUEST)
    along = np.linspace(0, 1, 2001)[:, None]
    for _ in range(50):
        world = rng.normal([4, 4, 30], 10, (5, 3))
        home = np.array([*rng.normal(0, 10, 2), 0])
        tried = replace(mission, world_m=world, home_world_m=home)
        tracks = [a + along * (b - a) for a, b in legs(tried)]
        nearest = min(np.linalg.norm(track[:, :2], axis=1).min() for track in tracks)
        assert crew_distance_m(tried) == pytest.approx(nearest, abs=0.02)


def test_highest_tilt_by_trying_all() -> None:
    rng = np.random.default_rng(2)
    tilts = np.radians(np.arange(0, 180.01, 0.02))
    found = 0
    for _ in range(100):
        points = rng.normal([0, 0, 12], 4, (24, 3))
        height, least = rng.uniform(0.5, 3), rng.uniform(0, 6)
        heights = (
            height + np.outer(np.cos(tilts), points[:, 2]) - np.outer(np.sin(tilts), points[:, 1])
        )
        fine = np.flatnonzero((heights >= least).all(axis=1))
        tilt = highest_tilt_deg(points, height, least)
        if len(fine) == 0:
            assert tilt is None or tilt < 0.02
        else:
            found += 1
            assert tilt == pytest.approx(math.degrees(tilts[fine[-1]]), abs=0.021)
    assert found > 30


def test_times_by_hand() -> None:
    """Points 6 m apart at 2 m/s and 2 m/s^2: a second to start, a second to stop, 4 m at speed."""
    mission = plan_flight(REQUEST)
    world = np.array([[10.0, 10, 15], [16, 10, 15], [16, 16, 15]])
    small = replace(
        mission,
        points_m=world,
        world_m=world,
        geodetic=world,
        home_world_m=np.array([10.0, 4, 0]),
        hold_s=7.0,
        speed_m_s=2.0,
    )
    times = flight_times(small, Rules(return_height_m=30))
    assert times.take_off_s == pytest.approx(10 + 15 / 1.5)
    assert times.legs_s == pytest.approx(3 * 4)
    assert times.holds_s == 21
    way_home = math.hypot(6, 12) / 2 + 1
    assert times.return_s == pytest.approx(15 / 1.5 + way_home + 20 / 1.5 + 10 / 0.7)
    assert times.total_s == pytest.approx(20 + 12 + 21 + times.return_s)
    hop = replace(small, world_m=world - [[0, 0, 0], [5.5, 0, 0], [5.5, 5.5, 0]])
    assert flight_times(hop, Rules()).legs_s == pytest.approx(4 + 4 * math.sqrt(0.5 / 2))


UNSAFE: dict[str, tuple[dict[str, object], str]] = {
    "below the ground": ({"tilt_deg": 90.0}, "m below the ground. Tilt the camera up to 59.9 deg"),
    "under the least height": ({"tilt_deg": 61.0}, "lower than 2 m; point"),
    "looking down": ({"tilt_deg": 120.0}, "below the ground"),
    "no tilt is high enough": (
        {"rules": Rules(min_height_m=100)},
        "No tilt brings all of them up",
    ),
    "above the ceiling": (
        {"rules": Rules(ceiling_m=15, return_height_m=15)},
        "above the ceiling of 15 m; point",
    ),
    "above the ceiling, but need not be": (
        {"tilt_deg": 20.0, "rules": Rules(ceiling_m=19, return_height_m=19, crew_distance_m=0)},
        "Tilt the camera down to 59.9 deg",
    ),
    "return above the ceiling": (
        {"rules": Rules(ceiling_m=50)},
        "climbs to 60 m to return, above the ceiling of 50 m",
    ),
    "no height left": (
        {"rules": Rules(min_height_m=30, ceiling_m=20, return_height_m=10)},
        "no height to fly at",
    ),
    "way points near the crew": (
        {"tilt_deg": 30.0},
        "passes the camera and its crew at",
    ),
    "a leg over the crew, its ends far off": (
        {"tilt_deg": 0.0},
        "passes the camera and its crew at",
    ),
    "home behind the crew": (
        {
            "heading_deg": 0.0,
            "tilt_deg": 80.0,
            "cfl_mm": 80.3,
            "fd_m": 22.5,
            "home": (40.343 - 20 / 111_000, -74.655),
        },
        "Put home beside the flight",
    ),
    "home on the crew": ({"home": (40.343, -74.655)}, "passes the camera and its crew at 0.00 m"),
    "home out of the fence": (
        {"home": (40.344, -74.655)},
        "home is 111.0 m from the camera, outside the fence of 100 m",
    ),
    "a point out of the fence": (
        {"rules": Rules(max_distance_m=15)},
        "m from the camera, outside the fence of 15 m",
    ),
    "battery": ({"rules": Rules(battery_min=9)}, "a battery of 9 min is good for 6.8 min"),
    "battery, and no hold is short enough": (
        {"rules": Rules(battery_min=3)},
        "Fly faster (--speed-m-s), return lower",
    ),
    "footprint": ({"cfl_mm": 250.0, "fd_m": 2.0}, "Use a board"),
    "footprint of the near layer": (
        {"cfl_mm": 250.0, "fd_m": 7.2, "test_flight": True},
        "Use a board",
    ),
    "test flight below the ground": (
        {"tilt_deg": 90.0, "test_flight": True},
        "2 of 4 way points are lower than 2 m; point",
    ),
    "test flight over the crew": (
        {"tilt_deg": 25.0, "test_flight": True},
        "passes the camera and its crew at",
    ),
    "test flight too long": (
        {"test_flight": True, "rules": Rules(battery_min=3)},
        "it takes 2.8 min, but a battery of 3 min",
    ),
    "tilt": ({"tilt_deg": -1.0}, "the tilt must be from 0 to 180 deg, got -1"),
    "heading": ({"heading_deg": 361.0}, "the heading must be from 0 to 360 deg, got 361"),
    "latitude": ({"latitude_deg": 90.5}, "the latitude must be from -90 to 90 deg"),
    "longitude": ({"longitude_deg": -181.0}, "the longitude must be from -180 to 180 deg"),
    "camera under the ground": ({"height_m": -1.0}, "the camera must be above the ground"),
    "home nowhere": ({"home": (95.0, 0.0)}, "home's latitude must be from -90 to 90 deg"),
}


@pytest.mark.parametrize("name", UNSAFE)
def test_unsafe_flights_are_refused_with_their_reason(name: str) -> None:
    changes, reason = UNSAFE[name]
    request = replace(REQUEST, **changes)
    with pytest.raises(InputError) as caught:
        plan_flight(request)
    message = str(caught.value)
    assert message.startswith("the flight is refused")
    assert reason in message
    assert message.endswith(".")


def test_everything_wrong_is_said_at_once() -> None:
    rules = Rules(ceiling_m=15, max_distance_m=8, battery_min=4, crew_distance_m=9)
    with pytest.raises(InputError) as caught:
        plan_flight(replace(REQUEST, heading_deg=400.0, tilt_deg=75.0, rules=rules))
    lines = str(caught.value).splitlines()
    assert lines[0] == "the flight is refused for 6 reasons:"
    for line, words in zip(
        lines[1:],
        ("heading", "to return", "lower than 2 m", "nearer than 9 m", "outside", "takes"),
        strict=True,
    ):
        assert words in line


def test_the_advised_tilt_is_legal_and_hardly_more_is_not() -> None:
    with pytest.raises(InputError, match=r"Tilt the camera up to 59\.9 deg"):
        plan_flight(replace(REQUEST, tilt_deg=85.0))
    assert plan_flight(replace(REQUEST, tilt_deg=59.9)).geodetic[:, 2].min() >= 2.0
    with pytest.raises(InputError, match="lower than 2 m"):
        plan_flight(replace(REQUEST, tilt_deg=60.0))


def test_advice_does_not_lead_into_the_next_refusal() -> None:
    with pytest.raises(InputError, match=r"crew at .* Tilt the camera down to 59\.9 deg"):
        plan_flight(replace(REQUEST, tilt_deg=30.0))
    with pytest.raises(InputError, match=r"crew at .* Send the crew away"):
        plan_flight(replace(REQUEST, tilt_deg=30.0, rules=Rules(crew_distance_m=9)))
    with pytest.raises(InputError, match=r"Tilted up to .* come within"):
        plan_flight(replace(REQUEST, tilt_deg=85.0, rules=Rules(crew_distance_m=9)))
    rules = Rules(ceiling_m=15, return_height_m=15)
    with pytest.raises(InputError, match=r"Tilted up to .* choose a shorter FD"):
        plan_flight(replace(REQUEST, tilt_deg=85.0, rules=rules))


def test_a_shorter_hold_is_advised_that_fits_the_battery() -> None:
    with pytest.raises(InputError, match=r"Hold for 7 s") as caught:
        plan_flight(replace(REQUEST, rules=Rules(battery_min=9)))
    assert "25%" in str(caught.value)
    plan_flight(replace(REQUEST, rules=Rules(battery_min=9, hold_s=7)))
