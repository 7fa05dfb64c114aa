"""Flashes and readings that belong together are found: by their times, and by the camera."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.flight.files import flight_observations
from influx_wrap.flight.match import MatchedFlight, match_flight
from influx_wrap.flight.review import review_rows
from influx_wrap.formats.pairs import Action
from influx_wrap.model.target import PointCloud
from tests.flight.flown import FOCAL_PX, fly, match, with_float_fix


def used(matched: MatchedFlight) -> set[tuple[int, int]]:
    pairs = matched.usable
    return set(zip(pairs.flashes.tolist(), pairs.readings.tolist(), strict=True))


def test_complete_flight_is_certain() -> None:
    flown = fly(0)
    matched = match(flown)
    assert matched.verdict == "certain"
    assert matched.questions == []
    assert used(matched) == flown.pairs
    assert matched.rms_px is not None
    assert matched.rms_px < 1
    assert matched.time_rms_s < 0.05


@pytest.mark.parametrize("regular", [False, True])
@pytest.mark.parametrize("boustrophedon", [True, False])
def test_never_wrong_and_silent(regular: bool, boustrophedon: bool) -> None:
    """Random faults, the camera fitted for real: right, or a person is asked."""
    rng = np.random.default_rng(7)
    verdicts: Counter[str] = Counter()
    for seed in range(12 if regular else 40):
        missed, lost = (
            tuple(rng.choice(24, rng.integers(0, 4), replace=False).tolist()) for _ in range(2)
        )
        lights = tuple(rng.uniform(0, 23, rng.integers(0, 2)).tolist())
        if missed and rng.uniform() < 0.3:
            lights = (*lights, float(missed[0]))
        flown = fly(
            seed, regular=regular, missed=missed, lost=lost, lights=lights,
            boustrophedon=boustrophedon,
        )  # fmt: skip
        matched = match(flown)
        verdicts[matched.verdict] += 1
        assert (matched.verdict == "certain") == (not matched.questions)
        if matched.verdict != "ambiguous":
            assert used(matched) == flown.pairs
        if matched.verdict == "certain":
            assert not lights
            assert set(missed) == set(lost)
    assert verdicts["ambiguous"] <= (3 if regular else 0), verdicts


def test_missed_flash_is_named_and_expected() -> None:
    flown = fly(3, missed=(9,))
    whole = fly(3)
    matched = match(flown)
    assert matched.verdict == "proposed"
    assert matched.lone_readings == [9]
    frame, uv = matched.expected_frame(9), matched.expected_uv(9)
    assert frame is not None
    assert uv is not None
    assert abs(frame - whole.flashes.frames[9]) <= 1
    assert np.linalg.norm(np.array(uv) - whole.flashes.uv[9]) < 2
    assert f"reading r09 has no flash, which should begin in frame {frame}" in matched.refusal()


def test_lost_reading_is_named() -> None:
    matched = match(fly(4, lost=(0, 5)))
    frames = matched.flashes.frames
    assert matched.lone_flashes == [0, 5]
    assert f"the flash in frame {frames[5]} has no reading" in matched.refusal()


def test_wrong_light_is_named() -> None:
    """Equal counts, equal times: another light in place of a flash."""
    matched = match(fly(5, missed=(6,), lights=(6.0,)))
    assert len(matched.flashes.frames) == len(matched.readings.ids)
    assert matched.verdict == "proposed"
    assert np.flatnonzero(matched.outlying).tolist() == [6]
    assert "px from where reading r06 should be seen" in matched.refusal()
    assert len(matched.usable) == 23


def test_float_fix_is_named() -> None:
    matched = match(with_float_fix(fly(6), 4, 0.3))
    assert matched.verdict == "proposed"
    assert "reading r04 is known to 0.3 m only" in matched.refusal()
    assert not matched.outlying.any(), "it is no worse than it says"


def test_wrong_lens_setting_fits_no_camera() -> None:
    matched = match(fly(7), focal_px=4 * FOCAL_PX)
    assert matched.verdict == "proposed"
    assert "no camera fits" in matched.refusal()
    rows = review_rows(matched)
    assert {row.action for row in rows} == {Action.UNDECIDED}, "a file is no decision"


def test_no_lens_setting_is_needed() -> None:
    flown = fly(8, missed=(2,))
    matched = match(flown, focal_px=None)
    assert matched.verdict == "proposed"
    assert used(matched) == flown.pairs


def test_readings_without_covariance() -> None:
    """The InFlux release's own files have none."""
    flown = fly(9)
    matched = match(replace(flown, readings=replace(flown.readings, covariance_m2=None)))
    assert matched.verdict == "certain"
    target = flight_observations(matched)[0].target
    assert isinstance(target, PointCloud)
    assert target.covariance is None


def test_what_cannot_be_told_apart_is_ambiguous() -> None:
    """Regular triggers, and a camera that cannot be asked: all at one height."""
    flown = fly(10, regular=True)
    flat = flown.readings.xyz_m.copy()
    flat[:, 2] = 0
    matched = match(replace(flown, readings=replace(flown.readings, xyz_m=flat)))
    assert matched.verdict == "ambiguous"
    assert matched.disputed.all()
    assert "about equally likely" in matched.refusal()
    assert {row.action for row in review_rows(matched)} == {Action.UNDECIDED}
    assert matched.clock is not None
    told = match_flight(
        flown.flashes, flown.readings, focal_px=FOCAL_PX, clock_offset_s=matched.clock.offset_s
    )
    assert told.verdict == "certain"


def test_nothing_belongs_together() -> None:
    with pytest.raises(InputError, match="none of 24 flashes belongs to any of 24 readings with"):
        match(fly(11), clock_offset_s=0.0)


def test_too_few_pairs() -> None:
    matched = match(fly(12, missed=tuple(range(10, 24))))
    few = matched.too_few()
    assert few is not None
    assert few.startswith("only 10 of 10 flashes and 24 readings belong together, 12 are needed.")
    assert matched.too_few(10) is None
