"""What a person decides takes the place of the proposal, and is checked as well."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from influx_wrap.flight.review import review_cards, review_rows, reviewed
from influx_wrap.formats.pairs import Action, read_review, write_review
from tests.flight.flown import FOCAL_PX, fly, match


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
    assert (done.too_few() or "").startswith("only 0 of 24")


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
