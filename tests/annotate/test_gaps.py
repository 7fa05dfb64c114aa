"""Gaps, dropouts and jumps of lens metadata, and what filling does."""

import math

import numpy as np
import pytest

from influx_wrap.annotate.gaps import (
    MOST_FD_DIOPTRES,
    MOST_LFL_FACTOR,
    fill_gaps,
    find_faults,
    frame_ranges,
)
from influx_wrap.model.lens_metadata import LensMetadata

NAN, INF = math.nan, math.inf


def metadata(frame: list[int], lfl_mm: list[float], fd_m: list[float]) -> LensMetadata:
    return LensMetadata(np.array(frame), np.array(lfl_mm), np.array(fd_m))


def test_frame_ranges() -> None:
    assert frame_ranges(np.array([], dtype=np.int64)) == ()
    assert frame_ranges(np.array([3])) == ((3, 3),)
    assert frame_ranges(np.array([0, 1, 2, 5, 7, 8])) == ((0, 2), (5, 5), (7, 8))


def test_nothing_wrong() -> None:
    faults = find_faults(metadata([0, 1, 2], [20, 20, 21], [30, INF, INF]))
    assert (faults.gaps, faults.dropouts, faults.jumps) == ((), (), ())


def test_gaps_and_dropouts() -> None:
    faults = find_faults(
        metadata([2, 3, 7, 8, 9, 11], [20, NAN, 20, 20, 20, 20], [3, 3, 3, NAN, NAN, NAN])
    )
    assert faults.gaps == ((0, 1), (4, 6), (10, 10))
    assert faults.dropouts == ((3, 3), (8, 9), (11, 11))
    assert faults.jumps == ()


def test_jumps_at_the_limit() -> None:
    at_limit = metadata([0, 1], [20, 20 * MOST_LFL_FACTOR], [1, 1 / (1 - MOST_FD_DIOPTRES)])
    assert find_faults(at_limit).jumps == ()
    beyond = metadata([0, 1], [20, 20.1 * MOST_LFL_FACTOR], [1, 1 / (0.99 - MOST_FD_DIOPTRES)])
    lfl, fd = find_faults(beyond).jumps
    assert (lfl.quantity, lfl.frames) == ("LFL", (0, 1))
    assert lfl.values == (20.0, beyond.lfl_mm[1])
    assert (fd.quantity, fd.frames) == ("FD", (0, 1))
    assert fd.values == (1.0, beyond.fd_m[1])


def test_the_limit_grows_over_missing_frames() -> None:
    # A factor of 3 takes 2.7 frames at the limit.
    slow = metadata([0, 1, 3], [20, NAN, 60], [5, 5, 5])
    assert find_faults(slow).jumps == ()
    fast = metadata([0, 1, 2], [20, NAN, 60], [5, 5, 5])
    (jump,) = find_faults(fast).jumps
    assert (jump.frames, jump.values) == ((0, 2), (20.0, 60.0))


def test_fill_is_linear_in_lfl_and_disparity() -> None:
    told = metadata([0, 1, 5], [20, 22, 30], [INF, 4, 2])
    filled = fill_gaps(told, 3)
    assert filled.frame.tolist() == [0, 1, 2, 3, 4, 5]
    np.testing.assert_allclose(filled.lfl_mm, [20, 22, 24, 26, 28, 30])
    np.testing.assert_allclose(1 / filled.fd_m, [0, 1 / 4, 5 / 16, 3 / 8, 7 / 16, 1 / 2])
    assert filled.fd_m[[0, 1, 5]].tolist() == [INF, 4, 2]


def test_fill_between_infinities_is_infinite() -> None:
    assert fill_gaps(metadata([0, 2], [20, 20], [INF, INF]), 1).fd_m.tolist() == [INF] * 3


def test_long_runs_and_ends_stay() -> None:
    told = metadata([0, 1, 2, 3, 8, 9], [NAN, 20, NAN, 20, 20, 20], [3, 3, 3, 3, 3, NAN])
    filled = fill_gaps(told, 3)
    assert filled.frame.tolist() == [0, 1, 2, 3, 8, 9]
    np.testing.assert_array_equal(filled.lfl_mm, [NAN, 20, 20, 20, 20, 20])
    np.testing.assert_array_equal(filled.fd_m, [3, 3, 3, 3, 3, NAN])


@pytest.mark.parametrize(("most", "whole"), [(2, False), (3, True)])
def test_a_gap_beside_a_dropout_is_one_run(most: int, whole: bool) -> None:
    told = metadata([0, 1, 4], [20, NAN, 20], [3, NAN, 3])
    filled = fill_gaps(told, most)
    assert filled.frame.tolist() == ([0, 1, 2, 3, 4] if whole else [0, 1, 4])
    assert bool(filled.told.all()) == whole


def test_nothing_told() -> None:
    filled = fill_gaps(metadata([0, 2], [NAN, NAN], [NAN, NAN]), 5)
    assert filled.frame.tolist() == [0, 2]
    assert not filled.told.any()
