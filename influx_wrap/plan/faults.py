"""What forbids a flight, each fault a sentence with its cure.

Legs are straight, so their heights lie between those of their ends, and heights need to be
checked at the way points only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from influx_wrap.model.flight import Mission
from influx_wrap.plan.mission import (
    Request,
    Rules,
    crew_distance_m,
    flight_times,
    highest_tilt_deg,
    lay_out,
    leg_distances_m,
    round_down,
)

RESERVE = 0.25
"""Share of the battery that a flight leaves in it."""


def faults_of_place(request: Request) -> list[str]:
    """What is wrong with where the camera stands and looks, and with home."""
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


def faults_of_rules(rules: Rules) -> list[str]:
    """Rules that contradict each other."""
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


def faults_of_flight(mission: Mission, request: Request) -> list[str]:
    """Rules that the mission breaks."""
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
    return lay_out(replace(request, tilt_deg=tilt_deg))


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
    distances = leg_distances_m(mission)
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
