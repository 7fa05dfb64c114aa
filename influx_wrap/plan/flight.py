"""A flight that may be flown: way points on the Earth, their order, and what forbids it.

The footprint of the field of view gives the way points (``model/flight.py``), the camera's
place and direction put them on the Earth. Every rule is checked before a mission exists,
and all that is wrong is said at once. The ground is taken to be level, at the height of the
ground below the camera.

Legs are straight, so their heights lie between those of their ends, and heights need to be
checked at the way points only. Distances to the crew, who are at the camera, are measured
along the ground over whole legs: nobody stands under the path.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from influx_drone.errors import DroneError
from influx_drone.geodesy import Site, camera_to_world, geodetic_to_world, world_to_geodetic
from influx_wrap.errors import InputError
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

RESERVE = 0.25
"""Share of the battery that a flight leaves in it."""
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


def plan_flight(request: Request) -> Mission:
    """The mission, or an ``InputError`` with everything that forbids it."""
    faults = [*_faults_of_place(request), *_faults_of_rules(request.rules)]
    try:
        mission = _mission(request)
    except InputError as error:
        faults.append(str(error))
    except DroneError as error:
        # Places that are none are among the faults already, in our words.
        faults = faults or [str(error)]
    else:
        faults += _faults_of_flight(mission, request)
        if not faults:
            return mission
    if len(faults) == 1:
        raise InputError(f"the flight is refused: {faults[0]}")
    listed = "".join(f"\n  {i}. {fault}" for i, fault in enumerate(faults, 1))
    raise InputError(f"the flight is refused for {len(faults)} reasons:{listed}")


def flown_points_m(request: Request) -> FloatArray:
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


def crew_distance_m(mission: Mission) -> float:
    """Along the ground, from the camera to the nearest place that is flown over."""
    return float(_leg_distances_m(mission).min())


def path_length_m(mission: Mission) -> float:
    """From above home through all way points."""
    return float(_leg_lengths_m(mission).sum())


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


def _mission(request: Request) -> Mission:
    site, rules = request.site, request.rules
    points = flown_points_m(request)
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


def _faults_of_place(request: Request) -> list[str]:
    ranges = [
        ("the latitude", request.latitude_deg, -90.0, 90.0, "give degrees, south negative"),
        ("the longitude", request.longitude_deg, -180.0, 180.0, "give degrees, west negative"),
        ("the heading", request.heading_deg, 0.0, 360.0, "give what a compass shows"),
        (
            "the tilt",
            request.tilt_deg,
            0.0,
            180.0,
            "it is the optical axis's angle to the vertical: 90 is level, less looks up",
        ),
    ]
    if request.home is not None:
        ranges += [
            ("home's latitude", request.home[0], -90.0, 90.0, "give degrees, south negative"),
            ("home's longitude", request.home[1], -180.0, 180.0, "give degrees, west negative"),
        ]
    faults = [
        f"{what} must be from {low:g} to {high:g} deg, got {value:g}; {hint}."
        for what, value, low, high, hint in ranges
        if not low <= value <= high
    ]
    if not (request.height_m > 0 and math.isfinite(request.height_m)):
        faults.append(
            f"the camera must be above the ground, got a height of {request.height_m:g} m."
        )
    return faults


def _faults_of_rules(rules: Rules) -> list[str]:
    faults = []
    if rules.return_height_m > rules.ceiling_m:
        faults.append(
            f"the autopilot climbs to {rules.return_height_m:g} m to return, above the ceiling of "
            f"{rules.ceiling_m:g} m. Set its RTL_RETURN_ALT lower and say so with "
            "--return-height-m."
        )
    if rules.min_height_m >= rules.ceiling_m:
        faults.append(
            f"there is no height to fly at between the minimum of {rules.min_height_m:g} m and "
            f"the ceiling of {rules.ceiling_m:g} m. Change --min-height-m or --ceiling-m."
        )
    return faults


def _faults_of_flight(mission: Mission, request: Request) -> list[str]:
    found = (
        _fault_of_low_points(mission, request),
        _fault_of_high_points(mission, request),
        _fault_of_crew(mission, request),
        _fault_of_distance(mission, request.rules),
        _fault_of_battery(mission, request.rules),
    )
    return [fault for fault in found if fault is not None]


def _fault_of_low_points(mission: Mission, request: Request) -> str | None:
    heights, least = mission.geodetic[:, 2], request.rules.min_height_m
    low = heights < least
    if not low.any():
        return None
    lowest = int(heights.argmin())
    under = heights[lowest] < 0
    return (
        f"{low.sum()} of {len(heights)} way points are lower than {least:g} m; point "
        f"{lowest + 1} is the lowest, {abs(heights[lowest]):.2f} m "
        f"{'below' if under else 'above'} the ground. {_tilt_advice(mission, request)}"
    )


def _tilt_advice(mission: Mission, request: Request) -> str:
    rules = request.rules
    tilt = highest_tilt_deg(mission.points_m, request.height_m, rules.min_height_m)
    if tilt is None:
        return "No tilt brings all of them up: raise the camera, or lower --min-height-m."
    tilt = round_down(tilt)
    then = _at_tilt(request, tilt)
    if (heights := then.geodetic[:, 2]).max() > rules.ceiling_m:
        return (
            f"Tilted up to {tilt:.1f} deg, the highest would be at {heights.max():.1f} m, above "
            "the ceiling: choose a shorter FD."
        )
    if crew_distance_m(then) < rules.crew_distance_m:
        return (
            f"Tilted up to {tilt:.1f} deg, the path would come within {crew_distance_m(then):.1f} "
            "m of the camera: raise the camera, or send the crew away and lower "
            "--crew-distance-m."
        )
    return f"Tilt the camera up to {tilt:.1f} deg."


def round_down(tilt_deg: float) -> float:
    """To a tenth of a degree, so that the printed tilt is on the safe side."""
    return math.floor(10 * tilt_deg) / 10


def _lower_tilt_advice(
    mission: Mission, request: Request, is_cured: Callable[[Mission], bool]
) -> str | None:
    """To look as level as the ground allows, if that is lower than now and a cure."""
    tilt = highest_tilt_deg(mission.points_m, request.height_m, request.rules.min_height_m)
    if tilt is None or round_down(tilt) <= request.tilt_deg:
        return None
    tilt = round_down(tilt)
    cured = is_cured(_at_tilt(request, tilt))
    return f"Tilt the camera down to {tilt:.1f} deg." if cured else None


def _at_tilt(request: Request, tilt_deg: float) -> Mission:
    return _mission(replace(request, tilt_deg=tilt_deg))


def _fault_of_high_points(mission: Mission, request: Request) -> str | None:
    heights, ceiling = mission.geodetic[:, 2], request.rules.ceiling_m
    high = heights > ceiling
    if not high.any():
        return None
    advice = _lower_tilt_advice(
        mission, request, lambda then: float(then.geodetic[:, 2].max()) <= ceiling
    )
    advice = advice or "Choose a shorter FD."
    return (
        f"{high.sum()} of {len(heights)} way points are above the ceiling of {ceiling:g} m; "
        f"point {int(heights.argmax()) + 1} is the highest, at {heights.max():.1f} m. {advice}"
    )


def _fault_of_crew(mission: Mission, request: Request) -> str | None:
    wanted = request.rules.crew_distance_m
    distances = _leg_distances_m(mission)
    worst = int(distances.argmin())
    if distances[worst] >= wanted:
        return None
    n = len(mission.points_m)
    if worst == 0:
        where, advice = "the way from home to point 1", "Put home beside the flight."
    elif worst == n:
        where, advice = f"the way home from point {n}", "Put home beside the flight."
    else:
        where = f"the leg from point {worst} to point {worst + 1}"
        lower = _lower_tilt_advice(mission, request, lambda then: crew_distance_m(then) >= wanted)
        advice = lower or "Send the crew away and lower --crew-distance-m."
    return (
        f"{where} passes the camera and its crew at {distances[worst]:.2f} m, nearer than "
        f"{wanted:g} m along the ground. {advice}"
    )


def _fault_of_distance(mission: Mission, rules: Rules) -> str | None:
    places = np.vstack([mission.world_m, mission.home_world_m])
    distances = np.linalg.norm(places[:, :2], axis=1)
    worst = int(distances.argmax())
    if distances[worst] <= rules.max_distance_m:
        return None
    name = "home" if worst == len(mission.world_m) else f"point {worst + 1}"
    return (
        f"{name} is {distances[worst]:.1f} m from the camera, outside the fence of "
        f"{rules.max_distance_m:g} m. Check the coordinates, or widen it with --max-distance-m."
    )


def _fault_of_battery(mission: Mission, rules: Rules) -> str | None:
    total, usable = flight_times(mission, rules).total_s, 60 * rules.battery_min * (1 - RESERVE)
    if total <= usable:
        return None
    spare = usable - total + mission.hold_s * len(mission.points_m)
    hold = math.floor(spare / len(mission.points_m))
    advice = (
        f"Hold for {hold} s (--hold-s), fly faster (--speed-m-s)"
        if hold >= 1
        else "Fly faster (--speed-m-s), return lower (--return-height-m)"
    )
    return (
        f"it takes {total / 60:.1f} min, but a battery of {rules.battery_min:g} min is good for "
        f"{usable / 60:.1f} min with {RESERVE:.0%} in reserve. {advice} or take a larger battery "
        "(--battery-min)."
    )


def _stations_m(mission: Mission) -> FloatArray:
    """(N + 2, 3): home at take-off height, the way points, home at the last one's height."""
    home = np.tile(mission.home_world_m, (2, 1))
    home[:, 2] = mission.world_m[[0, -1], 2]
    return np.vstack([home[0], mission.world_m, home[1]])


def _leg_lengths_m(mission: Mission) -> FloatArray:
    """(N,): of the legs to each way point; the way home is flown at another height."""
    return np.linalg.norm(np.diff(_stations_m(mission)[:-1], axis=0), axis=1)


def _leg_distances_m(mission: Mission) -> FloatArray:
    """(N + 1,): from the camera to every leg, the way home included, along the ground."""
    ground = _stations_m(mission)[:, :2]
    start, step = ground[:-1], np.diff(ground, axis=0)
    squared = np.maximum(np.sum(step**2, axis=1), np.finfo(float).tiny)
    nearest = np.clip(-np.sum(start * step, axis=1) / squared, 0, 1)
    return np.linalg.norm(start + nearest[:, None] * step, axis=1)


def _leg_s(length_m: float, speed_m_s: float) -> float:
    """Time from standing to standing."""
    ramp = speed_m_s**2 / ACCELERATION_M_S2
    if length_m < ramp:
        return 2 * math.sqrt(length_m / ACCELERATION_M_S2)
    return length_m / speed_m_s + speed_m_s / ACCELERATION_M_S2
