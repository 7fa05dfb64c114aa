"""Which target is chosen, against geometry worked out by hand."""

import math

import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.hardware import Board, Camera, Lens
from influx_wrap.model.optics import footprint_m, thin_lens_cfl_mm
from influx_wrap.model.target import AprilGrid
from influx_wrap.plan.grid import choose_board, fits, make_plan, needs_drone

CATALOGUE = load_catalogue()
CAMERA = CATALOGUE.camera("arri-alexa-mini")
BOARDS = tuple(CATALOGUE.boards.values())


def chosen(lfl_mm: float, fd_m: float) -> str:
    board = choose_board(thin_lens_cfl_mm(lfl_mm, fd_m), fd_m, CAMERA, BOARDS)
    return board.name if board else "drone"


@pytest.mark.parametrize(
    ("lfl", "fd", "expected"),
    [
        (24, 2.0, "800x600"),
        (80, 2.7, "400x300"),
        (207, 7.5, "400x300"),
        (17, 13.5, "drone"),
        (250, 1.5, "100x75"),
    ],
)
def test_known_settings(lfl: float, fd: float, expected: str) -> None:
    assert chosen(lfl, fd) == expected


def test_the_near_edge_of_a_tilted_board_decides() -> None:
    camera = Camera("square", 20, 20, 1000, 1000)
    cfl, fd = 100.0, 1.1
    # At 1 m the footprint is 200 mm. Tilted, a square sheet of side a has its near edge
    # at 1000 - a / sqrt(8), where it must still be within the footprint: a <= 200 z / 1000.
    limit = 200 / (1 + 0.2 / math.sqrt(8))
    grid = AprilGrid(1, 1, 0.01, 0.3)
    assert footprint_m(cfl, fd, camera.sensor_mm) == pytest.approx((0.2, 0.2))
    assert fits(Board("in", 0.999 * limit, 0.999 * limit, grid), cfl, fd, camera)
    assert not fits(Board("out", 1.001 * limit, 1.001 * limit, grid), cfl, fd, camera)


def test_a_board_that_reaches_behind_the_camera_does_not_fit() -> None:
    board = Board("huge", 4000, 3000, AprilGrid(11, 8, 0.24, 0.3))
    assert not fits(board, 1.0, 1.0, CAMERA)


def test_the_drone_flies_where_the_ground_is_in_the_way() -> None:
    limit = 2 * 1.44 * 24.0 / 18.17
    assert not needs_drone(24.0, 0.999 * limit, CAMERA)
    assert needs_drone(24.0, 1.001 * limit, CAMERA)
    assert needs_drone(24.0, math.inf, CAMERA)


def test_the_order_of_the_boards_does_not_matter() -> None:
    cfl = thin_lens_cfl_mm(80, 2.7)
    assert choose_board(cfl, 2.7, CAMERA, BOARDS) == choose_board(cfl, 2.7, CAMERA, BOARDS[::-1])


def test_without_boards_nothing_can_be_chosen() -> None:
    with pytest.raises(InputError, match="no board"):
        choose_board(80.0, 2.7, CAMERA, [])


@pytest.mark.parametrize(
    ("lens", "counts"),
    [
        ("canon17", {"100x75": 2, "200x150": 6, "400x300": 14, "800x600": 39, "drone": 19}),
        ("premista80", {"100x75": 4, "200x150": 15, "400x300": 25, "800x600": 40, "drone": 6}),
    ],
)
def test_targets_of_the_whole_plan(lens: str, counts: dict[str, int]) -> None:
    plan = make_plan(CATALOGUE.lens(lens), CAMERA, BOARDS)
    names = [cell.target_name for cell in plan.cells]
    assert {name: names.count(name) for name in counts} == counts
    assert len(names) == sum(counts.values())


def test_cells_run_zoom_by_zoom_and_near_to_far() -> None:
    plan = make_plan(CATALOGUE.lens("canon17"), CAMERA, BOARDS)
    assert [c.name for c in plan.cells] == [f"z{i}f{j}" for i in range(8) for j in range(10)]
    assert [c.fd_m for c in plan.cells[:10]] == list(plan.fd_m)
    assert {c.lfl_mm for c in plan.cells[:10]} == {17}


def test_a_lens_that_cannot_focus_that_near_is_refused() -> None:
    with pytest.raises(InputError, match="cannot focus"):
        make_plan(Lens("l", 100, 300, 1.0, 2.0), CAMERA, BOARDS)
