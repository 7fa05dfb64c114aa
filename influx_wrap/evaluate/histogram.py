"""End-point errors as a histogram of 0.1 px: shares, percentiles and the curve of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from influx_wrap.model.arrays import FloatArray, IntArray

BINS_PER_PX = 10
BIN_PX = 1 / BINS_PER_PX
MOST_PX = 6000
"""Larger errors are counted together: a picture of 3424 x 2202 has a diagonal of 4071."""


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
