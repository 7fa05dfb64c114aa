"""Flights whose answer is known, without a picture: what a detector and a receiver report."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from influx_wrap.flight.match import MatchedFlight, match_flight
from influx_wrap.model.flashes import Flashes, Readings
from influx_wrap.model.flight import hover_points_m
from influx_wrap.model.intrinsics import Intrinsics, project
from influx_wrap.model.optics import thin_lens_focal_px
from influx_wrap.model.pose import rotation_matrix

SIZE = (1280, 824)
SENSOR_MM = (28.25, 18.17)
PIXEL_UM = 1e3 * SENSOR_MM[0] / SIZE[0]
LFL_MM, FD_M = 20.0, 13.5
FOCAL_PX = thin_lens_focal_px(LFL_MM, FD_M, PIXEL_UM)
TRUTH = Intrinsics(1.02 * FOCAL_PX, 1.02 * FOCAL_PX, 642.0, 409.0, -0.12, 0.01, 0.0003, -0.0002)
FPS = 24.0
SIGMA_M = 0.003


@dataclass(frozen=True, eq=False)
class Flown:
    """A flight, and which flash (first) truly belongs to which reading (second)."""

    flashes: Flashes
    readings: Readings
    pairs: set[tuple[int, int]]


def order(boustrophedon: bool = True) -> NDArray[np.int64]:
    """(24,) in which order the hover points are flown."""
    points = np.arange(24).reshape(2, 3, 4)
    if boustrophedon:
        points[:, 1] = points[:, 1, ::-1]
    return points.ravel()


def fly(
    seed: int,
    *,
    regular: bool = False,
    every_s: float = 10.0,
    missed: tuple[int, ...] = (),
    lost: tuple[int, ...] = (),
    lights: tuple[float, ...] = (),
    boustrophedon: bool = True,
    rtk_m: float = SIGMA_M,
) -> Flown:
    """Fly the 24 points.

    regular  trigger every ``every_s`` to the frame; else at random around that
    missed   points whose flash is not found, ``lost`` those whose reading is not there
    lights   when (in points, 2.5 is half-way between the third and the fourth) another light
             flashes somewhere
    """
    rng = np.random.default_rng(seed)
    points_m = hover_points_m(1e-3 * TRUTH.fx * PIXEL_UM, FD_M, SENSOR_MM)[order(boustrophedon)]
    uv, valid = project(TRUTH, points_m)
    assert valid.all()
    steps = np.full(24, every_s) if regular else every_s * rng.uniform(0.5, 1.5, 24)
    time_s = 20 + np.cumsum(steps)
    offset_s, drift = 1.7e9 + rng.uniform(-86400, 86400), rng.uniform(-50e-6, 50e-6)
    shown = [(time_s[i], i, uv[i] + 0.2 * rng.standard_normal(2)) for i in range(24)]
    shown = [one for one in shown if one[1] not in missed]
    for light in lights:
        at = float(np.interp(light, np.arange(24), time_s))
        shown.append((at, -1, rng.uniform(0, 1, 2) * (np.array(SIZE) - 1)))
    shown.sort(key=lambda one: one[0])
    frames = np.rint([FPS * one[0] for one in shown]).astype(np.int64)
    flashes = Flashes(
        frames=frames,
        last_frames=frames + 5,
        uv=np.array([one[2] for one in shown]),
        radii_px=np.full((len(shown), 2), 14.0),
        rule=np.ones(len(shown), dtype=np.int64),
        fps=FPS,
        n_frames=int(FPS * (time_s[-1] + 20)),
        image_size=SIZE,
    )
    kept = np.array([i for i in range(24) if i not in lost])
    rotation = rotation_matrix(rng.standard_normal(3))
    reported = points_m[kept] + rtk_m * rng.standard_normal((len(kept), 3))
    readings = Readings(
        time_s=time_s[kept] * (1 + drift) + offset_s + 0.02 * rng.standard_normal(len(kept)),
        xyz_m=reported @ rotation.T + 50 * rng.standard_normal(3),
        covariance_m2=np.tile(SIGMA_M**2 * np.eye(3), (len(kept), 1, 1)),
        ids=tuple(f"r{i:02d}" for i in kept.tolist()),
    )
    place = {int(i): j for j, i in enumerate(kept.tolist())}
    pairs = {(k, place[one[1]]) for k, one in enumerate(shown) if one[1] in place}
    return Flown(flashes, readings, pairs)


def with_float_fix(flown: Flown, reading: int, sigma_m: float) -> Flown:
    """The flight with one position that is known less well, and off by as much."""
    covariance = flown.readings.covariance_m2
    assert covariance is not None
    covariance, xyz_m = covariance.copy(), flown.readings.xyz_m.copy()
    covariance[reading] = sigma_m**2 * np.eye(3)
    xyz_m[reading] += sigma_m * np.array([0.6, -0.7, 0.5])
    readings = replace(flown.readings, covariance_m2=covariance, xyz_m=xyz_m)
    return replace(flown, readings=readings)


def match(flown: Flown, **options: float | None) -> MatchedFlight:
    """Its match, with the lens's focal length known."""
    return match_flight(flown.flashes, flown.readings, **({"focal_px": FOCAL_PX} | options))
