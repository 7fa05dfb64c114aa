"""Validation and test: whole videos, a given share of the frames to validation.

The paper's split ("Validation and Test Split"): every video belongs to one side as a whole, and
validation has about 15 % of all frames. Videos are taken in a random order until some of those
taken have exactly as many frames together as are wanted; if none ever do, what comes nearest
of all is chosen. Which sums can be reached is kept as the bits of an integer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.manifest import TEST, VALIDATION, Video


def split_videos(
    videos: Mapping[str, Video], share: float, rng: np.random.Generator
) -> dict[str, Video]:
    """The videos, in the given order, with ``share`` of all frames in validation."""
    if not 0 < share < 1:
        raise InputError(f"the share of validation must be between 0 and 1, got {share:g}.")
    if len(videos) < 2:
        raise InputError(
            "there is one video only, and a video is never split: at least two are needed."
        )
    names = list(videos)
    order = [names[k] for k in rng.permutation(len(names)).tolist()]
    counts = [videos[name].frame_count for name in order]
    chosen = {order[k] for k in nearest_subset(counts, share * sum(counts))}
    return {
        name: Video(video.frame_count, VALIDATION if name in chosen else TEST)
        for name, video in videos.items()
    }


def nearest_subset(counts: list[int], wanted: float) -> list[int]:
    """Which of some positive counts, not none and not all, sum up to what is nearest ``wanted``.

    Of sums equally near the lesser is taken, and of ways to reach it one that needs the first
    counts only.
    """
    unit = math.gcd(*counts)
    sizes = [count // unit for count in counts]
    total, goal = sum(sizes), wanted / unit
    best_sum = min(max(1, math.ceil(goal - 0.5)), total - 1)
    # A sum that is farther than the least count alone is never the nearest.
    most = min(total - 1, max(math.ceil(2 * goal), min(sizes)))
    mask = (1 << (most + 1)) - 1
    reached = [1]
    for size in sizes:
        reached.append((reached[-1] | reached[-1] << size) & mask)
        if reached[-1] >> best_sum & 1:
            break
    remaining = _nearest_bit(reached[-1], goal)
    subset = []
    for k in range(len(reached) - 2, -1, -1):
        if not reached[k] >> remaining & 1:
            subset.append(k)
            remaining -= sizes[k]
    return sorted(subset)


def _nearest_bit(bits: int, goal: float) -> int:
    """The number of the set bit, except the 0th, that is nearest ``goal``."""
    below = (bits & ((1 << (math.floor(goal) + 1)) - 1) & ~1).bit_length() - 1
    above = bits >> (math.floor(goal) + 1)
    candidates = [below] if below > 0 else []
    if above:
        candidates.append(math.floor(goal) + 1 + (above & -above).bit_length() - 1)
    return min(candidates, key=lambda number: (abs(number - goal), number))
