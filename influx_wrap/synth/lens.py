"""The simulated lens: true intrinsics at every setting of a plan.

A thin lens with the paper's synthetic distortion: the visual factor k1 / CFL^2 runs
linearly from its barrel value at the shortest CFL to the opposite value at the
longest, so that the picture changes smoothly from barrel to pincushion. Real lenses
breathe, that is, their CFL departs from the thin lens; ``breathing`` adds that.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from influx_wrap.model.experiment import Cell, Plan
from influx_wrap.model.intrinsics import Intrinsics, image_centre


def true_intrinsics(
    plan: Plan, *, breathing: float = 0.0, pp_offset_px: tuple[float, float] = (0.0, 0.0)
) -> dict[str, Intrinsics]:
    """True intrinsics by cell name.

    ``breathing`` is the largest relative departure of CFL from the thin lens,
    ``pp_offset_px`` the principal point's distance from the image centre.
    """
    cfl_mm = {
        cell.name: cell.cfl_mm * (1 + breathing * _breathing_shape(plan, cell))
        for cell in plan.cells
    }
    shortest, longest = min(cfl_mm.values()), max(cfl_mm.values())
    centre = image_centre(plan.camera.image_size)
    cx, cy = centre[0] + pp_offset_px[0], centre[1] + pp_offset_px[1]
    intrinsics = {}
    for name, cfl in cfl_mm.items():
        focal_px = 1e3 * cfl / plan.camera.pixel_um
        position = (cfl - shortest) / (longest - shortest) if longest > shortest else 0.0
        k1 = (1 - 2 * position) * plan.lens.synthetic_k1_min * (cfl / shortest) ** 2
        intrinsics[name] = Intrinsics(focal_px, focal_px, cx, cy, k1=k1)
    return intrinsics


def _breathing_shape(plan: Plan, cell: Cell) -> float:
    """In [-1, 1]: half a cosine over the log zoom range, fading with disparity.

    1 at the shortest LFL and -1 at the longest at nearest focus, 0 at infinity.
    """
    shortest, longest = plan.lfl_mm[0], plan.lfl_mm[-1]
    log_range = math.log(longest / shortest)
    zoom = math.log(cell.lfl_mm / shortest) / log_range if log_range > 0 else 0.0
    return math.cos(math.pi * zoom) * plan.fd_m[0] / cell.fd_m


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
