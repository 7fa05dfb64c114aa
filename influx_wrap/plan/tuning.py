"""What a test flight says about the camera focal length (the paper's CFL*).

The test flight goes to the corners of the footprint that the CFL promises, 20 cm inside.
Two ways to report what was seen of it:

- *by sight*: an edge or corner at which the drone was not seen means that the footprint is
  smaller than thought, so the CFL is a step larger. A step is about as large as the margin,
  so that steps do not jump over it. That everything was seen only says that the CFL is large
  enough, give or take the margin; how much larger the flight could be is not to be seen.
- *by pixels*: the drone's positions in the picture, radii about its centre, are CFL*/CFL
  times the expected ones.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.flight import CORNERS, corner_points_m, hover_points_m
from influx_wrap.model.hardware import Camera
from influx_wrap.model.words import size_text

STEP = 1.02
EDGES = ("left", "right", "top", "bottom")
OPPOSITES = (("left", "right", "heading"), ("top", "bottom", "tilt"))
PLAUSIBLE = (0.8, 1.25)
"""CFL*/CFL; lenses breathe by less, other numbers are of another picture or flight."""
NOTABLE_DEG = 0.3


@dataclass(frozen=True, slots=True)
class Tuning:
    """The CFL to fly next, and what else the test flight tells."""

    cfl_mm: float
    notes: tuple[str, ...]


def tune_by_sight(cfl_mm: float, seen: Collection[str]) -> Tuning:
    """``seen``: edges or corners at which the drone was in the picture, or ``all``, or ``none``.

    ``cfl_mm`` is the CFL that was flown.
    """
    unseen = _unseen(seen)
    if not unseen:
        return Tuning(
            cfl_mm,
            (
                "Seen everywhere, so the CFL stays. If the drone was at the very edge (the far "
                "points have a fifth less margin) or well inside the picture, measure its pixels "
                "and give --pixels.",
            ),
        )
    notes = [f"Not seen: {', '.join(unseen)}. The footprint is made {1 - 1 / STEP:.1%} smaller."]
    if len(unseen) == len(CORNERS):
        notes.append(
            "It was seen nowhere: check the camera's position, heading and tilt before you "
            "believe in another CFL."
        )
    for first, second, angle in OPPOSITES:
        for missing, present in ((first, second), (second, first)):
            if any(missing in name for name in unseen) and not any(
                present in name for name in unseen
            ):
                notes.append(
                    f"It was seen at the {present}, not at the {missing}: the {angle} may be "
                    "wrong rather than the CFL."
                )
    return Tuning(STEP * cfl_mm, tuple(notes))


def tune_by_pixels(cfl_mm: float, fd_m: float, camera: Camera, uv: FloatArray) -> Tuning:
    """``uv`` (n, 2): where the drone was seen at n of the four corners, in any order.

    ``cfl_mm`` is the CFL that was flown. Pixel (0, 0) is the centre of the top-left pixel.
    """
    centre = (np.array(camera.image_size) - 1) / 2
    offsets = uv - centre
    corners = _corners_at(offsets, uv, camera)
    points = corner_points_m(cfl_mm, fd_m, camera.sensor_mm)[corners]
    expected = _pixels_from_centre(points, cfl_mm, camera)
    reach = np.linalg.norm(expected, axis=1)
    ratio = float(np.linalg.norm(offsets, axis=1) @ reach / (reach @ reach))
    if not PLAUSIBLE[0] <= ratio <= PLAUSIBLE[1]:
        raise InputError(
            f"these pixels lie {ratio:.2f} times as far from the picture's centre as those of a "
            f"test flight with a CFL of {cfl_mm:g} mm, more than a lens differs from a thin one. "
            f"Are they of this flight, in a picture of {size_text(camera.image_size)}, "
            "and is --cfl-mm what was flown?"
        )
    notes = [f"The drone was {ratio:.4f} times as far from the picture's centre as expected."]
    if len(uv) == len(CORNERS):
        shift = (offsets - ratio * expected).mean(axis=0)
        notes += _pointing_notes(shift, ratio * cfl_mm, camera)
    notes += _barrel_notes(ratio, cfl_mm, fd_m, camera)
    return Tuning(ratio * cfl_mm, tuple(notes))


def _unseen(seen: Collection[str]) -> list[str]:
    """Edges or corners that are not in ``seen``."""
    if list(seen) == ["all"]:
        return []
    if list(seen) == ["none"]:
        return list(CORNERS)
    for names in (EDGES, CORNERS):
        if seen and set(seen) <= set(names):
            return [name for name in names if name not in seen]
    raise InputError(
        f"--seen takes edges ({', '.join(EDGES)}), or corners ({', '.join(CORNERS)}), or all, or "
        f"none; got {', '.join(seen)}."
    )


def _corners_at(offsets: FloatArray, uv: FloatArray, camera: Camera) -> list[int]:
    """Which corner every pixel belongs to: that of its quarter of the picture."""
    if not 2 <= len(uv) <= len(CORNERS):
        raise InputError(
            "--pixels takes the drone's positions at the four corners, two at least; got "
            f"{len(uv)}."
        )
    corners = []
    for (u, v), (right, down) in zip(uv.tolist(), offsets.tolist(), strict=True):
        if not (-0.5 <= u <= camera.width_px - 0.5 and -0.5 <= v <= camera.height_px - 0.5):
            raise InputError(
                f"--pixels: {u:g},{v:g} is outside a picture of {camera.width_px} x "
                f"{camera.height_px} pixels."
            )
        name = f"{'bottom' if down > 0 else 'top'}-{'right' if right > 0 else 'left'}"
        corner = CORNERS.index(name)
        if corner in corners:
            raise InputError(
                f"--pixels: two positions are at the {name}, {u:g},{v:g} is the second. Each "
                "corner is flown to once."
            )
        corners.append(corner)
    return corners


def _pixels_from_centre(points_m: FloatArray, cfl_mm: float, camera: Camera) -> FloatArray:
    """(N, 2): where points (N, 3) of camera space are seen, relative to the picture's centre."""
    per_mm = np.array(camera.image_size) / np.array(camera.sensor_mm)
    return cfl_mm * per_mm * points_m[:, :2] / points_m[:, 2:]


def _pointing_notes(shift_px: FloatArray, cfl_mm: float, camera: Camera) -> list[str]:
    """How far off the camera looks, when all four corners are shifted together."""
    focal_px = 1e3 * cfl_mm / camera.pixel_um
    right, down = (math.degrees(math.atan(shift / focal_px)) for shift in shift_px.tolist())
    words = []
    if abs(right) >= NOTABLE_DEG:
        words.append(f"{abs(right):.1f} deg to the {'left' if right > 0 else 'right'}")
    if abs(down) >= NOTABLE_DEG:
        words.append(f"{abs(down):.1f} deg {'up' if down > 0 else 'down'}")
    if not words:
        return []
    return [f"The camera looks {' and '.join(words)} of where it was said to: turn it back."]


def _barrel_notes(ratio: float, cfl_mm: float, fd_m: float, camera: Camera) -> list[str]:
    """A warning if the corners are drawn in by distortion rather than by a shorter CFL.

    Four corners at one radius cannot tell the two apart. Distortion draws in the middle of
    the edges less than the corners, so that a flight enlarged to fill the corners leaves the
    picture there.
    """
    if ratio >= 1:
        return []
    corner = corner_points_m(cfl_mm, fd_m, camera.sensor_mm)[0]
    k1 = (ratio - 1) / float(np.sum((corner[:2] / corner[2]) ** 2))
    edge = np.array(camera.image_size) / 2

    def n_outside(tuned_mm: float) -> int:
        points = hover_points_m(tuned_mm, fd_m, camera.sensor_mm)
        radius = np.linalg.norm(points[:, :2] / points[:, 2:], axis=1)
        seen = _pixels_from_centre(points, cfl_mm, camera) * (1 + k1 * radius**2)[:, None]
        return int(np.any(np.abs(seen) > edge, axis=1).sum())

    if n_outside(ratio * cfl_mm) == 0:
        return []
    low, high = ratio * cfl_mm, cfl_mm
    while high - low > 1e-4 * cfl_mm:
        middle = (low + high) / 2
        low, high = (low, middle) if n_outside(middle) == 0 else (middle, high)
    return [
        f"If distortion draws the corners in (wide lenses), {n_outside(ratio * cfl_mm)} of the 24 "
        f"points will be outside the picture; --cfl-mm {math.ceil(100 * high) / 100:.2f} keeps all "
        "of them in it."
    ]
