"""Keyframe selection against its quadratic twin and on videos whose poses are known."""

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.observations import Observations
from influx_wrap.model.pose import rotation_matrix
from influx_wrap.model.target import AprilGrid, Checkerboard
from influx_wrap.observe.aprilgrid import detect
from influx_wrap.observe.held_poses import (
    Reason,
    _strict_order,
    _suppression,
    least_corners,
    select_held_poses,
    select_keyframes,
)
from influx_wrap.observe.keyframes import keep_stills
from influx_wrap.observe.moving_board import displacement_px
from influx_wrap.synth.render import RenderOptions, ray_grid, render_board

COMPLETE = 352
GRID = AprilGrid(tag_cols=11, tag_rows=8, tag_size_m=0.05, tag_spacing=0.3)
SIZE = (1000, 640)


def jerky_counts(rng, n_poses, *, sigma, hold=(15, 40), move=(5, 15), gap=13):
    """Counts of each frame and the pose it shows, -1 while the board moves."""
    counts, poses = [], []
    for pose in range(n_poses):
        moving, rest = rng.integers(*move), rng.integers(*hold)
        level = COMPLETE + 2 if rng.random() < 0.5 else rng.integers(100, COMPLETE)
        still = np.clip(np.round(rng.normal(level, sigma, rest)), 0, COMPLETE)
        counts += [*rng.integers(0, gap, moving), *still]
        poses += [-1] * moving + [pose] * rest
    return np.array(counts).astype(int), np.array(poses)


class Film:
    """Corners of a board that is held and moved in front of a camera."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.uv, self.valid, self.pose = [], [], []
        self.shape = 1000 * (GRID.points[:, :2] - GRID.points[:, :2].mean(axis=0)) * [1, -1]

    def frame(self, centre, pose, share=1.0):
        uv = centre + 0.6 * self.shape + self.rng.normal(0, 0.2, 2)
        inside = ((uv > 4) & (uv < np.array(SIZE) - 5)).all(axis=1)
        self.uv.append(uv + self.rng.normal(0, 0.05, uv.shape))
        self.valid.append(inside & (self.rng.random(len(uv)) < share))
        self.pose.append(pose)

    def hold(self, centre, pose, n, share=1.0):
        for _ in range(n):
            self.frame(centre, pose, share)

    def move(self, start, end, n, shares):
        for t, share in zip((np.arange(n) + 0.5) / n, shares, strict=True):
            smooth = 10 * t**3 - 15 * t**4 + 6 * t**5
            self.frame((1 - smooth) * start + smooth * end, -1, share)

    def chosen(self):
        """The poses of the keyframes."""
        valid = np.array(self.valid)
        seen = valid.sum(axis=1) >= 8
        observations = Observations(
            GRID, np.array(self.uv)[seen], valid[seen], SIZE, np.flatnonzero(seen)
        )
        frames = select_held_poses(observations, len(valid)).frames
        return np.array(self.pose)[frames].tolist()


def centres(rng, n):
    """(n, 2) places to hold the board, each at least 60 px from the one before."""
    places = [np.array(SIZE) / 2]
    while len(places) < n:
        place = rng.uniform([250, 180], [750, 460])
        if np.linalg.norm(place - places[-1]) > 60:
            places.append(place)
    return np.array(places)


@pytest.mark.parametrize("seed", range(20))
def test_the_stack_equals_the_quadratic_way(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, [3, 12, 353][seed % 3], 120)
    dips = 0.75 * counts
    ranks = _strict_order(counts, dips, counts == counts.max())
    assert sorted(ranks) == list(range(120))
    assert np.all(np.diff(counts[np.argsort(ranks)]) >= 0)
    radii, own_pose = _suppression(counts, dips, ranks)
    for i in range(120):
        stronger = np.flatnonzero(ranks > ranks[i])
        assert radii[i] == (np.abs(stronger - i).min() if stronger.size else np.inf)
        ways = [counts[min(i, j) : max(i, j) + 1].min() for j in stronger]
        assert own_pose[i] == all(low < dips[i] for low in ways)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sigma", [0, 3, 8])
@pytest.mark.parametrize(
    "timing",
    [
        {"hold": (15, 40), "move": (5, 15), "gap": 13},
        {"hold": (3, 7), "move": (2, 4), "gap": 1},
        {"hold": (6, 15), "move": (3, 9), "gap": 48},
    ],
)
def test_one_frame_per_pose_by_counts(seed, sigma, timing):
    counts, poses = jerky_counts(np.random.default_rng(seed), 60, sigma=sigma, **timing)
    chosen = poses[select_keyframes(counts, COMPLETE, least_corners(GRID)).frames]
    assert len(set(chosen)) == len(chosen) >= 58
    assert -1 not in chosen


def test_a_video_that_starts_and_ends_in_motion():
    counts = [9, 30, 0, 200, 201, 201, 200, 5, 0, 352, 352, 352, 352, 352, 0, 40, 0]
    assert select_keyframes(counts, COMPLETE, 48).frames.tolist() == [4, 11]


def test_the_frames_beside_a_movement_are_not_chosen():
    counts = [0, 340, 330, 330, 330, 330, 330, 338, 0]
    assert select_keyframes(counts, COMPLETE).frames.tolist() == [4]


def test_runs_of_complete_frames_leave_their_median():
    counts = [0, *[352] * 5, 0, 0, *[352] * 4, 350, *[352] * 5, 0]
    keyframes = select_keyframes(counts, COMPLETE)
    assert keyframes.frames.tolist() == [3, 14]
    assert (keyframes.reasons[keyframes.frames] == Reason.COMPLETE).all()


def test_a_tie_leaves_the_middle_of_a_rest():
    assert select_keyframes([0, 0, 200, 200, 200, 200, 200, 0], COMPLETE).frames.tolist() == [4]


@pytest.mark.parametrize(
    ("counts", "frames"),
    [
        ([], []),
        ([9], [0]),
        ([3], []),
        ([7] * 9, [4]),
        ([352] * 9, [4]),
        ([0] * 9, []),
        ([0, 0, 352, 352, 0, 0], []),
    ],
)
def test_edges(counts, frames):
    assert select_keyframes(counts, COMPLETE).frames.tolist() == frames


def test_frames_of_no_use_are_not_chosen():
    assert least_corners(GRID) == 48
    assert least_corners(AprilGrid(1, 5, 0.1, 0.3)) == 20
    assert least_corners(Checkerboard(6, 7, 0.1, 0.1)) == 4
    reasons = select_keyframes([0] * 4 + [47] * 5 + [0] * 4, COMPLETE, least_corners(GRID)).reasons
    assert (reasons == Reason.FEW_CORNERS).all()


@pytest.mark.parametrize("counts", [[353], [-1], [1.5], [[1]]])
def test_impossible_counts_are_refused(counts):
    with pytest.raises(InputError):
        select_keyframes(counts, COMPLETE)


def test_a_long_video():
    counts, poses = jerky_counts(np.random.default_rng(0), 2800, sigma=3)
    assert len(counts) > 100_000
    chosen = poses[select_keyframes(counts, COMPLETE).frames]
    assert len(set(chosen)) == len(chosen) >= 2790


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("in_motion", [0.0, 0.15, 1.0])
def test_one_frame_per_pose_whatever_is_found_in_motion(seed, in_motion):
    """Up to a movement so slow that no corner is lost: counts alone would see one pose."""
    film = Film(seed)
    places = centres(film.rng, 60)
    for pose, place in enumerate(places):
        if pose:
            n = film.rng.integers(3, 9)
            film.move(places[pose - 1], place, n, film.rng.uniform(0, 1, n) ** 0.1 * in_motion)
        film.hold(place, pose, film.rng.integers(5, 15))
    assert film.chosen() == list(range(60))


def test_somebody_walks_through():
    film = Film(0)
    places = centres(film.rng, 3)
    for pose, place in enumerate(places):
        film.hold(place, pose, 8)
        for share in (0.6, 0.0, 0.0, 0.0, 0.5):
            film.hold(place, pose, 2, share)
        film.hold(place, pose, 6)
        if pose < 2:
            film.move(place, places[pose + 1], 4, np.zeros(4))
    counts = np.sum(film.valid, axis=1)
    by_counts = np.array(film.pose)[select_keyframes(counts, COMPLETE, 48).frames]
    assert by_counts.tolist() == [0, 0, 1, 1, 2, 2]
    assert film.chosen() == [0, 1, 2]


def test_displacement_is_the_median_over_common_corners():
    rng = np.random.default_rng(0)
    uv, valid = rng.uniform(0, 500, (5, 40, 2)), rng.random((5, 40)) < 0.8
    valid[4] = np.arange(40) < 20
    valid[3] = np.arange(40) >= 15
    views, others = np.array([0, 1, 3]), np.array([1, 2, 4])
    found = displacement_px(uv, valid, views, others)
    for i in range(2):
        both = valid[views[i]] & valid[others[i]]
        moved = np.linalg.norm(uv[views[i]] - uv[others[i]], axis=1)[both]
        assert found[i] == np.sort(moved)[(len(moved) - 1) // 2]
    assert np.isnan(found[2])


def test_frame_numbers_are_checked():
    film = Film(0)
    film.hold(np.array(SIZE) / 2, 0, 5)
    observations = Observations(GRID, np.array(film.uv), np.array(film.valid), SIZE)
    with pytest.raises(InputError, match="0 to 3"):
        select_held_poses(observations, 4)


def test_stills_are_all_kept_that_show_enough():
    film = Film(0)
    for share in (1.0, 1.0, 0.05, 0.5):
        film.frame(np.array(SIZE) / 2, 0, share)
    observations = Observations(GRID, np.array(film.uv), np.array(film.valid), SIZE, [0, 1, 3, 4])
    assert keep_stills(observations, 6).frames.tolist() == [0, 1, 4]


def test_a_rendered_video():
    """Real detections, motion blur from a shutter that is open for half of every frame."""
    rng = np.random.default_rng(0)
    size = (700, 450)
    rays = ray_grid(Intrinsics(1100, 1100, 349.5, 224.5, k1=-0.1), size)
    grid = AprilGrid(tag_cols=5, tag_rows=4, tag_size_m=0.1, tag_spacing=0.3)
    middle = grid.points.mean(axis=0)
    tilts = np.radians([[0, 0, 0], [35, 0, 0], [-30, 0, 5], [0, 35, 0], [0, -35, -4]])
    places = np.array(
        [[0, 0, 2], [0.2, 0.1, 2.1], [-0.5, -0.15, 2], [0.45, 0.2, 2], [-0.2, 0, 1.9]]
    )

    def picture(tilt, place):
        rotation = rotation_matrix(tilt) @ np.diag([1.0, -1.0, -1.0])
        options = RenderOptions(blur_px=0.5, noise=2)
        return render_board(rays, grid, rotation, place - rotation @ middle, options, rng)

    pictures, poses = [], []
    for pose in range(5):
        for _ in range(5):
            pictures.append(picture(tilts[pose], places[pose] + rng.normal(0, 1e-4, 3)))
            poses.append(pose)
        for k in range(4 if pose < 4 else 0):
            t = (k + np.linspace(0.25, 0.75, 5)) / 4
            path = 10 * t**3 - 15 * t**4 + 6 * t**5
            smear = [
                picture(
                    (1 - s) * tilts[pose] + s * tilts[pose + 1],
                    (1 - s) * places[pose] + s * places[pose + 1],
                )
                for s in path
            ]
            pictures.append(np.mean(smear, axis=0).astype(np.uint8))
            poses.append(-1)
    found = [detect(image, grid) for image in pictures]
    valid = np.array([one.found for one in found])
    uv = np.where(valid[..., None], [one.uv for one in found], 0.0)
    seen = valid.sum(axis=1) >= 8
    observations = Observations(grid, uv[seen], valid[seen], size, np.flatnonzero(seen))
    chosen = select_held_poses(observations, len(pictures)).frames
    assert np.array(poses)[chosen].tolist() == [0, 1, 2, 3, 4]
