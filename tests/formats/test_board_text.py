"""Boards in a few characters."""

import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.board_text import parse_board
from influx_wrap.formats.charuco import charuco_board
from influx_wrap.model.target import AprilGrid, BoardTarget, Checkerboard, CircleGrid


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("9x6@25mm", Checkerboard(9, 6, 0.025, 0.025)),
        ("9X6 @ 2.5 cm", Checkerboard(9, 6, 0.025, 0.025)),
        ("checkerboard:9x6@1in", Checkerboard(9, 6, 0.0254, 0.0254)),
        ("charuco:8x6@30mm,22.5mm,5X5_100", charuco_board(8, 6, 0.03, 0.0225, "DICT_5X5_100")),
        (
            "charuco:7x4@4cm,APRILTAG_36h11,legacy",
            charuco_board(7, 4, 0.04, 0.03, "APRILTAG_36h11", legacy=True),
        ),
        ("circles:8x6@30mm", CircleGrid(8, 6, 0.03)),
        ("circles:4x11@20mm,asymmetric", CircleGrid(4, 11, 0.02, asymmetric=True)),
        ("aprilgrid:6x5@0.088m,0.25", AprilGrid(6, 5, 0.088, 0.25)),
        ("aprilgrid:6x5@88mm,border1", AprilGrid(6, 5, 0.088, 0.3, border_cells=1)),
    ],
)
def test_boards(text: str, target: BoardTarget) -> None:
    board = parse_board(text)
    assert board.target == target
    assert board.has_size


def test_the_size_may_be_left_out() -> None:
    board = parse_board("9x6")
    assert (board.target, board.has_size) == (Checkerboard(9, 6, 1.0, 1.0), False)
    assert parse_board("aprilgrid:6x6,0.25").target == AprilGrid(6, 6, 1.0, 0.25)
    assert parse_board("charuco:8x6,4X4_50").target == charuco_board(8, 6, 1, 0.75, "4X4_50")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("9*6", "describes no board: write 9x6@25mm"),
        ("", "describes no board"),
        ("9x6@25", "'25' is no length; write 25mm"),
        ("9x6@25px", "'25px' is no length"),
        ("9x6@0mm", "'0mm' is no length"),
        ("9x6@25mm,legacy", "legacy is not understood"),
        ("dots:9x6@25mm", "dots is no kind of board; there are checkerboard, charuco"),
        ("1x6@25mm", "at least 2 x 2 inner corners"),
        ("charuco:8x6@30mm", "needs the dictionary of its markers"),
        ("charuco:8x6@30mm,40mm,4X4_50", "must be smaller than its squares"),
        ("charuco:8x6@30mm,4X5_50", "no marker dictionary '4X5_50'"),
        ("9999x9999@1mm", "at most 100000 points"),
        (f"{9 * 10**30}x6@1mm", "describes no board"),
    ],
)
def test_mistakes(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_board(text)
    assert problem in str(caught.value)
