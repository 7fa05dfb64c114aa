"""``board`` writes a sheet to print and its description beside it."""

from pathlib import Path

import pytest

from influx_wrap.formats.charuco import charuco_board
from influx_wrap.formats.kalibr import read_target
from influx_wrap.model.target import AprilGrid, Checkerboard
from tests.cli.conftest import Invoke, assert_mistake

MAGIC = {"pdf": b"%PDF-", "svg": b"<?xml", "png": b"\x89PNG"}


@pytest.mark.parametrize("suffix", MAGIC)
def test_catalogue_board(invoke: Invoke, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"board.{suffix}"
    result = invoke("board", "100x75", "--out", out)
    assert result.exit_code == 0, result.output
    assert out.read_bytes().startswith(MAGIC[suffix])
    assert read_target(tmp_path / "target.yaml") == AprilGrid(11, 8, 0.006, 0.3)
    assert "100 x 75 mm: AprilGrid 8 x 11" in result.output
    assert f"written: {tmp_path / 'target.yaml'}" in result.output
    assert len(list(tmp_path.iterdir())) == 2


def test_any_size(invoke: Invoke, tmp_path: Path) -> None:
    out, target = tmp_path / "a4.svg", tmp_path / "a4.yaml"
    grid = ("--rows", 5, "--cols", "7", "--tag-size-mm", 25, "--spacing", 0.25)
    result = invoke("board", "297x210.5", *grid, "--out", out, "--target", target)
    assert result.exit_code == 0, result.output
    assert read_target(target) == AprilGrid(7, 5, 0.025, 0.25)
    assert 'height="210.5mm"' in out.read_text()
    usual = invoke("board", "1000x750", "--out", tmp_path / "large.svg")
    assert usual.exit_code == 0, usual.output
    assert read_target(tmp_path / "target.yaml") == AprilGrid(11, 8, 0.06, 0.3)


def test_part_of_a_catalogue_board_replaced(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "lab.yaml").write_text(
        "{kind: board, name: lab, width_mm: 500, height_mm: 400, tag_rows: 6, tag_cols: 8,"
        " tag_size_mm: 40, tag_spacing: 0.25}"
    )
    out = tmp_path / "lab.svg"
    result = invoke("--catalogue", tmp_path / "mine", "board", "lab", "--rows", 4, "--out", out)
    assert result.exit_code == 0, result.output
    assert read_target(tmp_path / "target.yaml") == AprilGrid(8, 4, 0.04, 0.25)


def test_checkerboard(invoke: Invoke, tmp_path: Path) -> None:
    """Squares on the command line, the corners between them in Kalibr's file."""
    result = invoke("board", "800x600", "--checkerboard", "--out", tmp_path / "checker.pdf")
    assert result.exit_code == 0, result.output
    assert read_target(tmp_path / "target.yaml") == Checkerboard(10, 7, 0.06, 0.06)
    assert "upside down" not in result.output
    even = ("--rows", 6, "--cols", 8, "--square-mm", 20, "--target", tmp_path / "even.yaml")
    result = invoke("board", "297x210", "--checkerboard", *even, "--out", tmp_path / "even.pdf")
    assert result.exit_code == 0, result.output
    assert read_target(tmp_path / "even.yaml") == Checkerboard(7, 5, 0.02, 0.02)
    assert "the same upside down" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("800x600", "--rows", 20, "--cols", 30), "587"),
        (("600x800",), "larger than the sheet"),
        (("800x600", "--tag-size-mm", 60), "larger than the sheet"),
        (("800",), "such as 800x600"),
        (("0x600",), "such as 800x600"),
        (("1" * 400 + "x600",), "such as 800x600"),
        (("800x600", "--spacing", "nan"), "not a finite number"),
        (("800x600", "--dpi", 300), "--dpi is for a PNG"),
        (("800x600", "--square-mm", 30), "--square-mm means nothing"),
        (("800x600", "--checkerboard", "--spacing", 0.2), "--spacing means nothing"),
        (("800x600", "--checkerboard", "--rows", 2), "2 x 2 inner corners"),
        (("9000x6000",), "write an SVG instead"),
    ],
)
def test_mistakes(
    invoke: Invoke, tmp_path: Path, arguments: tuple[object, ...], words: str
) -> None:
    assert_mistake(invoke("board", *arguments, "--out", tmp_path / "board.pdf"), words)
    assert list(tmp_path.iterdir()) == []


def test_files_that_cannot_be_written(invoke: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "board.png"
    assert_mistake(invoke("board", "800x600", "--dpi", 2400, "--out", out), "million pixels")
    assert_mistake(invoke("board", "100x75", "--out", tmp_path / "board.doc"), ".pdf, .svg or")
    assert_mistake(invoke("board", "100x75", "--out", out, "--target", out), "give two files")
    missing = tmp_path / "missing" / "board.svg"
    assert_mistake(invoke("board", "100x75", "--out", missing), f"{missing} cannot be written")
    assert list(tmp_path.iterdir()) == []


def test_another_boards_target_is_kept(invoke: Invoke, tmp_path: Path) -> None:
    large, small = tmp_path / "large.svg", tmp_path / "small.svg"
    for _ in range(2):
        assert invoke("board", "800x600", "--out", large).exit_code == 0
    assert_mistake(invoke("board", "400x300", "--out", small), "another target", "--target")
    assert read_target(tmp_path / "target.yaml") == AprilGrid(11, 8, 0.048, 0.3)
    assert not small.exists()


@pytest.mark.parametrize("suffix", MAGIC)
def test_charuco(invoke: Invoke, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"board.{suffix}"
    grid = ("--charuco", "--rows", 5, "--cols", 8, "--square-mm", 30, "--dictionary", "4x4_50")
    result = invoke("board", "297x210", *grid, "--out", out)
    assert result.exit_code == 0, result.output
    assert out.read_bytes().startswith(MAGIC[suffix])
    target = read_target(tmp_path / "target.yaml")
    assert target == charuco_board(8, 5, 0.03, 0.0225, "DICT_4X4_50")
    assert "ChArUco 5 x 8, squares 30 mm, markers 22.5 mm of DICT_4X4_50" in result.output


def test_a_border_of_one_cell(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("board", "100x75", "--border", 1, "--out", tmp_path / "board.svg")
    assert result.exit_code == 0, result.output
    assert read_target(tmp_path / "target.yaml") == AprilGrid(11, 8, 0.006, 0.3, border_cells=1)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--charuco", "--checkerboard"), "two kinds of board"),
        (("--charuco", "--spacing", 0.2), "--spacing means nothing for --charuco"),
        (("--dictionary", "4X4_50"), "--dictionary means nothing for a board of tags"),
        (("--charuco", "--dictionary", "3X3_7"), "no marker dictionary '3X3_7'"),
        (("--charuco", "--square-mm", 20, "--marker-mm", 20), "must be smaller than its squares"),
        (("--border", 3), "1 or 2 cells, not 3"),
    ],
)
def test_mistakes_with_kinds_of_board(
    invoke: Invoke, tmp_path: Path, options: tuple[object, ...], problem: str
) -> None:
    assert_mistake(invoke("board", "297x210", *options, "--out", tmp_path / "b.svg"), problem)
