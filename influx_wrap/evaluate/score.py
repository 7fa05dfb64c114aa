"""How good predicted intrinsics are: the paper's two measures, over all frames at once.

Per-cent errors of fx, fy, cx and cy are means over the frames with a prediction. End-point
errors are taken for every pair of a frame and a point that the frame's true camera sees; a
frame without a prediction has infinite ones. 143 000 frames and 100 000 points make 1.4e10
pairs, so none is kept: they go into a histogram of 0.1 px, exact to the bin, frame by frame,
on all cores. Frames with the same truth and the same prediction are looked at once.

Only frames with interpolated ground truth count, as in the paper: what a table extrapolates is
no truth. cx and cy are compared as the files have them, counted from the picture's corner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from influx_wrap.errors import InputError
from influx_wrap.evaluate.epe_kernels import FIRST, INFINITE, UNSEEN, add_errors
from influx_wrap.formats.pixel_origin import to_corner
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.intrinsics import BoolArray, FloatArray, fold_radii
from influx_wrap.model.predictions import MEI, PARAMETERS, Predictions, VideoPredictions

IntArray = NDArray[np.int64]

BINS_PER_PX = 10
BIN_PX = 1 / BINS_PER_PX
MOST_PX = 6000
"""Larger errors are counted together: a picture of 3424 x 2202 has a diagonal of 4071."""
MEASURES = ("fx", "fy", "cx", "cy")
THRESHOLD_PX = 300
N_BOOTSTRAP, CONFIDENCE = 2000, 0.95
CHUNK = 64
"""How many frames a thread takes at a time."""
STRAIGHT = 0.01
"""Below this, tangential distortion moves the edge of the field by less than ``FIELD_MARGIN``."""
FIELD_MARGIN = 1.1


@dataclass(frozen=True, eq=False)
class EpeHistogram:
    """End-point errors of frame-point pairs.

    counts    (B,) errors from k to k + 1 times ``BIN_PX``; trimmed after the last that occurs
    beyond    how many are finite and larger than ``MOST_PX``
    infinite  how many have no prediction, or one that puts the point nowhere
    """

    counts: IntArray
    beyond: int
    infinite: int

    @property
    def n(self) -> int:
        """How many pairs there are."""
        return int(self.counts.sum()) + self.beyond + self.infinite

    def share_below(self, px: float) -> float:
        """Share of the pairs with an error below ``px``, a multiple of ``BIN_PX``; NaN of none."""
        if self.n == 0:
            return np.nan
        return float(self.counts[: round(px * BINS_PER_PX)].sum() / self.n)

    def percentile(self, percent: float) -> float:
        """The error that ``percent`` of the pairs do not exceed, to ``BIN_PX``; may be infinite."""
        if self.n == 0:
            return np.nan
        if percent <= 0:
            return 0.0
        reached = np.flatnonzero(np.cumsum(self.counts) >= percent / 100 * self.n)
        return float((reached[0] + 1) * BIN_PX) if len(reached) else np.inf

    def curve(self) -> tuple[FloatArray, FloatArray]:
        """Errors (m,) in pixels and the share (m,) of the pairs below each."""
        px = np.arange(len(self.counts) + 1, dtype=float) / BINS_PER_PX
        return px, np.concatenate([[0], np.cumsum(self.counts)]) / max(self.n, 1)


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


@dataclass(frozen=True, eq=False)
class _Frames:
    """The frames of a video that count: true (n, 8), predicted (n, P) or NaN."""

    numbers: IntArray
    true: FloatArray
    predicted: FloatArray

    @property
    def answered(self) -> BoolArray:
        return np.asarray(np.isfinite(self.predicted).all(axis=1))


@dataclass(frozen=True, eq=False)
class _Directions:
    """Points as directions (n,), from the axis outwards."""

    a: FloatArray
    b: FloatArray
    wide: FloatArray
    r2: FloatArray


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Frames of a video for one thread: those that differ, and how often each comes."""

    video: str
    true: FloatArray
    predicted: FloatArray
    times: IntArray


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
    progress: Callable[[int], None] = lambda _: None,
) -> Evaluation:
    """Score predictions against the truth of the same videos.

    points      (n, 3) in camera space
    properties  ``{property: {video: value}}``, by which scores are grouped
    progress    hears how many frames more are done
    """
    if subsample < 1:
        raise InputError(f"every {subsample}th frame cannot be taken; 1 takes all.")
    unknown = sorted(set(predictions.videos) - set(truth))
    if unknown:
        raise InputError(
            f"there are predictions of video {unknown[0]!r}, but there is no truth of it "
            f"({len(unknown)} such videos). Are they of the same data set?"
        )
    if not any(known.is_interpolated.any() for known in truth.values()):
        raise InputError("no frame of the truth counts: none of them is interpolated.")
    n_parameters = len(PARAMETERS[predictions.kind])
    frames = {
        video: _counted(known, predictions.videos.get(video), n_parameters)
        for video, known in truth.items()
    }
    histograms = _histograms(
        {video: _every(chosen, subsample) for video, chosen in frames.items()},
        _directions(points), predictions.kind == MEI, image_size, jobs, progress,
    )  # fmt: skip
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
        _added([score.histogram for score in scores]),
    )


def _counted(truth: GroundTruth, predicted: VideoPredictions | None, n_parameters: int) -> _Frames:
    """The frames that count, with the predictions of the same numbers."""
    chosen = truth.is_interpolated & truth.answered
    numbers = truth.metadata.frame[chosen]
    values = np.full((len(numbers), n_parameters), np.nan)
    if predicted is not None and len(predicted.frames):
        place = np.searchsorted(predicted.frames, numbers)
        place = np.minimum(place, len(predicted.frames) - 1)
        found = predicted.frames[place] == numbers
        values[found] = predicted.values[place[found]]
    return _Frames(numbers, truth.intrinsics[chosen], values)


def _every(frames: _Frames, step: int) -> _Frames:
    return _Frames(frames.numbers[::step], frames.true[::step], frames.predicted[::step])


def _percent_sums(frames: _Frames) -> FloatArray:
    """(4,) sums of the per-cent errors over the predicted frames."""
    answered = frames.answered
    true = to_corner(frames.true)[answered, :4]
    predicted = to_corner(frames.predicted)[answered, :4]
    with np.errstate(over="ignore"):
        result: FloatArray = (100 * np.abs(predicted - true) / np.abs(true)).sum(axis=0)
    return result


def _score(frames: _Frames, sums: FloatArray, histogram: EpeHistogram) -> Score:
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


def _directions(points: FloatArray) -> _Directions:
    points = np.asarray(points, dtype=float)
    ahead = points[points[:, 2] > 0]
    a, b = ahead[:, 0] / ahead[:, 2], ahead[:, 1] / ahead[:, 2]
    r2 = a * a + b * b
    order = np.argsort(r2, kind="stable")
    a, b, r2 = a[order], b[order], r2[order]
    return _Directions(a, b, np.sqrt(1 + r2), r2)


def _histograms(
    frames: Mapping[str, _Frames],
    directions: _Directions,
    is_mei: bool,
    image_size: tuple[int, int],
    jobs: int,
    progress: Callable[[int], None],
) -> dict[str, EpeHistogram]:
    """A histogram for every video, made by ``jobs`` threads (the kernels leave Python's lock)."""
    totals: dict[str, EpeHistogram] = {}
    running = np.zeros(FIRST + MOST_PX * BINS_PER_PX + 1, dtype=np.int64)
    current: str | None = None

    def finish() -> None:
        if current is not None:
            totals[current] = _as_histogram(running)
            running[:] = 0

    def work(chunk: _Chunk) -> tuple[_Chunk, IntArray]:
        return chunk, _errors_of(chunk, directions, is_mei, image_size)

    with ThreadPoolExecutor(jobs) as pool:
        for chunk, histogram in _in_order(pool, work, _chunks(frames), 2 * jobs):
            if chunk.video != current:
                finish()
                current = chunk.video
            running += histogram
            progress(int(chunk.times.sum()))
        finish()
    empty = EpeHistogram(np.zeros(0, dtype=np.int64), 0, 0)
    return {video: totals.get(video, empty) for video in frames}


def _chunks(frames: Mapping[str, _Frames]) -> Iterator[_Chunk]:
    """Frames that differ, some at a time, video by video."""
    for video, chosen in frames.items():
        if not len(chosen.numbers):
            continue
        both = np.hstack([chosen.true, chosen.predicted])
        different, times = np.unique(both, axis=0, return_counts=True)
        for start in range(0, len(different), CHUNK):
            here = slice(start, start + CHUNK)
            yield _Chunk(video, different[here, :8], different[here, 8:], times[here])


def _in_order(
    pool: ThreadPoolExecutor,
    work: Callable[[_Chunk], tuple[_Chunk, IntArray]],
    chunks: Iterator[_Chunk],
    ahead: int,
) -> Iterator[tuple[_Chunk, IntArray]]:
    """Results in the order of the chunks, of which only some are under way at a time."""
    waiting: list[Future[tuple[_Chunk, IntArray]]] = [
        pool.submit(work, chunk) for chunk in islice(chunks, ahead)
    ]
    while waiting:
        result = waiting.pop(0).result()
        waiting += [pool.submit(work, chunk) for chunk in islice(chunks, 1)]
        yield result


def _errors_of(
    chunk: _Chunk, directions: _Directions, is_mei: bool, image_size: tuple[int, int]
) -> IntArray:
    """Histogram (B + 3,) of a chunk."""
    histogram = np.zeros(FIRST + MOST_PX * BINS_PER_PX + 1, dtype=np.int64)
    size = np.array(image_size, dtype=float)
    fold = fold_radii(chunk.true)
    ends = np.searchsorted(directions.r2, _field_r2(chunk.true, fold, size), side="right")
    predicted = np.zeros((len(chunk.true), 8))
    predicted[:, : chunk.predicted.shape[1]] = chunk.predicted
    answered: BoolArray = np.asarray(np.isfinite(predicted).all(axis=1))
    folds = fold**2, fold_radii(predicted) ** 2
    for k, times in enumerate(chunk.times.tolist()):
        a, b, wide = (values[: ends[k]] for values in (directions.a, directions.b, directions.wide))
        camera, is_other = (predicted[k], is_mei) if answered[k] else (chunk.true[k], False)
        both = np.array([folds[0][k], folds[1][k] if answered[k] else folds[0][k]])
        # Without an answer only the number of points seen matters: one bin takes them all.
        bins = histogram if answered[k] else np.zeros(FIRST + 1, dtype=np.int64)
        add_errors(
            a, b, wide, chunk.true[k], camera, is_other, both, size,
            float(BINS_PER_PX), times, bins,
        )  # fmt: skip
        if not answered[k]:
            histogram[INFINITE] += bins.sum() - bins[UNSEEN]
    return histogram


def _field_r2(theta: FloatArray, fold: FloatArray, size: FloatArray) -> FloatArray:
    """(n,) squared radius beyond which no direction is in the picture of cameras (n, 8)."""
    corners = np.array([[-0.5, -0.5], [size[0] - 0.5, -0.5], [-0.5, size[1] - 0.5], size - 0.5])
    with np.errstate(all="ignore"):
        offsets = (corners[None] - theta[:, None, 2:4]) / theta[:, None, :2]
        distorted = np.hypot(offsets[..., 0], offsets[..., 1]).max(axis=1)
        low = np.zeros(len(theta))
        high = np.minimum(fold, 1e3)
        k1, k2 = theta[:, 4], theta[:, 5]
        for _ in range(40):
            middle = (low + high) / 2
            reached = np.asarray(middle * (1 + middle**2 * (k1 + k2 * middle**2)) > distorted)
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    straight = np.abs(theta[:, 6:]).max(axis=1) < STRAIGHT
    field: FloatArray = np.where(straight, FIELD_MARGIN * high, np.inf)
    return np.square(field)


def _as_histogram(bins: IntArray) -> EpeHistogram:
    counts = bins[FIRST:-1]
    used = np.flatnonzero(counts)
    end = int(used[-1]) + 1 if len(used) else 0
    return EpeHistogram(counts[:end].copy(), int(bins[-1]), int(bins[INFINITE]))


def _added(histograms: list[EpeHistogram]) -> EpeHistogram:
    counts = np.zeros(max((len(one.counts) for one in histograms), default=0), dtype=np.int64)
    for one in histograms:
        counts[: len(one.counts)] += one.counts
    return EpeHistogram(
        counts, sum(one.beyond for one in histograms), sum(one.infinite for one in histograms)
    )
