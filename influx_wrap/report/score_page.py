"""Scores as a page: the table, cumulative end-point errors, groups, every video over time.

143 000 frames do not fit in a screen's width, and need not: a strip's column keeps the lowest
and the highest focal length of its frames and how many of them have no prediction, so that an
outlier or a gap of a single frame is still seen.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from influx_wrap.evaluate.epe_counts import BINS_PER_PX, EpeHistogram
from influx_wrap.evaluate.score import MEASURES, THRESHOLD_PX, Evaluation, Score, Strip
from influx_wrap.formats.files import write_text
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.report.page import float32_text, page
from influx_wrap.report.score_table import (
    FRAMES_HEADING,
    HEADINGS,
    best_numbers,
    frames_shown,
    in_order,
    intervals_shown,
    numbers,
    one_line,
    shown,
    used,
)

SCRIPTS = ("tables.js", "curves.js", "strips.js")
CURVE_LEVELS = 2000
"""A curve's points are left out where it rises by less than one of so many levels."""
SHARE_UNITS = 100_000
VIDEOS_BYTES = 3_300_000
STRIP_BYTES, COLUMN_BYTES = 150, 13
"""What a strip takes for its scores, and for each column: two numbers of 4 bytes in base64, and a
count."""
MOST_COLUMNS, FEWEST_COLUMNS = 480, 16

T = TypeVar("T")
TableCell = dict[str, object]


def write_score_page(
    path: Path, evaluations: Sequence[Evaluation], truth: str | None = None
) -> None:
    """Write the page; ``truth`` is the name of the file that predictions were compared with.

    A video's truth is that of the first evaluation that has it.
    """
    compared = "" if truth is None else f", compared with {one_line(truth)}"
    title = f"Scores of predicted intrinsics{compared}"
    content = _content(in_order(evaluations)) | {"title": title}
    write_text(path, page("scores", title, content, figures=True, scripts=SCRIPTS))


def _content(evaluations: Sequence[Evaluation]) -> dict[str, object]:
    return {
        "methods": [one_line(evaluation.method) for evaluation in evaluations],
        "used": used(evaluations),
        "threshold": THRESHOLD_PX,
        "binsPerPx": BINS_PER_PX,
        "shareUnits": SHARE_UNITS,
        "table": _table(evaluations),
        "curves": [_curve(evaluation.overall.histogram) for evaluation in evaluations],
        "groups": [_group(by, evaluations) for by in _union(e.groups for e in evaluations)],
        "videos": _videos(evaluations),
    }


def _headings(*names: str) -> list[dict[str, object]]:
    """Of columns; those in which more is better are first sorted downwards."""
    texts = [*names, *_ranking_first([*HEADINGS, FRAMES_HEADING])]
    return [{"text": text, "down": text in (HEADINGS[-1], FRAMES_HEADING)} for text in texts]


def _ranking_first(columns: Sequence[T]) -> list[T]:
    """The column that methods are ranked by and the frames predicted, before the four of single
    parameters: on a phone the first ones are seen."""
    first = len(MEASURES)
    return [*columns[first:], *columns[:first]]


def _table(evaluations: Sequence[Evaluation]) -> dict[str, object]:
    best = best_numbers([evaluation.overall for evaluation in evaluations])
    rows = []
    for place, evaluation in enumerate(evaluations):
        cells = _cells(evaluation.overall, best[place])
        for cell, interval in zip(cells, intervals_shown(evaluation), strict=False):
            cell["note"] = interval
        rows.append([_method(place, evaluation, note=evaluation.kind), *_ranking_first(cells)])
    return {"headings": _headings("Method"), "rows": rows}


def _group(by: str, evaluations: Sequence[Evaluation]) -> dict[str, object]:
    rows = []
    for value in _union(evaluation.groups.get(by, {}) for evaluation in evaluations):
        having = {
            place: evaluation.groups[by][value]
            for place, evaluation in enumerate(evaluations)
            if value in evaluation.groups.get(by, {})
        }
        name = {"text": one_line(value), "key": one_line(value)}
        best = best_numbers(list(having.values()))
        for (place, score), is_best in zip(having.items(), best, strict=True):
            cells = _ranking_first(_cells(score, is_best))
            rows.append([name, _method(place, evaluations[place]), *cells])
    return {"by": one_line(by), "headings": _headings(one_line(by), "Method"), "rows": rows}


def _cells(score: Score, is_best: Sequence[bool]) -> list[TableCell]:
    values = numbers(score)
    cells: list[TableCell] = [
        {"text": shown(value), "key": _key(value), "best": best}
        for value, best in zip(values, is_best, strict=True)
    ]
    cells[-1]["bar"] = _key(values[-1])
    share = score.predicted_frames / score.frames if score.frames else math.nan
    return [*cells, {"text": frames_shown(score), "key": _key(share)}]


def _method(place: int, evaluation: Evaluation, note: str = "") -> TableCell:
    name = one_line(evaluation.method)
    return {"text": name, "key": name, "note": note, "method": place}


def _curve(histogram: EpeHistogram) -> dict[str, object]:
    """Points of the cumulative curve, each by its steps from the one before, and in words."""
    px, share = histogram.curve()
    rises = np.flatnonzero(np.diff(np.floor(share * CURVE_LEVELS)))
    marked = [0, min(THRESHOLD_PX * BINS_PER_PX, len(px) - 1), len(px) - 1]
    kept = np.unique(np.concatenate([marked, rises, rises + 1])).astype(int)
    if histogram.n == 0:
        return {"bins": [], "shares": [], "words": "no frames"}
    below = shown(100 * histogram.share_below(THRESHOLD_PX))
    words = [f"{below} % below {THRESHOLD_PX} px", f"median {_px(histogram.percentile(50))}"]
    if histogram.infinite:
        nowhere = shown(100 * histogram.infinite / histogram.n)
        words.append(f"{nowhere} % without a prediction or a projection")
    return {
        "bins": np.diff(kept, prepend=0).tolist(),
        "shares": np.diff(np.round(share[kept] * SHARE_UNITS).astype(int), prepend=0).tolist(),
        "words": ", ".join(words),
    }


def _videos(evaluations: Sequence[Evaluation]) -> list[dict[str, object]]:
    names = _union(evaluation.videos for evaluation in evaluations)
    n_strips = max(len(names), 1) * (len(evaluations) + 1)
    columns = (VIDEOS_BYTES // n_strips - STRIP_BYTES) // COLUMN_BYTES
    columns = min(max(columns, FEWEST_COLUMNS), MOST_COLUMNS)
    return [_video(name, evaluations, columns) for name in names]


def _video(name: str, evaluations: Sequence[Evaluation], most_columns: int) -> dict[str, object]:
    having = {
        place: evaluation.strips[name]
        for place, evaluation in enumerate(evaluations)
        if name in evaluation.videos and len(evaluation.strips[name].frames)
    }
    scores = [evaluation.videos.get(name) for evaluation in evaluations]
    video: dict[str, object] = {
        "name": one_line(name),
        "frames": max(score.frames for score in scores if score is not None),
    }
    methods = [{} if score is None else _video_score(score) for score in scores]
    if having:
        columns = _Columns.over(list(having.values()), most_columns)
        truth = next(iter(having.values()))
        video |= {
            "first": columns.first,
            "last": columns.last,
            "step": columns.step,
            "true": _low_high(truth.true_fx, columns.of(truth.frames), columns.n),
        }
        for place, strip in having.items():
            methods[place] |= _predicted(strip, columns)
    return {**video, "methods": methods}


def _video_score(score: Score) -> dict[str, object]:
    values = numbers(score)
    fx, below = values[0], values[len(MEASURES)]
    return {
        "fx": [shown(fx), _key(fx)],
        "below": [shown(below), _key(below)],
        "frames": frames_shown(score),
    }


def _predicted(strip: Strip, columns: _Columns) -> dict[str, object]:
    """What a column has of predictions, and of how many frames it has none.

    ``missing`` is negative where none of a column's frames has one, left out where all have.
    """
    column = columns.of(strip.frames)
    result: dict[str, object] = {"predicted": _low_high(strip.predicted_fx, column, columns.n)}
    missing = np.bincount(column[np.isnan(strip.predicted_fx)], minlength=columns.n)
    if missing.any():
        counted = np.bincount(column, minlength=columns.n)
        result["missing"] = np.where(missing == counted, -missing, missing).tolist()
    return result


@dataclass(frozen=True)
class _Columns:
    """A strip's columns: the frames from ``first`` to ``last``, ``step`` of them in each."""

    first: int
    last: int
    step: int

    @classmethod
    def over(cls, strips: Sequence[Strip], most: int) -> _Columns:
        first = min(int(strip.frames[0]) for strip in strips)
        last = max(int(strip.frames[-1]) for strip in strips)
        return cls(first, last, -(-(last + 1 - first) // most))

    @property
    def n(self) -> int:
        return -(-(self.last + 1 - self.first) // self.step)

    def of(self, frames: IntArray) -> IntArray:
        return (frames - self.first) // self.step


def _low_high(values: FloatArray, column: IntArray, n: int) -> list[str]:
    """Lowest and highest value of each of n columns, NaN in an empty one: float32 in base64."""
    low, high = np.full(n, np.nan), np.full(n, np.nan)
    np.fmin.at(low, column, values)
    np.fmax.at(high, column, values)
    largest = float(np.finfo(np.float32).max)
    return [float32_text(np.clip(ends, -largest, largest)) for ends in (low, high)]


def _key(value: float) -> float | None:
    """What a number is sorted by, as JSON can have it."""
    return None if math.isnan(value) else min(value, sys.float_info.max)


def _px(value: float) -> str:
    return "infinite" if math.isinf(value) else f"{value:.1f} px"


def _union(mappings: Iterable[Mapping[str, object]]) -> list[str]:
    """The keys of all, in the order in which they are met."""
    return list({key: None for mapping in mappings for key in mapping})
