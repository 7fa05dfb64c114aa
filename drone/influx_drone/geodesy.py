"""Camera space to world to geodetic coordinates and back (the paper's supplement, "Camera Space
to Geodetic Coordinates Conversion"). For the ground: it needs numpy and pyproj.

Camera space is x right, y down, z forward. The world is the tangent plane at the ground below the
camera: x east, y north, z up. The paper goes on with pyproj's azimuthal equidistant projection,
which keeps bearing and distance along the ellipsoid. Two things a plane map leaves out are put in:
the ellipsoid falls away below the plane (d^2 / 2R), and plumb lines diverge (h d / R outwards);
R is the ellipsoid's radius of curvature along and across the meridian. What is left is of third
order, d^3 / 6R^2 and h d^2 / 2R^2: a micrometre at 200 m when the ground is 2 km high.

Bearing and distance come from ``pyproj.Geod``: the same geodesic as the projection's, but PROJ's
projection takes all points within 0.6 mm of its centre for the centre.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pyproj import Geod

from influx_drone.errors import DroneError

FloatArray = NDArray[np.float64]

WGS84 = Geod(ellps="WGS84")
INVERSE_ITERATIONS = 4
"""Each gains nine digits at 200 m, and still three at 200 km."""


@dataclass(frozen=True)
class Site:
    """Where the camera stands and where it looks."""

    latitude_deg: float
    longitude_deg: float
    height_m: float
    """Camera above the ground."""
    heading_deg: float
    """What a compass shows: clockwise from true north."""
    tilt_deg: float
    """Optical axis to the vertical: 90 is level, less looks up."""

    def __post_init__(self) -> None:
        _check_place(self.latitude_deg, self.longitude_deg)
        for name, value in (("height", self.height_m), ("heading", self.heading_deg)):
            if not math.isfinite(value):
                raise DroneError(f"the camera's {name} is {value}: give a finite number.")
        if not 0 <= self.tilt_deg <= 180:
            raise DroneError(
                f"a tilt of {self.tilt_deg} degrees is not between 0 (straight up) and 180 "
                "(straight down): give the angle between the optical axis and the vertical."
            )


def camera_to_world(points: ArrayLike, site: Site) -> FloatArray:
    """Camera-space points (N, 3) in metres to the world (N, 3), z above the ground."""
    result: FloatArray = _points(points) @ _world_rotation(site).T
    result[:, 2] += site.height_m
    return result


def world_to_geodetic(
    points: ArrayLike, latitude_deg: float, longitude_deg: float, ground_height_m: float = 0.0
) -> FloatArray:
    """World points (N, 3) around a place to latitude, longitude in degrees and height in metres.

    Heights, that of the ground too, are above the ellipsoid. (N, 3)
    """
    world = _points(points)
    _check_place(latitude_deg, longitude_deg, ground_height_m)
    curvature = _curvature(latitude_deg)
    along = world[:, :2]
    for _ in range(INVERSE_ITERATIONS):
        height = world[:, 2] + ground_height_m + along**2 @ curvature / 2
        along = world[:, :2] / (1 + height[:, None] * curvature)
    lons, lats = np.full((2, len(world)), [[longitude_deg], [latitude_deg]])
    bearing = np.degrees(np.arctan2(along[:, 0], along[:, 1]))
    longitude, latitude, _ = WGS84.fwd(lons, lats, bearing, np.hypot(along[:, 0], along[:, 1]))
    return np.stack([latitude, longitude, height], axis=1)


def geodetic_to_world(
    geodetic: ArrayLike, latitude_deg: float, longitude_deg: float, ground_height_m: float = 0.0
) -> FloatArray:
    """Latitude, longitude in degrees and height in metres (N, 3) to the world around a place."""
    geodetic = _points(geodetic)
    if np.any(np.abs(geodetic[:, 0]) > 90) or np.any(np.abs(geodetic[:, 1]) > 360):
        raise DroneError(
            "a latitude is beyond +-90 or a longitude beyond +-360 degrees: each point is "
            "latitude, longitude, height."
        )
    _check_place(latitude_deg, longitude_deg, ground_height_m)
    curvature = _curvature(latitude_deg)
    lons, lats = np.full((2, len(geodetic)), [[longitude_deg], [latitude_deg]])
    bearing, _, distance = WGS84.inv(lons, lats, geodetic[:, 1], geodetic[:, 0])
    bearing = np.radians(bearing)
    along = distance[:, None] * np.stack([np.sin(bearing), np.cos(bearing)], axis=1)
    height = geodetic[:, 2]
    up = height - ground_height_m - along**2 @ curvature / 2
    return np.column_stack([along * (1 + height[:, None] * curvature), up])


def _world_rotation(site: Site) -> FloatArray:
    """The rotation (3, 3) of the paper's matrix."""
    alpha, theta = math.radians(site.heading_deg), math.radians(site.tilt_deg)
    compass = np.array(
        [
            [math.cos(alpha), math.sin(alpha), 0],
            [-math.sin(alpha), math.cos(alpha), 0],
            [0, 0, 1],
        ]
    )
    tilt = np.array(
        [
            [1, 0, 0],
            [0, math.cos(theta), math.sin(theta)],
            [0, -math.sin(theta), math.cos(theta)],
        ]
    )
    result: FloatArray = compass @ tilt
    return result


def _check_place(latitude_deg: float, longitude_deg: float, ground_height_m: float = 0.0) -> None:
    if not (abs(latitude_deg) <= 90 and abs(longitude_deg) <= 360):
        raise DroneError(
            f"there is no place at latitude {latitude_deg}, longitude {longitude_deg}: give "
            "degrees, latitude within +-90 and longitude within +-360."
        )
    if not math.isfinite(ground_height_m):
        raise DroneError(f"the ground's height is {ground_height_m}: give a finite number.")


def _curvature(latitude_deg: float) -> FloatArray:
    """The ellipsoid's curvature (2,) towards the east and the north, in 1/m."""
    w = 1 - WGS84.es * math.sin(math.radians(latitude_deg)) ** 2
    return np.array([math.sqrt(w) / WGS84.a, w**1.5 / (WGS84.a * (1 - WGS84.es))])


def _points(points: ArrayLike) -> FloatArray:
    """Points as an array (N, 3) of finite numbers."""
    array = np.asarray(points, dtype=float)
    if array.ndim != 2 or array.shape[1] != 3:
        raise DroneError(f"points of shape {array.shape} are not N rows of three coordinates.")
    if not np.all(np.isfinite(array)):
        bad = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise DroneError(f"point {bad} is {array[bad].tolist()}: give finite coordinates.")
    return array
