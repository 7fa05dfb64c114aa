"""A target's description against corners that were drawn with another one."""

from dataclasses import replace

import numpy as np
import pytest

from influx_wrap.calibrate.layout import check_target
from influx_wrap.formats.charuco import charuco_board
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics, project
from influx_wrap.model.observations import Observations
from influx_wrap.model.pose import rotation_matrix
from influx_wrap.model.target import AprilGrid, Checkerboard, CircleGrid, Target

GRID = AprilGrid(tag_cols=7, tag_rows=5, tag_size_m=0.088, tag_spacing=0.3)
BOARD = Checkerboard(cols=9, rows=6, col_spacing_m=0.03, row_spacing_m=0.03)
CHARUCO = charuco_board(10, 7, 0.03, 0.02, "DICT_5X5_100")
CIRCLES, SHIFTED = CircleGrid(9, 6, 0.03), CircleGrid(4, 11, 0.02, asymmetric=True)
SIZE = (1280, 720)


def pictures(target: Target, k1: float = -0.25) -> FloatArray:
    """Corners (6, T, 2) with noise of 0.1 px, of a lens with strong distortion."""
    rng = np.random.default_rng(1)
    camera = Intrinsics(700.0, 700.0, 645.0, 355.0, k1, 0.03, 0.001, 0.0)
    points = target.points - target.points.mean(axis=0)
    extent = np.ptp(points[:, 0])
    views = []
    for tilt in rng.uniform(-0.5, 0.5, (6, 3)):
        turned = points @ rotation_matrix(tilt * np.array([1, 1, 0.2])).T
        views.append(project(camera, turned + np.array([0, 0, 0.85 * extent]))[0])
    return np.array(views) + 0.1 * rng.standard_normal((6, len(points), 2))


def seen_as(target: Target, uv: FloatArray, valid: np.ndarray | None = None) -> Observations:
    inside = ((uv > 0) & (uv < np.array(SIZE) - 1)).all(axis=-1)
    return Observations(target, uv, inside if valid is None else valid & inside, SIZE)


@pytest.mark.parametrize(
    "target", [GRID, BOARD, AprilGrid(6, 6, 0.021, 0.5), CHARUCO, CIRCLES, SHIFTED]
)
def test_the_right_target_raises_no_suspicion(target: Target) -> None:
    assert check_target(seen_as(target, pictures(target))) == []


@pytest.mark.parametrize("given", [0.25, 0.35, 0.2])
def test_a_wrong_spacing_is_measured(given: float) -> None:
    (suspicion,) = check_target(seen_as(replace(GRID, tag_spacing=given), pictures(GRID)))
    assert suspicion.what == "tagSpacing"
    assert suspicion.seen == pytest.approx(0.3, abs=0.005)
    assert suspicion.given == given
    assert "the pictures say tagSpacing 0.30" in suspicion.sentence
    assert f"the target says {given:g}" in suspicion.sentence


def test_a_spacing_in_metres_is_recognised() -> None:
    typed = replace(GRID, tag_spacing=0.0264)
    (suspicion,) = check_target(seen_as(typed, pictures(GRID)))
    assert "0.0264 looks like the gap in metres" in suspicion.sentence


def test_the_spacing_is_measured_with_tags_missing() -> None:
    rng = np.random.default_rng(2)
    hidden = rng.random((6, 35)) < 0.4
    valid = ~hidden[:, GRID.tag_of_point]
    typed = replace(GRID, tag_spacing=0.25)
    (suspicion,) = check_target(seen_as(typed, pictures(GRID), valid))
    assert suspicion.seen == pytest.approx(0.3, abs=0.005)


def by_tag(drawn: AprilGrid, typed: AprilGrid) -> np.ndarray:
    """(T,) where each point of ``typed`` is among those of ``drawn``: the same corner of the tag
    with the same id."""

    def corners(grid: AprilGrid) -> dict[tuple[int, int, int], int]:
        rows, cols = grid.grid_shape
        at = np.unravel_index(np.arange(rows * cols), (rows, cols))
        keys = np.stack([grid.tag_of_point, at[0] % 2, at[1] % 2], axis=-1).tolist()
        return {(tag, row, col): index for index, (tag, row, col) in enumerate(keys)}

    place = corners(drawn)
    return np.array([place[key] for key in corners(typed)])


def test_exchanged_rows_and_columns_of_tags() -> None:
    typed = AprilGrid(5, 7, GRID.tag_size_m, GRID.tag_spacing)
    uv = pictures(GRID)
    for numbered in (uv[:, by_tag(GRID, typed)], uv):
        (suspicion,) = check_target(seen_as(typed, numbered))
        assert suspicion.what == "tagCols"
        assert (suspicion.seen, suspicion.given) == (7, 5)
        assert "7 columns, the target says 5 (and 7 rows)" in suspicion.sentence
        assert "are rows and columns exchanged?" in suspicion.sentence


def test_exchanged_rows_and_columns_of_squares() -> None:
    typed = Checkerboard(6, 9, 0.03, 0.03)
    (suspicion,) = check_target(seen_as(typed, pictures(BOARD)))
    assert (suspicion.what, suspicion.seen, suspicion.given) == ("targetCols", 9, 6)


def test_exchanged_rows_and_columns_of_a_charuco_board() -> None:
    typed = charuco_board(CHARUCO.rows, CHARUCO.cols, 0.03, 0.02, CHARUCO.dictionary)
    (suspicion,) = check_target(seen_as(typed, pictures(CHARUCO)))
    assert (suspicion.what, suspicion.seen, suspicion.given) == ("squareCols", 10, 7)
    assert "10 columns, the target says 7 (and 10 rows): are rows and" in suspicion.sentence


@pytest.mark.parametrize("grid", [CIRCLES, SHIFTED])
def test_exchanged_rows_and_columns_of_circles(grid: CircleGrid) -> None:
    typed = replace(grid, cols=grid.rows, rows=grid.cols)
    (suspicion,) = check_target(seen_as(typed, pictures(grid)))
    assert (suspicion.what, suspicion.seen, suspicion.given) == ("targetCols", grid.cols, grid.rows)
    assert "are rows and columns exchanged?" in suspicion.sentence


@pytest.mark.parametrize("grid", [CIRCLES, SHIFTED])
def test_the_other_kind_of_circle_grid(grid: CircleGrid) -> None:
    typed = replace(grid, asymmetric=not grid.asymmetric)
    (suspicion,) = check_target(seen_as(typed, pictures(grid)))
    assert (suspicion.what, suspicion.seen, suspicion.given) == (
        "asymmetricGrid",
        grid.asymmetric,
        typed.asymmetric,
    )
    assert f"write asymmetricGrid: {str(grid.asymmetric).lower()}" in suspicion.sentence


def test_a_smaller_picture_than_was_said() -> None:
    uv = pictures(BOARD)
    valid = ((uv > 0) & (uv < np.array(SIZE) - 1)).all(axis=-1)
    (suspicion,) = check_target(Observations(BOARD, uv, valid, (4032, 3024)))
    assert suspicion.what == "image_size"
    assert suspicion.given == 4032
    assert "4032 x 3024" in suspicion.sentence
