"""The drone's flight at night, as it happens: where the LED is, when it is on, what is read.

The drone hovers at one point after the other and is led from each to the next smoothly. While
it hovers it drifts by millimetres, and at some moment a person presses Enter: the LED is on
for a quarter of a second and the receiver's position is read. All times are seconds after the
shutter opened for the video's first frame; the readings have a clock of their own, of which
the video knows nothing.

The hover points and the receiver's errors are those of the experiment in point form with the
same seed (``synth.experiment``), so that one is the check of the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from influx_drone.geodesy import Site, camera_to_world, geodetic_to_world, world_to_geodetic
from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.flight import boustrophedon_orders
from influx_wrap.model.intrinsics import Intrinsics, project
from influx_wrap.model.target import PointCloud
from influx_wrap.synth.experiment import Experiment
from influx_wrap.synth.motion import FPS, SHUTTER

LONGEST_HOVER, SHORTEST_TRANSIT = 1.5, 0.8
"""Times vary, as a person's do, between one and this multiple of what is asked for."""

LEAD_S = 0.5
"""What is filmed before the first hover and after the last."""

SETTLE_S = 0.1
"""No flash so soon after arrival, nor so shortly before leaving."""

DRIFT_HZ = (0.31, 0.17, 0.23)
LATENCY_S = 0.04
MOST_CLOCK_DRIFT = 5e-5

FIELD = (40.3471, -74.5834, 27.0)
"""Latitude, longitude and height above the ellipsoid of the ground below the camera."""

LOWEST_M = 2.0
"""Above the ground: the camera looks up as far as it must for all points to be there."""

ANTENNA_ABOVE_LED_M = 0.2
EVENING_UNIX_S = 1_750_000_000.0
_DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class FlightOptions:
    """How the drone is flown.

    hover_s    shortest time at a point
    transit_s  longest time from one to the next
    flash_s    for which the LED is on
    drift_m    how far the drone drifts from its point along each axis
    missed     how many flashes the video does not show, though they are read
    extra      how many flashes are between points and are not read
    """

    hover_s: float = 1.0
    transit_s: float = 1.0
    flash_s: float = 0.25
    drift_m: float = 0.005
    missed: int = 0
    extra: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.flash_s < math.inf and 0 < self.transit_s < math.inf):
            raise InputError("a flash and the way between two points must take some time.")
        shortest = self.flash_s + 2 * SETTLE_S
        if not shortest <= self.hover_s < math.inf:
            raise InputError(
                f"a hover of {self.hover_s:g} s is too short for a flash of {self.flash_s:g} s; "
                f"it needs {shortest:g} s."
            )
        if not 0 <= self.drift_m < math.inf:
            raise InputError(f"a drift must be a number of at least 0, got {self.drift_m:g}.")
        if self.missed < 0 or self.extra < 0:
            raise InputError("the number of missed or extra flashes must be at least 0.")


@dataclass(frozen=True, eq=False)
class Flight:
    """A flight with S stops and a flash at each.

    hover_m   (P, 3) the hover points in camera space, in the order of the plan
    error_m   (P, 3) by which the receiver's positions are off there, in camera space
    stops_m   (S, 3) where the drone stops, in the order flown
    point     (S,) hover point of each stop; -1: none, its flash is not read
    arrive_s  (S,), and
    leave_s   (S,) when it stops and goes on
    on_s      (S,) when its LED comes on
    is_seen   (S,) False for a flash that the video does not show
    phase     (3,) of the drift along each axis
    """

    options: FlightOptions
    hover_m: FloatArray
    error_m: FloatArray
    stops_m: FloatArray
    point: IntArray
    arrive_s: FloatArray
    leave_s: FloatArray
    on_s: FloatArray
    is_seen: BoolArray
    phase: FloatArray

    @property
    def n_frames(self) -> int:
        """Length of the video."""
        return math.ceil((float(self.leave_s[-1]) + LEAD_S) * FPS)

    def led_m(self, time_s: ArrayLike) -> FloatArray:
        """Where the LED is in camera space (N, 3) at times (N,)."""
        time = np.asarray(time_s, dtype=float)
        here = np.clip(np.searchsorted(self.arrive_s, time, side="right") - 1, 0, None)
        after = np.minimum(here + 1, len(self.stops_m) - 1)
        way_s = np.maximum(self.arrive_s[after] - self.leave_s[here], 1e-9)
        progress = np.clip((time - self.leave_s[here]) / way_s, 0, 1)[:, None]
        eased = progress**2 * (3 - 2 * progress)
        path = self.stops_m[here] + eased * (self.stops_m[after] - self.stops_m[here])
        turns = time[:, None] * np.array(DRIFT_HZ)
        result: FloatArray = path + self.options.drift_m * np.sin(2 * np.pi * turns + self.phase)
        return result


def simulate_flight(
    experiment: Experiment, options: FlightOptions, rng: np.random.Generator
) -> Flight:
    """A flight to the points of a drone's experiment."""
    hover_m, error_m = _rig(experiment)
    n = len(hover_m)
    if options.missed > n or options.extra > n - 1:
        raise InputError(
            f"a flight to {n} points has at most {n} flashes to miss and {n - 1} extra ones."
        )
    orders = boustrophedon_orders()
    lengths = np.linalg.norm(np.diff(hover_m[orders], axis=1), axis=2).sum(axis=1)
    point = orders[np.argmin(lengths)]
    missed = rng.choice(n, options.missed, replace=False)
    # Half-way to the next point; from the last to the first, so that they stay in order.
    extra = np.sort(rng.choice(n - 1, options.extra, replace=False))[::-1]
    stops_m = hover_m[point]
    is_seen = ~np.isin(np.arange(n), missed)
    for k in extra:
        stops_m = np.insert(stops_m, k + 1, (stops_m[k] + stops_m[k + 1]) / 2, axis=0)
        point, is_seen = np.insert(point, k + 1, -1), np.insert(is_seen, k + 1, True)
    n_stops = len(stops_m)
    hover_s = options.hover_s * rng.uniform(1, LONGEST_HOVER, n_stops)
    transit_s = options.transit_s * rng.uniform(SHORTEST_TRANSIT, 1, n_stops)
    leave_s = LEAD_S + np.cumsum(hover_s + transit_s) - transit_s
    arrive_s = leave_s - hover_s
    slack_s = hover_s - options.flash_s - 2 * SETTLE_S
    on_s = arrive_s + SETTLE_S + slack_s * rng.uniform(0, 1, n_stops)
    phase = rng.uniform(0, 2 * np.pi, 3)
    return Flight(
        options, hover_m, error_m, stops_m, point, arrive_s, leave_s, on_s, is_seen, phase
    )


def _rig(experiment: Experiment) -> tuple[FloatArray, FloatArray]:
    """Hover points and the errors of their readings, (P, 3) each, in metres in camera space."""
    truth, target = experiment.truth, experiment.observations.target
    assert isinstance(target, PointCloud)
    to_camera = truth.rotations[0]
    hover = truth.target_points @ to_camera.T + truth.translations[0]
    error = (target.points - truth.target_points) @ to_camera.T
    return target.unit_m * hover, target.unit_m * error


@dataclass(frozen=True, eq=False)
class LitFrames:
    """The L frames in which the LED is on and in the picture, in the order of time.

    stop     (L,) stop of the flash
    frame    (L,) number of the frame
    share    (L,) part of the exposure for which the LED is on
    uv       (L, 2) the LED's centre in the middle of that part, in pixels
    uv_ends  (L, 2, 2) where it is at its beginning and its end
    """

    stop: IntArray
    frame: IntArray
    share: FloatArray
    uv: FloatArray
    uv_ends: FloatArray


def lit_frames(flight: Flight, intrinsics: Intrinsics, image_size: tuple[int, int]) -> LitFrames:
    """What a camera sees of a flight's flashes."""
    open_s = np.arange(flight.n_frames) / FPS
    start = np.maximum(open_s, flight.on_s[:, None])
    end = np.minimum(open_s + SHUTTER / FPS, flight.on_s[:, None] + flight.options.flash_s)
    stop, frame = np.nonzero((end > start) & flight.is_seen[:, None])
    start, end = start[stop, frame], end[stop, frame]
    times = np.stack([start, (start + end) / 2, end], axis=1)
    uv, valid = project(intrinsics, flight.led_m(times.ravel()).reshape(-1, 3, 3))
    inside = (uv >= -0.5).all(axis=2) & (uv <= np.array(image_size) - 0.5).all(axis=2)
    seen = (valid & inside).all(axis=1)
    share = (end - start) * FPS / SHUTTER
    return LitFrames(stop[seen], frame[seen], share[seen], uv[seen, 1], uv[seen][:, ::2])


@dataclass(frozen=True, eq=False)
class FlightReadings:
    """R readings of a flight, in the order of time.

    stop           (R,) at which each was taken
    time_s         (R,) Unix time
    geodetic       (R, 3) latitude, longitude in degrees, height in metres
    covariance_m2  (3, 3) of each; None if they are exact
    led_m          (R, 3) where the LED really was, in camera space
    rotation       (3, 3) and
    translation    (3,): from east, north, up in the plane that touches the Earth at the first
                   reading to camera space; takes a reading without error to ``led_m``
    clock_offset_s, clock_drift  their time at the video's begin, and by how much faster it goes
    """

    stop: IntArray
    time_s: FloatArray
    geodetic: FloatArray
    covariance_m2: FloatArray | None
    led_m: FloatArray
    rotation: FloatArray
    translation: FloatArray
    clock_offset_s: float
    clock_drift: float


def take_readings(
    flight: Flight, rtk_ball_m: float, camera_height_m: float, rng: np.random.Generator
) -> FlightReadings:
    """What the drone's receiver says at every flash that is read.

    The receiver's antenna is above the LED, by the same step at every point, which the
    camera's pose absorbs.
    """
    stop = np.flatnonzero(flight.point >= 0)
    at_s = flight.on_s[stop] + rng.uniform(0, LATENCY_S, len(stop))
    led_m = flight.led_m(at_s)
    site = _site(flight.hover_m, camera_height_m, rng.uniform(0, 360))

    def geodetic(points_m: FloatArray) -> FloatArray:
        antenna = camera_to_world(points_m, site) + np.array([0, 0, ANTENNA_ABOVE_LED_M])
        return world_to_geodetic(antenna, *FIELD)

    reported = geodetic(led_m + flight.error_m[flight.point[stop]])
    exact_m = geodetic_to_world(geodetic(led_m), *reported[0, :2])
    rotation, translation = _rigid(exact_m, led_m)
    offset_s = EVENING_UNIX_S + rng.uniform(0, _DAY_S)
    drift = rng.uniform(-MOST_CLOCK_DRIFT, MOST_CLOCK_DRIFT)
    variance = rtk_ball_m**2 / 5
    return FlightReadings(
        stop,
        offset_s + (1 + drift) * at_s,
        reported,
        variance * np.eye(3) if variance > 0 else None,
        led_m,
        rotation,
        translation,
        offset_s,
        drift,
    )


def _site(points_m: FloatArray, camera_height_m: float, heading_deg: float) -> Site:
    """A camera that looks up no further than it must for all points to be above the ground."""
    for tilt_deg in range(90, -1, -1):
        site = Site(*FIELD[:2], camera_height_m, heading_deg, float(tilt_deg))
        if camera_to_world(points_m, site)[:, 2].min() >= LOWEST_M:
            break
    return site


def _rigid(source: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rotation (3, 3) and translation (3,) that take points (N, 3) to others (Kabsch)."""
    centre, goal = source.mean(axis=0), target.mean(axis=0)
    u, _, vt = np.linalg.svd((target - goal).T @ (source - centre))
    rotation = u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt
    return rotation, goal - rotation @ centre
