"""The simulated lens: true intrinsics at every setting, in a plan or between its cells.

It is to be as hard as a real one. ``ZoomLens`` is a zoom of thin groups (``synth.zoom``), focused
by its front group or internally: CFL breathes by what the groups do, which may be far from what
a thin lens does, and the groups' being off the axis makes the principal point wander with
zoom and focus. Pixels are as square as the camera's. Distortion is what ray-traced zooms have:

- The displacement of the picture's corner is linear in 1 / LFL^2, barrel at wide and pincushion
  at tele. That is third-order theory, and describes traced 80-200 mm zooms to 1 px. Near focus
  adds to the barrel, and a tenth of it all is taken back by k2.
- It stays centred on the lens's axis, w away from the principal point. Expanding
  k1 (r - w) |r - w|^2 in w gives p1 = k1 wy / f, p2 = k1 wx / f, as traced zooms have them.

``ThinLens`` is the paper's: a thin lens with square pixels and a centred principal point, whose
visual factor k1 / CFL^2 runs linearly from its barrel value at the shortest CFL to the opposite
value at the longest. Shortest and longest are those of the plan, whichever setting is asked for.

A lens depends on its catalogue entry and the options alone, not on a seed, so that a table
calibrated from a plan's cells and a clip that zooms between them are of one lens.

FD is measured from the sensor, as on the focus ring. The pinhole is where the entrance pupil is, so
scenes are built about that: ``LensState.depth_m`` is how far away the plane in focus is from it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.experiment import Plan
from influx_wrap.model.hardware import FOCUSING, Camera, Lens
from influx_wrap.model.intrinsics import Intrinsics, image_centre
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.model.optics import lens_to_object_m, thin_lens_cfl_mm
from influx_wrap.synth.zoom import ZoomDesign, design_zoom

FD_JITTER = 0.01
"""Relative standard deviation with which a focus ring is set to what was planned."""

MOTIONS = ("zoom", "focus", "both", "still")
LENS_MODELS = (*FOCUSING, "thin")

SENSOR_OFFSET_MM = (-0.05, 0.04)
"""Of the lens's axis from the sensor's middle, to the right and down: what a mount allows."""

# Displacement of the corner, in those at the shortest LFL and infinity: at an LFL without end,
# added at the nearest focus, and by k2.
TELE, NEAR, SECOND = -0.4, 0.1, -0.1


@dataclass(frozen=True, slots=True)
class LensOptions:
    """What is simulated other than what the catalogue says.

    model         one of ``LENS_MODELS``; None: as the catalogue says
    breathing     CFL is a thin lens's, times 1 + this share at most; None: the model's own
    pp_offset_px  where the principal point stays, from the image centre; None: where the model
                  has it, which is the centre for a thin lens
    """

    model: str | None = None
    breathing: float | None = None
    pp_offset_px: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.model is not None and self.model not in LENS_MODELS:
            known = ", ".join(LENS_MODELS)
            raise InputError(f"there is no lens model {self.model!r}; known: {known}.")
        if self.breathing is not None and not abs(self.breathing) < 1:
            raise InputError(
                f"breathing is a share of the focal length, 0.03 say, not {self.breathing:g}."
            )

    def as_dict(self) -> dict[str, Any]:
        """Plain dictionary, for the settings of a simulation."""
        offset = self.pp_offset_px
        return {
            "lens_model": self.model,
            "breathing": self.breathing,
            "pp_offset_px": None if offset is None else list(offset),
        }


@dataclass(frozen=True, slots=True)
class LensState:
    """A lens on a camera at one setting; ``depth_m`` is from the centre of projection to the
    plane in focus."""

    intrinsics: Intrinsics
    depth_m: float


class SimulatedLens(ABC):
    """A lens on a camera: a smooth function of LFL and FD, which may be infinite."""

    @abstractmethod
    def state(self, lfl_mm: float, fd_m: float) -> LensState:
        """Everything at a setting."""

    def intrinsics(self, lfl_mm: float, fd_m: float) -> Intrinsics:
        """The true intrinsics at a setting."""
        return self.state(lfl_mm, fd_m).intrinsics


@dataclass(frozen=True)
class Breathing:
    """Departure of CFL from a thin lens that is asked for.

    share                   the largest
    lfl_range_mm, fd_min_m  of the plan
    """

    share: float
    lfl_range_mm: tuple[float, float]
    fd_min_m: float

    def cfl_mm(self, lfl_mm: float, fd_m: float) -> float:
        """CFL at a setting."""
        return thin_lens_cfl_mm(lfl_mm, fd_m) * (1 + self.share * self._shape(lfl_mm, fd_m))

    def _shape(self, lfl_mm: float, fd_m: float) -> float:
        """In [-1, 1]: half a cosine over the log zoom range, fading with disparity.

        1 at the shortest LFL and -1 at the longest at nearest focus, 0 at infinity.
        """
        shortest, longest = self.lfl_range_mm
        log_range = math.log(longest / shortest)
        zoom = math.log(lfl_mm / shortest) / log_range if log_range > 0 else 0.0
        return math.cos(math.pi * zoom) * self.fd_min_m / fd_m


@dataclass(frozen=True)
class ThinLens(SimulatedLens):
    """The paper's simulated lens.

    shortest_mm, longest_mm  CFL between which the distortion runs from barrel to pincushion
    k1_min                   at the shortest
    """

    camera: Camera
    breathing: Breathing
    shortest_mm: float
    longest_mm: float
    k1_min: float
    pp_offset_px: tuple[float, float]

    def state(self, lfl_mm: float, fd_m: float) -> LensState:
        cfl = self.breathing.cfl_mm(lfl_mm, fd_m)
        focal_px = 1e3 * cfl / self.camera.pixel_um
        shortest, longest = self.shortest_mm, self.longest_mm
        position = (cfl - shortest) / (longest - shortest) if longest > shortest else 0.0
        k1 = (1 - 2 * position) * self.k1_min * (cfl / shortest) ** 2
        cx, cy = _from_centre(self.camera, self.pp_offset_px)
        return LensState(Intrinsics(focal_px, focal_px, cx, cy, k1=k1), lens_to_object_m(cfl, fd_m))


@dataclass(frozen=True)
class ZoomLens(SimulatedLens):
    """A zoom of thin groups on a camera.

    breathing     in place of the groups' own, if any
    pp_offset_px  in place of the groups' own, if any
    """

    camera: Camera
    lens: Lens
    design: ZoomDesign
    breathing: Breathing | None = None
    pp_offset_px: tuple[float, float] | None = None

    def state(self, lfl_mm: float, fd_m: float) -> LensState:
        view = self.design.view(lfl_mm, fd_m)
        cfl_mm, depth_m = view.cfl_mm, fd_m - 1e-3 * view.pupil_mm
        if self.breathing is not None:
            cfl_mm = self.breathing.cfl_mm(lfl_mm, fd_m)
            depth_m = lens_to_object_m(cfl_mm, fd_m)
        pitch_mm = tuple(1e-3 * pitch for pitch in self.camera.pitch_um)
        fx, fy = cfl_mm / pitch_mm[0], cfl_mm / pitch_mm[1]
        k1, k2 = self._distortion(cfl_mm, fd_m)
        wander = [off / pitch for off, pitch in zip(view.principal_mm, pitch_mm, strict=True)]
        offset = self.pp_offset_px
        if offset is None:
            axis = [off / pitch for off, pitch in zip(SENSOR_OFFSET_MM, pitch_mm, strict=True)]
            offset = axis[0] + wander[0], axis[1] + wander[1]
        cx, cy = _from_centre(self.camera, offset)
        p1, p2 = k1 * wander[1] / fy, k1 * wander[0] / fx
        return LensState(Intrinsics(fx, fy, cx, cy, k1, k2, p1, p2), depth_m)

    def _distortion(self, cfl_mm: float, fd_m: float) -> tuple[float, float]:
        """k1 and k2."""
        lens, diagonal_mm = self.lens, math.hypot(*self.camera.sensor_mm) / 2
        corner = lens.synthetic_k1_min * (diagonal_mm / lens.lfl_min_mm) ** 2
        zoom = (1 - TELE) * (lens.lfl_min_mm / cfl_mm) ** 2 + TELE
        corner *= zoom + NEAR * lens.fd_min_m / fd_m
        radius2 = (diagonal_mm / cfl_mm) ** 2
        return corner / radius2, SECOND * corner / radius2**2


def simulated_lens(plan: Plan, options: LensOptions | None = None) -> SimulatedLens:
    """The lens of a plan on the plan's camera."""
    options = LensOptions() if options is None else options
    model = options.model or plan.lens.synthetic_focusing
    # The lens is the same whichever of its settings are planned.
    ends = float(plan.lens.lfl_min_mm), float(plan.lens.lfl_max_mm)
    nearest = float(plan.lens.fd_min_m)
    if model == "thin":
        breathing = Breathing(options.breathing or 0.0, ends, nearest)
        cfl_mm = [breathing.cfl_mm(cell.lfl_mm, cell.fd_m) for cell in plan.cells]
        k1_min, offset = plan.lens.synthetic_k1_min, options.pp_offset_px or (0.0, 0.0)
        return ThinLens(plan.camera, breathing, min(cfl_mm), max(cfl_mm), k1_min, offset)
    given = None if options.breathing is None else Breathing(options.breathing, ends, nearest)
    design = design_zoom(plan.lens, model)
    return ZoomLens(plan.camera, plan.lens, design, given, options.pp_offset_px)


def _from_centre(camera: Camera, offset_px: tuple[float, float]) -> tuple[float, float]:
    centre = image_centre(camera.image_size)
    return centre[0] + offset_px[0], centre[1] + offset_px[1]


def turned_rings(plan: Plan, motion: str, n_frames: int, rng: np.random.Generator) -> LensMetadata:
    """LFL and FD in the frames of a clip in which one of ``MOTIONS`` is made.

    Zooming goes from one end of the plan's LFL to the other, evenly in its logarithm, focusing
    from one end of its FD to the other, evenly in 1 / FD; when both are moved, the focus goes
    there and back. They start and stop gently. A ring that is not turned is in its middle.
    """
    if motion not in MOTIONS:
        raise InputError(f"there is no motion {motion!r}; known: {', '.join(MOTIONS)}.")
    time = np.linspace(0, 1, n_frames) if n_frames > 1 else np.zeros(1)
    backwards = rng.uniform(size=2) < 0.5
    zoom, focus = (
        0.5 - 0.5 * np.cos(math.pi * turns * time + math.pi * start)
        for turns, start in zip((1, 2 if motion == "both" else 1), backwards, strict=True)
    )
    middle = np.full(n_frames, 0.5)
    zoom = zoom if motion in ("zoom", "both") else middle
    focus = focus if motion in ("focus", "both") else middle
    lfl_mm = np.exp(_between(np.log(plan.lfl_mm), zoom))
    fd_m = 1 / _between(1 / np.array(plan.fd_m), focus)
    # Rounding must not take the ends beyond the plan, where a table has no answer.
    return LensMetadata(
        np.arange(n_frames),
        np.clip(lfl_mm, plan.lfl_mm[0], plan.lfl_mm[-1]),
        np.clip(fd_m, plan.fd_m[0], plan.fd_m[-1]),
    )


def _between(ends: ArrayLike, share: FloatArray) -> FloatArray:
    """Values at shares (n,) of the way from the first to the last of ``ends``."""
    first, last = np.asarray(ends)[[0, -1]]
    return np.asarray((1 - share) * first + share * last)


def with_fd_jitter(plan: Plan, share: float, seed: int) -> Plan:
    """The plan as it is carried out: a focus ring cannot be set exactly.

    Focus distances are off by a relative standard deviation of ``share``, no nearer than the
    lens can focus; a cell's is the same whatever other cells there are.
    """
    cells = []
    for cell in plan.cells:
        rng = np.random.default_rng([seed, cell.zoom_index, cell.focus_index, 1])
        fd_m = cell.fd_m * math.exp(share * rng.standard_normal())
        cells.append(replace(cell, fd_m=max(fd_m, plan.lens.fd_min_m)))
    return replace(plan, cells=tuple(cells))
