"""Simulated experiments: truth and observations agree, noise is what was asked for."""

import math

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.model.experiment import Cell, Plan
from influx_wrap.model.intrinsics import project
from influx_wrap.model.pose import transform
from influx_wrap.model.target import AprilGrid, PointCloud
from influx_wrap.model.truth import Noise
from influx_wrap.synth.experiment import Experiment, cell_generator, simulate
from tests.lenses import true_intrinsics

CLEAN = Noise(corner_px=0.0, rtk_ball_m=0.0)
BOARD_CELLS = ["z0f0", "z0f3", "z3f3", "z7f0"]


def run(plan: Plan, name: str, noise: Noise = CLEAN, *, seed: int = 0) -> Experiment:
    cell = plan.cell(name)
    truth = true_intrinsics(plan, breathing=0.02, pp_offset_px=(15.0, -10.0))[name]
    return simulate(cell, plan.camera, truth, noise, cell_generator(seed, cell))


def residuals_px(experiment: Experiment) -> np.ndarray:
    """(N, 2) observed minus projected truth at the valid points."""
    truth, observations = experiment.truth, experiment.observations
    points = transform(truth.rotations, truth.translations, truth.target_points)
    uv, valid = project(truth.intrinsics, points)
    assert valid[observations.valid].all()
    return (observations.uv - uv)[observations.valid]


@pytest.mark.parametrize("name", [*BOARD_CELLS, "z0f9", "z5f9"])
@pytest.mark.parametrize("bow_mm", [0.0, 3.0])
def test_truth_projects_to_the_clean_observations(canon: Plan, name: str, bow_mm: float) -> None:
    experiment = run(canon, name, Noise(corner_px=0.0, bow_mm=bow_mm))
    assert np.abs(residuals_px(experiment)).max() < 1e-8


@pytest.mark.parametrize("name", BOARD_CELLS)
def test_tags_are_found_whole_and_away_from_the_border(canon: Plan, name: str) -> None:
    observations = run(canon, name).observations
    grid = observations.target
    assert isinstance(grid, AprilGrid)
    per_tag = np.zeros((observations.n_views, 88), dtype=int)
    for tag in range(88):
        per_tag[:, tag] = observations.valid[:, grid.tag_of_point == tag].sum(axis=1)
    assert set(np.unique(per_tag)) <= {0, 4}
    assert ((per_tag == 4).sum(axis=1) >= 12).all()
    found = observations.uv[observations.valid]
    assert found.min() > 3.5
    assert (found < np.array([3424, 2202]) - 4.5).all()
    assert (observations.uv[~observations.valid] == 0).all()


def test_most_corners_are_seen_and_the_rim_is_covered(canon: Plan, premista: Plan) -> None:
    for plan, name in ((canon, "z3f3"), (canon, "z7f2"), (premista, "z4f4")):
        observations = run(plan, name).observations
        assert observations.n_views >= 95
        assert 0.85 < observations.n_corners / 35200 < 0.97
        found = observations.uv[observations.valid]
        counts, _, _ = np.histogram2d(
            *found.T, bins=(8, 5), range=((0, plan.camera.width_px), (0, plan.camera.height_px))
        )
        assert counts.min() > 100


def test_corner_noise(canon: Plan) -> None:
    errors = residuals_px(run(canon, "z3f3", Noise(corner_px=0.3)))
    assert errors.std(axis=0) == pytest.approx([0.3, 0.3], rel=0.02)
    assert np.abs(errors.mean(axis=0)).max() < 0.01


def test_noise_settings_share_everything_else(canon: Plan) -> None:
    quiet, loud = (run(canon, "z3f3", Noise(corner_px=s)) for s in (0.1, 0.2))
    np.testing.assert_array_equal(quiet.truth.rotations, loud.truth.rotations)
    np.testing.assert_array_equal(quiet.observations.valid, loud.observations.valid)
    np.testing.assert_allclose(2 * residuals_px(quiet), residuals_px(loud), atol=1e-9)


def test_outliers(canon: Plan) -> None:
    experiment = run(canon, "z3f3", Noise(corner_px=0.0, outliers=0.05, outlier_px=20.0))
    seen = experiment.observations.valid
    outliers = experiment.truth.outliers
    assert outliers.sum() == pytest.approx(0.05 * seen.sum(), abs=30)
    assert not (outliers & ~seen).any()
    length = np.linalg.norm(residuals_px(experiment), axis=1)
    assert (length[~outliers[seen]] < 1e-8).all()
    moved = length[outliers[seen]]
    assert moved.max() <= 20 + 1e-9
    assert moved.mean() == pytest.approx(10, rel=0.05)


def test_outliers_stay_in_the_picture(canon: Plan) -> None:
    noise = Noise(outliers=1.0, outlier_px=5000.0)
    assert run(canon, "z3f3", noise).observations.n_views > 90
    assert run(canon, "z0f9", noise).observations.n_views == 1


def test_missing_tags(canon: Plan) -> None:
    complete = run(canon, "z3f3").observations
    lossy = run(canon, "z3f3", Noise(corner_px=0.0, missing_tags=0.25)).observations
    assert lossy.n_corners == pytest.approx(0.75 * complete.n_corners, rel=0.02)
    common = np.isin(complete.view_ids, lossy.view_ids)
    assert not (lossy.valid & ~complete.valid[common]).any()


def test_views_with_too_few_tags_are_dropped_from_truth_too(canon: Plan) -> None:
    experiment = run(canon, "z0f3", Noise(missing_tags=0.8))
    n_views = experiment.observations.n_views
    assert n_views < 95
    assert len(experiment.observations.view_ids) == n_views
    assert experiment.truth.rotations.shape == (n_views, 3, 3)
    assert experiment.truth.translations.shape == (n_views, 3)
    assert experiment.truth.outliers.shape == (n_views, 352)
    with pytest.raises(InputError, match="there is no view"):
        run(canon, "z0f3", Noise(missing_tags=1.0))


def test_a_bent_board_is_a_parabola_over_one_direction(canon: Plan) -> None:
    truth = run(canon, "z3f3", Noise(bow_mm=4.0)).truth
    points = truth.target_points
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    x, y = ((points[:, :2] - (low + high) / 2) / ((high - low) / 2)).T
    cosine = math.sqrt(truth.bow_m[0] / 0.004)
    sine = -truth.bow_m[2] / (2 * 0.004 * cosine)
    np.testing.assert_allclose(points[:, 2], 0.004 * (1 - (x * cosine + y * sine) ** 2), atol=1e-12)


def test_hover_points_are_reported_in_the_unit_sphere(canon: Plan) -> None:
    experiment = run(canon, "z0f9", Noise())
    target = experiment.observations.target
    assert isinstance(target, PointCloud)
    assert target.points.shape == (24, 3)
    np.testing.assert_allclose(target.points.mean(axis=0), 0, atol=1e-12)
    assert np.linalg.norm(target.points, axis=1).max() == pytest.approx(1)
    assert target.point_sigma == pytest.approx(0.005 / math.sqrt(5) / target.unit_m)
    assert target.unit_m > 1


def test_positions_are_off_uniformly_in_a_ball(canon: Plan) -> None:
    radii = []
    for seed in range(40):
        experiment = run(canon, "z0f9", Noise(rtk_ball_m=0.02), seed=seed)
        target = experiment.observations.target
        assert isinstance(target, PointCloud)
        error = (target.points - experiment.truth.target_points) * target.unit_m
        radii.append(np.linalg.norm(error, axis=1))
    cubed = (np.concatenate(radii) / 0.02) ** 3
    assert cubed.max() <= 1 + 1e-9
    assert cubed.mean() == pytest.approx(0.5, abs=0.04)
    assert cubed.std() == pytest.approx(1 / math.sqrt(12), abs=0.03)


def test_perfect_positions_have_no_sigma(canon: Plan) -> None:
    experiment = run(canon, "z0f9")
    target = experiment.observations.target
    assert isinstance(target, PointCloud)
    assert target.point_sigma is None
    np.testing.assert_allclose(target.points, experiment.truth.target_points, atol=1e-12)


def test_every_drone_cell_sees_enough_points(canon: Plan, premista: Plan) -> None:
    for plan in (canon, premista):
        for cell in plan.cells:
            if cell.board is None:
                assert run(plan, cell.name).observations.n_corners >= 16


def test_the_same_seed_gives_the_same_bytes(canon: Plan) -> None:
    for name in ("z3f3", "z0f9"):
        first, second = (run(canon, name, Noise(outliers=0.01)) for _ in range(2))
        assert first.observations.uv.tobytes() == second.observations.uv.tobytes()
        other = run(canon, name, Noise(outliers=0.01), seed=1)
        assert other.observations.uv.tobytes() != first.observations.uv.tobytes()


def test_cells_have_generators_of_their_own() -> None:
    cells = [Cell(i, j, 17, 2, None) for i in range(3) for j in range(3)]
    assert len({cell_generator(0, cell).random() for cell in cells}) == 9


def test_infinity_cannot_be_simulated(canon: Plan) -> None:
    cell = Cell(0, 0, 17.0, math.inf, None)
    truth = true_intrinsics(canon)["z0f0"]
    with pytest.raises(InputError, match="infinity"):
        simulate(cell, canon.camera, truth, CLEAN, cell_generator(0, cell))
