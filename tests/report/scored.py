"""Evaluations made up for the tests of tables and pages."""

from __future__ import annotations

import numpy as np

from influx_wrap.evaluate.epe_counts import BINS_PER_PX, MOST_PX, EpeHistogram
from influx_wrap.evaluate.score import Evaluation, Score, Strip, merged
from influx_wrap.model.arrays import FloatArray

NASTY = "<script>alert('1')</script> \"&é日本 50% $x_1$ {a}\\b #~^"
NO_FRAMES = "empty [clip]"


def histogram(errors_px: FloatArray, infinite: int = 0) -> EpeHistogram:
    """Of errors counted one by one."""
    inside = errors_px[errors_px < MOST_PX]
    counts = np.bincount(np.floor(inside * BINS_PER_PX).astype(int), minlength=0)
    return EpeHistogram(counts.astype(np.int64), len(errors_px) - len(inside), infinite)


def made_up(
    method: str,
    off: float | None,
    *,
    n_videos: int = 6,
    n_frames: int = 90,
    missing: slice = slice(0, 0),
    seed: int = 0,
    points: int = 20,
) -> Evaluation:
    """A method whose focal length is off by about a factor 1 + ``off``; None: it has no answer.

    Video k is off k + 1 times as much; one more video has no frames at all.
    """
    rng = np.random.default_rng(seed)
    videos, strips = {}, {}
    for k in range(n_videos):
        frames = np.arange(n_frames) + 10 * k
        true = 3000 * np.exp(0.5 * np.sin(frames / 20 + k))
        predicted = np.full(n_frames, np.nan)
        errors = np.zeros(0)
        if off is not None:
            predicted = true * (1 + off * (k + 1) * (1 + 0.1 * rng.normal(size=n_frames)))
            predicted[missing] = np.nan
            shown = ~np.isnan(predicted)
            wrong = np.abs(predicted - true)[shown]
            errors = (wrong[:, None] * rng.uniform(0, 0.6, (len(wrong), points))).ravel()
        n = int(np.isfinite(predicted).sum())
        percent = np.full(4, np.nan)
        if n:
            focal = float(np.nanmean(100 * np.abs(predicted - true) / true))
            percent = np.array([focal, focal * 1.01, 0.0988 + k / 1000, 0.204])
        score = Score(n_frames, n, percent, histogram(errors, (n_frames - n) * points))
        videos[f"clip-{k:03d}"] = score
        strips[f"clip-{k:03d}"] = Strip(frames, true, predicted)
    videos[NO_FRAMES] = Score(0, 0, np.full(4, np.nan), histogram(np.zeros(0)))
    nothing = np.zeros(0)
    strips[NO_FRAMES] = Strip(nothing.astype(np.int64), nothing, nothing)
    halves = {
        "canon17": [videos[name] for name in list(videos)[::2]],
        "premista80": [videos[name] for name in list(videos)[1::2]],
        NASTY: [videos[NO_FRAMES]],
    }
    overall = merged(list(videos.values()))
    ends = {"300": (41.25, 63.5)}
    if off is not None:
        ends |= dict.fromkeys(("fx", "fy", "cx", "cy"), (0.5, 1234.0))
    return Evaluation(
        method=method,
        kind="rad-tan",
        points_source="builtin",
        n_points=points,
        image_size=(3424, 2202),
        subsample=1,
        overall=overall,
        videos=videos,
        groups={"lens": {name: merged(scores) for name, scores in halves.items()}},
        intervals=ends,
        strips=strips,
    )
