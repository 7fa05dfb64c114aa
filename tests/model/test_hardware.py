"""Cameras, lenses, boards and plans as they are described."""

import math

import pytest

from influx_wrap.errors import InputError
from influx_wrap.model.experiment import Cell, Plan
from influx_wrap.model.hardware import Board, Camera, Lens
from influx_wrap.model.target import AprilGrid

CAMERA = Camera("c", 28.25, 18.17, 3424, 2202)
LENS = Lens("l", 17, 120, 0.85, 1.5)


def test_pixel_pitch_is_along_the_width() -> None:
    assert CAMERA.pixel_um == pytest.approx(28250 / 3424)
    assert CAMERA.image_size == (3424, 2202)
    assert CAMERA.sensor_mm == (28.25, 18.17)


def test_numbers_must_be_positive() -> None:
    with pytest.raises(InputError, match="camera c: sensor_height_mm"):
        Camera("c", 28.25, 0, 3424, 2202)
    with pytest.raises(InputError, match="lens l: fd_min_m"):
        Lens("l", 17, 120, math.nan, 1.5)
    with pytest.raises(InputError, match="board b: width_mm"):
        Board("b", -1, 75, AprilGrid(11, 8, 0.006, 0.3))


def test_ranges_must_be_in_order() -> None:
    with pytest.raises(InputError, match="lfl_max_mm"):
        Lens("l", 120, 17, 0.85, 1.5)
    with pytest.raises(InputError, match="fd_lower_m"):
        Lens("l", 17, 120, 0.85, 0.5)


def test_cells_are_found_by_name() -> None:
    cell = Cell(0, 1, 17, 2.0, None)
    plan = Plan(LENS, CAMERA, (17,), (1.5, 2.0), (Cell(0, 0, 17, 1.5, None), cell))
    assert plan.cell("z0f1") is cell
    assert cell.target_name == "drone"
    with pytest.raises(InputError, match="z0f0 to z0f1"):
        plan.cell("z3f3")
