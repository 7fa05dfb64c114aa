"""``catalogue``: what there is, and descriptions that are asked for."""

import os
import pty
import select
import subprocess
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from influx_wrap.cli.main import main
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.hardware import Camera, Lens
from tests.cli.conftest import Invoke, assert_mistake, command_line

LENS = ("--lfl-min-mm", 24, "--lfl-max-mm", 70, "--fd-min-m", 0.4)
CAMERA = ("--sensor-width-mm", 28.25, "--sensor-height-mm", 18.17, "--width-px", 3424)


def answered(answers: str, *arguments: object) -> Result:
    return CliRunner().invoke(main, ["catalogue", *map(str, arguments)], input=answers)


def test_list(invoke: Invoke, tmp_path: Path) -> None:
    assert invoke("catalogue", "new", "lens", "mine", *LENS, "--catalogue", tmp_path).exit_code == 0
    result = invoke("catalogue", "list", "--catalogue", tmp_path)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    (canon,) = [line for line in lines if "canon17" in line]
    assert canon.startswith("lens    canon17 ")
    assert "  17-120 mm, focus from 0.85344 m  " in canon
    assert canon.endswith("  packaged")
    (mine,) = [line for line in lines if line.startswith("lens    mine")]
    assert "24-70 mm" in mine
    known = load_catalogue()
    assert len(lines) == 1 + len(known.cameras) + len(known.lenses) + len(known.boards)


def test_show(invoke: Invoke) -> None:
    result = invoke("catalogue", "show", "canon17")
    assert result.exit_code == 0
    assert result.stdout.startswith("# 17-120 mm, focus from 0.85344 m (packaged)\nkind: lens\n")
    assert_mistake(invoke("catalogue", "show", "canon71"), "Did you mean canon17?")
    assert_mistake(invoke("catalogue", "show", "xyz"), "There are 100x75,")


def test_by_options_alone(invoke: Invoke, tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    result = invoke("catalogue", "new", "lens", "mine", *LENS, "--catalogue", folder)
    assert result.exit_code == 0, result.output
    assert load_catalogue(folder).lens("mine") == Lens("mine", 24, 70, 0.4, 0.7)
    next_step = result.stdout.splitlines()[-1]
    assert next_step == f"Next: influx-calib plan mine --catalogue '{folder}'"
    assert invoke("plan", "mine", "--catalogue", folder).exit_code == 0


def test_asked(tmp_path: Path) -> None:
    """Wrong answers are asked for again; what was given as an option is not asked for."""
    answers = "28.25\nabc\n0\n18.17\n3424.5\n3424\n\n"
    result = answered(
        answers, "new", "camera", "mine", "--height-px", 2202, "--catalogue", tmp_path
    )
    assert result.exit_code == 0, result.output
    assert load_catalogue(tmp_path).camera("mine") == Camera("mine", 28.25, 18.17, 3424, 2202)
    assert "'abc' is not a number" in result.stderr
    assert "0 is not above 0" in result.stderr
    assert "3424.5 is not a whole number" in result.stderr


def test_answers_that_fit(tmp_path: Path) -> None:
    result = answered(
        "28.25\n18.17\n3424\n2202\nALEXA Mini\n", "new", "camera", "c", "--catalogue", tmp_path
    )
    assert result.exit_code == 0, result.output
    camera = Camera("c", 28.25, 18.17, 3424, 2202, metadata_model="ALEXA Mini")
    assert load_catalogue(tmp_path).camera("c") == camera
    assert "Width of the sensor that is recorded, in mm:" in result.stderr


@pytest.mark.parametrize("paper", [(420, 297), (100, 300), (1200, 50)])
def test_a_board_that_fits_its_sheet(
    invoke: Invoke, tmp_path: Path, paper: tuple[int, int]
) -> None:
    size = ("--width-mm", paper[0], "--height-mm", paper[1])
    result = invoke("catalogue", "new", "board", "b", *size, "--catalogue", tmp_path)
    assert result.exit_code == 0, result.output
    assert load_catalogue(tmp_path).board("b").width_mm == paper[0]
    out = tmp_path / "b.pdf"
    assert invoke("board", "b", "--catalogue", tmp_path, "--out", out).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("lens", "mine"), "--lfl-min-mm is missing, and there is nobody to ask: shortest"),
        (("lens", "mine", "--lfl-min-mm", -3), "-3 is not above 0"),
        (("lens", "mine", "--lfl-min-mm", "inf"), "inf is not a finite number"),
        (("lens", "a/b", *LENS), "leave the / out"),
        (("lens", "mine", *LENS, "--lfl-max-mm", 20), "lfl_max_mm is below lfl_min_mm"),
        (("lens", "mine", *LENS, "--fd-lower-m", 0.1), "fd_lower_m is below fd_min_m"),
        (("board", "b", "--width-mm", 99, "--height-mm", 99, "--tag-size-mm", 50), "larger than"),
    ],
)
def test_mistakes(
    invoke: Invoke, tmp_path: Path, arguments: tuple[object, ...], words: str
) -> None:
    folder = tmp_path / "mine"
    result = invoke("catalogue", "new", *arguments, "--catalogue", folder)
    assert result.exit_code == 2, result.output
    assert words in result.stderr.splitlines()[-1]
    assert not folder.exists()


def test_nothing_is_written_over(invoke: Invoke, tmp_path: Path) -> None:
    new = ("catalogue", "new", "lens", "mine", "--catalogue", tmp_path)
    assert invoke(*new, *LENS).exit_code == 0
    before = (tmp_path / "mine.yaml").read_bytes()
    assert_mistake(invoke(*new, *LENS), "mine.yaml is there already: choose another name")
    # Under another name of the file, too, and before a question is asked.
    (tmp_path / "mine.yaml").rename(tmp_path / "other.yaml")
    assert_mistake(invoke(*new), "other.yaml is there already")
    assert (tmp_path / "other.yaml").read_bytes() == before
    other = ("catalogue", "new", "camera", "other", *CAMERA, "--height-px", 2202)
    assert_mistake(invoke(*other, "--catalogue", tmp_path), "other.yaml is there already")


@pytest.mark.parametrize(
    ("arguments", "doubt"),
    [
        (("camera", *CAMERA, "--height-px", 2202, "--sensor-width-mm", 0.02825), "in millimetres?"),
        (("camera", *CAMERA, "--height-px", 1080), "the part that is recorded"),
        (("lens", *LENS, "--fd-min-m", 40), "in metres?"),
        (("lens", *LENS, "--lfl-min-mm", 0.024), "in millimetres?"),
    ],
)
def test_doubts_about_units(
    invoke: Invoke, tmp_path: Path, arguments: tuple[object, ...], doubt: str
) -> None:
    kind, *options = arguments
    result = invoke("catalogue", "new", kind, "mine", *options, "--catalogue", tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("Warning: ")
    assert doubt in result.stderr


def test_on_a_terminal(tmp_path: Path) -> None:
    """Somebody mixes up the ends of the zoom, is told, and answers again."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command_line("catalogue", "new", "lens", "my-zoom"),
        cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    said = ""

    def hear(words: str) -> None:
        nonlocal said
        until_s = time.monotonic() + 60
        while words not in said:
            assert time.monotonic() < until_s, said
            if select.select([ours], [], [], 0.1)[0]:
                said += os.read(ours, 4096).decode()
        said = said.partition(words)[2]

    for question, answer in [
        ("Shortest focal length, in mm:", "70"), ("Longest focal length, in mm [70.0]:", "24"),
        ("Nearest focus distance, from the sensor, in m:", "0.4"),
        ("[0.7]:", ""), ("[unknown]:", ""),
        ("lfl_max_mm is below lfl_min_mm. Once more:", None),
        ("in mm [70.0]:", "24"), ("in mm [24.0]:", "70"), ("[0.4]:", ""), ("[0.7]:", ""),
        ("[unknown]:", "Zoom 24-70"),
        ("Next: influx-calib plan my-zoom --catalogue catalogue", None),
    ]:  # fmt: skip
        hear(question)
        if answer is not None:
            os.write(ours, f"{answer}\n".encode())
    assert process.wait(60) == 0
    os.close(ours)
    expected = Lens("my-zoom", 24, 70, 0.4, 0.7, metadata_model="Zoom 24-70")
    assert load_catalogue(tmp_path / "catalogue").lens("my-zoom") == expected
