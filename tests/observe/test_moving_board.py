"""Boards that are moved without pause, held, or both: tracks of corners and a rendered clip."""

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from influx_wrap.model.intrinsics import Intrinsics, project
from influx_wrap.model.observations import Observations
from influx_wrap.model.pose import TILTS_DEG, rotation_matrix, transform
from influx_wrap.model.target import AprilGrid
from influx_wrap.observe.coverage import assess_coverage, place_boards
from influx_wrap.observe.footage import detect_usable
from influx_wrap.observe.held_poses import Reason, select_held_poses
from influx_wrap.observe.keyframes import choose_keyframes
from influx_wrap.observe.moving_board import displacement_px, steps_px
from influx_wrap.synth.board import FRONTAL
from influx_wrap.synth.motion import Trajectory, jerky
from influx_wrap.synth.render import RenderOptions, ray_grid, render_moving

CAMERA = Intrinsics(900.0, 905.0, 505.0, 310.0, k1=-0.08)
SIZE = (1000, 640)
GRID = AprilGrid(tag_cols=6, tag_rows=4, tag_size_m=0.05, tag_spacing=0.3)
MIDDLE = GRID.points.mean(axis=0)


def waved(n, rng, *, speed=0.018):
    """A board on a smooth path without any rest: (n, 3, 3), (n, 3)."""
    time = speed * np.cumsum(rng.uniform(0.6, 1.4, n))
    phase, rate = rng.uniform(0, 2 * np.pi, 6), np.array([1.0, 1.31, 0.47, 0.83, 0.71, 0.37])
    swing = np.sin(2 * np.pi * rate * time[:, None] + phase)
    turns = np.radians([38, 38, 15]) * swing[:, :3]
    centres = np.array([0, 0, 0.85]) + np.array([0.28, 0.15, 0.2]) * swing[:, 3:]
    rotations = Rotation.from_rotvec(turns).as_matrix() @ FRONTAL
    return rotations, centres - rotations @ MIDDLE


def seen(rotations, translations, rng, sigma_px=0.1):
    """What a detector finds of the board in all frames."""
    uv, valid = project(CAMERA, transform(rotations, translations, GRID.points))
    uv = uv + rng.normal(0, sigma_px, uv.shape)
    valid &= ((uv > 3) & (uv < np.array(SIZE) - 4)).all(axis=-1)
    enough = valid.sum(axis=1) >= 8
    uv = np.where(valid[..., None], uv, 0.0)
    return Observations(GRID, uv[enough], valid[enough], SIZE, np.flatnonzero(enough))


def focal_px(views, size=SIZE):
    """fx by OpenCV."""
    shown = [
        (views.target.points[found].astype(np.float32), uv[found].astype(np.float32))
        for uv, found in zip(views.uv, views.valid, strict=True)
    ]
    points, pixels = zip(*shown, strict=True)
    return cv2.calibrateCamera(points, pixels, size, None, None, flags=cv2.CALIB_FIX_K3)[1][0, 0]


@pytest.mark.parametrize("seed", range(3))
def test_a_board_that_is_never_held(seed):
    rng = np.random.default_rng(seed)
    every = seen(*waved(400, rng), rng)
    keyframes, chosen = choose_keyframes(every, 400, is_stills=False)
    assert len(select_held_poses(every, 400).frames) < 12, "too few to calibrate with"
    assert keyframes.mode == "moved"
    assert "poses were not held: the board is in motion in" in keyframes.why
    assert 20 <= chosen.n_views <= 60
    assert chosen.view_ids.tolist() == keyframes.frames.tolist()

    a, b = np.triu_indices(chosen.n_views, 1)
    apart = displacement_px(chosen.uv, chosen.valid, a, b)
    assert np.nanmin(apart) > np.hypot(*SIZE) / 150, "no two show the same pose"
    evenly = np.linspace(0, every.n_views - 1, chosen.n_views).astype(int)
    naive = assess_coverage(every.uv[evenly], every.valid[evenly], GRID, SIZE)
    ours = assess_coverage(chosen.uv, chosen.valid, GRID, SIZE)
    assert ours.share >= naive.share
    assert ours.views_per_orientation.min() >= 3
    assert focal_px(chosen) == pytest.approx(CAMERA.fx, rel=2e-3)


def test_slow_frames_are_preferred():
    """The hand stops and goes: of places that it passes anyway, the slow frames are taken."""
    rng = np.random.default_rng(1)
    rotations, translations = waved(4000, rng, speed=0.002)
    pace = 1 + 12 * (np.sin(np.arange(600) / 6) ** 2)
    frames = np.minimum(np.cumsum(pace).astype(int), 3999)
    every = seen(rotations[frames], translations[frames], rng)
    keyframes, _ = choose_keyframes(every, 600, is_stills=False)
    assert keyframes.mode == "moved"
    assert len(keyframes.frames) >= 20
    assert np.median(pace[keyframes.frames]) < 0.6 * np.median(pace)


@pytest.mark.parametrize("tremor_px", [0.2, 1.0])
def test_held_poses_are_chosen_as_ever(tremor_px):
    """The paper's procedure, even if all corners are found on the way from pose to pose."""
    rng = np.random.default_rng(0)
    places = [[x, y, 0.9] for x in (-0.15, 0.15) for y in (-0.08, 0.08)]
    rotations = np.repeat(rotation_matrix(np.radians(TILTS_DEG)) @ FRONTAL, 4, axis=0)
    translations = np.tile(places, (5, 1)) - rotations @ MIDDLE
    moved = jerky(rotations, translations, MIDDLE, tremor_px / CAMERA.fx, rng)
    every = seen(*moved.mid_exposure(), rng)
    keyframes, chosen = choose_keyframes(every, len(moved.pose), is_stills=False)
    held = select_held_poses(every, len(moved.pose))
    assert keyframes.mode == "held"
    assert keyframes.why.startswith("poses were held: the board is at rest in")
    assert chosen.view_ids.tolist() == held.frames.tolist()
    assert (keyframes.reasons == held.reasons).all()
    assert moved.pose[held.frames].tolist() == list(range(20))


def test_a_few_rests_among_much_motion():
    rng = np.random.default_rng(2)
    rotations, translations = waved(300, rng)
    hold = np.ones(300, dtype=int)
    hold[[40, 100, 170, 260]] = 20
    frames = np.repeat(np.arange(300), hold)
    every = seen(rotations[frames], translations[frames], rng)
    keyframes, _ = choose_keyframes(every, len(frames), is_stills=False)
    assert keyframes.mode == "moved"
    assert len(keyframes.frames) >= 20
    for rest in (40, 100, 170, 260):
        assert (frames[keyframes.frames] == rest).sum() == 1


def test_a_long_rest_before_the_motion():
    rng = np.random.default_rng(3)
    rotations, translations = waved(250, rng)
    frames = np.concatenate([np.zeros(400, dtype=int), np.arange(250)])
    every = seen(rotations[frames], translations[frames], rng)
    keyframes, _ = choose_keyframes(every, 650, is_stills=False)
    assert keyframes.mode == "moved"
    assert (keyframes.frames < 400).sum() <= 1
    assert len(keyframes.frames) >= 20


def test_frames_that_are_too_fast_or_alone_are_left_out():
    rng = np.random.default_rng(4)
    every = seen(*waved(300, rng, speed=0.01), rng)
    uv, valid, ids = every.uv.copy(), every.valid.copy(), every.view_ids
    # A jump of a third of the picture, and a frame between two that do not show the board.
    uv[100:103] += np.array([[40, 0], [90, 0], [140, 0]])[:, None]
    inside = ((uv >= 0) & (uv < np.array(SIZE) - 1)).all(axis=2)
    keep = ~np.isin(np.arange(len(ids)), [199, 201])
    jumpy = Observations(GRID, uv[keep], (valid & inside)[keep], SIZE, ids[keep])
    keyframes, _ = choose_keyframes(jumpy, 300, is_stills=False)
    assert keyframes.mode == "moved"
    assert not set(ids[[100, 101, 102, 200]]) & set(keyframes.frames)
    assert keyframes.reasons[ids[101]] == Reason.MOVING


def test_a_long_video():
    rng = np.random.default_rng(5)
    every = seen(*waved(6000, rng, speed=0.004), rng)
    keyframes, _ = choose_keyframes(every, 6000, is_stills=False)
    assert 20 <= len(keyframes.frames) <= 60


def test_placements_are_those_of_the_poses():
    rng = np.random.default_rng(6)
    rotations, translations = waved(60, rng)
    uv, valid = project(CAMERA, transform(rotations, translations, GRID.points))
    boards = place_boards(uv, valid, GRID, SIZE)
    middle = rotations @ MIDDLE + translations
    half_px = np.hypot(*SIZE) / 2
    flat = Intrinsics(*(CAMERA.fx, CAMERA.fy, *(np.array(SIZE) - 1) / 2))
    expected = (project(flat, middle)[0] - (np.array(SIZE) - 1) / 2) / half_px
    np.testing.assert_allclose(boards.centre, expected, atol=0.06)
    facing = np.abs(np.einsum("vi,vi->v", rotations[:, :, 2], middle)) / middle[:, 2]
    expected_size = np.sqrt(facing) / middle[:, 2]
    ratio = boards.size / expected_size
    assert ratio.std() / ratio.mean() < 0.05


def test_a_rendered_clip_without_pause():
    """Real detections, smeared by a shutter that is open for half of every frame."""
    rng = np.random.default_rng(0)
    size = (400, 280)
    camera = Intrinsics(420.0, 420.0, 203.0, 137.0)
    grid = AprilGrid(tag_cols=4, tag_rows=3, tag_size_m=0.05, tag_spacing=0.3)
    middle = grid.points.mean(axis=0)
    n = 80
    time = np.arange(2 * n + 1) / (2 * n)
    swing = np.sin(2 * np.pi * np.outer(time, [2.0, 3.0, 1.0]) + [0, 1, 2])
    rotations = Rotation.from_rotvec(np.radians([30, 30, 8]) * swing).as_matrix() @ FRONTAL
    drift = np.cos(2 * np.pi * np.outer(time, [1.5, 2.0, 1.0]))
    centres = np.array([0, 0, 0.42]) + np.array([0.06, 0.03, 0.06]) * drift
    translations = centres - rotations @ middle
    ends = 2 * np.arange(n)[:, None] + [0, 1]
    path = Trajectory(rotations[ends], translations[ends], np.full(n, -1))
    rays, options = ray_grid(camera, size), RenderOptions(blur_px=0.5, noise=2)
    found = [
        detect_usable(grid, render_moving(rays, grid, *pose, options, rng))
        for pose in zip(path.rotations, path.translations, strict=True)
    ]
    valid = np.array([one is not None and one.found for one in found])
    uv = np.where(valid[..., None], [one.uv for one in found], 0.0)
    shown = valid.any(axis=1)
    every = Observations(grid, uv[shown], valid[shown], size, np.flatnonzero(shown))
    assert every.n_views > 40
    keyframes, chosen = choose_keyframes(every, n, is_stills=False)
    assert keyframes.mode == "moved"
    assert chosen.n_views >= 20
    step_px = steps_px(every.view_ids, every.uv, every.valid)
    assert np.nanmedian(step_px) > 1.0, "it moves in most frames"
    assert focal_px(chosen, size) == pytest.approx(camera.fx, rel=5e-3)
