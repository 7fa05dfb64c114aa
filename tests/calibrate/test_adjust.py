"""The adjustment against OpenCV, scipy and what theory says."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from influx_wrap.calibrate.adjust import KALIBR_STOP, TIGHT_STOP, Adjustment, Prior, adjust
from influx_wrap.calibrate.batch import PrincipalPointPrior, fit_batch
from influx_wrap.calibrate.initialise import starting_theta
from influx_wrap.calibrate.pose import estimate_poses
from influx_wrap.calibrate.uncertainty import inverse_information
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import NAMES, image_centre
from tests.calibrate import twins
from tests.calibrate.scenes import CAMERA, GRID, IMAGE_SIZE, Scene, board_scene, opencv_project

FOCAL_GUESS_PX = 1000.0
# Fixing k3 at zero leaves OpenCV with exactly our eight intrinsics.
OPENCV_FLAGS = cv2.CALIB_USE_INTRINSIC_GUESS | cv2.CALIB_FIX_K3
OPENCV_TIGHT = (cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, 1000, 1e-17)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return board_scene(11, 12)


def full_adjustment(scene: Scene, focal_px: float = FOCAL_GUESS_PX) -> Adjustment:
    """PnP and a tight adjustment from nothing but a focal length."""
    theta = starting_theta(focal_px, IMAGE_SIZE)
    poses = estimate_poses(scene.problem, theta)
    return adjust(scene.problem, theta, poses, stop=TIGHT_STOP)


def opencv_calibration(scene: Scene) -> tuple[FloatArray, FloatArray, float]:
    """OpenCV's intrinsics (8,), their reported deviations (8,) and its cost."""
    observations = scene.observations
    points = observations.target.points.astype(np.float32)
    objects = [points[seen] for seen in observations.valid]
    pixels = [
        uv[seen].astype(np.float32)
        for uv, seen in zip(observations.uv, observations.valid, strict=True)
    ]
    cx, cy = image_centre(IMAGE_SIZE)
    matrix = np.array([[FOCAL_GUESS_PX, 0, cx], [0, FOCAL_GUESS_PX, cy], [0, 0, 1.0]])
    rms, matrix, distortion, _, _, deviations, _, _ = cv2.calibrateCameraExtended(
        objects, pixels, IMAGE_SIZE, matrix, np.zeros(5), flags=OPENCV_FLAGS, criteria=OPENCV_TIGHT
    )
    theta = np.array([matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2]])
    cost = rms**2 * observations.n_corners
    return np.concatenate([theta, distortion.ravel()[:4]]), deviations.ravel()[:8], cost


def estimated_sigma(scene: Scene, fit: Adjustment) -> FloatArray:
    """(8,) standard deviations, with the noise taken from the residuals."""
    dof = 2 * scene.observations.n_corners - len(fit.information) - 6 * len(fit.poses)
    return np.sqrt(fit.cost / dof * np.diag(inverse_information(fit.information))[:8])


def scipy_solution(scene: Scene, start: FloatArray, *, prior: Prior | None = None) -> FloatArray:
    """(8,) the optimum by scipy, with OpenCV's projection and numerical derivatives.

    Starts from intrinsics ``start`` (8,) and the true poses.
    """
    observations, n = scene.observations, len(scene.poses)
    seen = observations.valid
    scale = np.array([1, 1, 1, 1, 1e-3, 1e-3, 1e-4, 1e-4])

    def residuals(x: FloatArray) -> FloatArray:
        theta = x[:8] * scale
        rotations = Rotation.from_rotvec(x[8 : 8 + 3 * n].reshape(n, 3)).as_matrix()
        translations = x[8 + 3 * n :].reshape(n, 3)
        poses = np.concatenate([rotations.reshape(n, 9), translations], axis=1)
        pixels = [
            opencv_project(theta, poses[v], observations.target.points[seen[v]]) for v in range(n)
        ]
        apart = observations.uv[seen] - np.concatenate(pixels)
        if prior is None:
            return apart.ravel()
        return np.concatenate([apart.ravel(), np.sqrt(prior.information) * (theta - prior.mean)])

    rotations = Rotation.from_matrix(scene.poses[:, :9].reshape(n, 3, 3)).as_rotvec()
    x = np.concatenate([start / scale, rotations.ravel(), scene.poses[:, 9:].ravel()])
    x = least_squares(
        residuals, x, jac="3-point", x_scale="jac", ftol=1e-15, xtol=1e-15, gtol=1e-15, max_nfev=60
    ).x
    return x[:8] * scale


def assert_same_optimum(ours: FloatArray, theirs: FloatArray) -> None:
    """One millionth in every intrinsic; the scenes' intrinsics are all well above zero."""
    relative = np.abs(ours - theirs) / np.abs(theirs)
    print("relative difference", dict(zip(NAMES, relative, strict=True)))
    assert relative.max() < 1e-6


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_same_optimum_as_opencv(seed: int) -> None:
    scene = board_scene(seed, 12)
    fit = full_adjustment(scene)
    theta, _, cost = opencv_calibration(scene)
    assert fit.converged
    assert_same_optimum(fit.theta, theta)
    assert fit.cost == pytest.approx(cost, rel=1e-10)


def test_same_optimum_as_scipy() -> None:
    scene = board_scene(14, 6)
    fit = full_adjustment(scene)
    assert_same_optimum(fit.theta, scipy_solution(scene, CAMERA.array))


def test_batch_without_outliers_is_the_least_squares_optimum(scene: Scene) -> None:
    theta = starting_theta(FOCAL_GUESS_PX, IMAGE_SIZE)
    fit = fit_batch(scene.problem, GRID.points, theta)
    assert fit.weights.sum() == scene.observations.n_corners
    assert_same_optimum(fit.theta, opencv_calibration(scene)[0])
    # Every view differs from the others, and none contradicts them.
    assert (fit.groups, fit.inflation) == (12, 1.0)
    np.testing.assert_allclose(
        np.sqrt(np.diag(fit.covariance)), estimated_sigma(scene, full_adjustment(scene)), rtol=1e-6
    )


@pytest.mark.parametrize("focal_px", [700.0, 800.0, 1500.0, 2000.0])
def test_optimum_does_not_depend_on_the_start(scene: Scene, focal_px: float) -> None:
    fit, reference = full_adjustment(scene, focal_px), full_adjustment(scene)
    assert fit.converged
    np.testing.assert_allclose(fit.theta, reference.theta, rtol=1e-6)


def test_covariance_agrees_with_opencv(scene: Scene) -> None:
    fit = full_adjustment(scene)
    theirs = opencv_calibration(scene)[1]
    ratio = estimated_sigma(scene, fit) / theirs
    print("our sigma / OpenCV's", ratio)
    np.testing.assert_allclose(ratio, 1, atol=0.05)


def test_information_is_the_dense_schur_complement(scene: Scene) -> None:
    fit = full_adjustment(scene)
    observations, n = scene.observations, len(fit.poses)
    h = np.zeros((8 + 6 * n, 8 + 6 * n))
    for view in range(n):
        seen = observations.valid[view]
        _, jacobian = twins.view_system(
            fit.theta, fit.poses[view], observations.target.points[seen],
            observations.uv[view][seen], None,
        )  # fmt: skip
        index = np.r_[0:8, 8 + 6 * view : 14 + 6 * view]
        h[np.ix_(index, index)] += jacobian.T @ jacobian
    expected, _ = twins.schur(h, np.zeros(len(h)), 8)
    scale = np.sqrt(np.diag(h)[:8])
    np.testing.assert_allclose(
        fit.information / np.outer(scale, scale), expected / np.outer(scale, scale), atol=1e-10
    )


def test_a_prior_pulls_the_principal_point() -> None:
    """Against scipy, and to its limits: infinitely weak, infinitely strong."""
    scene = board_scene(21, 3)
    theta = starting_theta(FOCAL_GUESS_PX, IMAGE_SIZE)
    poses = estimate_poses(scene.problem, theta)
    free = full_adjustment(scene)

    def with_prior(information: float) -> tuple[FloatArray, Prior]:
        mean, weight = np.zeros(8), np.zeros(8)
        mean[2:4], weight[2:4] = image_centre(IMAGE_SIZE), information
        prior = Prior(mean, weight)
        fit = adjust(scene.problem, theta, poses, stop=TIGHT_STOP, prior=prior)
        assert fit.converged
        return fit.theta, prior

    weak, _ = with_prior(1e-9)
    np.testing.assert_allclose(weak[2:4], free.theta[2:4], rtol=1e-6)
    strong, _ = with_prior(1e9)
    np.testing.assert_allclose(strong[2:4], image_centre(IMAGE_SIZE), rtol=1e-6)

    middle, prior = with_prior(free.information[2, 2] * 0.1)
    pulled = np.abs(middle[2:4] - image_centre(IMAGE_SIZE))
    assert (pulled < 0.95 * np.abs(free.theta[2:4] - image_centre(IMAGE_SIZE))).any()
    assert_same_optimum(middle, scipy_solution(scene, CAMERA.array, prior=prior))


def test_a_prior_adds_its_information() -> None:
    centre = image_centre(IMAGE_SIZE)
    scene = board_scene(21, 3, camera=replace(CAMERA, cx=centre[0], cy=centre[1]))
    theta = starting_theta(FOCAL_GUESS_PX, IMAGE_SIZE)
    fit = fit_batch(scene.problem, GRID.points, theta)
    held = fit_batch(scene.problem, GRID.points, theta, prior=PrincipalPointPrior(0.5, always=True))
    sigma, sigma_held = (np.sqrt(np.diag(f.covariance))[2:4] for f in (fit, held))
    assert (sigma_held < sigma).all()
    assert (sigma_held < 0.5 * 1.05).all()


def test_bow_is_recovered() -> None:
    """Three shape coefficients within four standard deviations, and the intrinsics too."""
    bow = np.array([6e-4, -4e-4, 5e-4])
    scene = board_scene(31, 20, bow_m=tuple(bow))
    theta = starting_theta(FOCAL_GUESS_PX, IMAGE_SIZE)
    poses = estimate_poses(scene.problem, theta)
    fit = adjust(scene.problem, theta, poses, stop=TIGHT_STOP, bow=np.zeros(3))
    assert fit.converged
    covariance = 0.1**2 * inverse_information(fit.information)
    sigma = np.sqrt(np.diag(covariance))
    assert (np.abs(fit.bow - bow) < 4 * sigma[8:]).all()
    assert (sigma[8:] < 0.05 * np.abs(bow)).all()
    assert (np.abs(fit.theta - CAMERA.array) < 4 * sigma[:8]).all()

    flat = full_adjustment(scene)
    assert flat.cost > 1.5 * fit.cost
    assert (np.abs(flat.theta - CAMERA.array) / sigma[:8]).max() > 6


def test_weights_leave_corners_out(scene: Scene) -> None:
    """A corner of weight zero may be anywhere."""
    spoilt = board_scene(11, 12, n_outliers=30)
    weights = spoilt.problem.weights.copy()
    view = np.broadcast_to(spoilt.problem.view_of_chunk[:, None], weights.shape)
    slot = spoilt.problem.point >= 0
    weights[slot] = ~spoilt.outliers[view[slot], spoilt.problem.point[slot]]
    theta = starting_theta(FOCAL_GUESS_PX, IMAGE_SIZE)
    poses = estimate_poses(spoilt.problem, theta)
    fit = adjust(spoilt.problem, theta, poses, stop=TIGHT_STOP, weights=weights)
    rms = np.sqrt(fit.cost / weights.sum() / 2)
    assert rms == pytest.approx(0.1, rel=0.1)
    np.testing.assert_allclose(fit.theta[:4], full_adjustment(scene).theta[:4], rtol=3e-4)


def test_kalibr_stop_ends_early_but_close(scene: Scene) -> None:
    theta = starting_theta(FOCAL_GUESS_PX, IMAGE_SIZE)
    poses = estimate_poses(scene.problem, theta)
    loose = adjust(scene.problem, theta, poses, stop=KALIBR_STOP)
    tight = full_adjustment(scene)
    assert loose.converged
    assert tight.cost <= loose.cost <= tight.cost + 2.0
