"""``camera``: pictures in, a camera and a verdict out; mistakes in a sentence."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import Result

from influx_wrap.formats.kalibr import write_target
from influx_wrap.model.target import Checkerboard
from tests.cameras import CAMERA, fisheye_pictures, pinhole_pictures, write_photographs
from tests.cli.conftest import Invoke, assert_mistake
from tests.clips import write_clip

BOARD = Checkerboard(9, 6, 0.03, 0.03)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("camera") / "photos"
    return write_photographs(folder, pinhole_pictures(BOARD, 12))


@pytest.fixture(scope="module")
def calibrated(photographs: Path, invoke: Invoke) -> Result:
    out = photographs.parent / "out"
    return invoke("camera", photographs, "--board", "9x6@30mm", "--out", out, "--jobs", 2)


def test_what_is_printed(calibrated: Result) -> None:
    assert calibrated.exit_code == 0, calibrated.output
    # Where lines end depends on how long the folder's name is.
    text = " ".join(calibrated.stdout.split())
    for words in (
        "board: a checkerboard of 9 x 6 inner corners",
        "12 photographs of 640 x 480 pixels, 9 with the board, 9 chosen",
        "the board is not found in: photo00.png, photo08.png, photo09.png",
        "largest residuals (RMS): photo",
        "field of view: horizontal",
        "diagonal",
        "verdict: ",
    ):
        assert words in text
    numbers = {
        line.split()[0]: line.split()[1:] for line in calibrated.stdout.splitlines() if line.split()
    }
    for name, true in CAMERA.as_dict().items():
        value, sigma = map(float, numbers[name])
        assert abs(value - true) < 4 * sigma + 1e-3, name


def test_files(calibrated: Result, photographs: Path) -> None:
    out = photographs.parent / "out"
    assert sorted(path.name for path in out.iterdir()) == [
        *("camchain.yaml", "camera.html", "opencv.yaml", "result.json"),
    ]
    assert str(out / "camera.html") in calibrated.stdout


def test_the_default_folder_is_named_after_the_pictures(
    photographs: Path, invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    target = tmp_path / "target.yaml"
    write_target(target, BOARD)
    files = sorted(photographs.iterdir())
    result = invoke("camera", *files, "--target", target, "--recipe", "batch")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "camera-photos" / "result.json").exists()


def test_a_fisheye_is_not_to_be_used(invoke: Invoke, tmp_path: Path) -> None:
    folder = write_photographs(tmp_path / "fisheye", fisheye_pictures(BOARD))
    out = tmp_path / "out"
    result = invoke("camera", folder, "--out", out, "--jobs", 2)
    assert result.exit_code == 1
    assert "verdict: do not use because" in result.stdout
    assert result.stderr.startswith("Do not use: ")
    assert "fisheye" in result.stdout
    verdict = json.loads((out / "result.json").read_text())["verdict"]
    assert verdict["grade"] == "do not use"
    storage = cv2.FileStorage(str(out / "opencv.yaml"), cv2.FILE_STORAGE_READ)
    assert storage.getNode("verdict").string().startswith("do not use because")
    assert (out / "camchain.yaml").read_text().startswith("# verdict: do not use because")


def test_an_earlier_answer_does_not_stay(invoke: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "result.json").write_text("{}")
    walls = write_photographs(tmp_path / "walls", [np.full((60, 80), 90, np.uint8)])
    assert_mistake(invoke("camera", walls, "--out", out), "no board is recognised")
    assert list(out.iterdir()) == []


def test_a_video_of_which_nothing_can_be_read(
    invoke: Invoke, photographs: Path, tmp_path: Path
) -> None:
    picture = cv2.imread(str(photographs / "photo01.png"), cv2.IMREAD_GRAYSCALE)
    clip = write_clip(tmp_path / "clip.mp4", [picture] * 20, movflags="faststart")
    data = clip.read_bytes()
    begin = data.index(b"mdat") + 4
    for name, damaged in (
        ("empty.mp4", b""),
        ("noise.mp4", np.random.default_rng(0).bytes(20_000)),
        ("cut.mp4", data[: begin + 100]),
        ("zeros.mp4", data[:begin] + bytes(len(data) - begin)),
    ):
        (tmp_path / name).write_bytes(damaged)
        for board in ((), ("--board", "9x6")):
            result = invoke("camera", tmp_path / name, *board, "--out", tmp_path / "out")
            assert_mistake(result, name)
            assert not (tmp_path / "out").exists()


def test_mistakes(invoke: Invoke, photographs: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    heic = tmp_path / "heic"
    heic.mkdir()
    (heic / "IMG_1.HEIC").write_bytes(b"\0")
    cut = write_photographs(tmp_path / "cut", [np.zeros((480, 640), np.uint8)] * 2)
    for file in cut.iterdir():
        file.write_bytes(file.read_bytes()[:-20])

    def camera(*arguments: object) -> Result:
        return invoke("camera", "--out", tmp_path / "out", *arguments)

    assert_mistake(camera(tmp_path / "none"), "none does not exist")
    assert_mistake(camera(tmp_path / "none.jpg"), "none.jpg does not exist")
    assert_mistake(camera(tmp_path / "empty"), "holds no pictures")
    assert_mistake(camera(heic), "IMG_1.HEIC", "convert to JPEG")
    assert_mistake(camera(heic / "IMG_1.HEIC"), "IMG_1.HEIC", "convert to JPEG")
    assert_mistake(camera(cut), "no picture can be read", "photo00.png, photo01.png", "damaged")
    assert_mistake(camera(cut, "--board", "9x6"), "photo00.png, photo01.png", "damaged")
    assert_mistake(camera(photographs, "--board", "nine by six"), "describes no board")
    assert_mistake(camera(photographs, "--board", "9x6", "--target", "t.yaml"), "exclude")
    assert_mistake(invoke("camera", photographs, "--out", photographs), "holds the pictures")
    assert not (tmp_path / "out").exists()
