"""The fork's own parts give what our calibrator gives for the same input."""

import argparse
import importlib
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from influx_wrap.calibrate.adjust import KALIBR_STOP, adjust
from influx_wrap.calibrate.initialise import fixed_point
from influx_wrap.calibrate.pose import estimate_poses
from influx_wrap.calibrate.problem import pack
from influx_wrap.calibrate.rollouts import principal_point_drift_percent, select_rollout
from influx_wrap.formats.kalibr import read_observations, write_observations, write_target
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import image_centre
from influx_wrap.model.optics import thin_lens_focal_px
from tests.calibrate.scenes import CAMERA, IMAGE_SIZE, Scene, board_scene
from tests.patches.fork import extract_modules

PACKAGE = "kalibr_camera_calibration"
OPTIONS = ("--models", "pinhole-radtan", "--topics", "/cam0/image_raw", "--target", "target.yaml")


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """``modules.focal`` is ``influx_focal``, and so on."""
    place = extract_modules(tmp_path_factory.mktemp("modules"))
    sys.path.insert(0, str(place))
    names = ("hooks", "run", "corners", "points", "focal", "start", "selection", "rollouts")
    try:
        yield SimpleNamespace(
            **{name: importlib.import_module(f"{PACKAGE}.influx_{name}") for name in names},
            sm=importlib.import_module("sm"),
            acv=importlib.import_module("aslam_cv"),
        )
    finally:
        sys.path.remove(str(place))
        for name in [name for name in sys.modules if name.startswith((PACKAGE, "aslam_cv", "sm."))]:
            del sys.modules[name]
        sys.modules.pop("sm", None)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return board_scene(3, 8)


@pytest.fixture
def files(tmp_path: Path, scene: Scene) -> Path:
    """A folder with the files of an experiment."""
    write_target(tmp_path / "target.yaml", scene.observations.target)
    write_observations(tmp_path / "coords.csv", tmp_path / "successes.csv", scene.observations)
    return tmp_path


class Parser(argparse.ArgumentParser):
    """Kalibr's options, as far as the modules look at them."""

    def __init__(self) -> None:
        super().__init__()
        self.add_argument("--models", nargs="+")
        self.add_argument("--topics", nargs="+")
        self.add_argument("--target", dest="targetYaml")
        self.add_argument("--bag", dest="bagfile")


def begin(modules: Any, folder: Path, *options: object) -> argparse.Namespace:
    """The options of a run with the files of ``folder``, as the hooks leave them."""
    parser = Parser()
    modules.hooks.add_arguments(parser)
    corners = (
        *("--detection-coords", folder / "coords.csv"),
        *("--detection-successes", folder / "successes.csv"),
        *("--image-width", IMAGE_SIZE[0], "--image-height", IMAGE_SIZE[1]),
    )
    given = [*OPTIONS[:-1], folder / "target.yaml", *corners, *options]
    parsed = parser.parse_args([str(word) for word in given])
    modules.hooks.begin(parsed)
    return parsed


class Camera:
    """A camera as Kalibr has it; Levenberg-Marquardt is ours, with Kalibr's limits."""

    def __init__(self, problem: Any, theta: FloatArray) -> None:
        self.problem, self.theta, self.runs = problem, theta.copy(), 0
        self.isGeometryInitialized = False
        self.geometry = SimpleNamespace(projection=lambda: self)

    def getParameters(self) -> FloatArray:
        return self.theta[:4].reshape(-1, 1)

    def setParameters(self, values: FloatArray) -> None:
        self.theta[:4] = values.flatten()

    def distortion(self) -> Any:
        return SimpleNamespace(
            getParameters=lambda: self.theta[4:].reshape(-1, 1),
            setParameters=lambda values: self.theta.__setitem__(slice(4, 8), values.flatten()),
        )

    def ru(self) -> int:
        return IMAGE_SIZE[0]

    def rv(self) -> int:
        return IMAGE_SIZE[1]

    def calibrate(self, _: object) -> bool:
        poses = estimate_poses(self.problem, self.theta)
        self.theta = adjust(self.problem, self.theta, poses, stop=KALIBR_STOP).theta
        self.runs += 1
        return True


@pytest.mark.parametrize("seed", range(40))
def test_selection(modules: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = CAMERA.array + rng.standard_t(2, (rng.integers(1, 12), 8)) * 0.3
    if seed % 3 == 0:
        values = np.round(values)  # Ties, and columns without any spread.
    worked = rng.uniform(size=len(values)) > 0.2
    ours = select_rollout(
        [SimpleNamespace(theta=v, converged=ok) for v, ok in zip(values, worked, strict=True)]
    )
    given = [v.tolist() if ok else None for v, ok in zip(values, worked, strict=True)]
    chosen, inside, scores = modules.selection.select(given)
    assert chosen == ours[0]
    assert np.array_equal(inside, ours[1])
    assert np.array_equal(scores, ours[2], equal_nan=True)
    for value in given:
        if value is not None:
            drift = principal_point_drift_percent(np.array(value), IMAGE_SIZE)
            assert modules.selection.drift_percent(value, IMAGE_SIZE) == pytest.approx(drift)


@pytest.mark.parametrize("lens", [(24, 2.0, 8.25), (300, 1.5, 5.0), (17, math.inf, 8.25)])
def test_thin_lens(modules: Any, lens: tuple[float, float, float]) -> None:
    lfl_mm, fd_m, pixel_um = lens
    theirs = modules.focal.thin_lens_focal_px(lfl_mm, 1e3 * fd_m, 1e-3 * pixel_um)
    assert theirs == pytest.approx(thin_lens_focal_px(*lens), rel=1e-14)


def test_impossible_lens(modules: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        modules.focal.thin_lens_focal_px(100, 399, 0.008)
    assert ended.value.code == 2
    assert "cannot focus at 399 mm" in capsys.readouterr().err


def test_corner_files(modules: Any, files: Path, scene: Scene) -> None:
    begin(modules, files)
    target = modules.acv.GridCalibrationTargetBase(len(scene.observations.target.points), 1)
    assert modules.hooks.has_corner_files()
    source = modules.hooks.corner_files()
    seen = source.observations(target)
    ours = read_observations(
        files / "coords.csv", files / "successes.csv", scene.observations.target, IMAGE_SIZE
    )
    assert source.numImages() == len(ours.view_ids)
    assert [one.time.seconds for one in seen] == ours.view_ids.tolist()
    for view, one in enumerate(seen):
        assert one.image_size == IMAGE_SIZE
        assert sorted(one.pixels) == np.flatnonzero(ours.valid[view]).tolist()
        for index, pixel in one.pixels.items():
            assert np.array_equal(pixel, ours.uv[view, index])


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("coords.csv", "0,", "0;", "line 1: 2 values in place of 3"),
        ("coords.csv", "0,", "0,x", "line 1: could not convert"),
        ("coords.csv", "0,", "7.5,", "line 1: invalid literal"),
        ("coords.csv", "0,", "-3,", "line 1: -3 is no number of a view"),
        ("coords.csv", "0,", "99,", "has a view 99"),
        ("successes.csv", "0,1", "0,2", "line 1: '2' is neither 0 nor 1"),
        ("successes.csv", "0,1\n", "", "rows in"),
        ("coords.csv", None, "", "is empty"),
        ("coords.csv", None, "0,nan,1\n", "rows in"),
    ],
)
def test_damaged_files(
    modules: Any, files: Path, capsys: Any, name: str, old: str | None, new: str, problem: str
) -> None:
    path = files / name
    path.write_text(new if old is None else path.read_text().replace(old, new, 1))
    begin(modules, files)
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        modules.hooks.corner_files()
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Error: ")
    assert problem in line


def test_wrong_target(modules: Any, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin(modules, files)
    with pytest.raises(SystemExit):
        modules.hooks.corner_files().observations(modules.acv.GridCalibrationTargetBase(5, 1))
    assert "Is this the right target?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--bag", "target.yaml"], "exclude each other"),
        (["--focal-guess", "-4"], "not a positive number"),
        (["--focal-guess", "4", "--thin-lens", "50", "inf", "0.008"], "exclude each other"),
        (["--thin-lens", "50", "100", "0.008"], "cannot focus"),
        (["--init-mode", "override"], "needs --init-intrinsics"),
        (["--init-intrinsics", "1", "1", "1", "1"], "go with --init-mode override"),
        (["--rollouts", "0"], "at least 1"),
        (["--rollouts", "2", "--fallback-percent", "nan"], "at least 0"),
        (["--rollouts", "2", "--models", "omni-radtan"], "one camera of the model pinhole-radtan"),
        (["--detection-coords", "/nowhere/coords.csv"], "/nowhere/coords.csv is not a file"),
        (["--image-width", "0"], "at least 1"),
    ],
)
def test_mistakes(modules: Any, files: Path, capsys: Any, options: list[str], problem: str) -> None:
    with pytest.raises(SystemExit) as ended:
        begin(modules, files, *options)
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("tagSize", "tagsize", "tagSize is not a number, or missing"),
        ("tagCols: ", "tagCols: many # ", "tagCols is not a number, or missing"),
        ("target_type", "type", "describes no target"),
        ("target_type: ", "target_type: [", "cannot be read"),
    ],
)
def test_damaged_target(
    modules: Any, files: Path, capsys: Any, old: str, new: str, problem: str
) -> None:
    path = files / "target.yaml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(SystemExit) as ended:
        begin(modules, files)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert problem in line


@pytest.mark.parametrize("lens", [("--focal-guess", 1080.5), ("--thin-lens", 50, "inf", 0.05)])
def test_focal_length(
    modules: Any, files: Path, scene: Scene, monkeypatch: Any, lens: tuple[object, ...]
) -> None:
    monkeypatch.setenv("KALIBR_MANUAL_FOCAL_LENGTH_INIT", "1")
    parsed = begin(modules, files, *lens)
    camera = Camera(None, np.array([1.0, 1.0, *image_centre(IMAGE_SIZE), 0.1, 0.1, 0.1, 0.1]))
    modules.hooks.begin_with_focal_length(camera, False)
    expected = 1080.5 if len(lens) == 2 else 1000.0
    assert parsed.focal_px == expected
    assert camera.theta.tolist() == [expected, expected, *image_centre(IMAGE_SIZE), 0, 0, 0, 0]
    assert "KALIBR_MANUAL_FOCAL_LENGTH_INIT" not in os.environ


def test_variable(modules: Any, files: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("FOCAL_LENGTH_GUESS", "900.25")
    assert begin(modules, files).focal_px == 900.25
    monkeypatch.setenv("FOCAL_LENGTH_GUESS", "wide")
    with pytest.raises(SystemExit):
        begin(modules, files)
    monkeypatch.delenv("FOCAL_LENGTH_GUESS")
    begin(modules, files)
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        modules.hooks.begin_with_focal_length(None, False)
    assert ended.value.code == 2
    assert "no focal length could be found" in capsys.readouterr().err


def test_fixed_point(modules: Any, files: Path, scene: Scene) -> None:
    begin(modules, files, "--init-mode", "fixed_point", "--focal-guess", 1080.5)
    problem = pack(scene.observations)
    camera = Camera(problem, np.array([1.0, 1.0, *image_centre(IMAGE_SIZE), 0, 0, 0, 0]))
    modules.hooks.begin_with_focal_length(camera, False)
    assert modules.hooks.has_own_start()
    assert modules.hooks.initialize(camera, None)
    assert camera.isGeometryInitialized
    assert camera.runs == 8
    assert np.array_equal(camera.theta, fixed_point(problem, 1080.5))


def test_other_starts(modules: Any, files: Path, scene: Scene) -> None:
    start = np.array([1080.5, 1080.5, *image_centre(IMAGE_SIZE), 0, 0, 0, 0])
    begin(modules, files)
    assert not modules.hooks.has_own_start()
    begin(modules, files, "--init-mode", "run_twice", "--focal-guess", 1080.5)
    camera = Camera(pack(scene.observations), start)
    assert modules.hooks.initialize(camera, None)
    assert camera.runs == 2
    values = ("--init-intrinsics", 1, 2, 3, 4, "--init-distortion", 0.5, 6, 7, 8)
    parsed = begin(modules, files, "--init-mode", "override", *values)
    assert parsed.focal_px == 1.5
    assert modules.hooks.initialize(camera, None)
    assert camera.theta.tolist() == [1, 2, 3, 4, 0.5, 6, 7, 8]


def test_point_cloud(modules: Any, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(5)
    points = rng.uniform(-1, 1, (9, 3))
    config = SimpleNamespace(data={"points": points.tolist()}, yamlFile="target.yaml")
    target = modules.hooks.point_cloud_target(modules.hooks.point_cloud_parameters(config))
    assert target.size() == 9
    assert np.array_equal(target.points(), points)
    rotation, translation = np.array([0.2, -0.4, 0.1]), np.array([0.1, 0.2, 6.0])
    rays = cv2.projectPoints(points, rotation, translation, np.eye(3), np.zeros(4))[0][:, 0]
    observation = modules.acv.GridCalibrationTargetObservation(target)
    for index, ray in enumerate(rays):
        observation.updateImagePoint(index, ray)
    geometry = SimpleNamespace(keypointToEuclidean=lambda y: np.append(y, 1.0))
    camera = SimpleNamespace(
        geometry=geometry,
        ctarget=SimpleNamespace(detector=SimpleNamespace(target=lambda: target)),
    )
    modules.hooks.find_poses(camera)
    is_found, pose = geometry.estimateTransformation(observation)
    assert is_found
    expected = np.eye(4)
    expected[:3, :3], expected[:3, 3] = cv2.Rodrigues(rotation)[0], translation
    np.testing.assert_allclose(pose.matrix @ expected, np.eye(4), atol=1e-6)
    observation.pixels = {0: rays[0]}
    assert not geometry.estimateTransformation(observation)[0]
    for spoiled in (None, "far away", [[1, 2]], [[1, 2, 3]] * 5, [[1, 2, math.inf]] * 6):
        with pytest.raises(SystemExit):
            modules.points.parameters({"points": spoiled}, "target.yaml")
        assert capsys.readouterr().err.startswith("Error: target.yaml: ")
