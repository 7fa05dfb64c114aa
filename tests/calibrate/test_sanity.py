"""Every mistake people make when they type a setting is named with both numbers; lenses that
breathe, far and near, are not."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from influx_wrap.calibrate.calibrator import calibrate
from influx_wrap.calibrate.result import Calibration, CalibrationError
from influx_wrap.calibrate.sanity import TypedSetting, check_calibration, explain_failure
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.charuco import charuco_board
from influx_wrap.model.hardware import Board, Camera, Lens, Rig
from influx_wrap.model.intrinsics import NAMES, Intrinsics, project
from influx_wrap.model.observations import Observations
from influx_wrap.model.pose import rotation_matrix
from influx_wrap.model.suspicion import Suspicion
from influx_wrap.model.target import AprilGrid, BoardTarget, Checkerboard, CircleGrid, PointCloud
from influx_wrap.model.truth import Noise
from influx_wrap.plan import make_plan
from influx_wrap.synth.experiment import cell_generator, simulate

CAMERA = Camera("small", 23.6, 13.275, 1280, 720)
LENS = Lens("zoom", 15, 80, 0.6, 1.0)
BOARDS = tuple(load_catalogue().boards.values())
RIG = Rig(CAMERA, LENS, BOARDS)
LFL_MM, FD_M = 25.0, 1.2


def camera_at(cfl_mm: float) -> Intrinsics:
    focal_px = 1e3 * cfl_mm / CAMERA.pixel_um
    values = (focal_px, focal_px, 651.0, 352.0, -0.1, 0.02, 0.0, 0.0)
    return Intrinsics(**dict(zip(NAMES, values, strict=True)))


def experiment(board: str, lfl_mm: float, fd_m: float, cfl_mm: float) -> Observations:
    """A third of the hundred views of a board at the focus distance."""
    plan = make_plan(LENS, CAMERA, BOARDS)
    grid = next(each for each in BOARDS if each.name == board)
    cell = replace(plan.cells[0], lfl_mm=lfl_mm, fd_m=fd_m, board=grid)
    seen = simulate(cell, CAMERA, camera_at(cfl_mm), Noise(), cell_generator(0, cell))
    uv, valid = seen.observations.uv[::3], seen.observations.valid[::3]
    return Observations(seen.observations.target, uv, valid, CAMERA.image_size)


def solved(observations: Observations, cfl_mm: float) -> Calibration:
    return calibrate(observations, "batch", focal_px=1e3 * cfl_mm / CAMERA.pixel_um)


@pytest.fixture(scope="module")
def seen() -> Observations:
    return experiment("400x300", LFL_MM, FD_M, 25.6)


@pytest.fixture(scope="module")
def fit(seen: Observations) -> Calibration:
    return solved(seen, 25.6)


def check(
    fit: Calibration, seen: Observations, lfl_mm: float = LFL_MM, fd_m: float = FD_M, **more: object
) -> tuple[Suspicion, ...]:
    rig = more.get("rig", RIG)
    assert isinstance(rig, Rig)
    typed = TypedSetting(lfl_mm, fd_m, rig.camera.pixel_um, "recording.yaml", rig)
    return check_calibration(fit, seen, typed)


def test_a_right_setting_raises_no_suspicion(fit: Calibration, seen: Observations) -> None:
    assert check(fit, seen) == ()


@pytest.mark.parametrize("lfl_mm", [50.0, 17.0, 35.0])
def test_the_focal_length_of_another_setting(
    lfl_mm: float, fit: Calibration, seen: Observations
) -> None:
    (suspicion,) = check(fit, seen, lfl_mm=lfl_mm)
    assert suspicion.what == "lfl_mm"
    assert suspicion.harmful
    assert suspicion.seen == pytest.approx(25.6, rel=0.01)
    assert suspicion.given == lfl_mm
    assert f"fx says 25.6 mm, recording.yaml says lfl_mm {lfl_mm:g}" in suspicion.sentence


@pytest.mark.parametrize(
    ("fd_m", "unit"),
    [(3.94, "feet"), (47.2, "inches"), (120.0, "centimetres"), (1200.0, "millimetres")],
)
def test_a_focus_distance_in_another_unit(
    fd_m: float, unit: str, fit: Calibration, seen: Observations
) -> None:
    (suspicion,) = check(fit, seen, fd_m=fd_m)
    assert suspicion.what == "fd_m"
    assert suspicion.seen == pytest.approx(FD_M, rel=0.03)
    assert suspicion.given == fd_m
    assert "the board is 1.2 m away" in suspicion.sentence
    assert f"{fd_m:g} looks like {unit} (1.2 m)" in suspicion.sentence


def test_a_focus_distance_of_another_setting(fit: Calibration, seen: Observations) -> None:
    (suspicion,) = check(fit, seen, fd_m=2.0)
    assert "1.2 m away in the pictures, recording.yaml says fd_m 2:" in suspicion.sentence
    assert check(fit, seen, fd_m=1.7) == ()
    assert check(fit, seen, fd_m=0.85) == ()
    assert check(fit, seen, fd_m=float("inf")) == ()


@pytest.mark.parametrize("given", ["800x600", "200x150"])
def test_the_wrong_board(given: str, seen: Observations) -> None:
    grid = next(board.grid for board in BOARDS if board.name == given)
    wrong = Observations(grid, seen.uv, seen.valid, seen.image_size)
    (suspicion,) = check(solved(wrong, 25.6), wrong)
    factor = grid.tag_size_m / 0.024
    assert suspicion.what == "board"
    assert suspicion.seen == pytest.approx(factor * FD_M, rel=0.05)
    assert suspicion.given == FD_M
    assert "board 400x300 would fit" in suspicion.sentence


@pytest.mark.parametrize(
    ("key", "make"),
    [
        ("tagSize", lambda side: AprilGrid(5, 4, side, 0.3)),
        ("colSpacingMeters", lambda side: Checkerboard(10, 8, side, side)),
        ("squareSize", lambda side: charuco_board(11, 9, side, 0.7 * side, "DICT_5X5_100")),
        ("spacingMeters", lambda side: CircleGrid(10, 8, side)),
    ],
)
@pytest.mark.parametrize(("unit", "factor"), [("centimetres", 100), ("inches", 1 / 0.0254)])
def test_a_board_in_another_unit(
    key: str, make: Callable[[float], BoardTarget], unit: str, factor: float
) -> None:
    """Millimetres are refused where the file is read: no board has squares of 25 m."""
    right = make(0.015)
    rng = np.random.default_rng(3)
    middle, camera = right.points.mean(axis=0), camera_at(25.6)
    turned = [
        (right.points - middle) @ rotation_matrix(turn).T + [0, 0, 0.3]
        for turn in rng.uniform(-0.5, 0.5, (8, 3))
    ]
    uv = np.array([project(camera, points)[0] for points in turned])
    uv += 0.05 * rng.standard_normal(uv.shape)
    valid = ((uv > 0) & (uv < np.array(CAMERA.image_size) - 1)).all(axis=-1)
    typed = Observations(make(0.015 * factor), uv, valid, CAMERA.image_size)
    rig = replace(RIG, lens=replace(LENS, fd_min_m=0.2))
    (suspicion,) = check(solved(typed, 25.6), typed, fd_m=0.33, rig=rig)
    assert suspicion.what == key
    assert suspicion.seen == pytest.approx(0.015)
    assert suspicion.given == 0.015 * factor
    assert f"{key} {0.015 * factor:g} looks like {unit} (0.015 m)" in suspicion.sentence


def test_a_setting_that_the_lens_does_not_have(fit: Calibration, seen: Observations) -> None:
    lens = Lens("other", 28, 70, 1.5, 2.0)
    found = check(fit, seen, rig=replace(RIG, lens=lens))
    assert [one.what for one in found] == ["lfl_mm", "fd_m"]
    assert "lfl_mm 25, other has 28 to 70 mm" in found[0].sentence
    assert "fd_m 1.2, other focuses no nearer than 1.5 m" in found[1].sentence


def test_a_sensor_whose_pixels_are_not_square(fit: Calibration, seen: Observations) -> None:
    rounded = replace(CAMERA, sensor_height_mm=13.3)
    (suspicion,) = check(fit, seen, rig=replace(RIG, camera=rounded))
    assert suspicion.what == "sensor_height_mm"
    assert suspicion.seen == pytest.approx(13.275)
    assert suspicion.given == 13.3
    assert not suspicion.harmful, "fx and fy are right, only the sensor's description is not"
    assert "0.19 % longer" in suspicion.sentence


def test_a_squeezed_picture(fit: Calibration, seen: Observations) -> None:
    squeezed = replace(CAMERA, sensor_height_mm=CAMERA.sensor_height_mm / 1.3)
    camera = replace(fit.intrinsics, fy=1.6 * fit.intrinsics.fx)
    (suspicion,) = check(replace(fit, intrinsics=camera), seen, rig=replace(RIG, camera=squeezed))
    assert suspicion.what == "fx/fy"
    assert "fx / fy is 0.625, the sensor's" in suspicion.sentence
    assert "say 0.769" in suspicion.sentence


def test_the_image_size_of_another_camera(seen: Observations) -> None:
    wrong = Observations(seen.target, seen.uv, seen.valid, (4032, 3024))
    with pytest.raises(CalibrationError):
        solved(wrong, 25.6)
    explanation = explain_failure(wrong)
    assert explanation is not None
    assert "1277 x 717" in explanation
    assert "4032 x 3024" in explanation
    assert explain_failure(seen) is None


def test_a_principal_point_far_off(fit: Calibration, seen: Observations) -> None:
    moved = replace(fit, intrinsics=replace(fit.intrinsics, cx=240.0))
    (suspicion,) = check(moved, seen)
    assert "cx is 240 px, the middle of the picture 640 px" in suspicion.sentence


@pytest.mark.parametrize(
    ("lfl_mm", "fd_m", "cfl_mm"),
    [
        (80.0, 0.62, 80 * 2.27),  # front-group focusing, at the nearest focus
        (80.0, 0.62, 80 * 0.96),
        (80.0, 1.2, 80 * 1.40),
        (32.0, 0.62, 32 * 1.5),
        (15.0, 0.65, 15 * 1.03),
        (80.0, 30.0, 80 * 1.02),
    ],
)
def test_lenses_that_breathe_are_no_mistake(
    lfl_mm: float, fd_m: float, cfl_mm: float, fit: Calibration, seen: Observations
) -> None:
    focal_px = 1e3 * cfl_mm / CAMERA.pixel_um
    camera = replace(fit.intrinsics, fx=focal_px, fy=focal_px)
    poses = fit.poses.copy()
    poses[:, 9:] *= (fd_m - cfl_mm / 1e3) / 1.17
    assert check(replace(fit, intrinsics=camera, poses=poses), seen, lfl_mm, fd_m) == ()


def test_far_away_the_focal_length_is_held_tightly(fit: Calibration, seen: Observations) -> None:
    poses = fit.poses.copy()
    poses[:, 9:] *= 10
    far = replace(fit, poses=poses)
    (suspicion,) = check(far, seen, 22.0, 12.0)
    assert suspicion.what == "lfl_mm"


def test_a_drone_whose_unit_is_not_known_is_not_judged_by_its_distance(
    fit: Calibration, seen: Observations
) -> None:
    unit = PointCloud(seen.target.points / 10)
    typed = TypedSetting(LFL_MM, 40.0, CAMERA.pixel_um, "experiment.yaml", RIG)
    cloud = Observations(unit, seen.uv, seen.valid, seen.image_size)
    assert check_calibration(fit, cloud, typed) == ()
    known = replace(unit, unit_m=10.0)
    cloud = Observations(known, seen.uv, seen.valid, seen.image_size)
    (suspicion,) = check_calibration(fit, cloud, typed)
    assert "the drone is" in suspicion.sentence


def test_boards_that_look_otherwise_are_not_proposed(fit: Calibration, seen: Observations) -> None:
    grid = BOARDS[0].grid
    other = Board("other", 800, 600, replace(grid, tag_size_m=0.048, tag_cols=6))
    (suspicion,) = check(fit, seen, fd_m=2.4, rig=replace(RIG, boards=(other,)))
    assert "would fit" not in suspicion.sentence


def test_plain_data_and_back(fit: Calibration, seen: Observations) -> None:
    (suspicion,) = check(fit, seen, lfl_mm=50.0)
    assert Suspicion.from_dict(suspicion.as_dict()) == suspicion
    assert np.isfinite([suspicion.seen, suspicion.given]).all()
