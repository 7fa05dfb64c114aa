"""Predictions that do not look like ones of the clips whose truth they are held against.

A method that was given scaled pictures, or another cut of a clip, has scores like a bad one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from influx_wrap.model.ground_truth import MOST_OFF_CENTRE, GroundTruth
from influx_wrap.model.predictions import Predictions
from influx_wrap.model.words import counted, size_text


def prediction_doubts(
    predictions: Predictions, truth: Mapping[str, GroundTruth], image_size: tuple[int, int]
) -> list[str]:
    """What is odd about predictions of videos that all have a truth, a sentence each.

    image_size  (width, height) in pixels of the truth's pictures
    """
    doubts = []
    beyond = {
        name: int((~np.isin(video.frames[video.answered], truth[name].metadata.frame)).sum())
        for name, video in predictions.videos.items()
    }
    if total := sum(beyond.values()):
        first = next(name for name, count in beyond.items() if count)
        doubts.append(
            f"{predictions.method} has {counted(total, 'prediction')} of frames that the truth "
            f"does not have, first of video {first}: not counted. Is it the same clip?"
        )
    answers = [video.values[video.answered, 2:4] for video in predictions.videos.values()]
    points = np.concatenate(answers) if answers else np.empty((0, 2))
    if len(points):
        x, y = np.median(points, axis=0)
        off = np.abs((np.array([x, y]) + 0.5) / image_size - 0.5).max()
        if off > MOST_OFF_CENTRE:
            doubts.append(
                f"{predictions.method} has its principal point at {x:.0f}, {y:.0f} px, far from "
                f"the middle of pictures with the truth's {size_text(image_size)} pixels: was it "
                "given pictures of another size? Its answers must be in pixels of the truth's."
            )
    return doubts
