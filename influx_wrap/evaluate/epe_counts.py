"""End-point errors of the frames of many videos, counted into histograms on all cores.

143 000 frames and 100 000 points make 1.4e10 pairs, so none is kept: they go into a histogram,
exact to its bins of 0.1 px, frame by frame, from which shares, percentiles and the curve of them
follow. Frames with the same truth and the same prediction are looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import numpy as np

from influx_wrap.compute.progress import Progress, adding
from influx_wrap.evaluate.epe_kernels import FIRST, INFINITE, UNSEEN, add_errors
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.intrinsics import fold_radii

BINS_PER_PX = 10
BIN_PX = 1 / BINS_PER_PX
MOST_PX = 6000
"""Larger errors are counted together: a picture of 3424 x 2202 has a diagonal of 4071."""

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


def added(histograms: list[EpeHistogram]) -> EpeHistogram:
    """All pairs of several histograms."""
    counts = np.zeros(max((len(one.counts) for one in histograms), default=0), dtype=np.int64)
    for one in histograms:
        counts[: len(one.counts)] += one.counts
    return EpeHistogram(
        counts, sum(one.beyond for one in histograms), sum(one.infinite for one in histograms)
    )


@dataclass(frozen=True, eq=False)
class CountedFrames:
    """The frames of a video that count: true (n, 8), predicted (n, P) or NaN."""

    numbers: IntArray
    true: FloatArray
    predicted: FloatArray

    @property
    def answered(self) -> BoolArray:
        """(n,) frames with a prediction."""
        return np.asarray(np.isfinite(self.predicted).all(axis=1))

    def every(self, step: int) -> CountedFrames:
        """One of ``step`` frames."""
        return CountedFrames(self.numbers[::step], self.true[::step], self.predicted[::step])


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


def epe_histograms(
    frames: Mapping[str, CountedFrames],
    points: FloatArray,
    is_mei: bool,
    image_size: tuple[int, int],
    jobs: int,
    progress: Progress,
) -> dict[str, EpeHistogram]:
    """A histogram for every video, made by ``jobs`` threads (the kernels leave Python's lock).

    points    (n, 3) in camera space
    is_mei    whether predictions are of the unified camera (Mei), not Brown-Conrady
    progress  hears of frames
    """
    directions = _directions(points)
    totals: dict[str, EpeHistogram] = {}
    running = np.zeros(FIRST + MOST_PX * BINS_PER_PX + 1, dtype=np.int64)
    current: str | None = None
    done = adding(progress, sum(len(chosen.numbers) for chosen in frames.values()))

    def finish() -> None:
        if current is not None:
            totals[current] = _as_histogram(running)
            running[:] = 0

    def work(chunk: _Chunk) -> tuple[_Chunk, IntArray]:
        return chunk, _errors_of(chunk, directions, is_mei, image_size)

    with ThreadPoolExecutor(jobs) as pool:
        for chunk, histogram in _in_order(pool, work, _chunks(frames), 2 * min(jobs, 1000)):
            if chunk.video != current:
                finish()
                current = chunk.video
            running += histogram
            done(int(chunk.times.sum()))
        finish()
    empty = EpeHistogram(np.zeros(0, dtype=np.int64), 0, 0)
    return {video: totals.get(video, empty) for video in frames}


def _chunks(frames: Mapping[str, CountedFrames]) -> Iterator[_Chunk]:
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


def _directions(points: FloatArray) -> _Directions:
    points = np.asarray(points, dtype=float)
    ahead = points[points[:, 2] > 0]
    a, b = ahead[:, 0] / ahead[:, 2], ahead[:, 1] / ahead[:, 2]
    r2 = a * a + b * b
    order = np.argsort(r2, kind="stable")
    a, b, r2 = a[order], b[order], r2[order]
    return _Directions(a, b, np.sqrt(1 + r2), r2)


def _as_histogram(bins: IntArray) -> EpeHistogram:
    counts = bins[FIRST:-1]
    used = np.flatnonzero(counts)
    end = int(used[-1]) + 1 if len(used) else 0
    return EpeHistogram(counts[:end].copy(), int(bins[-1]), int(bins[INFINITE]))
