"""Boards that nobody named, and what is said when another one was."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.charuco import charuco_board
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.target import AprilGrid, BoardTarget, Charuco, Checkerboard, CircleGrid
from influx_wrap.observe.explain import other_board, what_is_there
from influx_wrap.observe.pictures import detect
from influx_wrap.observe.recognise import recognise, stray_markers, with_all_rows
from influx_wrap.synth.render import RenderOptions, ray_grid, render_board
from tests.observe import test_circles

SIZE = (800, 600)
CAMERA = Intrinsics(900.0, 900.0, 403.0, 296.0, -0.08, 0.03, 5e-4, -3e-4)
GRID = AprilGrid(6, 4, 0.06, 0.3)
CHECKERBOARD = Checkerboard(8, 5, 0.05, 0.05)
CHARUCO = charuco_board(7, 5, 0.06, 0.045, "DICT_5X5_50")


def pictures(target: BoardTarget, at: tuple[float, float] = (0.0, 0.0)) -> list[np.ndarray]:
    """Three pictures of a board, held in different ways."""
    rng = np.random.default_rng(0)
    made = []
    for tilt, roll in (((0.2, 0.1), 0.2), ((-0.3, 0.4), 1.8), ((0.5, -0.1), 3.0)):
        in_plane = cv2.Rodrigues(np.array([0.0, 0.0, roll]))[0]
        rotation = np.diag([1.0, -1.0, -1.0]) @ cv2.Rodrigues(np.array([*tilt, 0.0]))[0] @ in_plane
        centre: FloatArray = target.points.mean(axis=0)
        translation = np.array([*at, 0.85]) - rotation @ centre
        options = RenderOptions(blur_px=0.7, noise=2)
        rays = ray_grid(CAMERA, SIZE)
        made.append(render_board(rays, target, rotation, translation, options, rng))
    return made


@pytest.mark.parametrize(
    "grid",
    [
        GRID,
        replace(GRID, border_cells=1),
        AprilGrid(5, 6, 0.05, 0.25),
        AprilGrid(6, 5, 0.05, 0.4, border_cells=1),
    ],
)
def test_an_aprilgrid(grid: AprilGrid) -> None:
    seen = recognise(pictures(grid), grid.tag_size_m)
    assert seen is not None
    assert seen.target == grid
    assert seen.ids == tuple(range(grid.tag_rows * grid.tag_cols))
    assert f"{grid.tag_rows} rows and {grid.tag_cols} columns of tags" in seen.sentence


@pytest.mark.parametrize(
    "board",
    [
        CHARUCO,
        charuco_board(6, 6, 0.06, 0.04, "DICT_4X4_50"),
        charuco_board(7, 4, 0.06, 0.045, "DICT_6X6_50", legacy=True),
        charuco_board(5, 6, 0.06, 0.045, "DICT_APRILTAG_36h11"),
    ],
)
def test_a_charuco_board(board: Charuco) -> None:
    seen = recognise(pictures(board), board.square_size_m)
    assert seen is not None
    assert isinstance(seen.target, Charuco)
    ratio = seen.target.marker_size_m / board.marker_size_m
    assert ratio == pytest.approx(1, abs=0.03)
    assert replace(seen.target, marker_size_m=board.marker_size_m) == board


@pytest.mark.parametrize("size", [(8, 5), (9, 6), (5, 4), (7, 7)])
def test_a_checkerboard(size: tuple[int, int]) -> None:
    board = Checkerboard(*size, 0.05, 0.05)
    seen = recognise(pictures(board), 0.05)
    assert seen is not None
    assert seen.target == board
    assert seen.sentence == f"a checkerboard of {size[0]} x {size[1]} inner corners"


@pytest.mark.parametrize("grid", [test_circles.SYMMETRIC, test_circles.ASYMMETRIC])
def test_a_circle_grid(grid: CircleGrid) -> None:
    seen = recognise([test_circles.picture(grid, (0.3, 0.1))[0]], grid.spacing_m)
    assert seen is not None
    assert seen.target == grid


def test_no_board() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (240, 320), dtype=np.uint8)
    grey = np.full((240, 320), 128, np.uint8)
    assert recognise([noise, grey, cv2.GaussianBlur(noise, (0, 0), 2)]) is None
    assert recognise([]) is None
    assert "can be made out" in what_is_there([grey], GRID)


@pytest.mark.parametrize(
    ("shown", "told", "said"),
    [
        (GRID, AprilGrid(4, 6, 0.06, 0.3), "4 rows and 6 columns of tags"),
        (GRID, AprilGrid(4, 6, 0.06, 0.3), "Rows and columns are exchanged"),
        (GRID, AprilGrid(6, 4, 0.06, 0.2), "gaps of 0.3 tag widths"),
        (GRID, AprilGrid(5, 4, 0.06, 0.3), "ids 0 to 23 were read"),
        (replace(GRID, border_cells=1), GRID, "Write tagBorder: 1"),
        (GRID, CHECKERBOARD, "the target is a checkerboard of 8 x 5 inner corners"),
        (CHECKERBOARD, Checkerboard(9, 6, 0.05, 0.05), "not the squares"),
        (CHECKERBOARD, Checkerboard(6, 6, 0.05, 0.05), "the target says 6 x 6"),
        (CHARUCO, charuco_board(5, 7, 0.06, 0.045, "5X5_50"), "swap squareCols and squareRows"),
        (CHARUCO, charuco_board(7, 5, 0.06, 0.045, "4X4_50"), "Correct the dictionary"),
    ],
)
def test_what_is_there_instead(shown: BoardTarget, told: BoardTarget, said: str) -> None:
    there = what_is_there(pictures(shown), told)
    assert said in there
    assert other_board(pictures(shown), told) == there


def test_the_right_board_is_no_other() -> None:
    for target in (GRID, CHECKERBOARD, CHARUCO, Checkerboard(5, 8, 0.05, 0.05)):
        shown = CHECKERBOARD if isinstance(target, Checkerboard) else target
        assert other_board(pictures(shown), target) is None
        assert "as the target says" in what_is_there(pictures(shown), target)


def test_a_smaller_checkerboard_that_was_found_is_part_of_a_larger_one() -> None:
    shown, smaller = pictures(CHECKERBOARD), Checkerboard(7, 5, 0.05, 0.05)
    said = other_board(shown, smaller, is_seen_whole=True)
    assert said is not None
    assert "8 x 5 inner corners; the target says 7 x 5" in said
    assert other_board(shown, Checkerboard(9, 6, 0.05, 0.05), is_seen_whole=True) is None


def test_rows_that_are_in_few_pictures_only() -> None:
    taller = AprilGrid(6, 5, 0.06, 0.3)
    found = recognise(pictures(GRID))
    assert found is not None
    assert with_all_rows(found, pictures(GRID)) == found
    whole = with_all_rows(found, pictures(taller, at=(0.0, 0.05)))
    assert (whole.target.tag_rows, whole.ids[-1]) == (5, 29)  # type: ignore[union-attr]
    assert "5 rows and 6 columns" in whole.sentence
    board = recognise(pictures(CHECKERBOARD))
    assert board is not None
    assert with_all_rows(board, pictures(taller)) is board


def test_a_board_that_is_not_found_is_named() -> None:
    with pytest.raises(InputError, match=r"in none of the 3 frames\. They show a checkerboard of"):
        detect(pictures(CHECKERBOARD), Checkerboard(7, 6, 0.05, 0.05), jobs=1)


def test_markers_on_no_board_are_named_and_are_no_checkerboard() -> None:
    markers = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_6X6_250)
    board = cv2.aruco.GridBoard((5, 4), 0.04, 0.006, markers)
    flat = board.generateImage((640, 520), marginSize=20)
    corners = np.array([[0, 0], [640, 0], [640, 520], [0, 520]], dtype=np.float32)
    held = np.array([[120, 60], [700, 110], [660, 540], [90, 500]], dtype=np.float32)
    turn = cv2.getPerspectiveTransform(corners, held)
    shown = cv2.warpPerspective(flat, turn, SIZE, borderValue=200, flags=cv2.INTER_AREA)
    picture = cv2.GaussianBlur(shown, (0, 0), 0.7)
    assert recognise([picture]) is None
    assert stray_markers([picture]) == "20 markers of DICT_6X6_50 (ids 0 to 19)"
    said = what_is_there([picture], CHECKERBOARD)
    assert said.startswith("They show 20 markers of DICT_6X6_50 (ids 0 to 19), but no board that")
    for known in (GRID, CHARUCO):
        assert recognise(pictures(known)) is not None
    assert stray_markers(pictures(CHECKERBOARD)) is None
