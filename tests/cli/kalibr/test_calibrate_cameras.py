"""``kalibr_calibrate_cameras``: Kalibr's command lines give the intrinsics, or a sentence."""

import csv
import re
from pathlib import Path

import numpy as np
import pypdfium2
import pytest
import yaml

from influx_wrap.formats.detections import DetectionSummary
from influx_wrap.formats.kalibr import write_target
from influx_wrap.formats.rosbag import write_bag
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.target import AprilGrid
from influx_wrap.observe.frames import FrameSource
from influx_wrap.run import kalibr_cameras, kalibr_corners
from tests.cli.kalibr.conftest import PERIOD_NS, START_NS, Command, N
from tests.clips import CAMERA, SIZE

NAME, TOPIC = "kalibr_calibrate_cameras", "/cam0/image_raw"


@pytest.fixture
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures take longer than all the rest."""
    monkeypatch.setattr(kalibr_cameras, "write_kalibr_report", lambda *_: None)


def of_camera(clip: Path) -> tuple[object, ...]:
    target = clip / "april.yaml"
    return ("--topics", TOPIC, "--models", "pinhole-radtan", "--target", target)


def of_corners(clip: Path, folder: Path) -> tuple[object, ...]:
    """What the InFlux build's scripts say."""
    return (
        *("--target", clip / "april.yaml", "--models", "pinhole-radtan", "--topics", TOPIC),
        *("--detection-coords", folder / "coords_2d.csv"),
        *("--detection-successes", folder / "successes.csv"),
        *("--image-width", SIZE[0], "--image-height", SIZE[1], "--dont-show-report"),
    )


def read(stem: Path) -> tuple[FloatArray, FloatArray]:
    """Intrinsics (8,) from the camchain, standard deviations (8,) from the text."""
    camera = yaml.safe_load(Path(f"{stem}-camchain.yaml").read_text())["cam0"]
    text = Path(f"{stem}-results-cam.txt").read_text()
    sigma = []
    for key in ("projection", "distortion"):
        found = re.search(rf"{key}: \[[^\]]*\] \+- \[([^\]]*)\]", text)
        assert found is not None
        sigma += [float(value) for value in found[1].split()]
    return np.array(camera["intrinsics"] + camera["distortion_coeffs"]), np.array(sigma)


def assert_true(stem: Path) -> None:
    """Within 4 sigma of the truth, and a sigma that is worth something."""
    values, sigma = read(stem)
    assert (np.abs(values - CAMERA.array) < 4 * sigma).all(), (values - CAMERA.array) / sigma
    assert sigma[:4].max() < 0.1


@pytest.mark.parametrize("ros", ["ros1", "ros2"])
def test_bags(clip: Path, tmp_path: Path, command: Command, ros: str) -> None:
    bag = tmp_path / ("cam.bag" if ros == "ros1" else "cam")
    more = () if ros == "ros1" else ("--ros2",)
    assert command("kalibr_bagcreater", "--folder", clip, "--output-bag", bag, *more).code == 0
    done = command(NAME, "--bag", bag, *of_camera(clip), "--dont-show-report", "--export-poses")
    assert (done.code, done.err) == (0, "")
    assert_true(tmp_path / "cam")
    camera = yaml.safe_load((tmp_path / "cam-camchain.yaml").read_text())["cam0"]
    assert (camera["rostopic"], camera["resolution"]) == (TOPIC, list(SIZE))
    report = pypdfium2.PdfDocument(tmp_path / "cam-report-cam.pdf")
    assert len(report) == 4
    lines = (tmp_path / "cam-poses-cam0.csv").read_text().splitlines()
    rows = list(csv.DictReader(lines, skipinitialspace=True))
    # A row for each view that was kept, by their times.
    kept = re.search(r"views: (\d+) used", done.out)
    assert kept is not None
    times = [int(row["#timestamp"]) for row in rows]
    assert len(times) == int(kept[1])
    assert times == sorted(set(times))
    assert set(times) <= {START_NS + PERIOD_NS * index for index in range(N)}
    # The board stands 0.4 m in front of the camera.
    distance = [float(row["p_RS_R_z [m]"]) for row in rows]
    assert 0.2 < min(distance) < max(distance) < 0.5
    last = done.out.strip().splitlines()[-1]
    assert "recipe batch" in last
    assert "recipe influx" in last


def test_corners_and_seeds(
    clip: Path, corners: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seed in (("a", "5"), ("b", "5"), ("c", "6")):
        monkeypatch.setenv("INFLUX_SEED", seed)
        monkeypatch.setenv("FOCAL_LENGTH_GUESS", "300")
        out = tmp_path / name
        modes = ("--init-mode", "fixed_point", "--report-dir", out)
        done = command(NAME, *of_corners(clip, corners), *modes, "--verbose")
        assert done.code == 0, done.err
        assert "first focal length: 300.00 px" in done.out
        assert_true(out / "calib")
        assert sum(line.startswith("view ") for line in done.out.splitlines()) == N
    first, again, other = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in "abc"
    )
    assert first == again
    assert first["calib-results-cam.txt"] != other["calib-results-cam.txt"]
    monkeypatch.setenv("FOCAL_LENGTH_GUESS", "wide")
    command(NAME, *of_corners(clip, corners)).assert_mistake("FOCAL_LENGTH_GUESS", "'wide'")
    monkeypatch.setenv("FOCAL_LENGTH_GUESS", "300")
    monkeypatch.setenv("INFLUX_SEED", "-1")
    command(NAME, *of_corners(clip, corners)).assert_mistake("INFLUX_SEED", "'-1'")


@pytest.mark.usefixtures("no_report")
@pytest.mark.parametrize(
    "mode",
    [
        ("run_twice",),
        (
            "override",
            "--init-intrinsics",
            330,
            325,
            150,
            125,
            "--init-distortion",
            -1e-1,
            -1e-3,
            0,
            0,
        ),
        ("override", "--init-intrinsics", 330, 325, 150, 125),
    ],
)
def test_init_modes(
    clip: Path, corners: Path, tmp_path: Path, command: Command, mode: tuple[object, ...]
) -> None:
    arguments = (*of_corners(clip, corners), "--report-dir", tmp_path, "--init-mode", *mode)
    done = command(NAME, *arguments)
    assert done.code == 0, done.err
    assert_true(tmp_path / "calib")


@pytest.mark.usefixtures("no_report")
def test_thresholds_and_options_without_effect(
    clip: Path, corners: Path, tmp_path: Path, command: Command
) -> None:
    arguments = (*of_corners(clip, corners), "--report-dir", tmp_path)
    every = command(NAME, *arguments, "--mi-tol", -1, "--no-shuffle", "--no-outliers-removal")
    assert every.code == 0, every.err
    assert f"views: {N} used of {N}" in every.out
    few = command(NAME, *arguments, "--mi-tol", 3, "--min-views-outlier", 5)
    found = re.search(r"views: (\d+) used", few.out)
    assert found is not None
    assert int(found[1]) < N
    ignored = ("--approx-sync", 0.04, "--qr-tol", 0.02, "--show-extraction", "--plot")
    done = command(NAME, *arguments, *ignored, "--no-final-filtering")
    assert done.code == 0
    assert [line.split()[:2] for line in done.err.splitlines()] == [
        ["Note:", option] for option in ignored if isinstance(option, str)
    ]


def test_no_focal_length(clip: Path, corners: Path, tmp_path: Path, command: Command) -> None:
    """Without a view of the whole board Kalibr would ask; here a sentence says what to set."""
    rows = [line.split(",") for line in (corners / "successes.csv").read_text().splitlines()]
    per_view = 48
    for index in range(0, len(rows), per_view):
        rows[index][1] = "0"
    text = "".join(",".join(row) + "\n" for row in rows)
    (tmp_path / "successes.csv").write_text(text)
    (tmp_path / "coords_2d.csv").write_bytes((corners / "coords_2d.csv").read_bytes())
    done = command(NAME, *of_corners(clip, tmp_path))
    assert done.code == 1
    assert "no view shows the whole board. Set FOCAL_LENGTH_GUESS" in done.err
    assert not list(tmp_path.glob("*camchain*"))


def test_mistakes_in_options(clip: Path, corners: Path, command: Command) -> None:
    good = of_corners(clip, corners)
    camera = of_camera(clip)
    command(NAME, *good, "--not-an-option").assert_mistake("--not-an-option", "--help")
    command(NAME, *camera).assert_mistake("--bag", "required")
    command(NAME, "--bag", "x.bag", *camera[2:]).assert_mistake("--bag needs --topics")
    other = ("--models", "omni-radtan", "--target", clip / "april.yaml")
    command(NAME, "--bag", "x.bag", "--topics", TOPIC, *other).assert_mistake("'omni-radtan'")
    two = ("--topics", "/a", "/b", "--models", "pinhole-radtan", "pinhole-radtan", *other[2:])
    command(NAME, "--bag", "x.bag", *two).assert_mistake("2 cameras")
    command(NAME, *good, "--use-blakezisserman").assert_mistake("--use-blakezisserman", "batch")
    command(NAME, *good, "--eval").assert_mistake("--eval")
    command(NAME, *good, "--bag-freq", 4).assert_mistake("--bag-freq goes with --bag")
    command(NAME, *good, "--mi-tol", "much").assert_mistake("--mi-tol", "'much'")
    command(NAME, *good, "--mi-tol", "nan").assert_mistake("not a finite number")
    command(NAME, *good, "--init-mode", "override").assert_mistake("needs --init-intrinsics")
    given = ("--init-intrinsics", 300, 300, 160, 120)
    command(NAME, *good, *given).assert_mistake("go with --init-mode override")
    command(NAME, *good[:-5], "--image-height", 9).assert_mistake("needs --image-width")
    sized = ("--bag", "x.bag", *camera, "--image-width", 3)
    command(NAME, *sized).assert_mistake("--image-width goes with --detection-coords")


def test_mistakes_in_files(clip: Path, corners: Path, tmp_path: Path, command: Command) -> None:
    camera = of_camera(clip)
    bag = tmp_path / "cam.bag"
    board = np.full((SIZE[1], SIZE[0]), 90, np.uint8)
    write_bag(bag, "ros1", (("/other", 1 + i, board) for i in range(20)))
    command(NAME, "--bag", bag, *camera).assert_mistake("has no topic", "/other")
    short = tmp_path / "short.bag"
    short.write_bytes(bag.read_bytes()[:-9000])
    command(NAME, "--bag", short, *camera).assert_mistake("short.bag is not a whole bag")
    empty = tmp_path / "empty.bag"
    write_bag(empty, "ros1", ())
    command(NAME, "--bag", empty, *camera).assert_mistake("it has no topic of pictures")
    command(NAME, "--bag", tmp_path / "no.bag", *camera).assert_mistake("does not exist")
    span = ("--topics", "/other", *camera[2:], "--bag-from-to", 9, 3)
    command(NAME, "--bag", bag, *span).assert_mistake("--bag-from-to 9 3")
    (tmp_path / "calib-camchain.yaml").mkdir()
    arguments = of_corners(clip, corners)
    done = command(NAME, *arguments, "--report-dir", tmp_path)
    done.assert_mistake("calib-camchain.yaml cannot be written")
    command(NAME, *arguments, "--report-dir", bag).assert_mistake("cannot be made a folder")
    write_target(tmp_path / "other.yaml", AprilGrid(6, 6, 0.05, 0.3))
    wrong = ("--target", tmp_path / "other.yaml", *arguments[2:])
    command(NAME, *wrong, "--report-dir", tmp_path / "out").assert_mistake("right target")
    assert not list((tmp_path / "out").iterdir())


def test_a_recording_that_ends_early(
    clip: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is readable of it is not calibrated as if it were all."""

    def half(source: FrameSource, *_: object, **__: object) -> DetectionSummary:
        counts = np.full(5, 48)
        return DetectionSummary(source.path, SIZE, True, 48, counts, (), "the file ends", {})

    monkeypatch.setattr(kalibr_corners, "detect_footage", half)
    out = ("--report-dir", tmp_path)
    done = command(NAME, "--frames-dir", clip / "cam0", *of_camera(clip), *out)
    done.assert_mistake("readable up to frame 4, then the file ends")
    assert not list(tmp_path.iterdir())
