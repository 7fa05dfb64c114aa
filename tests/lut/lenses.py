"""Tables of lenses whose every intrinsic is known in closed form."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.lut.smooth.left_out import fit_smooth
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.table import Table
from influx_wrap.plan import make_plan

PIXEL_UM = 8.25


def true_values(lfl_mm: FloatArray, fd_m: FloatArray, breathing: float) -> FloatArray:
    """(q, 8) a thin lens that breathes when focused near, with changing distortion."""
    position = np.log(lfl_mm / 17) / np.log(120 / 17)
    nearness = 0.85 / fd_m
    effective = lfl_mm * (1 + breathing * np.sin(2.1 * position + 0.5) * nearness**0.7)
    fd_mm = 1e3 * fd_m
    focal = (fd_mm - np.sqrt(fd_mm**2 - 4 * fd_mm * effective)) / 2 / (1e-3 * PIXEL_UM)
    return np.column_stack(
        [
            focal,
            focal,
            1711.5 + 5 * np.sin(3 * position) + 2 * nearness,
            1100.5 + 3 * np.cos(2 * position) - 2 * nearness,
            -0.15 * (lfl_mm / 17) ** 2 * (1 - 2 * position) + 0.02 * nearness,
            0.01 * nearness,
            1e-4 * position,
            1e-4 * nearness,
        ]
    )


def breathing_table(
    lens: str, seed: int = 0, *, jitter: float = 0.015, breathing: float = 0.03, noise: float = 1.0
) -> Table:
    """A lens of the catalogue as it would be measured."""
    rng = np.random.default_rng(seed)
    catalogue = load_catalogue()
    camera = catalogue.camera("arri-alexa-mini")
    plan = make_plan(catalogue.lens(lens), camera, catalogue.boards.values())
    cells = [cell for cell in plan.cells if np.isfinite(cell.fd_m)]
    lfl_mm = np.array([cell.lfl_mm for cell in cells])
    fd_m = np.array([cell.fd_m for cell in cells])
    fd_m = fd_m * np.exp(jitter * rng.standard_normal(len(cells)))
    values = true_values(lfl_mm, fd_m, breathing)
    sigma = noise * np.column_stack(
        [1e-4 * values[:, :2], np.tile([1.0, 1.0, 1e-3, 1e-3, 1e-5, 1e-5], (len(cells), 1))]
    )
    return Table(
        lens,
        camera.name,
        camera.image_size,
        (PIXEL_UM, PIXEL_UM),
        tuple(cell.name for cell in cells),
        lfl_mm,
        fd_m,
        values + sigma * rng.standard_normal(values.shape),
        np.eye(8) * (sigma**2)[:, None, :],
        np.array([cell.board is None for cell in cells]),
        np.array([(cell.zoom_index, cell.focus_index) for cell in cells]),
    )


@cache
def fitted_table(lens: str) -> Table:
    """The same, as ``lut build`` leaves it: with the fit of its smooth lens."""
    table = breathing_table(lens)
    return replace(table, smooth=fit_smooth(table))
