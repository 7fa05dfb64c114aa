"""The whole calibrator: failures that explain themselves, results that can be written,
answers that depend on nothing they should not."""

from __future__ import annotations

import dataclasses
import json
import pickle

import numpy as np
import pytest

from benchmarks.montecarlo import (
    CLEAN,
    CLEAN_INFLUX,
    DRONE,
    DRONE_INFLUX,
    Condition,
    Trial,
    bound_of,
    experiment_of,
    focal_guess_px,
)
from influx_wrap.calibrate.calibrator import calibrate
from influx_wrap.calibrate.pose import PoseError, estimate_poses
from influx_wrap.calibrate.problem import pack
from influx_wrap.calibrate.recipe import RECIPES, Recipe, override
from influx_wrap.calibrate.result import Calibration, CalibrationError
from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import PointCloud
from tests.calibrate.scenes import (
    CAMERA,
    GRID,
    IMAGE_SIZE,
    Scene,
    board_scene,
    opencv_project,
)

FOCAL_GUESS_PX = 1000.0
QUICK = {name: dataclasses.replace(r, rollouts=min(r.rollouts, 8)) for name, r in RECIPES.items()}


@pytest.fixture(scope="module")
def scene() -> Scene:
    return board_scene(81, 30, n_outliers=10, tilt_deg=20)


@pytest.fixture(scope="module", params=["batch", "influx", "paper", "stock"])
def calibration(scene: Scene, request: pytest.FixtureRequest) -> Calibration:
    return calibrate(scene.observations, QUICK[request.param], focal_px=FOCAL_GUESS_PX)


def fails(observations: Observations, recipe: Recipe = QUICK["batch"]) -> CalibrationError:
    """The failure of a calibration that has to fail, checked for what all failures have."""
    with pytest.raises(CalibrationError) as caught:
        calibrate(observations, recipe, focal_px=FOCAL_GUESS_PX)
    failure = caught.value
    assert all((failure.stage, failure.reason, failure.advice))
    assert str(failure) == f"{failure.stage}: {failure.reason}. {failure.advice}"
    assert failure.advice.endswith(".")
    assert json.loads(json.dumps(failure.failure.as_dict())) == {
        "status": "failed",
        "stage": failure.stage,
        "reason": failure.reason,
        "advice": failure.advice,
    }
    return failure


def views(scene: Scene, chosen: list[int], valid: np.ndarray | None = None) -> Observations:
    observations = scene.observations
    valid = observations.valid if valid is None else valid
    return Observations(GRID, observations.uv[chosen], valid[chosen], IMAGE_SIZE)


@pytest.mark.parametrize("recipe", QUICK.values(), ids=list(QUICK))
def test_too_few_points(scene: Scene, recipe: Recipe) -> None:
    """Seven unknowns a view and eight more, from ten equations a view."""
    few = np.zeros_like(scene.observations.valid)
    for view, seen in enumerate(scene.observations.valid):
        corners = np.flatnonzero(seen)
        few[view, corners[np.linspace(0, len(corners) - 1, 4).astype(int)]] = True
    failure = fails(views(scene, [0, 1, 2], few), recipe)
    assert failure.stage == "observations"
    assert "24 equations for 26 unknowns" in failure.reason
    assert "12 points in 3 views" in failure.reason


def test_one_view_of_a_flat_target(scene: Scene) -> None:
    failure = fails(views(scene, [0]))
    assert failure.stage == "observations"
    assert "one view of a flat target" in failure.reason


@pytest.mark.parametrize("recipe", QUICK.values(), ids=list(QUICK))
def test_noise_instead_of_corners(recipe: Recipe) -> None:
    rng = np.random.default_rng(0)
    uv = rng.uniform(0, 1, (10, len(GRID.points), 2)) * (np.array(IMAGE_SIZE) - 1)
    nonsense = Observations(GRID, uv, np.ones(uv.shape[:2], dtype=bool), IMAGE_SIZE)
    fails(nonsense, recipe)


def test_views_that_are_all_parallel_to_the_sensor() -> None:
    """They do not tell a focal length: a failure, or an answer that says how little it knows."""
    frontal = board_scene(82, 10, tilt_deg=0.0, n_outliers=0)
    try:
        answer = calibrate(frontal.observations, QUICK["batch"], focal_px=FOCAL_GUESS_PX)
    except CalibrationError:
        return
    assert answer.sigma[0] > 0.2 * abs(answer.intrinsics.fx - CAMERA.fx)
    assert answer.sigma[0] > 50


def test_all_rollouts_diverging(scene: Scene) -> None:
    hasty = override(QUICK["influx"], {"max_iterations": "1", "initialise": "single"})
    with pytest.raises(CalibrationError) as caught:
        calibrate(scene.observations, hasty, focal_px=FOCAL_GUESS_PX)
    assert caught.value.stage == "joint optimisation"
    assert "none of 8 rollouts converged" in caught.value.reason


def test_a_failure_survives_the_way_between_processes() -> None:
    failure = CalibrationError("pose", "no pose fits view 3", "Leave it out.")
    copy = pickle.loads(pickle.dumps(failure))
    assert type(copy) is CalibrationError
    assert (copy.stage, copy.reason, copy.advice) == (failure.stage, failure.reason, failure.advice)
    assert str(copy) == str(failure)


@pytest.mark.parametrize("focal_px", [0.0, -3000.0, float("nan"), float("inf")])
def test_an_impossible_focal_length(scene: Scene, focal_px: float) -> None:
    with pytest.raises(InputError, match="focal length"):
        calibrate(scene.observations, QUICK["influx"], focal_px=focal_px)


def test_a_missing_focal_length(scene: Scene) -> None:
    """It is found in the views, and the answer is the same."""
    assert calibrate(scene.observations, QUICK["stock"], focal_px=None).focal_start_px > 0
    for recipe in (QUICK["batch"], QUICK["influx"]):
        given = calibrate(scene.observations, recipe, focal_px=FOCAL_GUESS_PX)
        found = calibrate(scene.observations, recipe)
        np.testing.assert_allclose(found.intrinsics.array, given.intrinsics.array, atol=1e-4)


@pytest.mark.parametrize(("focal_px", "is_doubted"), [(1e5, True), (3.0, False)])
def test_a_focal_length_that_is_far_off(scene: Scene, focal_px: float, is_doubted: bool) -> None:
    """If nothing comes of it, that is said, and the views' own is taken; the answer is the same."""
    given = calibrate(scene.observations, QUICK["batch"], focal_px=FOCAL_GUESS_PX)
    found = calibrate(scene.observations, QUICK["batch"], focal_px=focal_px)
    np.testing.assert_allclose(found.intrinsics.array, given.intrinsics.array, atol=1e-4)
    assert (found.focal_start_px != focal_px) == is_doubted
    assert any(f"{focal_px:.4g} px leads nowhere" in said for said in found.warnings) == is_doubted


def finite_numbers(value: object) -> bool:
    """Whether every number in nested plain data is finite."""
    if isinstance(value, dict):
        return all(finite_numbers(v) for v in value.values())
    if isinstance(value, list | tuple):
        return all(finite_numbers(v) for v in value)
    return not isinstance(value, float) or bool(np.isfinite(value))


def test_a_result_can_be_written(calibration: Calibration) -> None:
    plain = calibration.as_dict()
    text = json.dumps(plain, allow_nan=False)
    assert finite_numbers(json.loads(text))
    assert list(plain["intrinsics"]) == list(plain["sigma"]) == list(NAMES)
    assert plain["pixel_origin"] == "center"
    assert plain["image_size"] == list(IMAGE_SIZE)
    for key in ("covariance", "selected", "rollouts", "views", "residuals"):
        assert key in plain
    assert {"worst", "median"} <= set(plain["projection_uncertainty_px"])


def test_what_a_result_says_fits_together(calibration: Calibration, scene: Scene) -> None:
    assert len(calibration.views) == scene.observations.n_views
    used = [view for view in calibration.views if view.used]
    assert sum(view.corners_used for view in used) == calibration.residuals.corners
    for view in calibration.views:
        seen = int(scene.observations.valid[view.view].sum())
        assert (view.reason is None) == view.used
        if view.used:
            assert view.corners_used + len(view.corners_removed) == seen
            assert view.rms_px is not None
            assert view.rms_px < 0.2
        assert scene.observations.valid[view.view, list(view.corners_removed)].all()
    assert calibration.residuals.rms_px == pytest.approx(0.1, rel=0.1)
    assert calibration.corner_sigma_px == pytest.approx(0.1, rel=0.1)
    np.testing.assert_allclose(calibration.covariance, calibration.covariance.T, rtol=1e-12)
    assert (np.linalg.eigvalsh(calibration.covariance) > -1e-12).all()
    error = (calibration.intrinsics.array - CAMERA.array) / calibration.sigma
    assert np.abs(error).max() < 5


def test_batch_removes_the_outliers_and_nothing_else(scene: Scene) -> None:
    result = calibrate(scene.observations, QUICK["batch"], focal_px=FOCAL_GUESS_PX)
    removed = np.zeros_like(scene.outliers)
    for index, view in enumerate(result.views):
        removed[index, list(view.corners_removed)] = True
    assert removed[scene.outliers].all()
    # Beyond 4.5 sigma in the plane there is by chance one corner in 25 000.
    assert removed[~scene.outliers].sum() <= 2


def test_a_view_of_something_else_is_left_out() -> None:
    scene = board_scene(83, 15)
    uv = scene.observations.uv.copy()
    rng = np.random.default_rng(1)
    seen = scene.observations.valid[4]
    uv[4, seen] = rng.permutation(uv[4, seen])
    spoilt = Observations(GRID, uv, scene.observations.valid, IMAGE_SIZE, np.arange(100, 115))
    result = calibrate(spoilt, QUICK["batch"], focal_px=FOCAL_GUESS_PX)
    assert [view.view for view in result.views if not view.used] == [104]
    assert result.views[4].reason
    assert np.abs((result.intrinsics.array - CAMERA.array) / result.sigma).max() < 5


@pytest.mark.parametrize("name", list(QUICK))
def test_same_seed_same_answer_whatever_the_number_of_workers(scene: Scene, name: str) -> None:
    answers = [
        calibrate(scene.observations, QUICK[name], focal_px=FOCAL_GUESS_PX, seed=5, jobs=jobs)
        for jobs in (1, 1, 2)
    ]
    texts = {json.dumps(answer.as_dict()) for answer in answers}
    assert len(texts) == 1


def test_the_answer_does_not_depend_on_the_names_of_views(scene: Scene) -> None:
    renamed = dataclasses.replace(scene.observations, view_ids=np.arange(30)[::-1] + 7)
    one = calibrate(scene.observations, QUICK["influx"], focal_px=FOCAL_GUESS_PX)
    two = calibrate(renamed, QUICK["influx"], focal_px=FOCAL_GUESS_PX)
    assert one.intrinsics == two.intrinsics
    assert [view.view for view in two.views] == list(range(36, 6, -1))


def test_pixels_of_points_not_seen_do_not_matter(scene: Scene) -> None:
    uv = scene.observations.uv.copy()
    uv[~scene.observations.valid] = np.nan
    spoilt = dataclasses.replace(scene.observations, uv=uv)
    for recipe in (QUICK["batch"], QUICK["influx"]):
        one = calibrate(scene.observations, recipe, focal_px=FOCAL_GUESS_PX)
        two = calibrate(spoilt, recipe, focal_px=FOCAL_GUESS_PX)
        assert one.as_dict() == two.as_dict()


@pytest.mark.parametrize("name", ["batch", "influx"])
@pytest.mark.parametrize("point_sigma", [None, 2e-4])
def test_several_views_of_a_point_cloud(name: str, point_sigma: float | None) -> None:
    rng = np.random.default_rng(9)
    points = rng.uniform(-1, 1, (60, 3))
    poses = board_scene(84, 6).poses.copy()
    poses[:, 9:] = np.array([0, 0, 5.0]) + 0.2 * rng.standard_normal((6, 3))
    uv = np.stack([opencv_project(CAMERA.array, pose, points) for pose in poses])
    uv += 0.1 * rng.standard_normal(uv.shape)
    measured = points + (point_sigma or 0.0) * rng.standard_normal(points.shape)
    cloud = PointCloud(measured, point_sigma)
    inside = ((uv > 0) & (uv < np.array(IMAGE_SIZE) - 1)).all(axis=2)
    result = calibrate(
        Observations(cloud, uv, inside, IMAGE_SIZE), QUICK[name], focal_px=FOCAL_GUESS_PX
    )
    assert np.abs((result.intrinsics.array - CAMERA.array) / result.sigma).max() < 4.5


def answer(trial: Trial) -> FloatArray:
    observations = experiment_of(trial).observations
    recipe = override(RECIPES[trial.condition.recipe], dict(trial.condition.settings))
    return calibrate(observations, recipe, focal_px=focal_guess_px(trial)).intrinsics.array


BOARD_CELLS = ["canon17 z0f0", "canon17 z3f4", "canon17 z7f9", "premista80 z0f0", "premista80 z8f8"]
DRONE_CELLS = ["canon17 z1f7", "canon17 z5f9"]


def apart_in_bounds(condition: Condition, place: str) -> tuple[FloatArray, FloatArray]:
    """(2, 8) differences, relative and in bounds, of answers from 0.7 and 1.3 times the focal."""
    trial = Trial(condition, *place.split(), seed=6)
    low, usual, high = (
        answer(dataclasses.replace(trial, focal_scale=scale)) for scale in (0.7, 1.0, 1.3)
    )
    apart = np.abs([low - usual, high - usual])
    in_bounds = apart / bound_of(experiment_of(trial))
    print(f"{place} {condition.recipe}: at most {in_bounds.max():.1e} bounds apart")
    return apart / np.abs(usual), in_bounds


@pytest.mark.parametrize("place", BOARD_CELLS + DRONE_CELLS)
def test_batch_from_a_focal_guess_30_percent_off(place: str) -> None:
    condition = CLEAN if place in BOARD_CELLS else DRONE
    relative, in_bounds = apart_in_bounds(condition, place)
    assert ((relative < 1e-6) | (in_bounds < 1e-3)).all()


@pytest.mark.parametrize("place", BOARD_CELLS + DRONE_CELLS)
def test_influx_from_a_focal_guess_30_percent_off(place: str) -> None:
    """The same rollout is chosen and ends at the same intrinsics."""
    condition = CLEAN_INFLUX if place in BOARD_CELLS else DRONE_INFLUX
    _, in_bounds = apart_in_bounds(condition, place)
    assert in_bounds[:, :4].max() < 0.05


def test_a_view_without_a_pose_is_called_by_its_name() -> None:
    """By the photograph's name, not by its place among those that show the board."""
    observations = board_scene(3, 6).observations
    names = tuple(f"left{number:02}.jpg" for number in (2, 3, 5, 8, 13, 21))
    rim = np.linalg.norm(observations.uv[3] - np.array(IMAGE_SIZE) / 2, axis=1)
    valid = observations.valid.copy()
    valid[3] &= rim > np.sort(rim[valid[3]])[-8]
    named = dataclasses.replace(observations, valid=valid, view_names=names)
    # A lens whose field ends before the rim, so that no ray leads there.
    theta = np.array([*CAMERA.array[:4], -3.0, 0.0, 0.0, 0.0])
    with pytest.raises(PoseError, match=r"left08\.jpg has fewer than 4 points inside"):
        estimate_poses(pack(named), theta)
    narrow = dataclasses.replace(
        named.subset(np.array([0, 1, 2])), uv=np.full_like(named.uv[:3], 640.0)
    )
    with pytest.raises(PoseError, match=r"no pose fits left02\.jpg"):
        estimate_poses(pack(narrow), np.array([1e12, 1e12, 640.0, 480.0, 0, 0, 0, 0]))
