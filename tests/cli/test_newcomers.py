"""Mistakes of people who have just come: a sentence, and a cure that is pasted and works.

The command is taken from the line ``Try: ...`` that follows the sentence, and run as it is.
"""

import shlex
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import CliRunner, Result

from influx_wrap.cli.main import main
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.target import AprilGrid, Checkerboard
from tests.cameras import pinhole_pictures, write_photographs
from tests.cli.conftest import Invoke, assert_mistake
from tests.clips import write_clip

BOARD = Checkerboard(9, 6, 0.03, 0.03)
TRUTH = '{"a": {"0": {"intrinsics_gt": null, "intrinsics_gt_extrapolated": null}}}'


@pytest.fixture(scope="module")
def pictures() -> list[np.ndarray]:
    return list(pinhole_pictures(BOARD, 12))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, pictures: list[np.ndarray]) -> Path:
    """What somebody has who begins, and what may be wrong with it."""
    folder = tmp_path_factory.mktemp("newcomer")
    write_photographs(folder / "photos", pictures)
    shutil.copytree(folder / "photos", folder / "holiday" / "monday")
    write_photographs(folder / "walls", [np.full((480, 640), 90, np.uint8)] * 3)
    half = [cv2.resize(picture, (320, 240)) for picture in pictures[:3]]
    write_photographs(folder / "mixed", [*pictures, *half])
    shutil.copytree(folder / "photos", folder / "damaged")
    cut = folder / "damaged" / "photo01.png"
    cut.write_bytes(cut.read_bytes()[:500])
    clip = write_clip(folder / "clip.mp4", [np.asarray(picture) for picture in pictures])
    (folder / "cut.mp4").write_bytes(clip.read_bytes()[: clip.stat().st_size // 2])
    for name in ("empty", "heic"):
        (folder / name).mkdir()
    (folder / "heic" / "IMG_1.HEIC").write_bytes(b"\0\0\0\x18ftypheic")
    (folder / "file").write_text("a file, where a folder is needed")
    grid = AprilGrid(5, 4, 0.05, 0.3)
    write_photographs(folder / "tags", pinhole_pictures(grid, 8))
    return folder


@pytest.fixture
def here(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made)
    return made


def cure(result: Result) -> list[str]:
    """The command that is to be pasted, without the program's name."""
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Try: ")]
    program, *arguments = shlex.split(line.removeprefix("Try: "))
    assert program == "influx-calib"
    return arguments


BATCH = ("--recipe", "batch")
PASTED = {
    "a name that is not quite right": (
        ("camera", "photo", *BATCH), "photo does not exist. Did you mean photos?"
    ),
    "the folder above": (
        ("camera", "holiday", *BATCH), "holiday holds no pictures: .tif, .tiff, .png"
    ),
    "no board in the pictures": (("camera", "walls", *BATCH), "no board is recognised"),
    "squares counted in the place of corners": (
        ("camera", "photos", "--board", "10x7@30mm", *BATCH), "Count the corners between"
    ),
    "rows and columns exchanged": (
        ("camera", "tags", "--board", "aprilgrid:4x5@50mm", *BATCH), "exchanged"
    ),
    "metres in the place of millimetres": (
        ("camera", "photos", "--board", "9x6@30m", *BATCH), "Mind the unit"
    ),
    "a place that cannot be written": (
        ("camera", "photos", "--out", "file/results", *BATCH), "file/results cannot be written"
    ),
    "photographs in the place of experiments": (
        ("run", "canon17", "--data", "photos", "--out", "r", *BATCH), "has no sub-folder with"
    ),
    "a lens's name that is not quite right": (
        ("run", "cannon17", "--cells", "z7f0", "--out", "runs/one", *BATCH), "Did you mean canon17?"
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", PASTED)
def test_the_cure_works_when_pasted(invoke: Invoke, here: Path, mistake: str) -> None:
    arguments, words = PASTED[mistake]
    refused = invoke(*arguments)
    if "exchanged" in mistake:
        assert refused.exit_code == 2, refused.output
    assert_mistake(refused, words)
    done = invoke(*cure(refused))
    assert done.exit_code == 0, done.output
    assert done.stdout


def test_a_lens_that_is_not_in_the_catalogue(invoke: Invoke, here: Path) -> None:
    refused = invoke("run", "zeiss21", "--cells", "z0f0")
    assert_mistake(refused, "there is no lens 'zeiss21' in the catalogue")
    described = CliRunner().invoke(main, cure(refused), input="21\n100\n0.6\n\n\n")
    assert described.exit_code == 0, described.output
    assert load_catalogue(Path("catalogue")).lens("zeiss21").lfl_max_mm == 100
    next_step = shlex.split(described.stdout.splitlines()[-1].removeprefix("Next: "))
    assert invoke(*next_step[1:]).exit_code == 0


SAID: dict[str, tuple[tuple[str, ...], str]] = {
    "photographs of a telephone": (("camera", "heic"), "convert to JPEG"),
    "an empty folder": (("camera", "empty"), "empty holds no pictures"),
    "a video that ends too early": (("camera", "cut.mp4"), "cut.mp4 is not a video FFmpeg can"),
    "a folder of cells that is empty": (("run", "canon17", "--data", "empty"), "no cell in it"),
}


@pytest.mark.parametrize("mistake", SAID)
def test_what_no_command_mends_is_said(invoke: Invoke, here: Path, mistake: str) -> None:
    arguments, words = SAID[mistake]
    refused = invoke(*arguments)
    assert_mistake(refused, words)
    assert "Try: " not in refused.stderr


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("mixed", "photo12.png, photo13.png, photo14.png"),
        ("damaged", "photo01.png"),
    ],
)
def test_pictures_that_do_not_fit_are_named(
    invoke: Invoke, here: Path, folder: str, words: str
) -> None:
    done = invoke("camera", folder, "--out", f"out-{folder}", *BATCH)
    assert done.exit_code == 0, done.output
    assert words in " ".join(done.stdout.split())


def test_a_command_that_is_not_quite_right(invoke: Invoke) -> None:
    refused = invoke("calibrat", "photos")
    assert refused.exit_code == 2
    assert "Did you mean calibrate?" in refused.stderr


def test_only_what_was_given_is_replaced(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file named in a file, say, is no word of the command: there is nothing to paste then."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "truth.json").write_text(TRUTH)
    refused = invoke("evaluate", "method.json", "--truth", "truth.json")
    assert_mistake(refused, "method.json does not exist.")
    assert "Try: " not in refused.stderr
