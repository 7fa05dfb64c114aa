"""Frames chosen by two looks: no pose is lost that a search of all frames has.

Eleven kinds of clips, small; ``python -m benchmarks --only keyframes`` has larger ones.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
import pytest

from benchmarks.clips import Scene, kinds
from benchmarks.keyframes import compare
from influx_wrap.model.intrinsics import Intrinsics, project
from influx_wrap.model.pose import transform
from influx_wrap.model.target import AprilGrid
from influx_wrap.observe.detectors import detect_usable
from influx_wrap.observe.frames import FrameSource
from influx_wrap.observe.luma import luma_of
from influx_wrap.observe.two_looks import divide, frames_in_group, look_through

SCENE = Scene(
    AprilGrid(tag_cols=4, tag_rows=3, tag_size_m=0.05, tag_spacing=0.3),
    Intrinsics(330.0, 330.0, 161.0, 105.0, -0.05),
    (320, 214),
    n_poses=6,
)


@pytest.mark.parametrize("kind", kinds(SCENE))
def test_no_pose_is_lost(kind: str) -> None:
    rng = np.random.default_rng(3)
    clip = kinds(SCENE)[kind](rng)
    comparison = compare(clip, rng)
    assert comparison.is_kept, comparison
    is_moved = kind in ("smooth", "slow", "some rests")
    assert comparison.modes[1] == ("moved" if is_moved else "held")
    if not is_moved:
        assert comparison.n_views[1] == SCENE.n_poses, "one frame of each pose"


def test_candidates_are_as_dense_as_a_short_video_needs() -> None:
    assert [frames_in_group(n) for n in (10, 279, 280, 559, 560, 10_000)] == [1, 1, 2, 3, 4, 4]
    assert frames_in_group(None) == 4


@dataclass(frozen=True)
class Divisible:
    """A video of so many frames, which can be read from some of them on."""

    n_frames: int
    keyframes: list[int] | None

    def entries(self) -> list[int] | None:
        return self.keyframes


@pytest.mark.parametrize(
    ("n_frames", "keyframes", "starts"),
    [
        (576, list(range(0, 576, 24)), list(range(0, 576, 72))),
        (576, list(range(576)), list(range(0, 576, 64))),
        (14_400, list(range(0, 14_400, 24)), list(range(0, 14_400, 192))),
        (1440, list(range(0, 1440, 250)), [0, 250, 500, 750, 1000, 1250]),
        (300, [0, 30, 200], [0, 200]),
        (90, [0, 30], None),
        (500, None, None),
    ],
)
def test_stretches_begin_where_reading_can_begin(
    n_frames: int, keyframes: list[int] | None, starts: list[int] | None
) -> None:
    divided = divide(cast(FrameSource, Divisible(n_frames, keyframes)))
    if starts is None:
        assert divided is None
        return
    assert divided is not None
    assert [start for start, _ in divided] == starts
    assert [stop for _, stop in divided] == [*starts[1:], None]


def test_corners_of_candidates_are_as_good_as_those_of_a_full_search() -> None:
    """Measured where the board was followed to, next to those of a search of the whole frame."""
    rng = np.random.default_rng(5)
    clip = kinds(SCENE)["jerky"](rng)
    frames = [(number, luma_of(picture)) for number, picture in enumerate(clip.pictures(rng))][:40]
    some, every = (
        list(look_through(frames, clip.grid, clip.size, 4, every_frame=every_frame))
        for every_frame in (False, True)
    )
    assert len(some) == len(every) == 40
    for one, other in zip(some, every, strict=True):
        for name in ("homography", "step_px", "is_candidate", "thumbnail"):
            np.testing.assert_array_equal(one[name], other[name])
    rotations, translations = clip.path.mid_exposure()
    truth, _ = project(clip.camera, transform(rotations, translations, clip.grid.points))
    candidates = [number for number, one in enumerate(some) if one["is_candidate"]]
    held = [number for number in candidates if clip.path.pose[number] >= 0]
    assert len(held) >= 5
    errors: list[tuple[np.ndarray, np.ndarray]] = []
    for number in candidates:
        np.testing.assert_array_equal(some[number]["uv"], every[number]["uv"])
    for number in held:
        alone = detect_usable(clip.grid, frames[number][1].picture())
        assert alone is not None
        both = alone.found & (some[number]["confidence"] > 0)
        assert both.sum() >= 0.95 * alone.found.sum()
        errors.append(
            ((some[number]["uv"] - truth[number])[both], (alone.uv - truth[number])[both])
        )
    ours, theirs = (np.sqrt(np.mean(np.concatenate(one) ** 2)) for one in zip(*errors, strict=True))
    assert theirs < 0.02
    assert ours < 1.2 * theirs
    assert not any(one["confidence"].any() for one in some if not one["is_candidate"])
    n_found = sum(bool(one["confidence"].any()) for one in every)
    assert n_found > 0.8 * len(every)
