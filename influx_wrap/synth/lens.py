"""The simulated lens: true intrinsics at every setting, in a plan or between its cells.

A thin lens with the paper's synthetic distortion: the visual factor k1 / CFL^2 runs
linearly from its barrel value at the shortest CFL to the opposite value at the
longest, so that the picture changes smoothly from barrel to pincushion. Real lenses
breathe, that is, their CFL departs from the thin lens; ``breathing`` adds that.

Shortest and longest are those of the plan, whichever setting is asked for, so that a table
calibrated from the plan's cells and a clip that zooms between them are of one lens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.experiment import Plan
from influx_wrap.model.hardware import Camera
from influx_wrap.model.intrinsics import Intrinsics, image_centre
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.model.optics import thin_lens_cfl_mm

MOTIONS = ("zoom", "focus", "both", "still")


@dataclass(frozen=True)
class SimulatedLens:
    """A lens on a camera: a smooth function of LFL and FD.

    shortest_mm, longest_mm  CFL between which the distortion runs from barrel to pincushion
    k1_min                   at the shortest
    lfl_range_mm, fd_min_m   of the plan, for the shape of the breathing
    breathing                largest relative departure of CFL from the thin lens
    pp_offset_px             principal point's distance from the image centre
    """

    camera: Camera
    shortest_mm: float
    longest_mm: float
    k1_min: float
    lfl_range_mm: tuple[float, float]
    fd_min_m: float
    breathing: float
    pp_offset_px: tuple[float, float]

    def intrinsics(self, lfl_mm: float, fd_m: float) -> Intrinsics:
        """The true intrinsics at a setting; ``fd_m`` may be infinite."""
        cfl = self._cfl_mm(lfl_mm, fd_m)
        focal_px = 1e3 * cfl / self.camera.pixel_um
        shortest, longest = self.shortest_mm, self.longest_mm
        position = (cfl - shortest) / (longest - shortest) if longest > shortest else 0.0
        k1 = (1 - 2 * position) * self.k1_min * (cfl / shortest) ** 2
        centre = image_centre(self.camera.image_size)
        cx, cy = centre[0] + self.pp_offset_px[0], centre[1] + self.pp_offset_px[1]
        return Intrinsics(focal_px, focal_px, cx, cy, k1=k1)

    def _cfl_mm(self, lfl_mm: float, fd_m: float) -> float:
        return thin_lens_cfl_mm(lfl_mm, fd_m) * (1 + self.breathing * self._shape(lfl_mm, fd_m))

    def _shape(self, lfl_mm: float, fd_m: float) -> float:
        """In [-1, 1]: half a cosine over the log zoom range, fading with disparity.

        1 at the shortest LFL and -1 at the longest at nearest focus, 0 at infinity.
        """
        shortest, longest = self.lfl_range_mm
        log_range = math.log(longest / shortest)
        zoom = math.log(lfl_mm / shortest) / log_range if log_range > 0 else 0.0
        return math.cos(math.pi * zoom) * self.fd_min_m / fd_m


def simulated_lens(
    plan: Plan, *, breathing: float = 0.0, pp_offset_px: tuple[float, float] = (0.0, 0.0)
) -> SimulatedLens:
    """The lens of a plan on the plan's camera."""
    if abs(breathing) >= 1:
        raise InputError(f"breathing is a share of the focal length, 0.03 say, not {breathing:g}.")
    lens = SimulatedLens(
        plan.camera,
        math.nan,
        math.nan,
        plan.lens.synthetic_k1_min,
        (plan.lfl_mm[0], plan.lfl_mm[-1]),
        plan.fd_m[0],
        breathing,
        pp_offset_px,
    )
    cfl_mm = [lens._cfl_mm(cell.lfl_mm, cell.fd_m) for cell in plan.cells]
    return replace(lens, shortest_mm=min(cfl_mm), longest_mm=max(cfl_mm))


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
