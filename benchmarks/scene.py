"""Scene A: the experiment that speed is measured on.

3424 x 2202 pixels, f = 3000 px, k1 = -0.05, the 800 x 600 mm board (352 corners) at 2 m,
100 views (five orientations at 4 x 5 positions), 0.1 px noise.
"""

from __future__ import annotations

import numpy as np

from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.experiment import Cell
from influx_wrap.model.hardware import Board
from influx_wrap.model.intrinsics import Intrinsics, image_centre
from influx_wrap.model.observations import Observations
from influx_wrap.model.optics import lens_to_object_m
from influx_wrap.model.target import AprilGrid
from influx_wrap.model.truth import Noise
from influx_wrap.synth.experiment import simulate

FOCAL_PX = 3000.0
FD_M = 2.0
VIEWS = 100

CATALOGUE = load_catalogue()
CAMERA = CATALOGUE.camera("arri-alexa-mini")
BOARD = CATALOGUE.board("800x600")
TRUTH = Intrinsics(FOCAL_PX, FOCAL_PX, *image_centre(CAMERA.image_size), k1=-0.05)
DEPTH_M = lens_to_object_m(1e-3 * FOCAL_PX * CAMERA.pixel_um, FD_M)


def scene_a(n_views: int = VIEWS, board: Board = BOARD) -> Observations:
    """Observations of scene A, with another number of views or another pattern if wanted."""
    cfl_mm = 1e-3 * FOCAL_PX * CAMERA.pixel_um
    # That of the thin lens which has this CFL when it is focused at FD.
    lfl_mm = cfl_mm * (1 - cfl_mm / (1e3 * FD_M))
    cell = Cell(0, 0, lfl_mm, FD_M, board)
    uv, valid = [], []
    for seed in range(-(-n_views // VIEWS)):
        rng = np.random.default_rng([seed, 0])
        observations = simulate(cell, CAMERA, TRUTH, Noise(), rng).observations
        uv.append(observations.uv)
        valid.append(observations.valid)
    every = np.concatenate(uv), np.concatenate(valid)
    # Views come orientation by orientation; a regular choice has all of them.
    chosen = np.linspace(0, len(every[0]), n_views, endpoint=False).astype(int)
    return Observations(board.grid, every[0][chosen], every[1][chosen], CAMERA.image_size)


def board_with(tag_cols: int, tag_rows: int) -> Board:
    """A pattern of the same width with more or fewer tags."""
    pitch_m = BOARD.grid.tag_cols * BOARD.grid.tag_size_m / tag_cols
    grid = AprilGrid(tag_cols, tag_rows, pitch_m, BOARD.grid.tag_spacing)
    return Board(f"{tag_cols}x{tag_rows} tags", BOARD.width_mm, BOARD.height_mm, grid)
