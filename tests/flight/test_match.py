"""Flights become experiments: by their times, by the camera, and by what a person says."""

import csv
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.calibrate.calibrator import calibrate
from influx_wrap.calibrate.recipe import recipe_named
from influx_wrap.errors import InputError
from influx_wrap.flight.match import (
    MatchedFlight,
    check_enough,
    flight_observations,
    match_flight,
    write_flight_experiment,
    write_match,
)
from influx_wrap.flight.review import review_cards, review_rows, reviewed
from influx_wrap.formats.experiment import read_experiment
from influx_wrap.formats.pairs import Action, read_review, write_review
from influx_wrap.formats.recording import FlightTruth
from influx_wrap.model.flight import hover_points_m
from influx_wrap.model.hardware import Camera
from influx_wrap.model.target import PointCloud
from influx_wrap.run.recordings import Setting
from tests.flight.flown import (
    FD_M,
    FOCAL_PX,
    LFL_MM,
    PIXEL_UM,
    SENSOR_MM,
    SIGMA_M,
    SIZE,
    TRUTH,
    Flown,
    fly,
    order,
    with_float_fix,
)

CAMERA = Camera("small", 28.25, 18.17, *SIZE)
SETTING = Setting("z2f9", "drone", LFL_MM, FD_M)


def match(flown: Flown, **options: float | None) -> MatchedFlight:
    return match_flight(flown.flashes, flown.readings, **({"focal_px": FOCAL_PX} | options))


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
    with pytest.raises(InputError, match="only 10 of 10 flashes and 24 readings belong together"):
        check_enough(matched)
    check_enough(matched, 8)


def test_review_round_trip(tmp_path: Path) -> None:
    """Leave a light out, set a missed flash by hand, move a centre."""
    flown, whole = fly(13, missed=(9,), lights=(15.5,)), fly(13)
    matched = match(flown)
    rows = review_rows(matched)
    assert Counter(row.action for row in rows) == {Action.USE: 23, Action.UNDECIDED: 2}
    place = tmp_path / "review.csv"
    write_review(place, rows)
    still = reviewed(matched, read_review(place, flown.flashes, flown.readings), focal_px=FOCAL_PX)
    assert len(still.questions) == 2
    assert "(reading r09) is undecided" in still.refusal()

    frame = int(whole.flashes.frames[9])
    uv = (float(whole.flashes.uv[9, 0]), float(whole.flashes.uv[9, 1]))
    decided = []
    for row in rows:
        if row.reading == "r09":
            row = replace(row, frame=frame, uv=uv, action=Action.USE)
        elif row.reading is None:
            row = replace(row, action=Action.LEAVE)
        elif row.reading == "r03":
            assert row.uv is not None
            row = replace(row, uv=(row.uv[0] + 0.25, row.uv[1]))
        decided.append(row)
    write_review(place, decided)
    done = reviewed(matched, read_review(place, flown.flashes, flown.readings), focal_px=FOCAL_PX)
    assert done.verdict == "reviewed"
    assert done.questions == []
    assert done.doubts == []
    assert done.usable.readings.tolist() == list(range(24))
    assert np.flatnonzero(done.usable.rule == 0).tolist() == [3, 9], "set by hand"
    assert done.usable.frames[9] == frame
    assert np.array_equal(done.usable.uv[4], flown.flashes.uv[4]), "to the last digit"
    assert not done.outlying.any()


def test_a_reviewed_mistake_is_still_reported(tmp_path: Path) -> None:
    flown = fly(14)
    matched = match(flown)
    rows = [
        replace(row, uv=(600.0, 400.0)) if row.reading == "r00" else row
        for row in review_rows(matched)
    ]
    done = reviewed(matched, rows, focal_px=FOCAL_PX)
    assert done.questions == [], "a person has decided"
    assert "where reading r00 should be seen" in done.doubts[0]
    assert len(done.usable) == 24


def test_a_reading_that_came_after_the_review() -> None:
    matched = match(fly(15))
    rows = [row for row in review_rows(matched) if row.reading != "r23"]
    assert reviewed(matched, rows, focal_px=FOCAL_PX).questions == [
        "reading r23 has no row in the review"
    ]


def test_review_with_everything_left_out() -> None:
    matched = match(fly(15))
    rows = [replace(row, action=Action.LEAVE) for row in review_rows(matched)]
    done = reviewed(matched, rows, focal_px=FOCAL_PX)
    assert len(done.usable) == 0
    assert done.doubts == [
        "no camera fits the pairs (is the lens's setting right, are the positions?)"
    ]
    with pytest.raises(InputError, match="only 0 of 24"):
        check_enough(done)


def test_cards_show_the_right_frames() -> None:
    matched = match(fly(16, missed=(9,), lights=(15.5, 2.0)))
    rows = review_rows(matched)
    cards = review_cards(matched, rows)
    assert [card.row for card in cards] == rows
    wide = [card for card in cards if card.wide]
    assert [card.row.reading for card in wide] == ["r09"]
    frame = matched.expected_frame(9)
    assert frame is not None
    assert wide[0].frames == tuple(range(frame - 5, frame + 6))
    assert wide[0].note.startswith("This reading has no flash.")
    lone = next(card for card in cards if card.row.reading is None)
    assert lone.note == "This flash has no reading."
    assert lone.row.frame is not None
    assert lone.frames == tuple(range(lone.row.frame - 1, lone.row.frame + 3))


def test_experiment(tmp_path: Path) -> None:
    """The cloud is in the unit sphere, and calibrates to the truth with its covariance."""
    flown = fly(17)
    matched = match(flown)
    write_flight_experiment(tmp_path, matched, SETTING, CAMERA, "canon17", None)
    stored = read_experiment(tmp_path)
    target = stored.observations.target
    assert isinstance(target, PointCloud)
    assert np.allclose(target.points.mean(axis=0), 0)
    assert np.linalg.norm(target.points, axis=1).max() == pytest.approx(1)
    metres = target.points * target.unit_m
    given = flown.readings.xyz_m - flown.readings.xyz_m.mean(axis=0)
    assert np.allclose(metres, given, atol=1e-9)
    assert target.point_covariance is not None
    sigma_m = np.sqrt(target.point_covariance[0, 0, 0]) * target.unit_m
    assert sigma_m == pytest.approx(SIGMA_M, rel=1e-2)
    answer = calibrate(stored.observations, recipe_named("batch"), focal_px=FOCAL_PX)
    deviation = (answer.intrinsics.array - TRUTH.array) / answer.sigma
    assert np.abs(deviation).max() < 4
    assert (stored.lfl_mm, stored.fd_m, stored.target_name) == (LFL_MM, FD_M, "drone")


def test_truth_goes_along(tmp_path: Path) -> None:
    """Seen with the true camera, the true points are where the LED was."""
    flown = fly(18, rtk_m=0.0)
    matched = match(flown)
    rotation, translation = _true_pose(flown)
    exact_m = flown.readings.xyz_m @ rotation.T + translation
    truth = FlightTruth(
        TRUTH, 0.005, np.zeros((24, 3)), np.arange(24), np.zeros(24), np.arange(24),
        flown.flashes.frames, flown.flashes.uv, np.ones(24), np.arange(24), np.arange(24),
        exact_m, rotation, translation, 0.0, 0.0,
    )  # fmt: skip
    write_flight_experiment(tmp_path, matched, SETTING, CAMERA, "canon17", truth)
    stored = read_experiment(tmp_path)
    assert stored.truth is not None
    assert stored.truth.intrinsics == TRUTH
    assert stored.truth.corner_sigma_px == pytest.approx(0.2, rel=0.5)


def _true_pose(flown: Flown) -> tuple[np.ndarray, np.ndarray]:
    """From the readings' frame to camera space: the rotation that aligns the points."""
    camera_m = hover_points_m(1e-3 * TRUTH.fx * PIXEL_UM, FD_M, SENSOR_MM)[order()]
    a = flown.readings.xyz_m - flown.readings.xyz_m.mean(axis=0)
    b = camera_m - camera_m.mean(axis=0)
    u, _, vt = np.linalg.svd(b.T @ a)
    rotation = u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt
    return rotation, camera_m.mean(axis=0) - rotation @ flown.readings.xyz_m.mean(axis=0)


def test_match_is_written_down(tmp_path: Path) -> None:
    matched = match(fly(19, missed=(9,), lost=(20,)))
    write_match(tmp_path, matched)
    rows = list(csv.DictReader((tmp_path / "pairs.csv").read_text().splitlines()))
    assert len(rows) == 24
    assert [row["remark"] for row in rows if row["remark"]] == ["no flash", "no reading"]
    assert rows[9]["reading"] == "r09"
    assert rows[9]["frame"] == ""
    assert rows[20]["reading"] == ""
    record = json.loads((tmp_path / "match.json").read_text())
    assert record["verdict"] == "proposed"
    assert record["pairs"] == 22
    assert record["readings_without_flash"] == ["r09"]
    assert record["flashes_without_reading"] == [int(rows[20]["frame"])]
    assert record["questions"] == matched.questions
    assert record["clock_offset_s"] == pytest.approx(1.7e9, abs=86500)
