"""A flight for a setting of a lens, that may be flown.

The lens's setting gives the focal length, unless a test flight has told a better one
(``tuning``); focal length and camera give the mission (``mission``). Every rule is checked
before there is one, and all that is wrong is said at once (``faults``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

from influx_drone.errors import DroneError
from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.flight import Mission, hover_points_m
from influx_wrap.model.hardware import Camera, Lens
from influx_wrap.model.optics import footprint_m, thin_lens_cfl_mm
from influx_wrap.plan.faults import RESERVE, faults_of_flight, faults_of_place, faults_of_rules
from influx_wrap.plan.mission import Request, Rules, highest_tilt_deg, lay_out
from influx_wrap.plan.tuning import Tuning, tune_by_pixels, tune_by_sight


class FlightRefused(InputError):
    """Rules forbid the flight."""


@dataclass(frozen=True)
class LensFlight:
    """The flight that is asked for: a lens's setting, where the camera stands, the rules.

    height_m  of the camera above the ground; None: as the catalogue says
    cfl_mm    camera focal length, that of the test flight if there was one; None: a thin
              lens's
    seen      where the test flight was seen, as ``tune_by_sight`` takes it; None: not told
    pixels    reads (n, 2) where in the picture it was seen; None: not told
    home      latitude and longitude; None: beside the footprint
    """

    lens: Lens
    camera: Camera
    lfl_mm: float
    fd_m: float
    latitude_deg: float
    longitude_deg: float
    heading_deg: float
    tilt_deg: float
    rules: Rules
    height_m: float | None = None
    cfl_mm: float | None = None
    seen: Collection[str] | None = None
    pixels: Callable[[], FloatArray] | None = None
    test_flight: bool = False
    home: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class PlannedFlight:
    """A mission that may be flown, and what a person wants to know of it.

    flown_cfl_mm  the CFL before it was tuned
    notes         what the test flight tells, a sentence each
    """

    request: Request
    mission: Mission
    flown_cfl_mm: float
    notes: tuple[str, ...]

    @property
    def footprint_m(self) -> tuple[float, float]:
        """Width and height of what the camera sees at the focus distance."""
        return footprint_m(self.request.cfl_mm, self.request.fd_m, self.request.sensor_mm)

    @property
    def longest_min(self) -> float:
        """How long it may take: what the battery is good for, less the reserve."""
        return self.request.rules.battery_min * (1 - RESERVE)

    @property
    def highest_tilt_deg(self) -> float | None:
        """The most level tilt that the 24 points allow, also for a test flight; None: none."""
        request = self.request
        points = hover_points_m(request.cfl_mm, request.fd_m, request.sensor_mm)
        return highest_tilt_deg(points, request.height_m, request.rules.min_height_m)

    @property
    def home_from_camera_m(self) -> tuple[float, float]:
        """How far ahead of the camera and to its right the drone takes off."""
        east, north, _ = self.mission.home_world_m.tolist()
        heading = math.radians(self.mission.heading_deg)
        ahead = east * math.sin(heading) + north * math.cos(heading)
        right = east * math.cos(heading) - north * math.sin(heading)
        return ahead, right


def plan_lens_flight(asked: LensFlight) -> PlannedFlight:
    """The flight for a setting of a lens.

    Raises ``InputError`` if the lens or the camera cannot do what is asked, or what was seen of
    the test flight makes no sense; ``FlightRefused`` if the flight is forbidden.
    """
    camera, fd_m = asked.camera, asked.fd_m
    _check_setting(asked.lens, asked.lfl_mm, fd_m)
    cfl_mm = thin_lens_cfl_mm(asked.lfl_mm, fd_m) if asked.cfl_mm is None else asked.cfl_mm
    if not cfl_mm < 1e3 * fd_m / 2:
        raise InputError(f"--cfl-mm {cfl_mm:g} is too long for a focus at {fd_m:g} m.")
    tuned = _tuned(asked, cfl_mm)
    request = Request(
        latitude_deg=asked.latitude_deg,
        longitude_deg=asked.longitude_deg,
        height_m=camera.height_above_ground_m if asked.height_m is None else asked.height_m,
        heading_deg=asked.heading_deg,
        tilt_deg=asked.tilt_deg,
        cfl_mm=tuned.cfl_mm,
        fd_m=fd_m,
        sensor_mm=camera.sensor_mm,
        test_flight=asked.test_flight,
        home=asked.home,
        rules=asked.rules,
    )
    return PlannedFlight(request, plan_flight(request), cfl_mm, tuned.notes)


def plan_flight(request: Request) -> Mission:
    """The mission, or ``FlightRefused`` with everything that forbids it."""
    faults = [*faults_of_place(request), *faults_of_rules(request.rules)]
    try:
        mission = lay_out(request)
    except InputError as error:
        faults.append(str(error))
    except DroneError as error:
        # Places that are none are among the faults already, in our words.
        faults = faults or [str(error)]
    else:
        faults += faults_of_flight(mission, request)
        if not faults:
            return mission
    if len(faults) == 1:
        raise FlightRefused(f"the flight is refused: {faults[0]}")
    listed = "".join(f"\n  {i}. {fault}" for i, fault in enumerate(faults, 1))
    raise FlightRefused(f"the flight is refused for {len(faults)} reasons:{listed}")


def _check_setting(lens: Lens, lfl_mm: float, fd_m: float) -> None:
    if not lens.lfl_min_mm <= lfl_mm <= lens.lfl_max_mm:
        raise InputError(
            f"--lfl-mm {lfl_mm:g}: {lens.name} zooms from {lens.lfl_min_mm:g} to "
            f"{lens.lfl_max_mm:g} mm."
        )
    if fd_m < lens.fd_min_m:
        raise InputError(
            f"--fd-m {fd_m:g}: {lens.name} does not focus nearer than {lens.fd_min_m:g} m."
        )


def _tuned(asked: LensFlight, cfl_mm: float) -> Tuning:
    """The CFL to fly, and what the test flight told; ``cfl_mm`` is the one it had."""
    if asked.seen is not None and asked.pixels is not None:
        raise InputError("--seen and --pixels exclude each other; pixels say more.")
    if asked.seen is not None:
        return tune_by_sight(cfl_mm, asked.seen)
    if asked.pixels is not None:
        return tune_by_pixels(cfl_mm, asked.fd_m, asked.camera, asked.pixels())
    return Tuning(cfl_mm, ())
