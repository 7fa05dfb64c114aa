"""Frames of a board that is moved without pause: slow ones, spread over places, sizes and tilts.

Nobody holds the board still, so there is no rest to take the middle of. What a calibration needs
is known, however: sharp pictures that differ. A frame is as sharp as the board is slow in it: its
speed is how far the corners are from those of the nearer of its two neighbours. How much two
frames differ is their distance in where the board is in the picture, how large it is, and how it
is tilted (``coverage``). The frames are chosen one by one, each the one whose distance from all
chosen ones, times its sharpness, is largest (farthest-point sampling), so that the extremes come
first and the gaps between them are filled by the slowest frame of each. It ends when nothing is
left that differs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.observations import Observations
from influx_wrap.observe.coverage import place_boards

ENOUGH_VIEWS, MOST_VIEWS = 20, 50

# Distances between placements: 1 is a quarter of the picture's diagonal, a board larger by a
# factor of e, or one radian of tilt. Views nearer than the first are alike; they are taken up to
# the second, which is twice what an unsteady hand does, if there are not enough others.
ALIKE, NEARLY_IDENTICAL = 0.07, 0.02
_CENTRE_WEIGHT = 2.0
_SIZES = (0.01, 4.0)

# Speeds in parts of the picture's diagonal per frame. At the first a frame counts half.
_SLOW = 1 / 500
_FAST = 1 / 100
_FAST_OF_TYPICAL = 3.0
_MOST_CANDIDATES = 1000
_FRAMES_AT_ONCE = 1024


def displacement_px(
    uv: FloatArray, valid: BoolArray, views: IntArray, others: IntArray
) -> FloatArray:
    """(N,) median distance between the corners of views (N,) and of others (N,).

    ``uv`` (V, T, 2) and ``valid`` (V, T). Only corners seen in both count; NaN where they
    are fewer than half of those of the view that has fewer, and say little.
    """
    result = np.full(len(views), np.nan)
    for start in range(0, len(views), _FRAMES_AT_ONCE):
        some = slice(start, start + _FRAMES_AT_ONCE)
        a, b = views[some], others[some]
        both = valid[a] & valid[b]
        moved = np.linalg.norm(uv[a] - uv[b], axis=2)
        moved = np.sort(np.where(both, moved, np.inf), axis=1)
        n_both = both.sum(axis=1)
        median = moved[np.arange(len(a)), np.maximum(n_both - 1, 0) // 2]
        fewer = np.minimum(valid[a].sum(axis=1), valid[b].sum(axis=1))
        result[some] = np.where((n_both > 0) & (2 * n_both >= fewer), median, np.nan)
    return result


def steps_px(frames: IntArray, uv: FloatArray, valid: BoolArray) -> FloatArray:
    """(V + 1,) how far the board moves before, between and after the ``frames`` (V,) of V views.

    NaN where two of them are not neighbours, or show few of the same corners, and at both ends.
    """
    views = np.flatnonzero(np.diff(frames) == 1)
    step_px = np.full(len(frames) + 1, np.nan)
    step_px[views + 1] = displacement_px(uv, valid, views, views + 1)
    return step_px


def spread_views(
    observations: Observations, speed_px: FloatArray, same_px: float
) -> tuple[IntArray, BoolArray]:
    """Of V views those that differ most and are sharp: (K,) indices, ascending.

    ``speed_px`` (V,) is the board's speed; views whose corners are within ``same_px`` show the
    same pose. Also (V,) which views are slow enough to be chosen.
    """
    speed = speed_px / math.hypot(*observations.image_size)
    known = np.isfinite(speed)
    if not known.any():
        return np.empty(0, dtype=np.int64), known
    typical = float(np.median(speed[known]))
    slow_enough = known & (speed <= max(_FAST, _FAST_OF_TYPICAL * typical))
    views = _slowest_of_groups(np.flatnonzero(slow_enough), speed)
    features = _features(observations, views)
    uv, valid = observations.uv[views], observations.valid[views]
    weight = np.sqrt(valid.mean(axis=1)) / (1 + (speed[views] / max(_SLOW, typical / 2)) ** 2)

    def distance_to(one: int) -> FloatArray:
        """(N,) how much each candidate differs from one of them."""
        ones = np.full(len(views), one)
        same = displacement_px(uv, valid, np.arange(len(views)), ones) <= same_px
        return np.where(same, 0.0, np.linalg.norm(features - features[one], axis=1))

    return np.sort(views[_farthest_points(distance_to, weight)]), slow_enough


def _slowest_of_groups(views: IntArray, speed: FloatArray) -> IntArray:
    """At most ``_MOST_CANDIDATES`` of the views: the slowest of each few in a row."""
    n_groups = min(len(views), _MOST_CANDIDATES)
    group = np.arange(len(views)) * n_groups // len(views)
    order = np.lexsort((speed[views], group))
    first = np.diff(group[order], prepend=-1) != 0
    return np.asarray(views[order[first]])


def _features(observations: Observations, views: IntArray) -> FloatArray:
    """(N, 5) placements of the board in views (N,), in which a distance of 1 is large."""
    uv, valid = observations.uv[views], observations.valid[views]
    boards = place_boards(uv, valid, observations.target, observations.image_size)
    # A few corners of a board at the rim can be continued to anywhere.
    centre = np.clip(boards.centre, -1, 1)
    log_size = np.log(np.clip(boards.size, *_SIZES))
    return np.column_stack([_CENTRE_WEIGHT * centre, log_size, np.radians(boards.tilts_deg)])


def _farthest_points(distance_to: Callable[[int], FloatArray], weight: FloatArray) -> IntArray:
    """Indices of the chosen ones of N candidates, in the order in which they were chosen."""
    chosen = [int(np.argmax(weight))]
    distance = distance_to(chosen[0])
    while len(chosen) < MOST_VIEWS:
        least = ALIKE if distance.max() >= ALIKE else NEARLY_IDENTICAL
        if distance.max() < least or (least < ALIKE and len(chosen) >= ENOUGH_VIEWS):
            break
        chosen.append(int(np.argmax(np.where(distance >= least, weight * distance, -1.0))))
        distance = np.minimum(distance, distance_to(chosen[-1]))
    return np.array(chosen)
