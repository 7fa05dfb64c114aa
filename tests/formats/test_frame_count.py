"""Frames of rows by timecode, counted by hand."""

import numpy as np
import pytest

from influx_wrap.formats.frame_count import frame_counts, place_rows
from influx_wrap.model.lens_metadata import ReportedClip


def codes(*frames: int, rate: int = 24, start: int = 24 * 3600) -> list[str]:
    """Timecodes without dropped numbers, at 01:00:00:00."""
    result = []
    for frame in frames:
        seconds, rest = divmod(start + frame, rate)
        hours, minutes = seconds // 3600, seconds // 60 % 60
        result.append(f"{hours:02d}:{minutes:02d}:{seconds % 60:02d}:{rest:02d}")
    return result


def test_regular() -> None:
    rows, frames, said = place_rows(codes(*range(60)), ReportedClip())
    assert rows.tolist() == frames.tolist() == list(range(60))
    assert said == []


def test_the_rate_is_seen_and_beats_the_one_stated() -> None:
    counts = frame_counts(["16:47:04:22", "16:47:04:23", "16:47:05:00"], 48.0)
    assert counts is not None
    assert np.diff(counts).tolist() == [1, 1]
    counts = frame_counts(["00:00:00:10", "00:00:01:10"], 25.0)
    assert counts is not None
    assert counts.tolist() == [10, 35]


def test_drop_frame_counting() -> None:
    """At 29.97 a minute begins with 02, each tenth one with 00."""
    texts = ["00:00:59;28", "00:00:59;29", "00:01:00;02", "00:01:00;03"]
    counts = frame_counts(texts, 29.97)
    assert counts is not None
    assert np.diff(counts).tolist() == [1, 1, 1]
    counts = frame_counts(["00:09:59;29", "00:10:00;00"], 29.97)
    assert counts is not None
    assert np.diff(counts).tolist() == [1]


def test_midnight() -> None:
    counts = frame_counts(["23:59:59:22", "23:59:59:23", "00:00:00:00", "00:00:00:01"], 24)
    assert counts is not None
    assert np.diff(counts).tolist() == [1, 1, 1]


def test_missing_lines_of_a_clip_whose_length_is_known() -> None:
    listed = [k for k in range(50) if k not in (10, 11, 30)]
    rows, frames, said = place_rows(codes(*listed), ReportedClip(n_frames=50))
    assert frames.tolist() == listed
    assert rows.tolist() == list(range(47))
    assert (
        "Timecodes jump ahead (01:00:00:09 to 01:00:00:12, 01:00:01:05 to 01:00:01:07, 3 "
        in (said[0])
    )
    assert "50 frames, as many as its timecodes run" in said[1]


@pytest.mark.parametrize("n_frames", [None, 47, 60])
def test_missing_lines_of_any_other_clip(n_frames: int | None) -> None:
    listed = [k for k in range(50) if k not in (10, 11, 30)]
    _, frames, said = place_rows(codes(*listed), ReportedClip(n_frames=n_frames))
    assert frames.tolist() == list(range(47))
    assert "counted by lines all the same" in said[-1]


def test_lines_that_come_twice() -> None:
    listed = [0, 1, 2, 2, 3, 4]
    rows, frames, said = place_rows(codes(*listed), ReportedClip(n_frames=5))
    assert frames.tolist() == [0, 1, 2, 3, 4]
    assert rows.tolist() == [0, 1, 2, 4, 5]
    assert "come twice (01:00:00:02)" in said[0]
    rows, frames, said = place_rows(codes(*listed), ReportedClip())
    assert frames.tolist() == list(range(6))


def test_going_back() -> None:
    _, frames, said = place_rows(codes(5, 6, 3, 4, 5), ReportedClip(n_frames=5))
    assert frames.tolist() == list(range(5))
    assert "go back (01:00:00:06 to 01:00:00:03)" in said[0]


@pytest.mark.parametrize("texts", [["", "", ""], ["1:2:3", "x"], ["01:00:00:00"], []])
def test_no_timecodes(texts: list[str]) -> None:
    _, frames, said = place_rows(texts, ReportedClip())
    assert frames.tolist() == list(range(len(texts)))
    assert said == []


def test_timecodes_that_stand_still() -> None:
    _, frames, said = place_rows(["00:00:00:00"] * 3, ReportedClip())
    assert frames.tolist() == [0, 1, 2]
    assert "same timecode" in said[0]
