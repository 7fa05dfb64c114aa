"""Rendered pictures against brute force and against the projection."""

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from benchmarks.render import fitted_corner
from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics, project, project_with_jacobians, unproject
from influx_wrap.model.pose import rotation_matrix
from influx_wrap.model.target import AprilGrid, Checkerboard, Target, bow_basis
from influx_wrap.synth import render as render_module
from influx_wrap.synth.board import FRONTAL
from influx_wrap.synth.motion import between
from influx_wrap.synth.render import (
    MARGIN_PX,
    RenderOptions,
    ray_grid,
    render_board,
    render_moving,
)
from tests.boards import ink

Picture = NDArray[np.uint8]

GRID = AprilGrid(tag_cols=6, tag_rows=4, tag_size_m=0.012, tag_spacing=0.3)
CHECKERS = Checkerboard(cols=9, rows=6, col_spacing_m=0.008, row_spacing_m=0.007)
SIZE = (1000, 700)
SMALL = (60, 45)
SHARP = RenderOptions()
BARREL = Intrinsics(900, 905, 495.3, 352.1, -0.18, 0.03, 4e-4, -3e-4)
PLAIN = Intrinsics(1200, 1200, 499.5, 349.5)
PINCUSHION = Intrinsics(1500, 1500, 499.5, 349.5, 0.2, 0.1)


def pose(
    target: Target, depth_m: float, tilt: tuple[float, float, float], shift_m: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """The board's middle at ``depth_m`` on the axis, turned by a rotation vector."""
    middle = (target.points.min(axis=0) + target.points.max(axis=0)) / 2
    rotation = rotation_matrix(tilt) @ FRONTAL
    return rotation, np.array([shift_m, 0.6 * shift_m, depth_m]) - rotation @ middle


def render(
    camera: Intrinsics,
    target: Target,
    at: tuple[FloatArray, FloatArray],
    options: RenderOptions = SHARP,
    size: tuple[int, int] = SIZE,
    seed: int = 0,
) -> Picture:
    rays = ray_grid(camera, size)
    return render_board(rays, target, *at, options, np.random.default_rng(seed))


def fine_picture(
    camera: Intrinsics,
    target: Target,
    at: tuple[FloatArray, FloatArray],
    size: tuple[int, int],
    n: int,
    margin: int,
) -> FloatArray:
    """The plain-numpy twin: n x n point samples per pixel, ``margin`` pixels more around."""
    u, v = ((np.arange(n * (s + 2 * margin)) + 0.5) / n - 0.5 - margin for s in size)
    ab, valid = unproject(camera, np.stack(np.meshgrid(u, v), axis=-1))
    rotation, translation = at
    direction = np.concatenate([ab, np.ones_like(ab[..., :1])], axis=-1)
    reach = (rotation[:, 2] @ translation) / (direction @ rotation[:, 2])
    x, y, _ = np.moveaxis((direction * reach[..., None] - translation) @ rotation, -1, 0)
    low, high = target.points.min(axis=0), target.points.max(axis=0)
    # The sheet ends 5 % of the pattern's longer side beyond it: for a GRID, a gap further
    # out than its points.
    gap = 0.3 * GRID.tag_size_m
    border = gap + 0.05 * (high[0] - low[0] + 2 * gap)
    sheet = (x > low[0] - border) & (x < high[0] + border)
    sheet &= (y > low[1] - border) & (y < high[1] + border) & valid & (reach > 0)
    return np.where(sheet, np.where(ink(target, x, y), 20.0, 235.0), 110.0)


def pixel_means(fine: FloatArray, n: int, margin: int) -> FloatArray:
    height, width = (s // n for s in fine.shape)
    means = fine.reshape(height, n, width, n).mean(axis=(1, 3))
    return means[margin : height - margin, margin : width - margin]


@pytest.mark.parametrize(
    "camera",
    [
        Intrinsics(120, 125, 55.3, 42.1, -0.2, 0.05, 1e-3, -2e-3),
        Intrinsics(60, 60, 50.2, 30.7, -0.5),
        Intrinsics(60, 61, 50.2, 30.7, -0.4, 0.02, 3e-3, 2e-3),
        Intrinsics(90, 90, 50.2, 30.7, 0.3, 0.1, 2e-3, -1e-3),
        Intrinsics(90, 90, 50.2, 30.7, -0.1, -0.2),
        Intrinsics(90, 90, 50.2, 30.7),
        Intrinsics(80, 80, -20.0, 30.7, -0.3, 0.03, 1e-3, 1e-3),
    ],
)
def test_rays_are_those_of_the_camera_model(camera: Intrinsics) -> None:
    rays = ray_grid(camera, (101, 66))
    u, v = (np.arange(n + 2 * MARGIN_PX + 1) - MARGIN_PX - 0.5 for n in (101, 66))
    expected, valid = unproject(camera, np.stack(np.meshgrid(u, v), axis=-1))
    found = np.stack([rays.a, rays.b], axis=-1)
    np.testing.assert_array_equal(np.isfinite(found).all(axis=-1), valid)
    # Both stop at the same residual; next to the fold a residual is worth any distance.
    directions = np.concatenate([expected, np.ones_like(expected[..., :1])], axis=-1)
    *_, d_point = project_with_jacobians(camera, directions)
    determinant = d_point[..., 0, 0] * d_point[..., 1, 1] - d_point[..., 0, 1] ** 2
    steep = determinant > 1e-3 * camera.fx * camera.fy
    assert steep.sum() > 0.9 * valid.sum() > 1000
    np.testing.assert_allclose(found[steep], expected[steep], rtol=0, atol=1e-12)


# 24 tags of a few pixels a cell, a corner of the sheet, far away and strongly tilted.
VIEWS = [
    (Intrinsics(300, 300, 30.2, 22.7, -0.2, 0.05, 1e-3, -2e-3), 0.2, (0.3, -0.5, 0.4), 0.0),
    (Intrinsics(300, 300, 30.2, 22.7), 0.1, (0.2, 0.1, -0.3), 0.04),
    (Intrinsics(300, 300, 30.2, 22.7), 0.9, (0.9, 0.2, 1.3), 0.0),
]


@pytest.mark.parametrize(("camera", "depth", "tilt", "shift"), VIEWS)
def test_pixels_are_the_mean_of_what_they_see(
    camera: Intrinsics, depth: float, tilt: tuple[float, float, float], shift: float
) -> None:
    at = pose(GRID, depth, tilt, shift)
    expected = pixel_means(fine_picture(camera, GRID, at, SMALL, 24, 0), 24, 0)
    difference = render(camera, GRID, at, size=SMALL) - expected
    # The twin's own error, which falls with the number of its samples along an edge.
    assert np.abs(difference).max() < 215 / 24
    assert np.abs(difference).mean() < 0.4
    assert abs(difference.mean()) < 0.05


@pytest.mark.parametrize(
    ("blur_px", "defocus_px", "worst"),
    [(0.4, 0, 6), (0.7, 0, 2.5), (1.5, 0, 1.2), (0.5, 2.3, 1.5), (0.5, 6, 1.5)],
)
def test_blur_is_that_of_a_continuous_picture(
    blur_px: float, defocus_px: float, worst: float
) -> None:
    camera, depth, tilt, shift = VIEWS[1]
    at, n, margin = pose(GRID, depth, tilt, shift), 12, 10
    fine = gaussian_filter(fine_picture(camera, GRID, at, SMALL, n, margin), blur_px * n)
    if defocus_px:
        reach = np.arange(-np.ceil(defocus_px * n), np.ceil(defocus_px * n) + 1)
        disc = (np.hypot(reach, reach[:, None]) <= defocus_px * n).astype(float)
        spectrum = np.fft.rfft2(disc / disc.sum(), fine.shape)
        fine = np.fft.irfft2(np.fft.rfft2(fine) * spectrum, fine.shape)
        fine = np.roll(fine, (-(len(reach) // 2),) * 2, (0, 1))
    expected = pixel_means(fine, n, margin)
    options = RenderOptions(blur_px=blur_px, defocus_px=defocus_px)
    difference = render(camera, GRID, at, options, size=SMALL) - expected
    assert np.abs(difference).max() < worst
    assert difference.std() < worst / 4


def corner_errors(
    camera: Intrinsics,
    target: AprilGrid | Checkerboard,
    at: tuple[FloatArray, FloatArray],
    options: RenderOptions,
    every: int,
) -> FloatArray:
    """Found less projected (N, 2) in pixels, of every so manieth corner in the picture."""
    picture = render(camera, target, at, options)
    uv, valid = project(camera, target.points @ at[0].T + at[1])
    inside = valid & (uv > 10).all(axis=1) & (uv < np.array(SIZE) - 11).all(axis=1)
    chosen = uv[inside][::every]
    return np.array([fitted_corner(picture, near) - near for near in chosen])


@pytest.mark.parametrize(
    ("camera", "depth", "tilt"),
    [
        (PLAIN, 0.125, (0, 0, 0)),
        (PLAIN, 0.125, (0, 0, 0.3)),
        (BARREL, 0.09, (0.02, 0.01, -0.02)),
        (BARREL, 0.1, (0.5, 0, 0.1)),
        (PINCUSHION, 0.15, (0, -0.7, 0)),
    ],
)
def test_corners_lie_where_the_projection_puts_them(
    camera: Intrinsics, depth: float, tilt: tuple[float, float, float]
) -> None:
    errors = corner_errors(camera, GRID, pose(GRID, depth, tilt), RenderOptions(blur_px=0.7), 3)
    assert len(errors) >= 25
    assert np.abs(errors.mean(axis=0)).max() < 0.003
    assert np.abs(errors).max() < 0.01


def test_corners_of_a_checkerboard() -> None:
    at = pose(CHECKERS, 0.1, (0.3, -0.2, 0.1))
    errors = corner_errors(BARREL, CHECKERS, at, RenderOptions(blur_px=0.7), 1)
    assert len(errors) >= 25
    assert np.abs(errors).max() < 0.01


def test_corners_of_a_bent_board() -> None:
    at, bow_m = pose(GRID, 0.1, (0.3, -0.4, 0.1)), np.array([1e-3, -5e-4, 4e-4])
    picture = render_board(
        ray_grid(BARREL, SIZE), GRID, *at, RenderOptions(blur_px=0.7), np.random.default_rng(0),
        bow_m=bow_m,
    )  # fmt: skip
    points = GRID.points + np.array([0, 0, 1]) * (bow_basis(GRID.points) @ bow_m)[:, None]
    uv, valid = project(BARREL, points @ at[0].T + at[1])
    flat, _ = project(BARREL, GRID.points @ at[0].T + at[1])
    inside = valid & (uv > 10).all(axis=1) & (uv < np.array(SIZE) - 11).all(axis=1)
    assert np.abs(uv - flat)[inside].max() > 3
    errors = np.array([fitted_corner(picture, near) - near for near in uv[inside][::4]])
    assert len(errors) >= 20
    assert np.abs(errors).max() < 0.01


@pytest.mark.parametrize("shift_m", [0.0002, 0.002, 0.01, 0.03, 0.08])
@pytest.mark.parametrize("defocus_px", [0.0, 2.0])
def test_a_moving_board_is_the_mean_over_the_exposure(shift_m: float, defocus_px: float) -> None:
    size = (200, 140)
    camera = Intrinsics(250, 250, 99.5, 69.5, -0.1)
    options = RenderOptions(blur_px=0.7, defocus_px=defocus_px)
    first = pose(GRID, 0.17, (0.3, -0.2, 0.1), -shift_m / 2)
    last = pose(GRID, 0.17, (0.3, -0.2, 0.1 + 2 * shift_m), shift_m / 2)
    rotations, translations = (np.stack(pair) for pair in zip(first, last, strict=True))
    rng = np.random.default_rng(0)
    rays = ray_grid(camera, size)
    n = 200
    poses = zip(*between(rotations, translations, (np.arange(n) + 0.5) / n), strict=True)
    expected = np.mean([render_board(rays, GRID, *at, options, rng) for at in poses], axis=0)
    found = render_moving(rays, GRID, rotations, translations, options, rng)
    difference = found - expected
    still = render_board(rays, GRID, *first, options, rng) - expected
    # Not exact, but a smear: much nearer to the mean than any sharp picture is.
    assert difference.std() < 0.25 * still.std()
    assert np.abs(difference).max() < 0.4 * np.abs(still).max()
    assert abs(difference.mean()) < 0.6


def test_a_board_that_does_not_move_is_rendered_as_such() -> None:
    at = pose(GRID, 0.15, (0.2, 0.1, 0))
    rays, options = ray_grid(PLAIN, SIZE), RenderOptions(blur_px=0.7, noise=4)
    twice = (np.stack([part, part]) for part in at)
    moving = render_moving(rays, GRID, *twice, options, np.random.default_rng(3))
    np.testing.assert_array_equal(moving, render(PLAIN, GRID, at, options, seed=3))


def test_all_tags_of_a_full_size_board_are_read() -> None:
    board = AprilGrid(tag_cols=11, tag_rows=8, tag_size_m=0.012, tag_spacing=0.3)
    camera = Intrinsics(3000, 3000, 1711.5, 1100.5, -0.1, 0.02)
    options = RenderOptions(blur_px=0.7, noise=2, sheet_m=(0.2, 0.15))
    at = pose(board, 0.2, (0, 0, 0))
    picture = render(camera, board, at, options, size=(3424, 2202))
    parameters = cv2.aruco.DetectorParameters()
    parameters.markerBorderBits = 2
    family = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_APRILTAG_36h11)
    corners, ids, _ = cv2.aruco.ArucoDetector(family, parameters).detectMarkers(picture)
    assert sorted(ids.ravel().tolist()) == list(range(88))
    uv, _ = project(camera, board.points @ at[0].T + at[1])
    for quad, tag_id in zip(corners, ids.ravel(), strict=True):
        bottom_left, bottom_right, top_left, top_right = uv[board.tag_of_point == tag_id]
        expected = [bottom_right, bottom_left, top_left, top_right]
        np.testing.assert_allclose(quad[0], expected, atol=8)


FAR = pose(GRID, 5.0, (0, 0, 0))


def test_noise_has_the_asked_strength_and_is_white() -> None:
    picture = render(PLAIN, GRID, FAR, RenderOptions(noise=8))[:300].astype(float)
    assert picture.mean() == pytest.approx(110, abs=0.1)
    assert picture.std() == pytest.approx(np.hypot(8, 12**-0.5), rel=0.01)
    deviation = picture - picture.mean()
    assert abs(np.mean(deviation[:, 1:] * deviation[:, :-1])) < 0.5
    assert abs(np.mean(deviation[1:] * deviation[:-1])) < 0.5


def test_same_seed_same_bytes() -> None:
    options = RenderOptions(blur_px=0.7, noise=4, vignetting=0.2)
    at = pose(GRID, 0.15, (0.2, 0.1, 0))
    first = render(PLAIN, GRID, at, options, seed=3)
    np.testing.assert_array_equal(first, render(PLAIN, GRID, at, options, seed=3))
    assert (first != render(PLAIN, GRID, at, options, seed=4)).any()


def test_vignetting_darkens_the_corners() -> None:
    picture = render(PLAIN, GRID, FAR, RenderOptions(vignetting=0.5, background=200))
    assert picture[[0, 0, -1, -1], [0, -1, 0, -1]].tolist() == [100] * 4
    assert picture[0, 500] == pytest.approx(200 * (1 - 0.5 * 0.7**2 / (1 + 0.7**2)), abs=1)


def test_levels_sheet_and_background() -> None:
    options = RenderOptions(black=5, white=250, background=60, sheet_m=(0.11, 0.09))
    picture = render(PLAIN, GRID, pose(GRID, 0.2, (0, 0, 0)), options)
    assert set(np.unique(picture[::7, ::7]).tolist()) >= {5, 60, 250}
    rows, cols = np.flatnonzero(picture[:, 499] != 60), np.flatnonzero(picture[349] != 60)
    assert np.ptp(cols) + 1 == pytest.approx(0.11 / 0.2 * 1200, abs=1.01)
    assert np.ptp(rows) + 1 == pytest.approx(0.09 / 0.2 * 1200, abs=1.01)


def test_beyond_the_fold_is_background() -> None:
    camera = Intrinsics(500, 500, 499.5, 349.5, -0.5)
    at = pose(GRID, 0.02, (0, 0, 0))
    picture = render(camera, GRID, at, RenderOptions(background=77))
    _, valid = unproject(camera, [[0.0, 0.0], [499.5, 349.5]])
    assert valid.tolist() == [False, True]
    assert picture[0, 0] == 77
    assert picture[349, 499] != 77


def test_a_plane_through_the_horizon() -> None:
    """A board seen so flat that its plane vanishes inside the picture."""
    rotation = rotation_matrix([1.5, 0, 0]) @ FRONTAL
    translation = np.array([0.0, -0.02, 0.2])
    picture = render(PLAIN, GRID, (rotation, translation))
    assert (picture == 110).mean() > 0.3
    assert (picture == 235).any()


def test_mistakes_are_named() -> None:
    with pytest.raises(InputError, match="shows its back"):
        render(PLAIN, GRID, (np.eye(3), np.array([0, 0, 1.0])))
    with pytest.raises(InputError, match="too small"):
        render(PLAIN, GRID, FAR, RenderOptions(sheet_m=(0.05, 0.05)))
    with pytest.raises(InputError, match="reaches"):
        RenderOptions(blur_px=6)
    with pytest.raises(InputError, match="vignetting"):
        RenderOptions(vignetting=1.5)
    with pytest.raises(InputError, match=">= 0"):
        RenderOptions(noise=-1)


@pytest.mark.parametrize("camera", [BARREL, PINCUSHION])
def test_only_where_the_sheet_is_rays_are_followed(
    camera: Intrinsics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one byte differs from a picture of which all rays are followed."""
    rays, options = ray_grid(camera, SIZE), RenderOptions(blur_px=0.8, defocus_px=1.5)

    def pictures() -> list[Picture]:
        made = []
        for depth_m, angles in (
            (0.12, (0.9, 0.2, 0.3)),
            (0.3, (0, -0.7, 0.1)),
            (2.0, (0.2, 0.2, 1.4)),
        ):
            rotation, translation = pose(GRID, depth_m, angles)
            for shift in ((0, 0, 0), (0.5 * depth_m, 0.3 * depth_m, 0), (0, -1.5 * depth_m, 0)):
                held = rotation, translation + shift
                made.append(render_board(rays, GRID, *held, options, np.random.default_rng(0)))
        return made

    seen = pictures()
    assert any((picture != picture[0, 0]).any() for picture in seen)
    whole = (0, rays.a.shape[0] - 1), (0, rays.a.shape[1] - 1)
    monkeypatch.setattr(render_module, "_where_sheet_is", lambda *_: whole)
    np.testing.assert_array_equal(seen, pictures())
