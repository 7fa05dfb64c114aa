"""What does not fit is called so: a fisheye, a bent board, copies of a view, a lens's rim."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from influx_wrap.calibrate.calibrator import calibrate
from influx_wrap.calibrate.goodness import goodness_of
from influx_wrap.calibrate.model_error import alike
from influx_wrap.calibrate.recipe import RECIPES
from influx_wrap.calibrate.result import CalibrationError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import bow_basis
from tests.calibrate.scenes import CAMERA, GRID, IMAGE_SIZE, Scene, board_scene, opencv_project

QUICK = {name: dataclasses.replace(r, rollouts=min(r.rollouts, 4)) for name, r in RECIPES.items()}


def equidistant(points: FloatArray, focal_px: float) -> FloatArray:
    """Pixels (n, 2) of points (n, 3) in camera space: the radius is the angle."""
    across = np.linalg.norm(points[:, :2], axis=1)
    angle = np.arctan2(across, points[:, 2])
    centre = (np.array(IMAGE_SIZE) - 1) / 2
    return centre + focal_px * (angle / across)[:, None] * points[:, :2]


def fisheye(
    field_deg: float,
    n_views: int = 24,
    seed: int = 5,
    *,
    reach: float = 0.42,
    distances_m: tuple[float, float] = (0.15, 0.4),
    bow_m: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> Observations:
    """A board up to ``reach`` of an equidistant lens's field from its middle."""
    rng = np.random.default_rng(seed)
    focal_px = IMAGE_SIZE[0] / np.radians(field_deg)
    board = GRID.points - GRID.points.mean(axis=0)
    board[:, 2] += bow_basis(GRID.points) @ bow_m
    uv, valid = [], []
    while len(uv) < n_views:
        away = np.radians(rng.uniform(0, reach * field_deg))
        around = rng.uniform(0, 2 * np.pi)
        towards = Rotation.from_euler("zx", [around, away])
        turned = towards * Rotation.from_rotvec(rng.normal(0, 0.3, 3))
        place = towards.apply([0, 0, rng.uniform(*distances_m)])
        seen = equidistant(turned.apply(board) + place, focal_px)
        seen += rng.normal(0, 0.1, seen.shape)
        inside = ((seen >= 0) & (seen <= np.array(IMAGE_SIZE) - 1)).all(axis=1)
        if inside.sum() > 30:
            uv.append(np.where(inside[:, None], seen, 0.0))
            valid.append(inside)
    return Observations(GRID, np.array(uv), np.array(valid), IMAGE_SIZE)


@pytest.mark.parametrize("recipe", QUICK.values(), ids=lambda recipe: recipe.name)
def test_a_fisheye_is_not_to_be_used(recipe: object) -> None:
    try:
        answer = calibrate(fisheye(170.0), recipe)  # type: ignore[arg-type]
    except CalibrationError:
        return
    assert answer.assessment is not None
    assert answer.assessment.grade == "do not use"
    assert "structure" in answer.assessment.sentence


@pytest.mark.parametrize("n_views", [3, 12])
def test_a_fisheye_s_middle_fits_and_is_not_to_be_used(n_views: int) -> None:
    """In the middle of the picture the polynomial follows the lens to a hundredth of a pixel."""
    seen = fisheye(170.0, n_views, reach=0.06, distances_m=(0.5, 0.9))
    answer = calibrate(seen, "batch")
    assert answer.residuals.rms_px < 0.15
    assert answer.assessment is not None
    assert answer.assessment.grade == "do not use"
    assert "of a fisheye lens" in answer.assessment.reasons[0]
    assert any("fisheye model" in text for text in answer.assessment.film_next)


def test_a_barrel_that_folds_in_the_picture_s_corners_is_named() -> None:
    """Of an ordinary lens with much distortion, which is no fisheye."""
    camera = dataclasses.replace(CAMERA, fx=1105.0, fy=1105.0, k1=-0.4, k2=-0.05)
    answer = calibrate(board_scene(3, 20, camera=camera).observations, "batch")
    assert answer.assessment is not None
    assert answer.assessment.grade == "usable with care"
    assert any("folds" in reason for reason in answer.assessment.reasons)
    steep = dataclasses.replace(camera, k1=-0.35, k2=0.14)
    answer = calibrate(board_scene(3, 20, camera=steep).observations, "batch")
    assert answer.assessment is not None
    assert answer.assessment.grade == "good"


def test_a_good_calibration_is_called_good() -> None:
    """Noise alone is no structure, whatever the recipe."""
    scene = board_scene(7, 30)
    for recipe in QUICK.values():
        answer = calibrate(scene.observations, recipe, focal_px=1100.0)
        assert answer.assessment is not None
        assert (answer.assessment.grade, answer.assessment.reasons) == ("good", ())


def with_k3(scene: Scene, k3: float) -> Observations:
    """The views of a lens that needs another radial term than there is."""
    observations = scene.observations
    uv = np.empty_like(observations.uv)
    theta = np.concatenate([CAMERA.array, [k3]])
    noise = np.random.default_rng(3).normal(0, 0.1, uv.shape)
    for view, pose in enumerate(scene.poses):
        uv[view] = opencv_project(theta, pose, GRID.points)
    uv += noise
    inside = ((uv > 0) & (uv < np.array(IMAGE_SIZE) - 1)).all(axis=2)
    return dataclasses.replace(observations, uv=uv, valid=observations.valid & inside)


def test_where_the_lens_model_does_not_reach_corners_are_kept() -> None:
    """A term r^7 spoils the rim: large residuals there are the model's fault, not the corners'."""
    scene = board_scene(9, 40, tilt_deg=35)
    observations = with_k3(scene, -0.5)
    answer = calibrate(observations, QUICK["batch"], focal_px=1100.0)
    removed = sum(len(view.corners_removed) for view in answer.views)
    assert removed < 0.01 * observations.n_corners
    assert answer.assessment is not None
    assert answer.assessment.grade != "good"
    clean = calibrate(scene.observations, QUICK["batch"], focal_px=1100.0)
    assert (answer.sigma > 1.5 * clean.sigma).any()


def test_the_few_corners_at_the_rim_are_kept_and_outliers_there_are_not() -> None:
    """Of six corners beyond where the others end, two are displaced. The model misses the right
    ones by far more than the noise, but by as much as its error nearer the centre says."""
    observations = with_k3(board_scene(9, 60, tilt_deg=35), -0.5)
    from_centre = observations.uv - CAMERA.array[2:4]
    radius = np.linalg.norm(from_centre, axis=2)
    far = np.argwhere(observations.valid & (radius > 640) & (radius < 690))
    rim = far[np.unique(far[:, 0], return_index=True)[1]][:6]
    assert len(rim) == 6
    valid = observations.valid & (radius < 590)
    valid[tuple(rim.T)] = True
    wrong = {tuple(corner) for corner in rim[[1, 4]].tolist()}
    uv = observations.uv.copy()
    for corner in wrong:
        uv[corner] -= 30 * from_centre[corner] / radius[corner]
    answer = calibrate(dataclasses.replace(observations, uv=uv, valid=valid), QUICK["batch"])
    removed = {(view.view, point) for view in answer.views for point in view.corners_removed}
    assert removed & {tuple(corner) for corner in rim.tolist()} == wrong
    assert len(removed) < 0.01 * valid.sum()


def test_errors_that_neighbouring_corners_share_are_in_sigma() -> None:
    """Noise that is smooth over a view, and of the same size as white noise, says more about the
    intrinsics: their errors are what sigma says only if that is noticed, with few views, too."""
    errors = []
    for seed in range(12):
        scene = board_scene(100 + seed, 20, sigma_px=0.05)
        rng = np.random.default_rng(seed)
        uv = scene.observations.uv.copy()
        for view in uv:
            wave = np.sin(view @ rng.normal(0, 0.008, (2, 2)) + rng.uniform(0, 6, 2))
            view += 0.03 * wave
        answer = calibrate(dataclasses.replace(scene.observations, uv=uv), QUICK["batch"])
        errors.append((answer.intrinsics.array - CAMERA.array) / answer.sigma)
    rms = float(np.sqrt(np.mean(np.square(errors))))
    assert rms < 1.2


def test_structure_is_measured_in_pixels() -> None:
    """A radial error of 0.2 px that grows to the rim is found to be about that large."""
    scene = board_scene(11, 40)
    answer = calibrate(scene.observations, QUICK["batch"], focal_px=1100.0)
    problem = scene.problem
    clean = goodness_of(problem, answer.intrinsics.array, None, answer.poses, problem.weights)
    assert clean.systematic_px < 0.02
    np.testing.assert_allclose(clean.noise_px, 0.1, rtol=0.05)
    uv = scene.observations.uv
    centre = np.array(CAMERA.array[2:4])
    wavy = uv + 0.2 * np.sin((uv - centre) / 80.0)
    spoilt = dataclasses.replace(scene.observations, uv=wavy)
    again = dataclasses.replace(scene, observations=spoilt).problem
    found = goodness_of(again, answer.intrinsics.array, None, answer.poses, again.weights)
    assert 0.05 < found.systematic_px < 0.25


def test_copies_of_a_view_do_not_make_sigma_small() -> None:
    """Thirty photographs of one pose, with errors of their own, count as one."""
    few = board_scene(13, 8).observations
    rng = np.random.default_rng(1)
    copies = few.subset(np.concatenate([np.arange(8), np.full(24, 3)]))
    jitter = rng.normal(0, 0.1, copies.uv.shape)
    copies = dataclasses.replace(copies, uv=copies.uv + jitter, view_ids=np.arange(32))
    one = calibrate(few, QUICK["batch"], focal_px=1100.0)
    many = calibrate(copies, QUICK["batch"], focal_px=1100.0)
    assert (many.sigma[:4] > 0.8 * one.sigma[:4]).all()
    only = few.subset(np.full(10, 3))
    only = dataclasses.replace(only, uv=only.uv + jitter[:10], view_ids=np.arange(10))
    try:
        copied = calibrate(only, QUICK["batch"], focal_px=1100.0)
    except CalibrationError:
        return
    assert copied.assessment is not None
    assert copied.assessment.grade == "do not use"


def test_views_that_are_alike() -> None:
    corners = np.array([[0.0, 0.0], [10.0, 0.0]])
    outlines = np.stack([corners, corners + 0.5, corners + 40, corners + 40.5])
    groups = alike(outlines, 2.0)
    assert groups[0] == groups[1] != groups[2] == groups[3]
    assert len(set(alike(outlines, 0.1).tolist())) == 4


def test_a_bow_no_board_has_is_not_believed() -> None:
    """A board that is bent by 3 % of its size is another board than its file says."""
    side_m = float(np.ptp(GRID.points, axis=0).max())
    bent = board_scene(15, 25, bow_m=(0.03 * side_m, 0.0, 0.0))
    answer = calibrate(bent.observations, QUICK["batch"], focal_px=1100.0)
    assert answer.bow_m is None
    assert answer.assessment is not None
    assert "which no board is" in answer.assessment.sentence
    believable = board_scene(15, 25, bow_m=(0.004 * side_m, 0.0, 0.0))
    answer = calibrate(believable.observations, QUICK["batch"], focal_px=1100.0)
    assert answer.bow_m is not None
    np.testing.assert_allclose(answer.bow_m[0], 0.004 * side_m, rtol=0.05)
    assert answer.assessment is not None
    assert any("flat" in advice for advice in answer.assessment.film_next)


@pytest.mark.parametrize(
    "other",
    [
        dataclasses.replace(CAMERA, fx=1160.0, fy=1153.0),
        dataclasses.replace(CAMERA, cx=1279 - CAMERA.cx, cy=959 - CAMERA.cy),
    ],
    ids=["zoomed", "upside down"],
)
def test_views_of_two_cameras_are_told_apart(other: Intrinsics) -> None:
    one = board_scene(1, 8, sigma_px=0.05).observations
    two = board_scene(2, 6, camera=other, sigma_px=0.05).observations
    both = dataclasses.replace(
        one,
        uv=np.concatenate([one.uv, two.uv]),
        valid=np.concatenate([one.valid, two.valid]),
        view_ids=np.arange(14),
        view_names=(*(f"a{i}.png" for i in range(8)), *(f"b{i}.png" for i in range(6))),
    )
    answer = calibrate(both, "batch")
    assert answer.assessment is not None
    assert answer.assessment.grade == "do not use"
    reason = answer.assessment.reasons[0]
    assert "fits b0.png, b1.png, b2.png, b3.png and 2 more" in reason
    numbers = [float(text) for text in re.findall(r"fx (\d+)", reason)]
    np.testing.assert_allclose(numbers, [other.fx, CAMERA.fx], rtol=0.01)


def test_a_principal_point_that_only_a_prior_knows_is_to_be_used_with_care() -> None:
    """A tele lens, whose principal point is 4 % of the width off the centre, says little of it."""
    tele = Intrinsics(9000.0, 9000.0, 690.5, 441.5, -0.05, 0.1, 0.0, 0.0)
    seen = board_scene(3, 15, camera=tele, depth_m=4.5).observations
    verdict = calibrate(seen, "batch").assessment
    assert verdict is not None
    assert verdict.grade == "usable with care"
    assert any("hardly determine the principal point" in reason for reason in verdict.reasons)
    assert any("tilt the board more" in advice for advice in verdict.film_next)
    asked = dataclasses.replace(RECIPES["batch"], pp_prior="on")
    verdict = calibrate(seen, asked).assessment
    assert verdict is not None
    assert verdict.grade == "good"


@pytest.mark.parametrize("off_px", [2.0, 6.0])
def test_pictures_that_are_upside_down_are_named(off_px: float) -> None:
    """A third of them, of a camera whose principal point is nearly in the middle."""
    camera = dataclasses.replace(CAMERA, cx=639.5 + off_px, cy=479.5 - off_px)
    observations = board_scene(4, 30, camera=camera).observations
    answer = calibrate(observations, "batch")
    assert answer.assessment is not None
    assert answer.assessment.grade == "good"
    uv = observations.uv.copy()
    uv[::3] = np.where(observations.valid[::3, :, None], np.array(IMAGE_SIZE) - 1 - uv[::3], 0.0)
    answer = calibrate(dataclasses.replace(observations, uv=uv), "batch")
    assert answer.assessment is not None
    assert answer.assessment.grade == "do not use"
    first = "view 0, view 3, view 6, view 9 and 6 more fit much better upside down"
    assert answer.assessment.reasons[0].startswith(first)


def test_a_lens_that_the_model_does_not_describe_is_one_camera() -> None:
    """Nor is a board that is bent."""
    for seen in (fisheye(110.0), board_scene(4, 20, bow_m=(0.01, -0.01, 0.0)).observations):
        answer = calibrate(seen, "batch", focal_px=600.0)
        assert answer.assessment is not None
        assert "two cameras" not in answer.assessment.sentence
        assert "upside down" not in answer.assessment.sentence


def test_poses_that_are_alike_are_counted_in_words() -> None:
    scene = board_scene(3, 6)
    same = scene.observations.subset(np.zeros(8, dtype=int))
    answer = calibrate(same, "batch")
    assert answer.assessment is not None
    assert "8 views in 1 pose determine hardly anything" in answer.assessment.reasons


def test_a_bow_that_may_be_the_lens_s_error_is_in_sigma() -> None:
    """A bow of 0.1 mm is seen clearly only by a lens that the model describes."""
    on = dataclasses.replace(RECIPES["batch"], bow="on")
    slight = fisheye(90.0, 14, bow_m=(1e-4, -1e-4, 0.0))
    flat, bent = calibrate(slight, "batch"), calibrate(slight, on)
    assert flat.bow_m is None
    assert bent.bow_m is not None
    apart = np.abs(flat.intrinsics.array - bent.intrinsics.array)
    assert (apart > 0).all()
    assert (apart <= flat.sigma).all()
    clear = calibrate(fisheye(90.0, 14, bow_m=(4e-4, -4e-4, 0.0)), "batch")
    np.testing.assert_allclose(clear.bow_m, (4e-4, -4e-4, 0.0), atol=1e-4)


def test_sigma_holds_where_the_model_does_not_fit() -> None:
    """Fits to disjoint sets of views of the spoilt lens scatter as their sigmas say."""
    scene = board_scene(17, 120, tilt_deg=35)
    observations = with_k3(scene, -0.5)
    parts = np.array_split(np.random.default_rng(2).permutation(120), 5)
    fits = [calibrate(observations.subset(p), QUICK["batch"], focal_px=1100.0) for p in parts]
    spread = np.std([fit.intrinsics.array for fit in fits], axis=0, ddof=1)
    sigma = np.sqrt(np.mean([fit.sigma**2 for fit in fits], axis=0))
    assert ((spread / sigma > 0.3) & (spread / sigma < 2.2)).all(), spread / sigma


@pytest.mark.parametrize("bow", ["off", "on"])
@pytest.mark.parametrize("scale", [1000.0, 1 / 0.0254])
def test_sigma_does_not_depend_on_the_unit_of_the_board(scale: float, bow: str) -> None:
    """A board in mm or inches is the same board, also where the model's error is in sigma."""
    observations = with_k3(board_scene(15, 25, tilt_deg=35), -0.5)
    recipe = dataclasses.replace(QUICK["batch"], bow=bow)
    metres = calibrate(observations, recipe, focal_px=1100.0)
    board = dataclasses.replace(GRID, tag_size_m=scale * GRID.tag_size_m)
    others = calibrate(dataclasses.replace(observations, target=board), recipe, focal_px=1100.0)
    np.testing.assert_allclose(others.sigma, metres.sigma, rtol=1e-6)
    clean = calibrate(board_scene(15, 25, tilt_deg=35).observations, recipe, focal_px=1100.0)
    assert (metres.sigma > 1.2 * clean.sigma).any()


@pytest.mark.parametrize("seed", [4, 8])
def test_a_bend_that_is_not_fitted_turns_no_pictures(seed: int) -> None:
    seen = board_scene(seed, 16, bow_m=(1.2e-3, 0.9e-3, -0.8e-3)).observations
    answer = calibrate(seen, dataclasses.replace(RECIPES["batch"], bow="off"))
    assert answer.assessment is not None
    assert answer.assessment.grade != "good"
    assert "upside down" not in answer.assessment.sentence
