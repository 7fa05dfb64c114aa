"""The split into validation and test against all that could be chosen."""

from itertools import combinations

import numpy as np
import pytest

from influx_wrap.annotate.split import nearest_subset, split_videos
from influx_wrap.errors import InputError
from influx_wrap.formats.manifest import TEST, VALIDATION, Video


@pytest.mark.parametrize("seed", range(60))
def test_nearest_of_all_subsets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    unit = int(rng.integers(1, 30))
    counts = (unit * rng.integers(1, [4, 40, 400][seed % 3], int(rng.integers(2, 10)))).tolist()
    wanted = float(rng.uniform(0.01, 0.99)) * sum(counts)
    chosen = nearest_subset(counts, wanted)
    assert 0 < len(set(chosen)) == len(chosen) < len(counts)
    possible = [
        abs(sum(some) - wanted)
        for size in range(1, len(counts))
        for some in combinations(counts, size)
    ]
    assert abs(sum(counts[k] for k in chosen) - wanted) == pytest.approx(min(possible))


def test_a_data_set_of_many_videos() -> None:
    rng = np.random.default_rng(0)
    videos = {f"video_{k}": Video(int(n), TEST) for k, n in enumerate(rng.integers(90, 900, 300))}
    total = sum(video.frame_count for video in videos.values())
    one, again, other = (
        split_videos(videos, 0.15, np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    assert one == again != other
    for chosen in (one, other):
        assert list(chosen) == list(videos)
        assert {video.split for video in chosen.values()} == {VALIDATION, TEST}
        picked = [video.frame_count for video in chosen.values() if video.split == VALIDATION]
        assert abs(sum(picked) - 0.15 * total) <= 0.5
        # Neither only short nor only long videos.
        assert 0.1 * len(videos) < len(picked) < 0.2 * len(videos)


def test_every_video_is_chosen_by_some_seed() -> None:
    videos = {str(k): Video(100) for k in range(10)}
    chosen = {
        name
        for seed in range(60)
        for name, video in split_videos(videos, 0.2, np.random.default_rng(seed)).items()
        if video.split == VALIDATION
    }
    assert chosen == set(videos)


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, 1.5])
def test_shares_that_are_none(share: float) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        split_videos({"a": Video(1), "b": Video(1)}, share, np.random.default_rng(0))


def test_one_video() -> None:
    with pytest.raises(InputError, match="at least two"):
        split_videos({"a": Video(100)}, 0.15, np.random.default_rng(0))
