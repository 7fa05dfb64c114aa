"""Does the lens's setting, as somebody typed it, fit what the pictures say?

The answer of a calibration knows the camera's focal length in pixels and the target's distance
in the target's own metres. With the sensor's size they say which focal length and which focus
distance were on the rings, roughly: enough to notice a setting of another experiment, feet for
metres, the wrong board.

Roughly, because real zooms are no thin lenses. Of traced ones CFL / LFL - 1 at the nearest focus is
between -5 % and +130 %, where a thin lens says +9 to +69 %; LFL / CFL - 1 goes about linearly with
1 / FD to nothing at infinity, and is smaller at a zoom's wide end. So the tolerance is wide near
the nearest focus and closes to that of an engraved focal length far away.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from influx_wrap.calibrate.layout import check_target
from influx_wrap.calibrate.result import Calibration
from influx_wrap.model.hardware import Board, Camera, Lens, Rig
from influx_wrap.model.observations import Observations
from influx_wrap.model.suspicion import Suspicion
from influx_wrap.model.target import (
    AprilGrid,
    BoardTarget,
    Charuco,
    Checkerboard,
    CircleGrid,
    PointCloud,
    Target,
)

# LFL / CFL - 1 at a lens's nearest focus and longest focal length lies between these.
_SHRINKS, _GROWS = -0.6, 0.05
# How wrong an engraved focal length times a sensor's nominal size may be.
_NOMINAL = 0.08
# Where a lens's nearest focus is not known: so many focal lengths away.
_USUAL_NEAREST = 12.0

# A target is held within this factor of the focus distance, or it is out of focus.
_DISTANCE_FACTOR = 1.5
_UNIT_FACTOR = 1.35
_BOARD_FACTOR = 1.25
_UNITS = {"feet": 3.28084, "inches": 39.3701, "centimetres": 100.0, "millimetres": 1000.0}

# Nobody measures a tag or a square in feet; three times too far away is another board.
_BOARD_UNITS = ("inches", "centimetres", "millimetres")

_SQUARE = 5e-4
_NOT_SQUARE = 5e-3
_OFF_CENTRE = 0.12
# Of the lens's own ranges, on account of rings that are set by hand.
_RANGE = 0.05


@dataclass(frozen=True)
class TypedSetting:
    """What is said of an experiment; ``source`` is who says it, ``rig`` None if nobody does."""

    lfl_mm: float
    fd_m: float
    pixel_um: float
    source: str
    rig: Rig | None = None


def check_calibration(
    calibration: Calibration, observations: Observations, typed: TypedSetting
) -> tuple[Suspicion, ...]:
    """Everything typed that the pictures contradict, the target's description included."""
    found = check_target(observations)
    target = observations.target
    # FD is measured from the sensor, the pictures tell distances from the camera's centre.
    depth_m = _depth_m(calibration, target)
    distance_m = None if depth_m is None else depth_m + _cfl_mm(calibration, typed) / 1e3
    lens = None if typed.rig is None else typed.rig.lens
    rest = [
        *_outside_range(typed, lens),
        _focal_length(calibration, typed, lens, distance_m),
        None if distance_m is None else _distance(calibration, target, typed, distance_m),
        _pixel_shape(calibration, None if typed.rig is None else typed.rig.camera),
    ]
    if not any(suspicion.what == "image_size" for suspicion in found):
        rest.append(_off_centre(calibration))
    return (*found, *(suspicion for suspicion in rest if suspicion is not None))


def _cfl_mm(calibration: Calibration, typed: TypedSetting) -> float:
    return 1e-3 * calibration.intrinsics.fx * typed.pixel_um


def _relative_sigma(calibration: Calibration) -> float:
    return float(calibration.sigma[0] / calibration.intrinsics.fx)


def _outside_range(typed: TypedSetting, lens: Lens | None) -> list[Suspicion]:
    """A setting that the lens does not have."""
    if lens is None:
        return []
    found = []
    low, high = lens.lfl_min_mm, lens.lfl_max_mm
    if not low * (1 - _RANGE) <= typed.lfl_mm <= high * (1 + _RANGE):
        nearest = low if typed.lfl_mm < low else high
        text = (
            f"{typed.source} says lfl_mm {typed.lfl_mm:g}, {lens.name} has {low:g} to {high:g} mm"
        )
        found.append(Suspicion("lfl_mm", nearest, typed.lfl_mm, "mm", text))
    if typed.fd_m < lens.fd_min_m * (1 - 2 * _RANGE):
        text = (
            f"{typed.source} says fd_m {typed.fd_m:g}, {lens.name} focuses no nearer than "
            f"{lens.fd_min_m:.3g} m"
        )
        found.append(Suspicion("fd_m", lens.fd_min_m, typed.fd_m, "m", text))
    return found


def _focal_length(
    calibration: Calibration, typed: TypedSetting, lens: Lens | None, distance_m: float | None
) -> Suspicion | None:
    """fx times the pixel pitch is no focal length that a lens set to this LFL can have."""
    cfl_mm = _cfl_mm(calibration, typed)
    # Of a wrong FD the distance knows better.
    fd_m = typed.fd_m if distance_m is None else min(typed.fd_m, distance_m)
    if lens is None:
        nearest_m, share_of_longest = _USUAL_NEAREST * typed.lfl_mm / 1e3, 1.0
    else:
        nearest_m, share_of_longest = lens.fd_min_m, min(1.0, typed.lfl_mm / lens.lfl_max_mm)
    nearness = min(1.0, nearest_m / fd_m)
    slack = _NOMINAL + 3 * _relative_sigma(calibration)
    lowest = 1 + _SHRINKS * nearness * math.sqrt(share_of_longest) - slack
    highest = 1 + _GROWS * nearness + slack
    if lowest <= typed.lfl_mm / cfl_mm <= highest:
        return None
    return Suspicion(
        "lfl_mm", cfl_mm, typed.lfl_mm, "mm",
        f"fx says {cfl_mm:.1f} mm, {typed.source} says lfl_mm {typed.lfl_mm:g}: is it another "
        "setting, or another sensor size?",
    )  # fmt: skip


def _depth_m(calibration: Calibration, target: Target) -> float | None:
    """Median distance of the target from the camera's centre; None if its scale is not known."""
    points, unit_m = target.points, 1.0
    if isinstance(target, PointCloud):
        unit_m = target.unit_m
        if unit_m == 1 and np.linalg.norm(points, axis=1).max() < 1 + 1e-6:
            return None  # Scaled into the unit sphere, by which factor is not said.
    used = np.array([view.used for view in calibration.views], dtype=bool)
    poses = calibration.poses[used if used.any() else slice(None)]
    depth = points @ poses[:, 6:9].T + poses[:, 11]
    return unit_m * float(np.median(depth))


def _distance(
    calibration: Calibration, target: Target, typed: TypedSetting, distance_m: float
) -> Suspicion | None:
    """The target was not where the lens was focused."""
    if math.isinf(typed.fd_m) or not distance_m > 0:
        return None
    apart = abs(math.log(typed.fd_m / distance_m))
    if apart <= math.log(_DISTANCE_FACTOR) + 3 * _relative_sigma(calibration):
        return None
    unit = _unit_of(typed.fd_m / distance_m)
    board = _fitting_board(target, typed, distance_m - _cfl_mm(calibration, typed) / 1e3)
    board_unit = None if unit or board else _unit_of(distance_m / typed.fd_m)
    if board_unit in _BOARD_UNITS and not isinstance(target, PointCloud):
        return _size(target, board_unit, typed, distance_m)
    reasons = []
    if unit is not None:
        metres = typed.fd_m / _UNITS[unit]
        reasons.append(f"{typed.fd_m:g} looks like {unit} ({metres:.3g} m)")
    if board is not None:
        reasons.append(f"board {board.name} would fit")
    noun = "drone" if isinstance(target, PointCloud) else "board"
    why = "; or ".join(reasons) or f"is it another setting, or another {noun}?"
    return Suspicion(
        "board" if unit is None and board is not None else "fd_m", distance_m, typed.fd_m, "m",
        f"the {noun} is {distance_m:.3g} m away in the pictures, {typed.source} says fd_m "
        f"{typed.fd_m:g}: {why}",
    )  # fmt: skip


def _size(target: BoardTarget, unit: str, typed: TypedSetting, distance_m: float) -> Suspicion:
    """The board's size was typed in another unit than metres."""
    match target:
        case AprilGrid():
            key, given = "tagSize", target.tag_size_m
        case Checkerboard():
            key, given = "colSpacingMeters", target.col_spacing_m
        case Charuco():
            key, given = "squareSize", target.square_size_m
        case CircleGrid():
            key, given = "spacingMeters", target.spacing_m
    metres = given / _UNITS[unit]
    return Suspicion(
        key, metres, given, "m",
        f"the board is {distance_m:.3g} m away in the pictures, {typed.source} says fd_m "
        f"{typed.fd_m:g}: {key} {given:g} looks like {unit} ({metres:.3g} m)",
    )  # fmt: skip


def _unit_of(ratio: float) -> str | None:
    """The unit in which a length was typed that is ``ratio`` times too large in metres."""
    for unit, per_metre in _UNITS.items():
        if abs(math.log(ratio / per_metre)) < math.log(_UNIT_FACTOR):
            return unit
    return None


def _fitting_board(target: Target, typed: TypedSetting, depth_m: float) -> Board | None:
    """The board of the catalogue that looks the same, and would be at the focus distance."""
    if not isinstance(target, AprilGrid) or typed.rig is None:
        return None
    alike = [board for board in typed.rig.boards if _looks_like(board.grid, target)]
    fits = {
        board.name: abs(math.log(depth_m * board.grid.tag_size_m / target.tag_size_m / typed.fd_m))
        for board in alike
    }
    best = min(alike, key=lambda board: fits[board.name], default=None)
    return best if best is not None and fits[best.name] < math.log(_BOARD_FACTOR) else None


def _looks_like(one: AprilGrid, other: AprilGrid) -> bool:
    """Whether two grids differ in their size alone."""
    same_tags = (one.tag_rows, one.tag_cols) == (other.tag_rows, other.tag_cols)
    is_scaled = abs(one.tag_size_m / other.tag_size_m - 1) > 0.01
    return same_tags and is_scaled and abs(one.tag_spacing - other.tag_spacing) < 0.01


def _pixel_shape(calibration: Calibration, camera: Camera | None) -> Suspicion | None:
    """fx / fy is not what the sensor's size says."""
    if camera is None:
        return None
    intrinsics, covariance = calibration.intrinsics, calibration.covariance
    gradient = np.array([1 / intrinsics.fx, -1 / intrinsics.fy])
    sigma = float(np.sqrt(gradient @ covariance[:2, :2] @ gradient))
    seen = math.log(intrinsics.fx / intrinsics.fy)
    pitch_um = 1e3 * np.array(camera.sensor_mm) / np.array(camera.image_size)
    given = math.log(pitch_um[1] / pitch_um[0])
    if abs(seen - given) <= _SQUARE + 3 * sigma:
        return None
    sides = f"{camera.sensor_width_mm:g} x {camera.sensor_height_mm:g} mm"
    if abs(seen) < abs(given) / 2:
        height_mm = camera.sensor_width_mm * camera.height_px / camera.width_px
        return Suspicion(
            "sensor_height_mm", height_mm, camera.sensor_height_mm, "mm",
            f"fx and fy differ by {100 * abs(seen):.2f} %, but {sides} makes the pixels of camera "
            f"{camera.name} {100 * abs(given):.2f} % longer one way than the other: "
            f"sensor_height_mm {height_mm:.4g} would make them square",
            harmful=False,
        )  # fmt: skip
    if abs(seen - given) <= _NOT_SQUARE + 3 * sigma:
        return None
    return Suspicion(
        "fx/fy", math.exp(seen), math.exp(given), "",
        f"fx / fy is {math.exp(seen):.3f}, the sensor's {sides} say {math.exp(given):.3f}: was the "
        "picture squeezed, or is the board's spacing along one side wrong?",
    )  # fmt: skip


def _off_centre(calibration: Calibration) -> Suspicion | None:
    """The principal point is nowhere near the middle of the picture."""
    size = np.array(calibration.image_size)
    array = calibration.intrinsics.array
    offset = np.abs(array[2:4] - (size - 1) / 2) - 3 * calibration.sigma[2:4]
    axis = int(np.argmax(offset))
    if offset[axis] <= _OFF_CENTRE * size[0]:
        return None
    name, seen, middle = ("cx", "cy")[axis], float(array[2 + axis]), float((size[axis] - 1) / 2)
    return Suspicion(
        "image_size", seen, middle, "px",
        f"{name} is {seen:.0f} px, the middle of the picture {middle:.0f} px: is {size[0]} x "
        f"{size[1]} the size of another camera, or was the picture cropped?",
    )  # fmt: skip


def explain_failure(observations: Observations) -> str | None:
    """What is wrong with the target's description, for a calibration that found no answer."""
    found: Sequence[Suspicion] = check_target(observations)
    return found[0].sentence if found else None
