"""How good predicted intrinsics are: the paper's two measures, over all frames at once.

Per-cent errors of fx, fy, cx and cy are means over the frames with a prediction. End-point
errors are taken for every pair of a frame and a point that the frame's true camera sees; a
frame without a prediction has infinite ones (``epe_counts``).

Only frames with interpolated ground truth count, as in the paper: what a table extrapolates is
no truth. cx and cy are compared as the files have them, counted from the picture's corner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from influx_wrap.compute.progress import Progress, no_progress
from influx_wrap.errors import InputError
from influx_wrap.evaluate.epe_counts import CountedFrames, EpeHistogram, added, epe_histograms
from influx_wrap.formats.pixel_origin import to_corner
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.predictions import MEI, PARAMETERS, Predictions, VideoPredictions
from influx_wrap.model.words import counted

MEASURES = ("fx", "fy", "cx", "cy")
THRESHOLD_PX = 300
N_BOOTSTRAP, CONFIDENCE = 2000, 0.95


@dataclass(frozen=True, eq=False)
class Score:
    """What counts of some frames.

    frames            how many have interpolated ground truth
    predicted_frames  how many of those have a prediction
    percent_error     (4,) mean of fx, fy, cx, cy over the predicted ones; NaN if there are none
    """

    frames: int
    predicted_frames: int
    percent_error: FloatArray
    histogram: EpeHistogram


@dataclass(frozen=True, eq=False)
class Strip:
    """A video over time: frames (n,) that count, true and predicted fx (n,), NaN for none."""

    frames: IntArray
    true_fx: FloatArray
    predicted_fx: FloatArray


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A method's scores.

    points_source  which points were used, and ``n_points`` how many
    subsample      every which of the frames that count was used for end-point errors
    groups         by a property of the videos (``lens``, ``motion``), then by its value
    intervals      95 % confidence of ``MEASURES`` and of the share below ``THRESHOLD_PX``, in
                   per cent, by drawing videos again and again; empty with fewer than two
    """

    method: str
    kind: str
    points_source: str
    n_points: int
    image_size: tuple[int, int]
    subsample: int
    overall: Score
    videos: Mapping[str, Score]
    groups: Mapping[str, Mapping[str, Score]]
    intervals: Mapping[str, tuple[float, float]]
    strips: Mapping[str, Strip]


def evaluate(
    predictions: Predictions,
    truth: Mapping[str, GroundTruth],
    points: FloatArray,
    *,
    points_source: str,
    image_size: tuple[int, int],
    properties: Mapping[str, Mapping[str, str]] | None = None,
    subsample: int = 1,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> Evaluation:
    """Score predictions against the truth of the same videos.

    points      (n, 3) in camera space
    properties  ``{property: {video: value}}``, by which scores are grouped
    progress    hears of frames
    """
    if subsample < 1:
        raise InputError(f"every {subsample}th frame cannot be taken; 1 takes all.")
    unknown = sorted(set(predictions.videos) - set(truth))
    if unknown:
        raise InputError(
            f"there are predictions of video {unknown[0]!r}, but there is no truth of it "
            f"({counted(len(unknown), 'such video')}). Are they of the same data set?"
        )
    if not any(known.is_interpolated.any() for known in truth.values()):
        raise InputError("no frame of the truth counts: none of them is interpolated.")
    n_parameters = len(PARAMETERS[predictions.kind])
    frames = {
        video: _counted(known, predictions.videos.get(video), n_parameters)
        for video, known in truth.items()
    }
    histograms = epe_histograms(
        {video: chosen.every(subsample) for video, chosen in frames.items()},
        points,
        predictions.kind == MEI,
        image_size,
        jobs,
        progress,
    )
    sums = {video: _percent_sums(chosen) for video, chosen in frames.items()}
    videos = {
        video: _score(chosen, sums[video], histograms[video]) for video, chosen in frames.items()
    }
    return Evaluation(
        method=predictions.method,
        kind=predictions.kind,
        points_source=points_source,
        n_points=len(points),
        image_size=image_size,
        subsample=subsample,
        overall=merged(list(videos.values())),
        videos=videos,
        groups=_groups(videos, properties or {}),
        intervals=_intervals(list(videos.values())),
        strips={
            video: Strip(
                chosen.numbers,
                chosen.true[:, 0],
                np.where(chosen.answered, chosen.predicted[:, 0], np.nan),
            )
            for video, chosen in frames.items()
        },
    )


def merged(scores: list[Score]) -> Score:
    """The score of all frames of several."""
    predicted = np.array([score.predicted_frames for score in scores], dtype=np.int64)
    errors = np.array([score.percent_error for score in scores]).reshape(-1, 4)
    n = int(predicted.sum())
    total = np.where(predicted[:, None] > 0, errors, 0.0).T @ predicted
    return Score(
        sum(score.frames for score in scores),
        n,
        total / n if n else np.full(4, np.nan),
        added([score.histogram for score in scores]),
    )


def _counted(
    truth: GroundTruth, predicted: VideoPredictions | None, n_parameters: int
) -> CountedFrames:
    """The frames that count, with the predictions of the same numbers."""
    chosen = truth.is_interpolated & truth.answered
    numbers = truth.metadata.frame[chosen]
    values = np.full((len(numbers), n_parameters), np.nan)
    if predicted is not None and len(predicted.frames):
        place = np.searchsorted(predicted.frames, numbers)
        place = np.minimum(place, len(predicted.frames) - 1)
        found = predicted.frames[place] == numbers
        values[found] = predicted.values[place[found]]
    return CountedFrames(numbers, truth.intrinsics[chosen], values)


def _percent_sums(frames: CountedFrames) -> FloatArray:
    """(4,) sums of the per-cent errors over the predicted frames."""
    answered = frames.answered
    true = to_corner(frames.true)[answered, :4]
    predicted = to_corner(frames.predicted)[answered, :4]
    # A true value of 0 has no per cent: any other one is infinitely far off.
    with np.errstate(over="ignore", divide="ignore"):
        result: FloatArray = (100 * np.abs(predicted - true) / np.abs(true)).sum(axis=0)
    return result


def _score(frames: CountedFrames, sums: FloatArray, histogram: EpeHistogram) -> Score:
    n = int(frames.answered.sum())
    error = sums / n if n else np.full(4, np.nan)
    return Score(len(frames.numbers), n, error, histogram)


def _groups(
    videos: Mapping[str, Score], properties: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, Score]]:
    groups = {}
    for name, values in properties.items():
        kinds = sorted({values[video] for video in videos if video in values})
        groups[name] = {
            kind: merged([score for video, score in videos.items() if values.get(video) == kind])
            for kind in kinds
        }
    return groups


def _intervals(scores: list[Score]) -> dict[str, tuple[float, float]]:
    """Of what would be measured with other videos of the same kind."""
    if len(scores) < 2:
        return {}
    rng = np.random.default_rng(0)
    times = rng.multinomial(len(scores), np.full(len(scores), 1 / len(scores)), N_BOOTSTRAP)
    predicted = np.array([score.predicted_frames for score in scores], dtype=float)
    errors = np.array([np.nan_to_num(score.percent_error) for score in scores])
    pairs = np.array([score.histogram.n for score in scores], dtype=float)
    below = np.array([score.histogram.share_below(THRESHOLD_PX) for score in scores])
    tails = 50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE)
    intervals = {}
    with np.errstate(invalid="ignore", over="ignore"):
        for k, name in enumerate(MEASURES):
            drawn = times @ (errors[:, k] * predicted) / (times @ predicted)
            intervals[name] = _range(drawn, tails)
        drawn = 100 * (times @ (np.nan_to_num(below) * pairs)) / (times @ pairs)
        intervals[str(THRESHOLD_PX)] = _range(drawn, tails)
    return intervals


def _range(drawn: FloatArray, tails: tuple[float, float]) -> tuple[float, float]:
    finite = drawn[np.isfinite(drawn)]
    if not len(finite):
        return np.nan, np.nan
    low, high = np.percentile(finite, tails)
    return float(low), float(high)
