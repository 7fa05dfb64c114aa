"""Camera, world and geodetic coordinates: against PROJ's geocentric route, and in words."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import ArrayLike
from pyproj import Proj, Transformer

from influx_drone.errors import DroneError
from influx_drone.geodesy import (
    FloatArray,
    Site,
    camera_to_world,
    geodetic_to_world,
    world_to_geodetic,
)

TO_GEOCENTRIC = Transformer.from_crs("EPSG:4979", "EPSG:4978", always_xy=True)
PLACES = [(0.0, 0.0), (0.0, 180.0), (47.4, 8.5), (-33.9, -179.99995), (80.0, 179.9999), (-80.0, 20)]
LEVEL_NORTH = Site(47.4, 8.5, height_m=1.44, heading_deg=0, tilt_deg=90)
AHEAD, RIGHT, DOWN = [0, 0, 10], [1, 0, 10], [0, 1, 10]


def geocentric_world(geodetic: FloatArray, lat: float, lon: float, ground_m: float) -> FloatArray:
    """The tangent plane by way of geocentric coordinates, nothing left out."""
    xyz = np.stack(TO_GEOCENTRIC.transform(geodetic[:, 1], geodetic[:, 0], geodetic[:, 2]), axis=1)
    origin = np.array(TO_GEOCENTRIC.transform(lon, lat, ground_m))
    phi, lam = math.radians(lat), math.radians(lon)
    east = [-math.sin(lam), math.cos(lam), 0]
    up = [math.cos(phi) * math.cos(lam), math.cos(phi) * math.sin(lam), math.sin(phi)]
    return (xyz - origin) @ np.stack([east, np.cross(up, east), up]).T


def around(rng: np.random.Generator, n: int = 400) -> FloatArray:
    """World points (n, 3) within 200 m in all azimuths, 0 to 120 m high."""
    azimuth = np.linspace(0, 2 * np.pi, n, endpoint=False)
    distance = 200 * rng.uniform(size=n)
    height = rng.uniform(0, 120, n)
    return np.stack([distance * np.sin(azimuth), distance * np.cos(azimuth), height], axis=1)


@pytest.mark.parametrize(("lat", "lon"), PLACES)
@pytest.mark.parametrize("ground_m", [-50.0, 0.0, 2000.0])
def test_agrees_with_the_geocentric_route(lat: float, lon: float, ground_m: float) -> None:
    world = around(np.random.default_rng(1))
    geodetic = world_to_geodetic(world, lat, lon, ground_m)
    assert np.abs(geocentric_world(geodetic, lat, lon, ground_m) - world).max() < 1e-5
    back = geodetic_to_world(geodetic, lat, lon, ground_m)
    assert np.abs(back - world).max() < 1e-6
    wrapped = np.column_stack([geodetic[:, 0], geodetic[:, 1] % 360, geodetic[:, 2]])
    assert np.abs(geodetic_to_world(wrapped, lat, lon, ground_m) - world).max() < 1e-6


def test_all_latitudes() -> None:
    rng = np.random.default_rng(2)
    for lat in range(-80, 81, 5):
        world, lon = around(rng, 100), float(rng.uniform(-180, 180))
        geodetic = world_to_geodetic(world, lat, lon)
        assert np.abs(geocentric_world(geodetic, lat, lon, 0) - world).max() < 1e-5


def test_on_the_ellipsoid_it_is_the_azimuthal_equidistant_projection() -> None:
    world = around(np.random.default_rng(3))
    geodetic = world_to_geodetic(world, 47.4, 8.5)
    geodetic[:, 2] = 0
    plane = Proj(proj="aeqd", lat_0=47.4, lon_0=8.5, ellps="WGS84")
    mapped = np.stack(plane(geodetic[:, 1], geodetic[:, 0]), axis=1)
    assert np.abs(geodetic_to_world(geodetic, 47.4, 8.5)[:, :2] - mapped).max() < 1e-7


def test_a_tenth_of_a_millimetre_from_the_origin_is_not_the_origin() -> None:
    world = np.array([[1e-4, 0, 0], [0, -1e-4, 5], [0, 0, 5]])
    back = geodetic_to_world(world_to_geodetic(world, 47.4, 8.5), 47.4, 8.5)
    assert np.abs(back - world).max() < 1e-8


def camera_to_geodetic(points: ArrayLike, site: Site, ground_height_m: float = 0.0) -> FloatArray:
    """Camera-space points (N, 3) to latitude, longitude in degrees and height in metres."""
    world = camera_to_world(points, site)
    return world_to_geodetic(world, site.latitude_deg, site.longitude_deg, ground_height_m)


def geodetic_to_camera(geodetic: ArrayLike, site: Site, ground_height_m: float = 0.0) -> FloatArray:
    """Latitude, longitude in degrees and height in metres (N, 3) to camera space."""
    world = geodetic_to_world(geodetic, site.latitude_deg, site.longitude_deg, ground_height_m)
    return world_to_camera(world, site)


def world_to_camera(points: FloatArray, site: Site) -> FloatArray:
    """World points (N, 3) in metres to camera space (N, 3), by the camera's axes in the world."""
    origin, *axes = camera_to_world(np.concatenate([np.zeros((1, 3)), np.eye(3)]), site)
    return (points - origin) @ (np.stack(axes) - origin).T


def test_camera_round_trips() -> None:
    rng = np.random.default_rng(4)
    points = around(rng)
    for heading, tilt in rng.uniform([-360, 0], [360, 180], (20, 2)):
        site = Site(-47.4, 179.9999, 1.44, heading, tilt)
        world = camera_to_world(points, site)
        assert np.abs(world_to_camera(world, site) - points).max() < 1e-9
        geodetic = camera_to_geodetic(points, site, 500.0)
        assert np.abs(geodetic_to_camera(geodetic, site, 500.0) - points).max() < 1e-6
        lengths = np.linalg.norm(world - [0, 0, site.height_m], axis=1)
        np.testing.assert_allclose(lengths, np.linalg.norm(points, axis=1))


def test_a_level_camera_facing_north_sees_north_straight_ahead() -> None:
    np.testing.assert_allclose(camera_to_world([AHEAD], LEVEL_NORTH), [[0, 10, 1.44]], atol=1e-12)
    lat, lon, height = camera_to_geodetic([AHEAD], LEVEL_NORTH, 400.0)[0]
    assert lat > 47.4
    assert lon == pytest.approx(8.5, abs=1e-12)
    assert height == pytest.approx(401.44, abs=1e-4)


def test_facing_east_it_sees_east_and_the_right_of_the_picture_is_south() -> None:
    facing_east = replace(LEVEL_NORTH, heading_deg=90)
    ahead, right = camera_to_geodetic([AHEAD, RIGHT], facing_east)
    assert ahead[1] > 8.5
    assert ahead[0] == pytest.approx(47.4, abs=1e-9)
    assert right[0] < ahead[0] - 1e-6
    np.testing.assert_allclose(
        camera_to_world([AHEAD, RIGHT], facing_east), [[10, 0, 1.44], [10, -1, 1.44]], atol=1e-12
    )


def test_looking_up_raises_what_is_ahead_and_down_in_the_picture_is_down() -> None:
    level = camera_to_world([AHEAD], LEVEL_NORTH)[0]
    up = camera_to_world([AHEAD], replace(LEVEL_NORTH, tilt_deg=80))[0]
    assert up[2] > level[2] + 1
    assert up[1] > 0
    zenith = camera_to_world([AHEAD], replace(LEVEL_NORTH, tilt_deg=0))[0]
    np.testing.assert_allclose(zenith, [0, 0, 11.44], atol=1e-12)
    below = camera_to_world([DOWN], LEVEL_NORTH)[0]
    assert below[2] == pytest.approx(level[2] - 1)
    assert below[1] == pytest.approx(level[1])


def test_a_place_that_is_none_is_refused() -> None:
    point = [[0.0, 0.0, 1.0]]
    for changes in (
        {"latitude_deg": 90.1},
        {"latitude_deg": math.nan},
        {"longitude_deg": math.inf},
        {"longitude_deg": 361},
        {"height_m": math.nan},
        {"heading_deg": math.inf},
        {"tilt_deg": -0.1},
        {"tilt_deg": 180.5},
        {"tilt_deg": math.nan},
    ):
        with pytest.raises(DroneError):
            replace(LEVEL_NORTH, **changes)
    for place in ((91, 0), (math.nan, 0), (0, math.nan), (0, 0, math.inf)):
        with pytest.raises(DroneError):
            world_to_geodetic(point, *place)
        with pytest.raises(DroneError):
            geodetic_to_world(point, *place)
    for bad in ([[0, 0, math.nan]], [[math.inf, 0, 0]], [0, 0, 0], [[0, 0]]):
        with pytest.raises(DroneError):
            world_to_geodetic(bad, 0, 0)
        with pytest.raises(DroneError):
            geodetic_to_world(bad, 0, 0)
        with pytest.raises(DroneError):
            camera_to_world(bad, LEVEL_NORTH)
    with pytest.raises(DroneError, match="latitude"):
        geodetic_to_world([[100, 20, 0]], 0, 0)


def test_no_points_are_no_error() -> None:
    assert camera_to_geodetic(np.zeros((0, 3)), LEVEL_NORTH).shape == (0, 3)
    assert geodetic_to_camera(np.zeros((0, 3)), LEVEL_NORTH).shape == (0, 3)
