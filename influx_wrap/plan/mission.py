"""A mission laid out on the Earth: way points, their order, home and the fence; how long it
takes, and how near it comes.

The footprint of the field of view gives the way points (``model/flight.py``), the camera's
place and direction put them on the Earth. The ground is taken to be level, at the height of
the ground below the camera. Legs are straight. Distances to the crew, who are at the camera, are
measured along the ground over whole legs: nobody stands under the path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from influx_drone.geodesy import Site, camera_to_world, geodetic_to_world, world_to_geodetic
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.flight import (
    CORNERS,
    DEPTH_FACTORS,
    Mission,
    boustrophedon_orders,
    corner_points_m,
    hover_points_m,
    outline_m,
)

HOME_CLEARANCE_M = 3.0
"""From the footprint's side to where the drone takes off."""
FENCE_MARGIN_M = 5.0

# What PX4 does unless told otherwise, rounded to the slow side.
CLIMB_M_S, DESCENT_M_S = 1.5, 1.5
LANDING_M_S, LANDING_BELOW_M = 0.7, 10.0
ACCELERATION_M_S2 = 2.0
ARMING_S = 10.0


@dataclass(frozen=True, slots=True)
class Rules:
    """How to fly, and what not to do."""

    min_height_m: float = 2.0
    ceiling_m: float = 120.0
    crew_distance_m: float = 3.0
    max_distance_m: float = 100.0
    """From the camera, along the ground."""
    return_height_m: float = 60.0
    """To which the autopilot climbs before it returns: PX4's RTL_RETURN_ALT."""
    battery_min: float = 15.0
    hold_s: float = 10.0
    speed_m_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Request:
    """The flight that is asked for: camera, setting of the lens, kind of flight, rules."""

    latitude_deg: float
    longitude_deg: float
    height_m: float
    heading_deg: float
    tilt_deg: float
    cfl_mm: float
    fd_m: float
    sensor_mm: tuple[float, float]
    test_flight: bool = False
    home: tuple[float, float] | None = None
    """Latitude and longitude; beside the footprint unless given."""
    rules: Rules = Rules()

    @property
    def site(self) -> Site:
        """Where the camera stands and looks."""
        return Site(
            self.latitude_deg,
            self.longitude_deg,
            self.height_m,
            self.heading_deg,
            self.tilt_deg,
        )


def lay_out(request: Request) -> Mission:
    """The mission that is asked for, whatever speaks against it.

    Raises ``DroneError`` where the camera or home is at no place on the Earth, ``InputError``
    where the footprint is too small.
    """
    site, rules = request.site, request.rules
    points = _flown_points_m(request)
    to_geodetic = partial(
        world_to_geodetic, latitude_deg=site.latitude_deg, longitude_deg=site.longitude_deg
    )
    factors = (1.0,) if request.test_flight else DEPTH_FACTORS
    outlines = np.stack(
        [outline_m(request.cfl_mm, request.fd_m, request.sensor_mm, p) for p in factors]
    )
    if request.home is None:
        home = _beside_m(request, outlines)
        latitude, longitude = (float(v) for v in to_geodetic(home[None])[0, :2])
    else:
        latitude, longitude = request.home
        home = geodetic_to_world(
            np.array([[latitude, longitude, 0.0]]), site.latitude_deg, site.longitude_deg
        )[0]
    world = camera_to_world(points, site)
    order = _shortest_order(world, home)
    fence = _fence_m(np.vstack([world, home]), site.heading_deg)
    name = "Test flight" if request.test_flight else "Calibration flight"
    return Mission(
        title=f"{name}, CFL {request.cfl_mm:.2f} mm, FD {request.fd_m:g} m",
        cfl_mm=request.cfl_mm,
        fd_m=request.fd_m,
        camera=(site.latitude_deg, site.longitude_deg, site.height_m),
        heading_deg=site.heading_deg,
        tilt_deg=site.tilt_deg,
        points_m=points[order],
        world_m=world[order],
        geodetic=to_geodetic(world[order]),
        outlines_m=outlines,
        outlines_geodetic=to_geodetic(camera_to_world(outlines.reshape(-1, 3), site)).reshape(
            outlines.shape
        ),
        home_world_m=home,
        home=(latitude, longitude),
        fence=to_geodetic(fence)[:, :2],
        # A position's error must not make a breach of a path that is just far enough.
        keep_out_m=rules.crew_distance_m / 2,
        min_height_m=rules.min_height_m,
        hold_s=rules.hold_s,
        speed_m_s=rules.speed_m_s,
    )


def _flown_points_m(request: Request) -> FloatArray:
    """(24, 3), or (4, 3) of the test flight, camera space, in no particular order.

    A test flight is refused as well where the footprint is too small for the 24 points.
    """
    setting = request.cfl_mm, request.fd_m, request.sensor_mm
    hovers = hover_points_m(*setting)
    return corner_points_m(*setting) if request.test_flight else hovers


def highest_tilt_deg(
    points_m: FloatArray, camera_height_m: float, min_height_m: float
) -> float | None:
    """The most level tilt at which all points (N, 3) are high enough; None if there is none.

    A point is at camera_height + z cos(tilt) - y sin(tilt), a cosine that is shifted by the
    point's angle below the optical axis.
    """
    below_axis = np.arctan2(points_m[:, 1], points_m[:, 2])
    reach = np.hypot(points_m[:, 1], points_m[:, 2])
    level = (min_height_m - camera_height_m) / reach
    if np.any(level > 1):
        return None
    half_width = np.arccos(np.maximum(level, -1.0))
    highest = np.where(level <= -1, np.pi, half_width - below_axis).min()
    lowest = np.where(level <= -1, 0.0, -half_width - below_axis).max()
    if highest < max(lowest, 0.0):
        return None
    return math.degrees(min(float(highest), math.pi))


def round_down(tilt_deg: float) -> float:
    """To a tenth of a degree, so that the printed tilt is on the safe side."""
    return math.floor(10 * tilt_deg) / 10


def _ground_axes(heading_deg: float) -> tuple[FloatArray, FloatArray]:
    """Unit vectors (3,) along the ground: ahead of the camera, and to its right."""
    heading = math.radians(heading_deg)
    ahead = np.array([math.sin(heading), math.cos(heading), 0.0])
    return ahead, np.array([ahead[1], -ahead[0], 0.0])


def _beside_m(request: Request, outlines: FloatArray) -> FloatArray:
    """Home (3,): right of all that the camera sees, as far ahead as the nearest layer."""
    ahead, right = _ground_axes(request.heading_deg)
    aside = outlines[..., 0].max() + HOME_CLEARANCE_M
    forward = outlines[..., 2].min() * math.sin(math.radians(request.tilt_deg))
    return forward * ahead + max(aside, 2 * request.rules.crew_distance_m) * right


def _shortest_order(world: FloatArray, home: FloatArray) -> IntArray:
    """Of the orders that may be flown, the shortest from home and back."""
    n = len(world)
    if n == len(CORNERS):
        turns = (range(4), range(3, -1, -1))
        orders = np.array([np.roll(turn, start) for turn in turns for start in range(4)])
    else:
        orders = boustrophedon_orders()
    rounds = np.concatenate([np.full((len(orders), 1), n), orders, np.full((len(orders), 1), n)], 1)
    places = np.vstack([world, home])[rounds]
    lengths = np.linalg.norm(np.diff(places, axis=1), axis=-1).sum(axis=1)
    return orders[int(lengths.argmin())]


def _fence_m(world: FloatArray, heading_deg: float) -> FloatArray:
    """(4, 3): a rectangle on the ground, along the camera's heading, round all places."""
    ahead, right = _ground_axes(heading_deg)
    along, across = world @ ahead, world @ right
    near, far = along.min() - FENCE_MARGIN_M, along.max() + FENCE_MARGIN_M
    left, most_right = across.min() - FENCE_MARGIN_M, across.max() + FENCE_MARGIN_M
    return np.array(
        [
            a * ahead + b * right
            for a, b in ((near, left), (far, left), (far, most_right), (near, most_right))
        ]
    )


@dataclass(frozen=True, slots=True)
class Times:
    """What a flight takes, in seconds."""

    take_off_s: float
    legs_s: float
    holds_s: float
    return_s: float

    @property
    def total_s(self) -> float:
        """From arming to standing on the ground again."""
        return self.take_off_s + self.legs_s + self.holds_s + self.return_s


def flight_times(mission: Mission, rules: Rules) -> Times:
    """How long the parts of the flight take."""
    last = mission.world_m[-1]
    height = max(rules.return_height_m, float(last[2]))
    way_home = float(np.linalg.norm(last[:2] - mission.home_world_m[:2]))
    landing = min(height, LANDING_BELOW_M)
    return Times(
        take_off_s=ARMING_S + mission.take_off_height_m / CLIMB_M_S,
        legs_s=sum(_leg_s(leg, mission.speed_m_s) for leg in _leg_lengths_m(mission)),
        holds_s=len(mission.points_m) * mission.hold_s,
        return_s=(height - float(last[2])) / CLIMB_M_S
        + _leg_s(way_home, mission.speed_m_s)
        + (height - landing) / DESCENT_M_S
        + landing / LANDING_M_S,
    )


def path_length_m(mission: Mission) -> float:
    """From above home through all way points."""
    return float(_leg_lengths_m(mission).sum())


def crew_distance_m(mission: Mission) -> float:
    """Along the ground, from the camera to the nearest place that is flown over."""
    return float(leg_distances_m(mission).min())


def leg_distances_m(mission: Mission) -> FloatArray:
    """(N + 1,): from the camera to every leg, the way home included, along the ground."""
    ground = _stations_m(mission)[:, :2]
    start, step = ground[:-1], np.diff(ground, axis=0)
    squared = np.maximum(np.sum(step**2, axis=1), np.finfo(float).tiny)
    nearest = np.clip(-np.sum(start * step, axis=1) / squared, 0, 1)
    return np.linalg.norm(start + nearest[:, None] * step, axis=1)


def _leg_lengths_m(mission: Mission) -> FloatArray:
    """(N,): of the legs to each way point; the way home is flown at another height."""
    return np.linalg.norm(np.diff(_stations_m(mission)[:-1], axis=0), axis=1)


def _stations_m(mission: Mission) -> FloatArray:
    """(N + 2, 3): home at take-off height, the way points, home at the last one's height."""
    home = np.tile(mission.home_world_m, (2, 1))
    home[:, 2] = mission.world_m[[0, -1], 2]
    return np.vstack([home[0], mission.world_m, home[1]])


def _leg_s(length_m: float, speed_m_s: float) -> float:
    """Time from standing to standing."""
    ramp = speed_m_s**2 / ACCELERATION_M_S2
    if length_m < ramp:
        return 2 * math.sqrt(length_m / ACCELERATION_M_S2)
    return length_m / speed_m_s + speed_m_s / ACCELERATION_M_S2
