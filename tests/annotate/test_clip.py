"""A clip's frames against a table asked frame by frame."""

import math

import numpy as np
import pytest

from influx_wrap.annotate.clip import annotate_clip
from influx_wrap.errors import InputError
from influx_wrap.lut.lens_model import LensModel, make_lens_model
from influx_wrap.lut.lookup import Status
from influx_wrap.model.lens_metadata import LensMetadata
from tests.lut.lenses import breathing_table


@pytest.fixture(scope="module")
def lookup() -> LensModel:
    return make_lens_model(breathing_table("canon17"), "paper")


def clip(lfl_mm: list[float], fd_m: list[float]) -> LensMetadata:
    return LensMetadata(np.arange(len(lfl_mm)), np.array(lfl_mm), np.array(fd_m))


def test_every_frame_as_asked_alone(lookup: LensModel) -> None:
    rng = np.random.default_rng(0)
    lfl, fd = rng.uniform(17, 120, 50), 1 / rng.uniform(0, 1.1, 50)
    annotated = annotate_clip(LensMetadata(np.arange(50), lfl, fd), lookup).truth
    assert annotated.sigma is not None
    for k in range(50):
        alone = lookup.query(lfl[k : k + 1], fd[k : k + 1])
        np.testing.assert_array_equal(annotated.intrinsics[k], alone.intrinsics[0])
        assert annotated.is_interpolated[k] == (alone.status[0] == Status.INTERPOLATED)
        deviation = lookup.sigma(alone, lfl[k : k + 1], fd[k : k + 1])
        np.testing.assert_allclose(annotated.sigma[k], deviation[0], rtol=1e-12)


def test_frames_without_an_answer(lookup: LensModel) -> None:
    lfl = [35, 16, 16, math.nan, 35, 130, 35, 120]
    fd = [2.4, 2.4, 2.4, 2.4, math.inf, 2.4, math.nan, 0.2]
    annotated = annotate_clip(clip(lfl, fd), lookup)
    answered = [True, False, False, False, True, False, False, False]
    assert annotated.truth.answered.tolist() == answered
    assert annotated.truth.is_interpolated.tolist() == [True] + 7 * [False]
    assert annotated.lfl_outside == ((1, 2), (5, 5))
    assert annotated.unusable == ((7, 7),)
    assert annotated.faults.dropouts == ((3, 3), (6, 6))
    assert annotated.filled == ()


def test_filled_frames_keep_what_the_lens_told(lookup: LensModel) -> None:
    told = LensMetadata(np.array([0, 1, 3]), np.array([30, math.nan, 36]), np.array([2.0, 2, 2]))
    assert annotate_clip(told, lookup).truth.answered.tolist() == [True, False, True]
    annotated = annotate_clip(told, lookup, fill=2)
    truth = annotated.truth
    assert truth.metadata.frame.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(truth.metadata.lfl_mm, [30, math.nan, math.nan, 36])
    np.testing.assert_array_equal(truth.metadata.fd_m, [2, 2, math.nan, 2])
    assert annotated.filled == ((1, 2),)
    # The faults are the lens's, filled or not.
    assert annotated.faults.gaps == ((2, 2),)
    expected = lookup.query([30, 32, 34, 36], [2, 2, 2, 2]).intrinsics
    np.testing.assert_allclose(truth.intrinsics, expected, rtol=1e-12)


def test_no_frame_at_all(lookup: LensModel) -> None:
    with pytest.raises(InputError, match=r"from 200 to 210 mm .* from 17 to 120 mm"):
        annotate_clip(clip([200, 210], [3, 3]), lookup)
    with pytest.raises(InputError, match="none has both"):
        annotate_clip(clip([35, math.nan], [math.nan, 3]), lookup)
