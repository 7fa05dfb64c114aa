"""Keyframe selection against its quadratic twin and on videos whose poses are known."""

import time

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.observe.keyframes import Reason, _strict_order, _suppression, select_keyframes

COMPLETE = 352


def jerky_video(rng, n_poses, sigma):
    """Counts of each frame and the pose it shows, -1 while the board moves."""
    counts, poses = [], []
    for pose in range(n_poses):
        gap, rest = rng.integers(5, 15), rng.integers(15, 40)
        level = COMPLETE + 2 if rng.random() < 0.5 else rng.integers(100, COMPLETE)
        still = np.clip(np.round(rng.normal(level, sigma, rest)), 0, COMPLETE)
        counts += [*rng.integers(0, 13, gap), *still]
        poses += [-1] * gap + [pose] * rest
    return np.array(counts).astype(int), np.array(poses)


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
@pytest.mark.parametrize("sigma", [0, 3])
def test_one_frame_per_pose(seed, sigma):
    counts, poses = jerky_video(np.random.default_rng(seed), 60, sigma)
    chosen = poses[select_keyframes(counts, COMPLETE).frames]
    assert len(set(chosen)) == len(chosen) >= 58
    assert -1 not in chosen


def test_runs_of_complete_frames_leave_their_median():
    counts = [0, 352, 352, 352, 0, 0, 352, 352, 350, 352, 352, 352, 0]
    keyframes = select_keyframes(counts, COMPLETE)
    assert keyframes.frames.tolist() == [2, 9]
    assert (keyframes.reasons[[2, 9]] == Reason.COMPLETE).all()


def test_a_tie_leaves_the_middle_of_a_rest():
    assert select_keyframes([0, 0, 200, 200, 200, 200, 200, 0], COMPLETE).frames.tolist() == [4]


@pytest.mark.parametrize(
    ("counts", "frames"),
    [([], []), ([9], [0]), ([3], []), ([7] * 9, [4]), ([352] * 9, [4]), ([0] * 9, [])],
)
def test_edges(counts, frames):
    assert select_keyframes(counts, COMPLETE).frames.tolist() == frames


@pytest.mark.parametrize("counts", [[353], [-1], [1.5], [[1]]])
def test_impossible_counts_are_refused(counts):
    with pytest.raises(InputError):
        select_keyframes(counts, COMPLETE)


def test_a_long_video():
    counts, _ = jerky_video(np.random.default_rng(0), 2800, 3)
    start = time.perf_counter()
    select_keyframes(counts[:100_000], COMPLETE)
    print(f"{len(counts[:100_000])} frames: {time.perf_counter() - start:.2f} s")
