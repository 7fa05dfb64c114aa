"""``drone match``: a flight's folder becomes an experiment, or a person is asked."""

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import Result

from influx_wrap.formats.experiment import read_experiment
from influx_wrap.formats.flight import StoredFlashes, write_flash_rtk, write_flashes
from tests.cli.conftest import Invoke
from tests.flight.flown import FD_M, LFL_MM, SIZE, Flown, fly

CAMERA = f"""kind: camera
name: small
sensor_width_mm: 28.25
sensor_height_mm: 18.17
width_px: {SIZE[0]}
height_px: {SIZE[1]}
"""
SETTING = ("--camera", "small", "--lens", "canon17", "--lfl-mm", LFL_MM, "--fd-m", FD_M)


def write_flight(folder: Path, flown: Flown) -> Path:
    folder.mkdir()
    made = StoredFlashes(flown.flashes, folder / "clip.mp4", None, {})
    write_flashes(folder / "flashes.json", made)
    readings = flown.readings
    assert readings.covariance_m2 is not None
    rows = [
        {"id": name, "x": x, "y": y, "alt": z, "timestamp": time_s, "covariance_m2": c}
        for name, (x, y, z), time_s, c in zip(
            readings.ids,
            readings.xyz_m.tolist(),
            readings.time_s.tolist(),
            readings.covariance_m2.tolist(),
            strict=True,
        )
    ]
    write_flash_rtk(folder / "flash_rtk.json", rows)
    return folder


@pytest.fixture
def match(invoke: Invoke, tmp_path: Path):
    catalogue = tmp_path / "catalogue"
    catalogue.mkdir()
    (catalogue / "camera.yaml").write_text(CAMERA)

    def run(folder: Path, *options: object) -> Result:
        return invoke("--catalogue", catalogue, "drone", "match", folder, *options)

    return run


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


GIVEN = {"flashes.json", "flash_rtk.json"}
ALWAYS = GIVEN | {"pairs.csv", "match.json"}
EXPERIMENT = {"experiment.yaml", "target.yaml", "coords_2d.csv", "successes.csv"}


def assert_asked(result: Result, *words: str) -> None:
    """One sentence on stderr, exit code 2, no traceback."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("Error: ")
    lines = result.stderr.splitlines()
    assert len([line for line in lines if not line.startswith("Try: ")]) == 1
    for word in words:
        assert word in result.stderr


def test_complete_flight(match, tmp_path: Path, invoke: Invoke) -> None:
    folder = write_flight(tmp_path / "flight", fly(1))
    result = match(folder, *SETTING)
    assert result.exit_code == 0, result.output
    assert "24 flashes, 24 readings: 24 pairs, certain" in result.stdout
    assert names(folder) == ALWAYS | EXPERIMENT
    stored = read_experiment(folder)
    assert (stored.lens, stored.camera, stored.cell) == ("canon17", "small", "flight")
    answer = invoke(
        "calibrate", "--target", folder / "target.yaml", "--coords", folder / "coords_2d.csv",
        "--successes", folder / "successes.csv", "--size", "{}x{}".format(*SIZE),
        "--lfl-mm", LFL_MM, "--fd-m", FD_M, "--pixel-um", 1e3 * 28.25 / SIZE[0],
        "--out", tmp_path / "result.json", "--recipe", "influx", "--rollouts", 2,
    )  # fmt: skip
    assert answer.exit_code == 0, answer.output


def test_missed_flash_asks_and_accepts(match, tmp_path: Path) -> None:
    folder = write_flight(tmp_path / "flight", fly(2))
    assert match(folder, *SETTING).exit_code == 0
    shutil.rmtree(folder)
    write_flight(folder, fly(2, missed=(7,)))
    (folder / "experiment.yaml").write_text("of an earlier match")
    result = match(folder, *SETTING)
    assert_asked(result, "23 flashes, 24 readings", "reading r07 has no flash", "--accept")
    assert names(folder) == ALWAYS, "no experiment, not even an old one"
    assert json.loads((folder / "match.json").read_text())["verdict"] == "proposed"
    result = match(folder, *SETTING, "--accept")
    assert result.exit_code == 0, result.output
    assert "doubt: reading r07 has no flash" in result.stdout
    assert len(read_experiment(folder).observations.target.points) == 23


def test_review(match, tmp_path: Path) -> None:
    flown = fly(3, missed=(7,), every_s=1.0)
    folder = write_flight(tmp_path / "flight", flown)
    frames = tmp_path / "frames"
    frames.mkdir()
    dark = cv2.imencode(".png", np.full((SIZE[1], SIZE[0], 3), (9, 6, 4), np.uint8))[1].tobytes()
    for frame in range(flown.flashes.n_frames):
        (frames / f"{frame:05d}.png").write_bytes(dark)
    assert_asked(match(folder, *SETTING, "--review"), "clip.mp4 does not exist")
    result = match(folder, *SETTING, "--review", "--footage", frames)
    assert_asked(result, "reading r07 has no flash", "review.html", "again")
    assert names(folder) == ALWAYS | {"review.html", "review.csv"}
    review = folder / "review.csv"
    text = review.read_text()
    assert text.count("undecided") == 1

    assert_asked(match(folder, *SETTING), "line 9 of the review (reading r07) is undecided")
    assert match(folder, *SETTING, "--accept").exit_code == 0
    review.write_text(text.replace("undecided", "use"))
    assert_asked(match(folder, *SETTING), "review.csv, line 9: ", "it needs u and v")
    review.write_text(text.replace("undecided", "leave"))
    result = match(folder, *SETTING)
    assert result.exit_code == 0, result.output
    assert "23 pairs, reviewed" in result.stdout
    assert "doubt" not in result.stdout


def test_ambiguous_is_never_accepted(match, tmp_path: Path) -> None:
    flown = fly(4, regular=True)
    flown.readings.xyz_m[:, 2] = 0.0
    folder = write_flight(tmp_path / "flight", flown)
    result = match(folder, *SETTING, "--accept")
    assert_asked(result, "about equally likely", "--clock-offset-s")
    assert names(folder) == ALWAYS


def test_without_a_setting_there_is_no_experiment(match, tmp_path: Path) -> None:
    folder = write_flight(tmp_path / "flight", fly(5))
    result = match(folder)
    assert result.exit_code == 0, result.output
    assert "Give --lens, --lfl-mm and --fd-m" in result.stdout.replace("\n", " ")
    assert names(folder) == ALWAYS


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--lfl-mm", 20), ("--fd-m is missing",)),
        (("--fd-m", 20), ("--lfl-mm is missing",)),
        (("--lfl-mm", "nan", "--fd-m", 2), ("nan",)),
        (("--lens", "canon18", *SETTING[4:]), ("canon18",)),
        (SETTING[2:], ("1280 x 824", "3424 x 2202", "--camera")),
        ((*SETTING, "--min-pairs", 25), ("only 24", "25 are needed")),
        ((*SETTING, "--min-pairs", 3), ("min-pairs",)),
        ((*SETTING, "--clock-offset-s", 12), ("none of 24 flashes",)),
    ],
)
def test_mistakes(match, tmp_path: Path, options: tuple[object, ...], words: tuple[str]) -> None:
    folder = write_flight(tmp_path / "flight", fly(6))
    assert_asked(match(folder, *options), *words)
    assert not EXPERIMENT & names(folder)


def test_broken_folders(match, tmp_path: Path) -> None:
    assert_asked(match(tmp_path / "nowhere"), "nowhere is not a folder")
    folder = write_flight(tmp_path / "flight", fly(7))
    for name in sorted(GIVEN):
        text = (folder / name).read_text()
        (folder / name).write_text(text[: len(text) // 2])
        assert_asked(match(folder), name)
        (folder / name).unlink()
        assert_asked(match(folder), name, "does not exist")
        (folder / name).write_text(text)
