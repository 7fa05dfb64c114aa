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


@pytest.mark.parametrize(
    ("options", "page"),
    [
        (("--paper", "A3"), "420 x 297 mm: AprilGrid 8 x 11"),
        (("--paper", "a4"), "297 x 210 mm: AprilGrid 8 x 11"),
        (("A2",), "594 x 420 mm: AprilGrid 8 x 11"),
        (("--paper", "Letter", "--checkerboard"), "279.4 x 215.9 mm: checkerboard 8 x 11"),
        (("--paper", "500x400mm"), "500 x 400 mm: AprilGrid"),
        (("200x150", "--paper", "A4"), "297 x 210 mm: AprilGrid 8 x 11, tag36h11, ids 0-87"),
    ],
)  # fmt: skip
def test_papers(invoke: Invoke, tmp_path: Path, options: tuple[str, ...], page: str) -> None:
    result = invoke("board", *options, "--out", tmp_path / "board.pdf")
    assert result.exit_code == 0, result.output
    assert page in result.stdout
    assert result.stderr == ""


def sizes_mm(pdf: Path) -> list[tuple[float, float]]:
    import pypdfium2

    document = pypdfium2.PdfDocument(pdf)
    return [tuple(round(side * 25.4 / 72, 3) for side in page.get_size()) for page in document]


def test_several_boards_in_one_pdf(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("board", "400x300", "200x150", "A3", "--out", tmp_path / "boards.pdf")
    assert result.exit_code == 0, result.output
    assert sizes_mm(tmp_path / "boards.pdf") == [(400, 300), (200, 150), (420, 297)]
    assert read_target(tmp_path / "400x300.yaml") == AprilGrid(11, 8, 0.024, 0.3)
    assert read_target(tmp_path / "200x150.yaml") == AprilGrid(11, 8, 0.012, 0.3)
    assert len(list(tmp_path.iterdir())) == 4
    on_a3 = invoke("board", "200x150", "100x75", "--paper", "A3", "--out", tmp_path / "a3.pdf")
    assert on_a3.exit_code == 0, on_a3.output
    assert sizes_mm(tmp_path / "a3.pdf") == [(420, 297)] * 2


def test_several_boards_in_one_folder(invoke: Invoke, tmp_path: Path) -> None:
    folder = tmp_path / "boards"
    for _ in range(2):
        result = invoke("board", "400x300", "200x150", "--out", folder)
        assert result.exit_code == 0, result.output
    assert sorted(path.name for path in folder.iterdir()) == [
        "200x150.pdf", "200x150.yaml", "400x300.pdf", "400x300.yaml",
    ]  # fmt: skip
    assert sizes_mm(folder / "200x150.pdf") == [(200, 150)]
    # A second board beside the first is described beside it, when told so by the first answer.
    assert invoke("board", "A4", "--out", folder / "a4.pdf").exit_code == 0
    refused = invoke("board", "A3", "--out", folder / "a3.pdf")
    cure = refused.stderr.partition("or add ")[2].rstrip(".\n").split()
    assert invoke("board", "A3", "--out", folder / "a3.pdf", *cure).exit_code == 0
    assert read_target(folder / "a3.yaml") != read_target(folder / "target.yaml")


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        (("100x75",), "a tag's cell is 0.6 mm wide, and below 1 mm"),
        (("A5", "--charuco", "--rows", 16, "--cols", 24), "a marker's cell is 0.86 mm wide"),
        (("A4", "--distance-m", 3, "--fx-px", 1000), "at 3 m, a tag's cell is 0.59 px wide"),
        (("800x600", "--distance-m", 3, "--fx-px", 1000), "at 3 m, a tag's cell is 1.6 px wide"),
        (("A4", "--checkerboard", "--distance-m", 9, "--fx-px", 1000), "has to be 6 px: go nearer"),
        (("A3", "--tag-size-mm", 27.5), "of white at the edge, where many printers need 5"),
    ],
)
def test_what_is_too_small(
    invoke: Invoke, tmp_path: Path, options: tuple[object, ...], warning: str
) -> None:
    result = invoke("board", *options, "--out", tmp_path / "board.svg")
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("Warning: ")
    assert warning in result.stderr
    assert (tmp_path / "board.svg").exists()


def test_what_is_large_enough(invoke: Invoke, tmp_path: Path) -> None:
    seen = ("--distance-m", 2.3, "--fx-px", 1000)
    result = invoke("board", "800x600", *seen, "--out", tmp_path / "board.svg")
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "which board? Give a size, such as 400x300, or --paper A3."),
        (("--paper", "A9"), "'A9' is no size of paper: give A0,"),
        (("500x400", "--paper", "A3"), "500x400 is not a board of the catalogue, and --paper"),
        (("A3", "A3"), "A3 is named twice"),
        (("A3", "--distance-m", 3), "are given together"),
        (("800x600", "--paper", "A4"), "larger than the sheet of 297 x 210 mm"),
    ],
)
def test_mistakes_with_papers(
    invoke: Invoke, tmp_path: Path, arguments: tuple[object, ...], problem: str
) -> None:
    assert_mistake(invoke("board", *arguments, "--out", tmp_path / "b.pdf"), problem)
    assert list(tmp_path.iterdir()) == []


def test_several_boards_are_no_picture(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("board", "A3", "A4", "--out", tmp_path / "b.png")
    assert_mistake(result, "several boards in one file are a .pdf; or name a folder")
    result = invoke("board", "A3", "A4", "--out", tmp_path / "b", "--target", tmp_path / "t.yaml")
    assert_mistake(result, "--target is for one board")
