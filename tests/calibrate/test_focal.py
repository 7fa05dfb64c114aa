"""The vanishing-point focal length where its formula is right, where it is not, and nowhere."""

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from influx_wrap.calibrate.calibrator import calibrate
from influx_wrap.calibrate.focal import FocalLengthError, vanishing_point_focal_px
from influx_wrap.calibrate.recipe import RECIPES
from influx_wrap.calibrate.result import CalibrationError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import image_centre
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import Checkerboard, PointCloud
from tests.calibrate.scenes import IMAGE_SIZE, board_scene

BOARD = Checkerboard(cols=12, rows=8, col_spacing_m=0.06, row_spacing_m=0.06)


def fisheye_pixels(points: FloatArray, focal_px: float) -> FloatArray:
    """An equidistant fisheye: r = f theta from the image centre."""
    theta = np.arctan2(np.hypot(points[:, 0], points[:, 1]), points[:, 2])
    direction = points[:, :2] / np.linalg.norm(points[:, :2], axis=1, keepdims=True)
    return np.array(image_centre(IMAGE_SIZE)) + focal_px * theta[:, None] * direction


def fisheye_views(focal_px: float, depth_m: float, seed: int = 0) -> Observations:
    """A board that fills much of a fisheye's view, tilted a little each time."""
    rng = np.random.default_rng(seed)
    centred = BOARD.points - (BOARD.points.max(axis=0) + BOARD.points.min(axis=0)) / 2
    views = []
    for _ in range(6):
        rotation = Rotation.from_rotvec(0.15 * rng.standard_normal(3)).as_matrix()
        shift = np.array([*rng.uniform(-0.03, 0.03, 2), depth_m])
        views.append(
            fisheye_pixels(centred @ (rotation @ np.diag([1.0, -1, -1])).T + shift, focal_px)
        )
    uv = np.array(views)
    return Observations(BOARD, uv, np.ones(uv.shape[:2], dtype=bool), IMAGE_SIZE)


@pytest.mark.parametrize("focal_px", [250.0, 300.0, 350.0])
def test_an_equidistant_fisheye_is_recovered(focal_px: float) -> None:
    observations = fisheye_views(focal_px, depth_m=0.08)
    assert vanishing_point_focal_px(observations) == pytest.approx(focal_px, rel=0.02)


def test_the_more_of_the_view_a_row_spans_the_better() -> None:
    """Images of lines are circles only approximately: short arcs mislead."""
    errors = [
        vanishing_point_focal_px(fisheye_views(250.0, d)) / 250.0 - 1 for d in (0.06, 0.1, 0.3)
    ]
    assert 0 < errors[0] < errors[1] < errors[2] < 0.1


def test_an_ordinary_lens_is_not() -> None:
    """The rows hardly bend: the guess is far off, as the original Kalibr's is."""
    scene = board_scene(1, 12, tilt_deg=5)
    assert scene.observations.valid.all(axis=1).any()
    assert vanishing_point_focal_px(scene.observations) > 1.5 * 1100


def test_only_complete_views_count() -> None:
    observations = fisheye_views(350.0, depth_m=0.3)
    whole = vanishing_point_focal_px(observations)
    valid = np.concatenate([observations.valid, observations.valid[:1]])
    uv = np.concatenate([observations.uv, 0.1 * observations.uv[:1] + 300])
    valid[-1, 0] = False
    with_part = Observations(BOARD, uv, valid, IMAGE_SIZE)
    assert vanishing_point_focal_px(with_part) == whole


def test_a_point_cloud_has_no_rows() -> None:
    points = np.random.default_rng(0).uniform(-1, 1, (12, 3))
    uv = np.random.default_rng(1).uniform(100, 500, (1, 12, 2))
    cloud = Observations(PointCloud(points), uv, np.ones((1, 12), dtype=bool), IMAGE_SIZE)
    with pytest.raises(FocalLengthError, match="no rows"):
        vanishing_point_focal_px(cloud)


def test_no_complete_view() -> None:
    observations = fisheye_views(350.0, depth_m=0.3)
    valid = observations.valid.copy()
    valid[:, 5] = False
    partial = dataclasses.replace(observations, valid=valid)
    with pytest.raises(FocalLengthError, match="no view shows the whole board"):
        vanishing_point_focal_px(partial)


def test_circles_that_never_meet() -> None:
    """Rows on concentric circles."""
    angle = np.linspace(0, 1.2, BOARD.cols)
    radius = np.arange(100, 100 + 10 * BOARD.rows, 10.0)
    rows = radius[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    uv = rows.reshape(1, -1, 2) + np.array(image_centre(IMAGE_SIZE))
    observations = Observations(BOARD, uv, np.ones(uv.shape[:2], dtype=bool), IMAGE_SIZE)
    with pytest.raises(FocalLengthError, match="no two rows intersect"):
        vanishing_point_focal_px(observations)


def test_the_calibration_says_why_it_has_no_focal_length() -> None:
    scene = board_scene(2, 10)
    valid = scene.observations.valid.copy()
    valid[:, 0] = False
    partial = dataclasses.replace(scene.observations, valid=valid)
    with pytest.raises(CalibrationError, match="no view shows the whole board") as caught:
        calibrate(partial, RECIPES["stock"], focal_px=None)
    assert caught.value.stage == "focal length"
    assert "thin-lens" in caught.value.advice
