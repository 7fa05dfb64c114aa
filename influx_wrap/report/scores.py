"""``scores.json``: how good a method's predictions are, for programs to read.

``percent_error`` and ``epe_below`` are in per cent; a number that does not exist (no frame has
a prediction, or more than half of all errors are infinite) is null.
"""

from __future__ import annotations

import math
from pathlib import Path

from influx_wrap import __version__
from influx_wrap.evaluate.score import MEASURES, THRESHOLD_PX, Evaluation, Score
from influx_wrap.formats.files import write_json

SHOWN_THRESHOLDS_PX = (1, 3, 10, 30, 100, THRESHOLD_PX, 1000)
PERCENTILES = (5, 25, 50, 75, 95)


def write_scores(path: Path, evaluation: Evaluation) -> None:
    """Write the file."""
    write_json(
        path,
        {
            "influx_wrap": __version__,
            "method": evaluation.method,
            "intrinsics_type": evaluation.kind,
            "points": {"source": evaluation.points_source, "number": evaluation.n_points},
            "image_size": list(evaluation.image_size),
            "subsample": evaluation.subsample,
            **_as_json(evaluation.overall),
            "epe_percentiles_px": {
                str(percent): _number(evaluation.overall.histogram.percentile(percent))
                for percent in PERCENTILES
            },
            "intervals_95": {
                name: [_number(low), _number(high)]
                for name, (low, high) in evaluation.intervals.items()
            },
            "groups": {
                name: {value: _as_json(score) for value, score in scores.items()}
                for name, scores in evaluation.groups.items()
            },
            "videos": {video: _as_json(score) for video, score in evaluation.videos.items()},
        },
    )


def _as_json(score: Score) -> dict[str, object]:
    return {
        "frames": score.frames,
        "predicted_frames": score.predicted_frames,
        "percent_error": {
            name: _number(value)
            for name, value in zip(MEASURES, score.percent_error.tolist(), strict=True)
        },
        "epe_below": {
            str(px): _number(100 * score.histogram.share_below(px)) for px in SHOWN_THRESHOLDS_PX
        },
        "frame_point_pairs": score.histogram.n,
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
