"""A person's say in the match of a flight.

What is proposed goes out as rows to decide on, in a file and on a page with pictures; what
comes back takes the place of the proposal. The camera and the clock are then fitted to
the person's pairs, so that a slip of theirs shows as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.flight.match import CameraFit, MatchedFlight, Pairs, is_poor, match_flight
from influx_wrap.formats.pairs import (
    REVIEW,
    Action,
    ReviewRow,
    flash_names,
    read_review,
    write_review,
)
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.flashes import SET_BY_HAND, Flashes, Readings
from influx_wrap.model.words import size_text
from influx_wrap.observe.pairing import OUTLIER_SIGMAS, TOLERANCE_S, Misfit, fit_clock
from influx_wrap.observe.sources import open_frames
from influx_wrap.report.led_review import Card, write_review_page

REVIEW_PAGE = "review.html"
SAME_CENTRE_PX = 0.01
AROUND_FLASH = (-1, 2)
"""Frames shown before and after the one in which a flash was detected."""


def settle_flight(
    flashes: Flashes,
    readings: Readings,
    review: Path | None,
    *,
    focal_px: float | None,
    clock_offset_s: float | None = None,
) -> MatchedFlight:
    """``match_flight``, and what the person decided whose review is at ``review``, if any."""
    matched = match_flight(flashes, readings, focal_px=focal_px, clock_offset_s=clock_offset_s)
    if review is None:
        return matched
    return reviewed(matched, read_review(review, flashes, readings), focal_px=focal_px)


def reviewed(
    matched: MatchedFlight, rows: Sequence[ReviewRow], *, focal_px: float | None
) -> MatchedFlight:
    """The match as a person has decided it, with the camera and clock that follow."""
    flashes, readings = matched.flashes, matched.readings
    names = {name: i for i, name in enumerate(flash_names(flashes))}
    numbers = {name: j for j, name in enumerate(readings.ids)}
    pairs = _chosen_pairs(flashes, rows, names, numbers)
    n = len(pairs)
    fit = CameraFit(flashes.image_size, readings, focal_px)
    view = fit(pairs.readings, pairs.uv) if n else None
    clock, video_s = matched.clock, pairs.frames / flashes.fps
    if n >= 2:
        clock = fit_clock(video_s, readings.time_s[pairs.readings])
    error = np.zeros(n)
    if clock is not None:
        error = readings.time_s[pairs.readings] - clock.reading_s(video_s)
    sigmas = np.zeros(n) if view is None else view.sigmas
    scale = 1.0 if view is None else Misfit(view.residual_px, view.sigmas).scale
    left = [row for row in rows if row.action is Action.LEAVE]
    return replace(
        matched,
        pairs=pairs,
        verdict="reviewed",
        clock=clock,
        time_error_s=error,
        camera=view,
        residual_px=np.full(n, np.nan) if view is None else view.residual_px,
        outlying=sigmas > OUTLIER_SIGMAS * scale,
        poor=is_poor(readings)[pairs.readings],
        disputed=np.zeros(n, dtype=bool),
        left_out=(
            frozenset(names[row.flash] for row in left if row.flash is not None),
            frozenset(numbers[row.reading] for row in left if row.reading is not None),
        ),
        rivals=(),
        undecided=(
            *(_undecided(row) for row in rows if row.action is Action.UNDECIDED),
            *(
                f"reading {name} has no row in the review"
                for name in readings.ids
                if name not in {row.reading for row in rows}
            ),
        ),
    )


def _chosen_pairs(
    flashes: Flashes,
    rows: Sequence[ReviewRow],
    names: Mapping[str, int],
    numbers: Mapping[str, int],
) -> Pairs:
    """What a person wants to be used; ``names`` are those of flashes, ``numbers`` of readings."""
    chosen = []
    for row in rows:
        if row.action is Action.USE:
            assert row.reading is not None
            assert row.frame is not None
            assert row.uv is not None
            flash = -1 if row.flash is None else names[row.flash]
            chosen.append((numbers[row.reading], flash, row.frame, row.uv))
    chosen.sort()
    picked = [_placed(flashes, flash, frame, uv) for _, flash, frame, uv in chosen]
    return Pairs(
        np.array([one[0] for one in chosen], dtype=np.int64),
        np.array([one[1] for one in chosen], dtype=np.int64),
        np.array([one[2] for one in chosen], dtype=np.int64),
        np.array([uv for uv, _ in picked], dtype=float).reshape(-1, 2),
        np.array([rule for _, rule in picked], dtype=np.int64),
    )


def _placed(
    flashes: Flashes, flash: int, frame: int, uv: tuple[float, float]
) -> tuple[FloatArray, int]:
    """Centre and rule: the detected ones if the person left them where they were."""
    centre = np.array(uv)
    if flash < 0 or frame != flashes.frames[flash]:
        return centre, SET_BY_HAND
    # A file has three digits of what was detected.
    if np.abs(centre - flashes.uv[flash]).max() > SAME_CENTRE_PX:
        return centre, SET_BY_HAND
    return flashes.uv[flash], int(flashes.rule[flash])


def _undecided(row: ReviewRow) -> str:
    parts = [f"reading {row.reading}"] if row.reading else []
    parts += [f"the flash in frame {row.flash}"] if row.flash else []
    return f"line {row.line} of the review ({' and '.join(parts) or 'empty'}) is undecided"


def review_rows(matched: MatchedFlight) -> list[ReviewRow]:
    """The proposal as a person gets it to decide, in the order of time."""
    flashes, readings, pairs = matched.flashes, matched.readings, matched.pairs
    names = flash_names(flashes)
    # Where no camera confirms any pair, none is beyond doubt.
    doubtful = matched.outlying | matched.poor | matched.disputed | (matched.camera is None)
    rows: list[tuple[float, ReviewRow]] = []
    for k in range(len(pairs)):
        uv = (float(pairs.uv[k, 0]), float(pairs.uv[k, 1]))
        flash = int(pairs.flashes[k])
        frame = int(pairs.frames[k])
        action = Action.UNDECIDED if doubtful[k] else Action.USE
        name = None if flash < 0 else names[flash]
        row = ReviewRow(name, readings.ids[pairs.readings[k]], frame, uv, action)
        rows.append((float(frame), row))
    for i in matched.lone_flashes:
        uv = (float(flashes.uv[i, 0]), float(flashes.uv[i, 1]))
        frame = int(flashes.frames[i])
        rows.append((frame, ReviewRow(names[i], None, frame, uv, Action.UNDECIDED)))
    for j in matched.lone_readings:
        # Where the LED should be is no measurement: the centre is for a person to set.
        expected = matched.expected_frame(j)
        row = ReviewRow(None, readings.ids[j], expected, None, Action.UNDECIDED)
        # What is not in the video still has its place in time.
        video_s = 0.0 if matched.clock is None else matched.clock.video_s(readings.time_s[j])
        rows.append((float(video_s) * flashes.fps, row))
    return [row for _, row in sorted(rows, key=lambda one: one[0])]


def write_review_files(
    folder: Path,
    matched: MatchedFlight,
    footage: Path,
    *,
    title: str,
    progress: Progress,
) -> None:
    """Write ``review.html``, and ``review.csv`` unless it is there: it holds decisions.

    ``footage`` is the video; ``progress`` hears of the pictures read.
    """
    path, flashes = folder / REVIEW, matched.flashes
    is_new = not path.exists()
    rows = review_rows(matched) if is_new else read_review(path, flashes, matched.readings)
    source = open_frames(footage, colour=True)
    if source.image_size != flashes.image_size:
        raise InputError(
            f"{footage} has {size_text(source.image_size)} pixels, the flashes are of "
            f"{size_text(flashes.image_size)}."
        )
    write_review_page(
        folder / REVIEW_PAGE,
        review_cards(matched, rows),
        matched.readings.ids,
        source,
        title=title,
        progress=progress,
    )
    if is_new:
        write_review(path, rows)


def review_cards(matched: MatchedFlight, rows: Sequence[ReviewRow]) -> list[Card]:
    """The rows as a page shows them, with the frames to look at."""
    flashes, pairs = matched.flashes, matched.pairs
    reach = math.ceil(TOLERANCE_S * flashes.fps)
    of_reading = {matched.readings.ids[j]: k for k, j in enumerate(pairs.readings.tolist())}
    cards = []
    for row in rows:
        wide = row.flash is None
        first, last = (-reach, reach) if wide else AROUND_FLASH
        frames = () if row.frame is None else range(row.frame + first, row.frame + last + 1)
        inside = tuple(frame for frame in frames if 0 <= frame < flashes.n_frames)
        pair = None if row.reading is None else of_reading.get(row.reading)
        guess = None
        if row.reading is not None and row.flash is None:
            guess = matched.expected_uv(matched.readings.ids.index(row.reading))
        cards.append(Card(row, _note(matched, row, pair, guess), inside, wide, guess))
    return cards


def _note(
    matched: MatchedFlight, row: ReviewRow, pair: int | None, guess: tuple[float, float] | None
) -> str:
    """What is the matter with a row."""
    if row.reading is None:
        return "This flash has no reading."
    if row.flash is None:
        place = "The circle is where the camera should see it." if guess is not None else ""
        return f"This reading has no flash. {place}".strip()
    if pair is None:
        return ""
    notes = []
    if matched.outlying[pair]:
        notes.append(f"{matched.residual_px[pair]:.1f} px from where the camera should see it.")
    if matched.poor[pair]:
        notes.append("The position is known much less well than the others.")
    if matched.disputed[pair]:
        notes.append("Another clock offset would pair it otherwise.")
    return " ".join(notes)
