"""A zoom of five thin groups: where they stand at a setting, and the pinhole camera they make.

The classic zoom: a positive front group, a negative variator, a negative compensator, and a
positive relay in two halves with the stop in the front half. Distances are in millimetres
before the sensor.

    front   variator     compensator   relay, stop   relay   sensor
      +        -              -             +          +       |
                  I: image of the front group             J: what the relay images

Zooming moves variator and compensator so that I stays imaged to J while the magnification
changes. With T(m) = f (2 - m - 1/m), the distance from object to image of a thin group at the
magnification m, that is

    T2(m2) + T3(m3) = J - I,    m2 m3 = K,    K the magnification that LFL asks for,

a quadratic in m2. Focusing moves either the front group (``front``), which then images the
nearer object to I, or the rear half of the relay (``internal``). Either is the thin-lens
equation of the group that moves. So a setting has a closed form, exact and smooth.

LFL is the focal length at infinity. The camera's CFL is what a pinhole has that shows the same
picture: rays through the middle of the stop appear to meet in the entrance pupil, the centre of
projection, and reach the sensor at CFL times the tangent of their angle. Both follow from a
paraxial ray through the middle of the stop, and with groups off the axis so does the principal
point: where such a ray ends that came in at a right angle to the sensor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from influx_wrap.errors import InputError
from influx_wrap.model.hardware import Lens

STOP = 3
"""The group in whose middle the stop is: the front half of the relay."""

# Proportions of the design. Lengths are shares of the front group's focal length, except for
# the relay's, whose rear half has to be as long as its travel needs: x = LFL^2 / FD.
FRONT_PER_FD = 0.08
GAP = 0.07
COMPENSATOR = 0.55
RELAY_PER_LFL = 1.3
RELAY_PER_TRAVEL = 4.0
RELAY_SPACE = 0.9

MOST_BREATHING = 4.0
"""CFL over LFL beyond which the entrance pupil is so far away that there is no perspective left."""

DECENTRING_MM = ((0.02, -0.03), (-0.03, 0.02), (0.02, 0.01), (0.01, 0.02), (0.02, -0.01))
"""How far the groups are off the lens's axis, to the right and down: what is usual in assembly."""


@dataclass(frozen=True, slots=True)
class ThinGroup:
    """A thin group of lenses, ``place_mm`` before the sensor, off the axis by ``off_axis_mm``."""

    focal_mm: float
    place_mm: float
    off_axis_mm: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class PinholeView:
    """The pinhole camera that shows the same as a lens.

    cfl_mm        pinhole to sensor, as the picture's scale says
    pupil_mm      centre of projection before the sensor; negative: behind it
    principal_mm  of the principal point, to the right and down of the lens's axis
    """

    cfl_mm: float
    pupil_mm: float
    principal_mm: tuple[float, float]


def pinhole_view(groups: Sequence[ThinGroup], stop: int) -> PinholeView:
    """Of thin groups, from the scene to the sensor, with the stop in the middle of one.

    Rays are traced from the middle of the stop both ways. Height at the sensor and slope before
    the first group are affine in the slope at the stop, so two rays tell everything.
    """
    flat = tuple(ThinGroup(group.focal_mm, group.place_mm) for group in groups)
    end, slope, height = _ray(flat, stop, 1.0, 0)
    principal = []
    for axis in (0, 1):
        still_end, still_slope, _ = _ray(groups, stop, 0.0, axis)
        # A picture is upside down on the sensor, which is undone when it is read.
        principal.append(still_slope * end / slope - still_end)
    return PinholeView(
        end / slope, groups[0].place_mm + height / slope, (principal[0], principal[1])
    )


def _ray(
    groups: Sequence[ThinGroup], stop: int, slope: float, axis: int
) -> tuple[float, float, float]:
    """Height at the sensor, and slope and height before the first group, of a ray that leaves
    the stop's middle towards the stop's group with ``slope``."""
    middle = groups[stop]
    height, place = 0.0, middle.place_mm
    ahead = slope
    for group in groups[stop:]:
        height += ahead * (place - group.place_mm)
        ahead -= (height - group.off_axis_mm[axis]) / group.focal_mm
        place = group.place_mm
    end = height + ahead * place
    height, place = 0.0, middle.place_mm
    for group in reversed(groups[:stop]):
        height -= slope * (group.place_mm - place)
        slope += (height - group.off_axis_mm[axis]) / group.focal_mm
        place = group.place_mm
    return end, slope, height


@dataclass(frozen=True)
class ZoomDesign:
    """The groups of a zoom, and how they move.

    focal_mm     (5,) of the groups, from the scene to the sensor
    between      J - I along the light
    relay_mm     where the relay's halves stand when focused at infinity
    focusing     one of ``model.hardware.FOCUSING``
    """

    focal_mm: tuple[float, float, float, float, float]
    between_mm: float
    relay_mm: tuple[float, float]
    focusing: str

    def view(self, lfl_mm: float, fd_m: float) -> PinholeView:
        """The camera that the lens makes when it is set to LFL and FD, which may be infinite."""
        try:
            view = pinhole_view(self.groups(lfl_mm, fd_m), STOP)
        except (ArithmeticError, ValueError):
            view = None
        if view is None or not 0 < view.cfl_mm < MOST_BREATHING * lfl_mm:
            raise InputError(
                f"the simulated zoom with {self.focusing} focusing cannot be focused at {fd_m:g} m "
                f"with {lfl_mm:g} mm. Take a longer FD, or --lens-model thin."
            )
        return view

    def groups(self, lfl_mm: float, fd_m: float) -> tuple[ThinGroup, ...]:
        """(5,) the groups where they stand, from the scene to the sensor."""
        f1, f2, f3, f4, f5 = self.focal_mm
        j_mm = self.relay_mm[0] + f4
        i_mm = j_mm + self.between_mm
        m2, m3 = self._zoomed(lfl_mm)
        front, variator = i_mm + f1, i_mm - f2 * (1 - 1 / m2)
        compensator, relay, rear = j_mm + f3 * (1 - m3), self.relay_mm[0], self.relay_mm[1]
        fd_mm = 1e3 * fd_m
        if not fd_mm > front:
            raise ValueError("the object is inside the lens")
        if self.focusing == "front":
            front = i_mm + _image_mm(f1, fd_mm - i_mm)
        else:
            places_mm = front, variator, compensator, relay
            rear = _image_mm(f5, _image_place_mm(self.focal_mm[:4], places_mm, fd_mm))
        all_mm = front, variator, compensator, relay, rear
        return tuple(map(ThinGroup, self.focal_mm, all_mm, DECENTRING_MM))

    def _zoomed(self, lfl_mm: float) -> tuple[float, float]:
        """Magnifications of variator and compensator."""
        f1, f2, f3, f4, f5 = self.focal_mm
        k = -lfl_mm * f4 / (f1 * f5)
        a, b, c = f2 + f3 / k, self.between_mm - 2 * (f2 + f3), f2 + f3 * k
        m2 = -(b + math.sqrt(b * b - 4 * a * c)) / (2 * a)
        return m2, k / m2


def design_zoom(lens: Lens, focusing: str) -> ZoomDesign:
    """A zoom with the ranges of ``lens``.

    At both ends of the zoom the compensator stands in the same place and the variator's
    magnification is -1 / sqrt(ratio) and -sqrt(ratio).
    """
    nearest_mm = 1e3 * lens.fd_min_m
    root = math.sqrt(lens.lfl_max_mm / lens.lfl_min_mm)
    middle_mm = math.sqrt(lens.lfl_max_mm * lens.lfl_min_mm)
    f1 = min(FRONT_PER_FD * nearest_mm, lens.lfl_max_mm)
    f2 = -(1 - GAP) * f1 / (1 + root)
    f3 = -COMPENSATOR * f1
    m3 = COMPENSATOR / (1 + COMPENSATOR)
    f5 = max(RELAY_PER_LFL * middle_mm, RELAY_PER_TRAVEL * lens.lfl_max_mm**2 / nearest_mm)
    f4 = f5 * f1 * m3 / middle_mm
    between_mm = _between_mm(f2, -root) + _between_mm(f3, m3)
    relay_mm = (1 + RELAY_SPACE) * f5, f5
    return ZoomDesign((f1, f2, f3, f4, f5), between_mm, relay_mm, focusing)


def _between_mm(focal_mm: float, magnification: float) -> float:
    """T(m): along the light from object to image."""
    return focal_mm * (2 - magnification - 1 / magnification)


def _image_mm(focal_mm: float, between_mm: float) -> float:
    """Image distance of a positive group between object and image, the nearer of the two."""
    return 2 * focal_mm / (1 + math.sqrt(1 - 4 * focal_mm / between_mm))


def _image_place_mm(
    focal_mm: Sequence[float], places_mm: Sequence[float], object_mm: float
) -> float:
    """Where groups image an object to, before the sensor as all places; infinite if nowhere.

    Carried along is the vergence, the reciprocal of the distance to the image, which is 0 of
    parallel light.
    """
    vergence, place = -1 / (object_mm - places_mm[0]), places_mm[0]
    for focal, here in zip(focal_mm, places_mm, strict=True):
        vergence = vergence / (1 - (place - here) * vergence) + 1 / focal
        place = here
    return place - 1 / vergence if vergence != 0 else math.inf
