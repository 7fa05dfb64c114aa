"""The kernels against plain numpy, finite differences and OpenCV."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from influx_wrap.calibrate import kernels
from influx_wrap.calibrate.kernels import CHUNK
from influx_wrap.calibrate.pose import estimate_poses, refine_poses
from influx_wrap.calibrate.problem import Problem
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.target import AprilGrid
from tests.calibrate import twins
from tests.calibrate.scenes import CAMERA, Scene, board_scene, opencv_project

THETA = CAMERA.array + np.array([3.0, -2.0, 1.5, -1.0, 0.01, -0.01, 1e-3, 5e-4])
BOW = np.array([4e-4, -3e-4, 2e-4])
NO_BOW = np.zeros(3)


@pytest.fixture(scope="module", params=["one chunk", "three chunks"])
def scene(request: pytest.FixtureRequest) -> Scene:
    if request.param == "one chunk":
        return board_scene(1, 4)
    large = AprilGrid(tag_cols=16, tag_rows=14, tag_size_m=0.013, tag_spacing=0.3)
    scene = board_scene(2, 3, grid=large)
    assert (np.diff(scene.problem.first) >= 2).all()
    return scene


def some_weights(problem: Problem) -> FloatArray:
    """Weights of all sizes, a fifth of them zero."""
    rng = np.random.default_rng(5)
    weights = rng.uniform(0.2, 2.0, problem.weights.shape)
    weights[rng.uniform(size=weights.shape) < 0.2] = 0.0
    return weights * problem.weights


def plain_view(
    scene: Scene, weights: FloatArray, view: int, bow: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Weighted residuals and Jacobian of a view by the twin."""
    observations = scene.observations
    seen = observations.valid[view]
    residual, jacobian = twins.view_system(
        THETA, scene.poses[view], observations.target.points, observations.uv[view], bow
    )
    weight = np.repeat(twins.scatter(scene.problem, weights)[view], 2)
    rows = np.repeat(seen, 2)
    return (weight * residual)[rows], (weight[:, None] * jacobian)[rows]


def kernel_view(
    problem: Problem, weights: FloatArray, pose: FloatArray, view: int, bow: FloatArray | None
) -> tuple[float, FloatArray, FloatArray]:
    """Cost, h and g of a view by the kernel."""
    n_bow = 0 if bow is None else 3
    size = 8 + n_bow + 6
    h, g = np.full((size, size), np.nan), np.full(size, np.nan)
    cost = kernels.linearise_view(
        THETA, NO_BOW if bow is None else bow, n_bow, pose, problem.data, weights, problem.count,
        problem.first[view], problem.first[view + 1], np.empty(kernels.SCRATCH), h, g,
    )  # fmt: skip
    return cost, h, g


def assert_same_system(ours: FloatArray, plain: FloatArray, scale: FloatArray) -> None:
    """Equal to rounding, each entry measured against the size of its own row and column."""
    np.testing.assert_allclose(ours / scale, plain / scale, rtol=0, atol=1e-11)


@pytest.mark.parametrize("bow", [None, BOW], ids=["flat", "bow"])
def test_normal_equations_of_a_view(scene: Scene, bow: FloatArray | None) -> None:
    problem = scene.problem
    weights = some_weights(problem)
    for view in range(problem.n_views):
        residual, jacobian = plain_view(scene, weights, view, bow)
        cost, h, g = kernel_view(problem, weights, scene.poses[view], view, bow)
        size = np.linalg.norm(jacobian, axis=0)
        assert cost == pytest.approx(residual @ residual, rel=1e-12)
        assert_same_system(h, jacobian.T @ jacobian, np.outer(size, size))
        assert_same_system(g, jacobian.T @ residual, size * np.linalg.norm(residual))


def test_all_views_are_the_views_one_by_one(scene: Scene) -> None:
    problem, weights = scene.problem, some_weights(scene.problem)
    h, g = np.empty((problem.n_views, 17, 17)), np.empty((problem.n_views, 17))
    costs = kernels.linearise_views(
        THETA, BOW, 3, scene.poses, problem.data, weights, problem.count, problem.first, h, g
    )
    for view in range(problem.n_views):
        cost, h_view, g_view = kernel_view(problem, weights, scene.poses[view], view, BOW)
        assert costs[view] == cost
        np.testing.assert_array_equal(h[view], h_view)
        np.testing.assert_array_equal(g[view], g_view)


def test_corners_of_weight_zero_do_not_exist(scene: Scene) -> None:
    problem = scene.problem
    weights = some_weights(problem)
    spoilt = problem.data.copy().reshape(len(problem.data), -1, CHUNK)
    spoilt[:, 3:5][np.broadcast_to((weights == 0)[:, None], (len(weights), 2, CHUNK))] = 1e5
    bad = Problem(**{**vars(problem), "data": spoilt.reshape(problem.data.shape)})
    for ours, spoilt_ours in zip(
        kernel_view(problem, weights, scene.poses[0], 0, BOW),
        kernel_view(bad, weights, scene.poses[0], 0, BOW),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, spoilt_ours)


def test_gradient_is_the_slope_of_the_cost(scene: Scene) -> None:
    """d cost / d parameter = -2 g, by central differences of a cost made with OpenCV."""
    problem, weights = scene.problem, some_weights(scene.problem)
    observations, pose = scene.observations, scene.poses[0]
    weight = twins.scatter(problem, weights)[0][:, None]

    def cost(step: FloatArray) -> float:
        bent = twins.shaped(observations.target.points, BOW + step[8:11])
        pixels = opencv_project(THETA + step[:8], twins.moved(pose, step[11:]), bent)
        return float(((weight * (observations.uv[0] - pixels)) ** 2).sum())

    value, _, g = kernel_view(problem, weights, pose, 0, BOW)
    assert value == pytest.approx(cost(np.zeros(17)), rel=1e-10)
    sizes = np.array([1, 1, 1, 1, 1e-2, 1e-2, 1e-3, 1e-3, *[1e-3] * 9]) * 1e-2
    for k, size in enumerate(sizes):
        step = size * np.eye(17)[k]
        slope = (cost(step) - cost(-step)) / (2 * size)
        assert -2 * g[k] == pytest.approx(slope, rel=1e-5), k


def test_curvature_is_made_of_the_slopes_of_the_residuals(scene: Scene) -> None:
    """J'J with J from central differences of OpenCV's projection."""
    problem, pose = scene.problem, scene.poses[1]
    observations = scene.observations
    seen = observations.valid[1]

    def pixels(step: FloatArray) -> FloatArray:
        bent = twins.shaped(observations.target.points, BOW + step[8:11])
        return opencv_project(THETA + step[:8], twins.moved(pose, step[11:]), bent)[seen].ravel()

    sizes = np.array([1, 1, 1, 1, 1e-2, 1e-2, 1e-3, 1e-3, *[1e-4] * 9]) * 1e-1
    steps = np.diag(sizes)
    jacobian = np.stack([(pixels(step) - pixels(-step)) / 2 for step in steps], axis=1) / sizes
    _, h, _ = kernel_view(problem, problem.weights, pose, 1, BOW)
    size = np.linalg.norm(jacobian, axis=0)
    np.testing.assert_allclose(
        h / np.outer(size, size), (jacobian.T @ jacobian) / np.outer(size, size), atol=2e-7
    )


@pytest.mark.parametrize("n_shared", [8, 11])
@pytest.mark.parametrize("strength", [0.0, 0.3])
def test_eliminating_a_pose(n_shared: int, strength: float) -> None:
    rng = np.random.default_rng(n_shared)
    size = n_shared + 6
    root = rng.standard_normal((40, size)) * 10.0 ** rng.uniform(-2, 2, size)
    h, g = root.T @ root, root.T @ rng.standard_normal(40)
    damping = strength * np.diag(h)
    s, r = np.empty((n_shared, n_shared)), np.empty(n_shared)
    w, c = np.empty((6, n_shared)), np.empty(6)
    assert kernels.reduce_view(h, g, n_shared, damping, s, r, w, c)

    pose_block = h[n_shared:, n_shared:] + np.diag(damping[n_shared:])
    inverse = np.linalg.inv(pose_block)
    coupling = h[:n_shared, n_shared:]
    diagonal = np.sqrt(np.diag(h))
    shared, pose = diagonal[:n_shared], diagonal[n_shared:]
    expected = h[:n_shared, :n_shared] - coupling @ inverse @ coupling.T
    assert_same_system(s, expected, np.outer(shared, shared))
    expected = g[:n_shared] - coupling @ inverse @ g[n_shared:]
    assert_same_system(r, expected, shared)
    assert_same_system(w, inverse @ coupling.T, shared / pose[:, None])
    assert_same_system(c, inverse @ g[n_shared:], 1 / pose)


def test_a_pose_without_information_cannot_be_eliminated() -> None:
    h = np.eye(14)
    h[13, 13] = 0.0
    out = np.empty((8, 8)), np.empty(8), np.empty((6, 8)), np.empty(6)
    assert not kernels.reduce_view(h, np.ones(14), 8, np.zeros(14), *out)
    assert kernels.reduce_view(h, np.ones(14), 8, np.full(14, 1e-3), *out)


def test_schur_complements_of_views_add_up(scene: Scene) -> None:
    """The sum over views is what the inverse of the full dense system says."""
    problem, weights, n = scene.problem, scene.problem.weights, scene.problem.n_views
    h, g = np.empty((n, 14, 14)), np.empty((n, 14))
    kernels.linearise_views(
        THETA, NO_BOW, 0, scene.poses, problem.data, weights, problem.count, problem.first, h, g
    )
    s, r, w, c = np.empty((8, 8)), np.empty(8), np.empty((n, 6, 8)), np.empty((n, 6))
    assert kernels.reduce_views(h, g, 8, np.zeros((n, 14)), s, r, w, c)

    rows = [plain_view(scene, weights, view, None) for view in range(n)]
    jacobian = np.zeros((sum(len(res) for res, _ in rows), 8 + 6 * n))
    top = 0
    for view, (residual, block) in enumerate(rows):
        part = slice(top, top + len(residual))
        jacobian[part, :8] = block[:, :8]
        jacobian[part, 8 + 6 * view : 14 + 6 * view] = block[:, 8:]
        top += len(residual)
    residual = np.concatenate([res for res, _ in rows])
    scale = np.linalg.norm(jacobian, axis=0)
    step = np.linalg.lstsq(jacobian / scale, residual, rcond=None)[0] / scale

    ours = np.linalg.solve(s / np.outer(scale[:8], scale[:8]), r / scale[:8]) / scale[:8]
    np.testing.assert_allclose(ours * scale[:8], step[:8] * scale[:8], rtol=1e-8)
    out = np.empty_like(scene.poses)
    largest = kernels.step_poses(scene.poses, w, c, ours, out)
    assert largest == pytest.approx(np.abs(step[8:]).max(), rel=1e-8)
    for view in range(n):
        expected = twins.moved(scene.poses[view], step[8 + 6 * view : 14 + 6 * view])
        np.testing.assert_allclose(out[view], expected, atol=1e-9)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-6, 1.1e-6, 1e-3, 0.7, 3.1, 7.0])
def test_moving_a_pose(angle: float) -> None:
    rng = np.random.default_rng(3)
    axis = rng.standard_normal(3)
    step = np.concatenate([angle * axis / np.linalg.norm(axis), rng.standard_normal(3)])
    start = Rotation.random(rng=rng).as_matrix()
    pose = np.concatenate([start.ravel(), rng.standard_normal(3)])
    out = np.empty(12)
    kernels.move_pose(pose, step, out)
    expected = (Rotation.from_rotvec(step[:3]) * Rotation.from_matrix(start)).as_matrix()
    np.testing.assert_allclose(out[:9].reshape(3, 3), expected, atol=1e-15)
    np.testing.assert_allclose(out[9:], pose[9:] + step[3:], atol=0)


def test_a_pose_may_be_moved_in_place() -> None:
    pose = board_scene(1, 1).poses[0]
    step = np.array([0.1, -0.2, 0.3, 1.0, 2.0, 3.0])
    out = np.empty(12)
    kernels.move_pose(pose, step, out)
    kernels.move_pose(pose, step, pose)
    np.testing.assert_array_equal(pose, out)


def test_residuals_and_cost(scene: Scene) -> None:
    problem, weights = scene.problem, some_weights(scene.problem)
    observations = scene.observations
    out = kernels.residuals(THETA, BOW, scene.poses, problem.data, problem.count, problem.first)
    ours = twins.scatter(problem, out)
    bent = twins.shaped(observations.target.points, BOW)
    expected = np.stack(
        [uv - opencv_project(THETA, pose, bent)
         for uv, pose in zip(observations.uv, scene.poses, strict=True)]
    )  # fmt: skip
    expected[~observations.valid] = 0.0
    np.testing.assert_allclose(ours, expected, atol=1e-9)

    weighted = twins.scatter(problem, weights)[..., None] * expected
    for view, pose in enumerate(scene.poses):
        cost, _, _ = kernel_view(problem, weights, pose, view, BOW)
        assert cost == pytest.approx((weighted[view] ** 2).sum(), rel=1e-11)


def test_residuals_of_one_view_touch_no_other(scene: Scene) -> None:
    problem = scene.problem
    first, last = problem.first[1], problem.first[2]
    out = np.full((len(problem.data), CHUNK, 2), 7.0)
    kernels.view_residuals(
        THETA, BOW, scene.poses[1], problem.data, problem.count, first, last, out
    )
    everything = kernels.residuals(
        THETA, BOW, scene.poses, problem.data, problem.count, problem.first
    )
    for chunk in range(len(out)):
        n = problem.count[chunk]
        if first <= chunk < last:
            np.testing.assert_array_equal(out[chunk, :n], everything[chunk, :n])
        else:
            assert (out[chunk] == 7.0).all()


@pytest.mark.parametrize("depth", [-0.5, 0.0])
def test_a_point_behind_the_camera_costs_infinity(scene: Scene, depth: float) -> None:
    """Both when all points are behind, and when the camera's plane cuts the board."""
    problem, poses = scene.problem, scene.poses.copy()
    last = poses[-1]
    last[11] = depth - scene.observations.target.points.mean(axis=0) @ last[6:9]
    view = problem.n_views - 1
    cost, _, _ = kernel_view(problem, problem.weights, last, view, None)
    assert cost == np.inf
    arrays = (problem.data, problem.weights, problem.count, problem.first)
    system = np.empty((problem.n_views, 14, 14)), np.empty((problem.n_views, 14))
    costs = kernels.linearise_views(THETA, NO_BOW, 0, poses, *arrays, *system)
    assert np.isfinite(costs[:-1]).all()
    assert costs[-1] == np.inf


def test_refining_poses_finds_their_optimum(scene: Scene) -> None:
    """Gradient zero at the end, from poses that are a good way off."""
    problem = scene.problem
    rng = np.random.default_rng(8)
    poses = np.stack([twins.moved(p, 0.02 * rng.standard_normal(6)) for p in scene.poses])
    poses = refine_poses(problem, THETA, poses, problem.weights)
    refined = Scene(scene.observations, poses, scene.outliers)
    for view in range(problem.n_views):
        residual, jacobian = plain_view(refined, problem.weights, view, None)
        slope = jacobian[:, 8:].T @ residual / np.linalg.norm(jacobian[:, 8:], axis=0)
        assert np.abs(slope).max() < 1e-7 * np.linalg.norm(residual)


def test_poses_from_nothing(scene: Scene) -> None:
    """Perspective-n-Point and refinement end where refining the true poses ends."""
    problem = scene.problem
    found = estimate_poses(problem, THETA)
    np.testing.assert_allclose(
        found, refine_poses(problem, THETA, scene.poses, problem.weights), atol=1e-7
    )
