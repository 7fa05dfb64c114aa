"""The path of a mission: how long it is, how long it takes, how near it comes to the camera.

Legs are straight. Distances to the crew, who are at the camera, are measured along the ground
over whole legs: nobody stands under the path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.flight import Mission
from influx_wrap.plan.mission import Rules

# What PX4 does unless told otherwise, rounded to the slow side.
CLIMB_M_S, DESCENT_M_S = 1.5, 1.5
LANDING_M_S, LANDING_BELOW_M = 0.7, 10.0
ACCELERATION_M_S2 = 2.0
ARMING_S = 10.0


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
