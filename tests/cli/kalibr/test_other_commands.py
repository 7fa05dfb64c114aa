"""``kalibr_bagcreater``, ``kalibr_detect_corners`` and ``kalibr_create_target_pdf``."""

import re
from pathlib import Path

import cv2
import numpy as np
import pypdfium2
import pytest

from influx_wrap.formats.kalibr import read_observations, read_target
from influx_wrap.formats.rosbag import image_topic
from influx_wrap.model.intrinsics import project
from influx_wrap.model.pose import transform
from influx_wrap.model.target import AprilGrid, Checkerboard
from tests.cli.kalibr.conftest import COMMANDS, PERIOD_NS, START_NS, Command, N
from tests.clips import CAMERA, GRID, SIZE, pose


def test_bag_of_two_cameras(tmp_path: Path, command: Command) -> None:
    for camera, values in (("cam0", (1, 2, 3)), ("cam1", (4, 5))):
        folder = tmp_path / "pictures" / camera
        folder.mkdir(parents=True)
        for value in values:
            name = f"{10_000_000_000 * value}.png" if camera == "cam0" else f"p{value}.png"
            cv2.imwrite(str(folder / name), np.full((3, 4), value, np.uint8))
    (tmp_path / "pictures" / "imu0.csv").touch()
    bag = tmp_path / "x"
    arguments = ("--folder", tmp_path / "pictures", "--output-bag", bag, "--ros2", "mcap")
    done = command("kalibr_bagcreater", *arguments)
    assert done.code == 0
    assert "imu*.csv is left out" in done.err
    assert done.out.splitlines()[:2] == [
        "/cam0/image_raw: 3 pictures",
        "/cam1/image_raw: 2 pictures",
    ]
    first = list(image_topic(bag, "/cam0/image_raw").pictures())
    assert [p.time_ns for p in first] == [10_000_000_000 * value for value in (1, 2, 3)]
    second = list(image_topic(bag, "/cam1/image_raw").pictures())
    assert [p.time_ns for p in second] == [100_000_000, 200_000_000]
    assert [int(p.grey()[0, 0]) for p in second] == [4, 5]
    command("kalibr_bagcreater", *arguments).assert_mistake("exists already")


def test_bag_mistakes(clip: Path, tmp_path: Path, command: Command) -> None:
    name = "kalibr_bagcreater"
    out = ("--output-bag", tmp_path / "x.bag")
    command(name, "--folder", tmp_path / "none", *out).assert_mistake("does not exist")
    command(name, "--folder", tmp_path, *out).assert_mistake("holds no pictures")
    wrong = ("--output-bag", tmp_path / "none" / "x.bag")
    command(name, "--folder", clip, *wrong).assert_mistake("cannot be written")
    command(name, "--folder", clip, "--output-bag", tmp_path / "x").assert_mistake(".bag")
    command(name, "--folder", clip, *out, "--ros2", "zip").assert_mistake("--ros2", "'zip'")
    for stem in ("1000000000", "01000000000"):
        cv2.imwrite(str(tmp_path / f"{stem}.png"), np.zeros((3, 4), np.uint8))
    command(name, "--folder", tmp_path, *out).assert_mistake("two pictures", "1000000000")
    cv2.imwrite(str(tmp_path / f"{10**20}.png"), np.zeros((3, 4), np.uint8))
    command(name, "--folder", tmp_path, *out).assert_mistake("too late")
    assert not (tmp_path / "x.bag").exists()


def test_corners_are_where_the_board_is(clip: Path, corners: Path) -> None:
    observations = read_observations(
        corners / "coords_2d.csv", corners / "successes.csv", GRID, SIZE
    )
    assert observations.n_views == N
    assert sorted(path.name for path in corners.iterdir()) == [
        *("coords_2d.csv", "detections_per_frame.json", "successes.csv"),
    ]
    rng = np.random.default_rng(0)
    tilt, shift = 35 * rng.uniform(-1, 1, 3), rng.uniform(-0.03, 0.03, 2)
    rotation, translation = pose(tuple(tilt), (*shift, 0.4))
    truth, _ = project(CAMERA, transform(rotation[None], translation[None], GRID.points)[0])
    error = (observations.uv[0] - truth)[observations.valid[0]]
    assert np.sqrt((error**2).mean()) < 0.03


def test_corners_of_a_part_of_a_bag(clip: Path, tmp_path: Path, command: Command) -> None:
    bag = tmp_path / "x.bag"
    assert command("kalibr_bagcreater", "--folder", clip, "--output-bag", bag).code == 0
    out = tmp_path / "out"
    done = command(
        *("kalibr_detect_corners", "--bag", bag, "--topics", "/cam0/image_raw"),
        *("--target", clip / "april.yaml", "--models", "pinhole-radtan"),
        *("--output-dir", out, "--detection-coords", "c.csv"),
        *("--detection-successes", tmp_path / "s.csv", "--from-to", 0.1, 0.2),
    )
    assert done.code == 0, done.err
    assert "3 pictures of 320 x 240, 3 of them with corners" in done.out
    part = read_observations(out / "c.csv", tmp_path / "s.csv", GRID, SIZE)
    assert part.view_ids.tolist() == [0, 1, 2]
    assert sorted(path.name for path in out.iterdir()) == ["c.csv", "detections_per_frame.json"]


def test_corner_mistakes(clip: Path, tmp_path: Path, command: Command) -> None:
    good = ("--target", clip / "april.yaml", "--output-dir", tmp_path / "out")
    pictures = (*good, "--frames-dir", clip / "cam0")
    name = "kalibr_detect_corners"
    command(name, *good).assert_mistake("--bag --frames-dir", "required")
    command(name, *good, "--bag", "x.bag").assert_mistake("--bag needs --topics")
    command(name, *pictures, "--models", "eucm-none").assert_mistake("'eucm-none'")
    command(name, *pictures, "--from-to", 0.5, 2).assert_mistake("whole numbers")
    command(name, *pictures, "--from-to", 50, 60).assert_mistake("no frames from 50")
    same = ("--detection-coords", "a.csv", "--detection-successes", "a.csv")
    command(name, *pictures, *same).assert_mistake("names of their own")
    assert not list((tmp_path / "out").iterdir())


def test_april_board(tmp_path: Path, command: Command) -> None:
    board = tmp_path / "board"
    sizes = ("--nx", 4, "--ny", 3, "--tsize", 0.05, "--tspace", 0.3)
    done = command("kalibr_create_target_pdf", "--type", "apriltag", *sizes, board)
    assert done.code == 0, done.err
    assert read_target(tmp_path / "board.yaml") == AprilGrid(4, 3, 0.05, 0.3)
    page = pypdfium2.PdfDocument(tmp_path / "board.pdf")[0]
    # Four tags, three gaps, a gap's width of black squares outside, half a tag of white around.
    width_mm = 4 * 50 + 5 * 15 + 2 * 25
    assert page.get_width() == pytest.approx(width_mm / 25.4 * 72, abs=0.5)
    again = ("--type", "apriltag", "--nx", 5, f"{board}.pdf")
    command("kalibr_create_target_pdf", *again).assert_mistake("describes another target")


def test_checkerboard(tmp_path: Path, command: Command) -> None:
    sizes = ("--nx", 7, "--ny", 6, "--csx", 0.02, "--csy", 0.03)
    arguments = ("kalibr_create_target_pdf", "--type", "checkerboard", *sizes)
    assert command(*arguments, tmp_path / "b.pdf").code == 0
    assert read_target(tmp_path / "b.yaml") == Checkerboard(7, 6, 0.02, 0.03)
    command(*arguments, "--tsize", 1, tmp_path / "c").assert_mistake("--tsize means nothing")
    command(*arguments[:1], tmp_path / "c").assert_mistake("--type")
    command(*arguments, tmp_path / "none" / "c").assert_mistake("cannot be written")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        COMMANDS[name](["--help"])
    assert caught.value.code == 0
    assert re.search(rf"Example:\n  {name} --", capsys.readouterr().out)


def test_times_are_kept(clip: Path, tmp_path: Path, command: Command) -> None:
    bag = tmp_path / "x.bag"
    assert command("kalibr_bagcreater", "--folder", clip / "cam0", "--output-bag", bag).code == 0
    times = [picture.time_ns for picture in image_topic(bag, "/cam0/image_raw").pictures()]
    assert times == [START_NS + PERIOD_NS * index for index in range(N)]
