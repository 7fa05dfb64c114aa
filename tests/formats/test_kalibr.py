"""Kalibr's files: round trips, speed, and every way they can be wrong."""

import logging
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.charuco import charuco_board
from influx_wrap.formats.kalibr import (
    read_observations,
    read_target,
    write_observations,
    write_target,
)
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import (
    AprilGrid,
    Checkerboard,
    CircleGrid,
    PointCloud,
    Target,
    in_kalibr_s_words,
)

SIZE = (640, 480)
SQUARE = Checkerboard(cols=2, rows=2, col_spacing_m=0.1, row_spacing_m=0.1)
COORDS = "".join(f"{view},{100 + 9 * i}.5,{200 + i * i}.25\n" for view in (3, 8) for i in range(4))
SUCCESSES = "".join(f"{view},1\n" for view in (3, 8) for _ in range(4))


def read(
    folder: Path, coords: str = COORDS, successes: str = SUCCESSES, target: Target = SQUARE
) -> Observations:
    (folder / "coords_2d.csv").write_text(coords)
    (folder / "successes.csv").write_text(successes)
    return read_observations(folder / "coords_2d.csv", folder / "successes.csv", target, SIZE)


def replace_line(text: str, number: int, line: str) -> str:
    lines = text.splitlines()
    lines[number - 1] = line
    return "\n".join(lines) + "\n"


def test_aprilgrid_round_trip(tmp_path: Path) -> None:
    target = AprilGrid(tag_cols=11, tag_rows=8, tag_size_m=0.006, tag_spacing=0.3)
    write_target(tmp_path / "t.yaml", target)
    assert read_target(tmp_path / "t.yaml") == target
    assert (tmp_path / "t.yaml").read_text().startswith("target_type: aprilgrid\ntagCols: 11\n")


def test_checkerboard_round_trip(tmp_path: Path) -> None:
    write_target(tmp_path / "t.yaml", SQUARE)
    assert read_target(tmp_path / "t.yaml") == SQUARE


@pytest.mark.parametrize(
    "target",
    [
        AprilGrid(6, 5, 0.088, 0.3, border_cells=1),
        charuco_board(7, 5, 0.04, 0.03, "DICT_5X5_100"),
        charuco_board(5, 8, 0.04, 0.02, "DICT_APRILTAG_36h11", legacy=True),
        CircleGrid(8, 6, 0.03),
        CircleGrid(4, 11, 0.02, asymmetric=True),
    ],
)
def test_other_boards_round_trip(tmp_path: Path, target: Target) -> None:
    write_target(tmp_path / "t.yaml", target)
    assert read_target(tmp_path / "t.yaml") == target
    kalibr = in_kalibr_s_words(target)
    np.testing.assert_array_equal(kalibr.points, target.points)
    write_target(tmp_path / "k.yaml", kalibr)
    text = (tmp_path / "k.yaml").read_text()
    assert "charuco" not in text
    assert "tagBorder" not in text


CHARUCO = "target_type: charuco\nsquareCols: 7\nsquareRows: 5\nsquareSize: 0.04\n"
CIRCLES = "target_type: circlegrid\ntargetCols: 4\ntargetRows: 11\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{CHARUCO}markerSize: 0.05\ndictionary: 4X4_50\n", "must be smaller than its squares"),
        (f"{CHARUCO}markerSize: 0.03\ndictionary: 9X9_50\n", "no marker dictionary '9X9_50'"),
        (
            CHARUCO.replace("7", "40") + "markerSize: 0.03\ndictionary: 4X4_50\n",
            "needs 100 markers, but DICT_4X4_50 has 50",
        ),
        (
            CHARUCO.replace("7", "9" * 30) + "markerSize: 0.03\ndictionary: 4X4_50\n",
            "squareCols must be at most 1000",
        ),
        (
            f"{CHARUCO}markerSize: 0.03\ndictionary: 4X4_50\nlegacyPattern: 2\n",
            "must be true or false, got 2",
        ),
        (f"{CIRCLES}spacingMeters: 0\n", "spacingMeters must be above 0"),
        (f"{CIRCLES}spacingMeters: 0.02\nasymmetricGrid: yes please\n", "must be true or false"),
        (
            "target_type: aprilgrid\ntagCols: 6\ntagRows: 6\ntagSize: 0.1\ntagSpacing: 0.3\n"
            "tagBorder: 3\n",
            "border has 1 or 2 cells, not 3",
        ),
        (
            f"target_type: checkerboard\ntargetCols: {10**30}\ntargetRows: 6\n"
            "colSpacingMeters: 1\nrowSpacingMeters: 1\n",
            "targetCols must be at most 1000",
        ),
    ],
)
def test_faulty_boards(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "t.yaml").write_text(text)
    with pytest.raises(InputError, match=f"t.yaml: .*{problem}"):
        read_target(tmp_path / "t.yaml")


@pytest.mark.parametrize(("sigma", "unit"), [(None, 1.0), (1e-5, 12.3)])
def test_pointcloud_round_trip(tmp_path: Path, sigma: float | None, unit: float) -> None:
    target = PointCloud(np.random.default_rng(0).normal(size=(24, 3)), sigma, unit)
    write_target(tmp_path / "t.yaml", target)
    again = read_target(tmp_path / "t.yaml")
    assert isinstance(again, PointCloud)
    np.testing.assert_array_equal(again.points, target.points)
    assert (again.point_sigma, again.unit_m) == (sigma, unit)


def test_covariances_of_points_round_trip(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    factor = rng.normal(size=(5, 3, 3))
    target = PointCloud(
        rng.normal(size=(5, 3)), point_covariance=factor @ np.swapaxes(factor, 1, 2)
    )
    write_target(tmp_path / "t.yaml", target)
    again = read_target(tmp_path / "t.yaml")
    assert isinstance(again, PointCloud)
    assert again.point_covariance is not None
    np.testing.assert_allclose(again.point_covariance, target.point_covariance, rtol=1e-15)


def test_a_target_as_kalibr_documents_it(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(
        "target_type: 'aprilgrid' #gridtype\ntagCols: 6   #number of apriltags\n"
        "tagRows: 6\ntagSize: 0.088   #size of apriltag, edge to edge [m]\ntagSpacing: 0.3\n"
    )
    assert read_target(path) == AprilGrid(6, 6, 0.088, 0.3)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "target_type: circles\n",
            "one of aprilgrid, .*pointcloud, got 'circles'",
        ),
        ("tagCols: 6\n", "target_type is missing"),
        ("target_type: aprilgrid\ntagCols: 6\ntagRows: 6\ntagSize: 0.1\n", "tagSpacing is missing"),
        (
            "target_type: aprilgrid\ntagCols: 6.5\ntagRows: 6\ntagSize: 0.1\ntagSpacing: 0.3\n",
            "tagCols must be a whole number",
        ),
        (
            "target_type: aprilgrid\ntagCols: 6\ntagRows: 6\ntagSize: 48\ntagSpacing: 0.3\n",
            "tagSize 48 is in metres, and no board has that: for 48 mm write 0.048",
        ),
        (
            "target_type: aprilgrid\ntagCols: 6\ntagRows: 6\ntagSize: 0.04\ntagSpacing: 12\n",
            "tagSpacing 12 would be a gap 12 times as wide as a tag. It is the gap divided by "
            "tagSize, such as 0.3: a gap of 12 mm gives 0.3",
        ),
        (
            f"target_type: aprilgrid\ntagCols: {10**30}\ntagRows: 6\ntagSize: 1\ntagSpacing: 0\n",
            "tagCols must be at most 1000, got 100000",
        ),
        (
            "target_type: aprilgrid\ntagCols: 6\ntagRows: 6\ntagSize: -0.1\ntagSpacing: 0.3\n",
            "tagSize must be above 0",
        ),
        (
            "target_type: aprilgrid\ntagCols: 6\ntagRows: 6\ntagSize: 0.1\ntagSpacing: .nan\n",
            "tagSpacing must be finite",
        ),
        ("target_type: pointcloud\npoints: 3\n", "points must be a list"),
        ("target_type: pointcloud\npoints: [[1, 2]]\n", r"points\[0\] must be a list of 3"),
        ("target_type: pointcloud\npoints: [[1, 2, x]]\n", r"points\[0\]\[2\] must be a number"),
        ("target_type: pointcloud\npoints: [[1, 2, 3]]\n", "at least 4 points"),
        (
            "target_type: pointcloud\npoints: [[1, 2, 3]]\npointsigma: 1\n",
            "pointsigma is not known",
        ),
        ("target_type: pointcloud\npoints: []\nunitMeters: 0\n", "unitMeters must be above 0"),
    ],
)
def test_faulty_targets(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "t.yaml").write_text(text)
    with pytest.raises(InputError, match=rf"t.yaml: {problem}|t.yaml: .*{problem}"):
        read_target(tmp_path / "t.yaml")


def test_missing_targets(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t.yaml does not exist"):
        read_target(tmp_path / "t.yaml")


def test_observations_as_written_by_hand(tmp_path: Path) -> None:
    observations = read(tmp_path, successes=replace_line(SUCCESSES, 6, "8,1"))
    assert observations.view_ids.tolist() == [3, 8]
    assert observations.uv[1, 2].tolist() == [118.5, 204.25]
    assert observations.valid.all()


def test_observations_round_trip(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    grid = AprilGrid(tag_cols=11, tag_rows=8, tag_size_m=0.006, tag_spacing=0.3)
    uv = rng.uniform(0, 479, (5, 352, 2))
    valid = rng.uniform(size=(5, 352)) < 0.9
    uv[~valid] = np.nan
    ids = np.array([4, 17, 1403709000123456789, 2, 0])
    write_observations(
        tmp_path / "c.csv", tmp_path / "s.csv", Observations(grid, uv, valid, SIZE, ids)
    )
    again = read_observations(tmp_path / "c.csv", tmp_path / "s.csv", grid, SIZE)
    np.testing.assert_array_equal(again.view_ids, ids)
    np.testing.assert_array_equal(again.valid, valid)
    assert np.abs(again.uv - uv)[valid].max() < 1e-6
    assert np.isfinite(np.loadtxt(tmp_path / "c.csv", delimiter=",")).all()


def test_writing_leaves_nothing_else_behind(tmp_path: Path) -> None:
    observations = read(tmp_path)
    write_observations(tmp_path / "c.csv", tmp_path / "s.csv", observations)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"coords_2d.csv", "successes.csv", "c.csv", "s.csv"}
    with pytest.raises(InputError, match="cannot be written"):
        write_observations(tmp_path / "no" / "c.csv", tmp_path / "s.csv", observations)


def test_blank_lines_and_foreign_line_ends_do_no_harm(tmp_path: Path) -> None:
    coords = "\ufeff" + COORDS.replace("\n", "\r\n", 3).replace("\r\n", "\r\n\r\n", 1)
    assert read(tmp_path, coords, SUCCESSES + "\n").n_corners == 8


def test_views_without_points_are_left_out_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        observations = read(tmp_path, successes=SUCCESSES.replace("3,1", "3,0"))
    assert observations.view_ids.tolist() == [8]
    assert "1 of 2 views show no point" in caplog.text


def test_views_with_too_few_points_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"coords_2d.csv: view 3 has only 3 points"):
        read(tmp_path, successes=SUCCESSES.replace("3,1", "3,0", 1))


def test_no_view_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"coords_2d.csv: there is no view"):
        read(tmp_path, successes=SUCCESSES.replace(",1", ",0"))


def test_nan_is_allowed_only_where_nothing_was_found(tmp_path: Path) -> None:
    five = PointCloud(np.random.default_rng(2).normal(size=(5, 3)))
    rows = [f"0,{10 + i},{20 + i * i}\n" for i in range(5)]
    rows[2] = "0,nan,inf\n"
    found = ["0,1\n"] * 5
    with pytest.raises(InputError, match=r"coords_2d.csv, line 3: the coordinates are not finite"):
        read(tmp_path, "".join(rows), "".join(found), five)
    found[2] = "0,0\n"
    observations = read(tmp_path, "".join(rows), "".join(found), five)
    assert observations.uv[0, 2].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("3,1.0", r"line 2: 2 values instead of 3 \(observation_id,x,y\)"),
        ("3,1.0,2.0,3.0", "line 2: 4 values instead of 3"),
        ("3,1.0,two", "line 2: y 'two' is not a number"),
        ("3,,2.0", "line 2: x '' is not a number"),
        ("3.5,1.0,2.0", "line 2: observation_id '3.5' is not a whole number"),
        ("3.0,1.0,2.0", "line 2: observation_id '3.0' is not a whole number"),
        ("x,1.0,2.0", "line 2: observation_id 'x' is not a whole number"),
        ("3;1.0;2.0", "line 2: 1 values instead of 3"),
        ("  ", "line 2: 1 values instead of 3"),
        ("3,1_0.0,2.0", "coords_2d.csv"),
        ("4,1.0,2.0", "line 2: observation id 4, but .*successes.csv has 3"),
        ("3,nan,2.0", "line 2: the coordinates are not finite"),
        ("3,1.0,inf", "line 2: the coordinates are not finite"),
        ("3,700.0,2.0", "view 3, point 1: .* lies outside the 640 x 480 image"),
    ],
)
def test_faulty_coordinates(tmp_path: Path, line: str, problem: str) -> None:
    with pytest.raises(InputError, match=rf"coords_2d.csv.*{problem}|{problem}"):
        read(tmp_path, replace_line(COORDS, 2, line))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("8,2", "line 6: a success must be 0 or 1, got 2"),
        ("8,-1", "line 6: a success must be 0 or 1, got -1"),
        ("8,true", "line 6: success 'true' is not a whole number"),
        ("8,0.5", "line 6: success '0.5' is not a whole number"),
        ("8,nan", "line 6: success 'nan' is not a whole number"),
        ("8", "line 6: 1 values instead of 2"),
    ],
)
def test_faulty_successes(tmp_path: Path, line: str, problem: str) -> None:
    with pytest.raises(InputError, match=rf"successes.csv, {problem}"):
        read(tmp_path, successes=replace_line(SUCCESSES, 6, line))


def test_lines_are_counted_with_the_blank_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"successes.csv, line 8: a success"):
        read(tmp_path, successes="\n\n" + replace_line(SUCCESSES, 6, "8,2"))


def test_row_counts_must_agree(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"coords_2d.csv has 8 rows, but .*successes.csv has 4"):
        read(tmp_path, successes=SUCCESSES[: len(SUCCESSES) // 2])


def test_rows_must_fill_blocks(tmp_path: Path) -> None:
    five = PointCloud(np.random.default_rng(2).normal(size=(5, 3)))
    with pytest.raises(InputError, match="size mismatch with the target: 8 rows"):
        read(tmp_path, target=five)


def test_a_block_has_one_id(tmp_path: Path) -> None:
    eight = PointCloud(np.random.default_rng(2).normal(size=(8, 3)))
    with pytest.raises(
        InputError, match=r"coords_2d.csv, line 5: observation id 8 inside the block"
    ):
        read(tmp_path, target=eight)


def test_an_id_has_one_block(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"coords_2d.csv, line 5: observation id 3 has had a block"
    ):
        read(tmp_path, COORDS.replace("8,", "3,"), SUCCESSES.replace("8,", "3,"))


@pytest.mark.parametrize("content", ["", "\n", "\n\n"])
def test_empty_files(tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError, match=r"coords_2d.csv is empty"):
        read(tmp_path, content)
    with pytest.raises(InputError, match=r"successes.csv is empty"):
        read(tmp_path, successes=content)


def test_missing_files_folders_and_pictures(tmp_path: Path) -> None:
    read(tmp_path)
    coords, successes = tmp_path / "coords_2d.csv", tmp_path / "successes.csv"
    with pytest.raises(InputError, match=r"nothing.csv does not exist"):
        read_observations(tmp_path / "nothing.csv", successes, SQUARE, SIZE)
    with pytest.raises(InputError, match="is a folder"):
        read_observations(coords, tmp_path, SQUARE, SIZE)
    coords.write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff\xfe")
    with pytest.raises(InputError, match=r"coords_2d.csv is not a text file"):
        read_observations(coords, successes, SQUARE, SIZE)
