"""A camera from one view of a few measured points, some of which may be wrong.

Before a flight's pairs are trusted, they must look like what one camera sees. A pose is
found that most points agree with, intrinsics and pose are adjusted to them with a soft
prior that keeps the camera an ordinary one, and points that do not fit are taken out until
none is left that does not. Few points bend a camera of 14 unknowns to their will, those in the
corners most of all: a residual counts by what is left of its own weight in the fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from influx_wrap.calibrate.adjust import TIGHT_STOP, Prior, adjust
from influx_wrap.calibrate.initialise import starting_theta
from influx_wrap.calibrate.problem import pack
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.intrinsics import Intrinsics, project, project_with_jacobians
from influx_wrap.model.observations import Observations
from influx_wrap.model.pose import skew, transform
from influx_wrap.model.robust import MEDIAN_LENGTH
from influx_wrap.model.target import PointCloud, is_planar

MIN_POINTS = 8
MIN_INLIER_SHARE = 0.6
OUTLIER_SIGMAS = 4.5
POSE_TOLERANCE = 0.06
"""Of the picture's width: what distortion and a poor focal length may do to a pose."""

FOCAL_SIGMA, UNKNOWN_FOCAL_SIGMA = 0.1, 0.3
CENTRE_SIGMA = 0.03
RADIAL_SIGMA, TANGENTIAL_SIGMA = 0.3, 0.01
MOST_SCALE = 5.0
"""By how much the noise may be larger than expected."""

MAX_ROUNDS, MAX_FITS = 20, 3
FOCALS = np.geomspace(0.4, 12.0, 14)
"""Focal lengths to try, in widths of the picture, where none is known."""


@dataclass(frozen=True, eq=False)
class OneView:
    """A camera and where it is, fitted to N points.

    rotation, translation  from the points' frame to camera space
    residual_px            (N,) distance of each point from where the camera sees it
    sigmas                 (N,) the same in units of what is to be expected there
    inliers                (N,) the points it was fitted to
    """

    intrinsics: Intrinsics
    rotation: FloatArray
    translation: FloatArray
    residual_px: FloatArray
    sigmas: FloatArray
    inliers: BoolArray

    def see(self, points: FloatArray) -> FloatArray:
        """Pixels (M, 2) of points (M, 3); NaN where the camera does not see them."""
        return project(self.intrinsics, transform(self.rotation[None], self.translation[None],
                                                  points)[0])[0]  # fmt: skip


def fit_one_view(
    points: FloatArray,
    uv: FloatArray,
    point_sigma: FloatArray,
    image_size: tuple[int, int],
    *,
    focal_px: float | None,
    sigma_px: float,
) -> OneView | None:
    """Fit points (N, 3), known to ``point_sigma`` (N,) per coordinate, seen at ``uv`` (N, 2) to
    ``sigma_px``; None if most of them belong to no camera.

    With ``focal_px`` None all focal lengths of usual lenses are tried.
    """
    if len(points) < MIN_POINTS or is_planar(points):
        return None
    known = focal_px is not None
    guesses = [focal_px] if focal_px is not None else (FOCALS * image_size[0]).tolist()
    starts = [_start(points, uv, focal, image_size) for focal in guesses]
    possible = sorted(filter(None, starts), key=lambda start: -int(start.inliers.sum()))
    focal_sigma = FOCAL_SIGMA if known else UNKNOWN_FOCAL_SIGMA
    fits = [
        _fit(points, uv, point_sigma, image_size, start, focal_sigma, sigma_px)
        for start in possible[:MAX_FITS]
    ]
    found = [fit for fit in fits if fit is not None]
    return min(found, key=lambda fit: float(np.median(fit.sigmas)), default=None)


@dataclass(frozen=True, eq=False)
class _Start:
    """Intrinsics (8,) without distortion, a pose (12,), and the points (N,) that agree."""

    theta: FloatArray
    pose: FloatArray
    inliers: BoolArray


def _fit(
    points: FloatArray,
    uv: FloatArray,
    point_sigma: FloatArray,
    image_size: tuple[int, int],
    start: _Start,
    focal_sigma: float,
    sigma_px: float,
) -> OneView | None:
    theta, pose, inliers = start.theta, start.pose, start.inliers
    valid = np.ones((1, len(points)), dtype=bool)
    problem = pack(Observations(PointCloud(points), uv[None], valid, image_size))
    prior = _prior(theta, focal_sigma, image_size[0])
    needed = max(MIN_POINTS, int(np.ceil(MIN_INLIER_SHARE * len(points))))
    for _ in range(MAX_ROUNDS):
        if inliers.sum() < needed:
            return None
        expected = _expected_px(points, pose, theta[0], point_sigma, sigma_px)
        weights = np.zeros_like(problem.weights)
        weights[0, : len(points)] = np.where(inliers, 1 / expected, 0.0)
        fit = adjust(problem, theta, pose[None], stop=TIGHT_STOP, weights=weights, prior=prior)
        theta, pose = fit.theta, fit.poses[0]
        if not (np.isfinite(theta).all() and np.isfinite(pose).all() and theta[0] > 0):
            return None
        residual, sigmas = _judged(points, uv, theta, pose, expected, inliers, prior)
        # Several faults bend the camera so that everything looks bad; none is normal then.
        scale = float(np.clip(np.median(sigmas) / MEDIAN_LENGTH, 1.0, MOST_SCALE))
        kept = sigmas <= OUTLIER_SIGMAS * scale
        # A large fault makes its neighbours look bad: the worst ones go first.
        spared = inliers & (sigmas < sigmas[inliers].max() / 2)
        kept |= spared
        if (kept == inliers).all():
            break
        inliers = kept
    return OneView(
        Intrinsics.from_array(theta), pose[:9].reshape(3, 3), pose[9:], residual, sigmas, inliers
    )


def _start(
    points: FloatArray, uv: FloatArray, focal_px: float, image_size: tuple[int, int]
) -> _Start | None:
    """The pose that most points agree with, for a camera without distortion."""
    theta = starting_theta(focal_px, image_size)
    rays = (uv - theta[2:4]) / theta[:2]
    centre = points.mean(axis=0)
    try:
        found, vector, translation, indices = cv2.solvePnPRansac(
            points - centre, rays, np.eye(3), None,
            iterationsCount=150, reprojectionError=POSE_TOLERANCE * image_size[0] / focal_px,
            confidence=0.9999, flags=cv2.SOLVEPNP_AP3P,
        )  # fmt: skip
    except cv2.error:
        return None
    if not found or indices is None or not np.isfinite(translation).all():
        return None
    inliers = np.zeros(len(points), dtype=bool)
    inliers[indices.ravel()] = True
    rotation = cv2.Rodrigues(vector)[0]
    pose = np.concatenate([rotation.ravel(), translation[:, 0] - rotation @ centre])
    return _Start(theta, pose, inliers)


def _prior(theta: FloatArray, focal_sigma: float, width: int) -> Prior:
    focal, centre = focal_sigma * theta[0], CENTRE_SIGMA * width
    distortion = [RADIAL_SIGMA] * 2 + [TANGENTIAL_SIGMA] * 2
    sigma = np.array([focal, focal, centre, centre, *distortion])
    return Prior(theta.copy(), 1 / sigma**2)


def _expected_px(
    points: FloatArray, pose: FloatArray, focal_px: float, point_sigma: FloatArray, sigma_px: float
) -> FloatArray:
    """(N,) noise of each coordinate in the picture: the LED's and, by its depth, the fix's."""
    depth = np.maximum(points @ pose[6:9] + pose[11], 1e-3)
    return np.hypot(sigma_px, focal_px * point_sigma / depth)


def _judged(
    points: FloatArray,
    uv: FloatArray,
    theta: FloatArray,
    pose: FloatArray,
    expected: FloatArray,
    inliers: BoolArray,
    prior: Prior,
) -> tuple[FloatArray, FloatArray]:
    """Residuals (N,) in pixels and in standard deviations.

    Their variance is less than the noise's for points that had a say in the fit, by what
    the fit followed them, and more for those that had none.
    """
    rotation = pose[:9].reshape(3, 3)
    camera = points @ rotation.T + pose[9:]
    seen, valid, d_theta, d_camera = project_with_jacobians(Intrinsics.from_array(theta), camera)
    d_pose = np.concatenate([-d_camera @ skew(camera - pose[9:]), d_camera], axis=2)
    jacobian = np.concatenate([d_theta, d_pose], axis=2) / expected[:, None, None]
    jacobian[~valid] = 0.0
    used = jacobian[inliers].reshape(-1, 14)
    information = used.T @ used
    information[np.arange(8), np.arange(8)] += prior.information
    scale = 1 / np.sqrt(np.maximum(np.diag(information), 1e-300))
    covariance = scale[:, None] * np.linalg.pinv(
        information * scale[:, None] * scale[None, :], hermitian=True
    ) * scale[None, :]  # fmt: skip
    follow = jacobian @ covariance @ np.swapaxes(jacobian, 1, 2)
    sign = np.where(inliers, -1.0, 1.0)[:, None, None]
    variance = np.eye(2) + sign * follow + 1e-3 * np.eye(2)
    residual = np.where(valid[:, None], uv - seen, np.inf)
    length = np.linalg.norm(residual, axis=1)
    scaled = np.where(valid[:, None], residual / expected[:, None], 0.0)
    squared = np.einsum("ni,nij,nj->n", scaled, np.linalg.inv(variance), scaled)
    return length, np.where(valid, np.sqrt(np.maximum(squared, 0.0)), np.inf)
