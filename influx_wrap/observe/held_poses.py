"""One frame for each pose of a board that is held: the paper's adaptive non-maximum suppression.

The board is moved jerkily from pose to pose, so that the frames of a pose show many
corners and those in between, blurred, few. The strength of a frame is its number of
corners, its suppression radius the distance in frames to the nearest stronger one
(c_robust = 1), and the frames whose radius exceeds a threshold, found by the elbow
method, are kept (supplement, "ANMS-based Keyframe Selection"). Nothing is stronger than
a complete frame: all of them would be kept, but those of one pose are reduced to their
median. ``select_keyframes`` does that, from the counts alone.

Three things the paper leaves open are settled there.

*Ties.* A board held half outside the picture gives the same incomplete count again and
again. The frames are therefore put into a strict order, so that of two frames one always
suppresses the other: by strength; then by nearness to the middle of their run of equal
strength, so that a still board gives the middle of its rest, the paper's median; then the
earlier first. A run of complete frames goes on across frames that miss a few corners.

*One frame per pose.* The count of a board at rest flickers, and a second maximum of the
same rest can be further from the first than two poses are from each other, so that no
threshold would tell them apart. A frame stands for a pose of its own only if the count
falls markedly on the way to the next stronger frame on either side: by a quarter of its
own, by a tenth of the board, and by more than the video's counts flicker anyway.

*Held poses.* The first and last frames of a movement are blurred a little, yet often keep
all their corners, and corners light up for a moment in the middle of it. A frame is therefore
taken to be as strong as the weaker of its neighbours allows: its strength is the lowest
count of three frames in a row. A pose held for fewer than three frames is not found.

Counts cannot tell two poses apart if the board moves so slowly from one to the other that
all corners are found on the way, and tell one pose apart from itself if somebody walks
through the picture. Where the corners are, however, can. ``select_held_poses`` leaves out
the frames in which the board moves, gives the rest to the rule above, and reduces
keyframes between which the board has not moved to the strongest of them.

Everything is linear in the number of frames but for sorting.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import minimum_filter1d

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.looks import Looks
from influx_wrap.model.observations import MIN_POINTS_PER_VIEW, Observations
from influx_wrap.model.robust import MAD_SIGMA
from influx_wrap.model.target import AprilGrid, Target
from influx_wrap.observe.moving_board import displacement_px, steps_px

# A board in motion loses most of its corners, one at rest a few tags at most.
DIP_OF_FRAME = 0.25
DIP_OF_BOARD = 0.1
DIP_OF_FLICKER = 6.0
HELD_FRAMES = 3

# In parts of the picture's diagonal. A steady hand stays within 4 px of a picture 4000 px
# across from frame to frame; the next pose is hundreds of pixels away.
STILL = 1 / 1000
SAME_POSE = 1 / 150
# A hand less steady moves the limit: to so many times the lower quartile of all steps.
STILL_OF_TREMOR = 4.0


class Reason(IntEnum):
    """Why a frame was kept (the first two) or left out."""

    COMPLETE = 0
    STRONGEST_AROUND = 1
    FEW_CORNERS = 2
    SAME_POSE = 3
    SUPPRESSED = 4
    NOT_HELD = 5
    MOVING = 6
    LIKE_CHOSEN = 7


Mode = Literal["photographs", "held", "moved"]


@dataclass(frozen=True, eq=False)
class Keyframes:
    """The frames chosen out of F.

    frames     (K,) indices, ascending
    radii      (F,) suppression radii in frames; inf where nothing is stronger
    threshold  in frames; radii up to it are suppressed
    reasons    (F,) a ``Reason`` for every frame
    mode       whether all photographs were kept, one frame for each pose in which the board was
               held, or spread frames of a board that was moved without pause
    why        that in words, with the numbers that decided it
    """

    frames: IntArray
    radii: FloatArray
    threshold: float
    reasons: NDArray[np.uint8]
    mode: Mode = "held"
    why: str = "one frame for each pose in which the board was held"


def least_corners(target: Target) -> int:
    """How many corners a frame needs to be of use.

    Kalibr skips views of an AprilGrid with no more tags than the longer side has.
    """
    if isinstance(target, AprilGrid):
        enough = 4 * (max(target.tag_rows, target.tag_cols) + 1)
        return min(enough, len(target.points))
    return MIN_POINTS_PER_VIEW


def select_held_poses(
    observations: Observations, n_frames: int, looks: Looks | None = None
) -> Keyframes:
    """One frame for each pose in which the board was held still, from counts and motion.

    observations  of a video's frames; their ``view_ids`` are the frames' indices
    n_frames      number of frames of the video, those without the board included
    looks         what a first look says of the board's motion, if not the observations of all
                  frames do but of some, from which one is taken
    """
    frames, uv, valid = observations.view_ids, observations.uv, observations.valid
    if frames.min() < 0 or frames.max() >= n_frames or (np.diff(frames) <= 0).any():
        raise InputError(f"views need ascending frame indices from 0 to {n_frames - 1} as ids.")
    counts = np.zeros(n_frames, dtype=np.int64)
    counts[frames] = valid.sum(axis=1)
    complete, least = valid.shape[1], least_corners(observations.target)
    diagonal_px = math.hypot(*observations.image_size)
    useful = counts[frames] >= least
    moving = np.zeros(n_frames, dtype=bool)
    if looks is None:
        known = frames[useful]
        step_px = steps_px(known, uv[useful], valid[useful])
        moving[known] = _moving(step_px[:-1], step_px[1:], diagonal_px)
        strengths, measured = np.where(moving, 0, counts), np.arange(n_frames)
    else:
        seen = np.flatnonzero(looks.is_seen)
        after_px = np.append(looks.step_px[1:], np.nan)
        moving[seen] = _moving(looks.step_px[seen], after_px[seen], diagonal_px)
        strengths, measured = _of_whole_rests(counts, frames, looks.is_seen & ~moving)
    keyframes = select_keyframes(strengths, complete, least)
    chosen, order = np.unique(measured[keyframes.frames], return_index=True)

    view_of_frame = np.full(n_frames, -1)
    view_of_frame[frames] = np.arange(len(frames))
    views = view_of_frame[chosen]
    distinct = _distinct(uv, valid, views, counts[chosen], SAME_POSE * diagonal_px)
    reasons = keyframes.reasons.copy()
    reasons[moving] = Reason.MOVING
    reasons[keyframes.frames] = Reason.SAME_POSE
    reasons[chosen[distinct]] = keyframes.reasons[keyframes.frames[order[distinct]]]
    return Keyframes(chosen[distinct], keyframes.radii, keyframes.threshold, reasons)


def _of_whole_rests(
    counts: IntArray, measured: IntArray, at_rest: BoolArray
) -> tuple[IntArray, IntArray]:
    """(F,) corners of all frames in which the board is ``at_rest`` (F,), and (F,) the frame they
    are from: the nearest in which they were ``measured`` (M,) of the same rest. 0 of others."""
    n = len(counts)
    rest = np.cumsum(np.diff(at_rest, prepend=False)) * at_rest
    measured = measured[at_rest[measured]]
    nearest = np.full(n, -1)
    if measured.size:
        after = np.searchsorted(measured, np.arange(n))
        distance = np.full(n, n)
        for candidate in (after - 1, after):
            frame = measured[np.clip(candidate, 0, len(measured) - 1)]
            far = np.abs(frame - np.arange(n))
            better = at_rest & (rest[frame] == rest) & (far < distance)
            nearest[better], distance[better] = frame[better], far[better]
    return np.where(nearest >= 0, counts[nearest], 0), np.where(nearest >= 0, nearest, 0)


def select_keyframes(
    strengths: ArrayLike, complete: int, least: int = MIN_POINTS_PER_VIEW
) -> Keyframes:
    """One frame for each pose in which the board was held still, from counts alone.

    strengths  (F,) number of corners found in each frame of a video
    complete   number of corners of the whole board
    least      frames with fewer corners are never chosen

    The frames have to be those of a video: of separate photographs in a row that are all
    complete, one would be left.
    """
    found = _check_strengths(strengths, complete)
    counts = minimum_filter1d(found, HELD_FRAMES, mode="nearest") if found.size else found
    usable = counts >= max(least, 1)
    is_complete = usable & (counts == complete)
    dips = counts - _marked_fall(counts, usable, complete)
    radii, moved = _suppression(counts, dips, _strict_order(counts, dips, is_complete))
    own_pose = usable & moved
    threshold = _elbow(np.where(own_pose, radii, 1.0))
    radii[is_complete & own_pose] = np.inf

    reasons = np.full(len(counts), Reason.SUPPRESSED, dtype=np.uint8)
    reasons[radii > threshold] = Reason.STRONGEST_AROUND
    reasons[~moved] = Reason.SAME_POSE
    reasons[~usable] = Reason.NOT_HELD
    reasons[found < max(least, 1)] = Reason.FEW_CORNERS
    reasons[is_complete & own_pose] = Reason.COMPLETE
    frames = np.flatnonzero(reasons <= Reason.STRONGEST_AROUND)
    return Keyframes(frames, radii, threshold, reasons)


def _check_strengths(strengths: ArrayLike, complete: int) -> IntArray:
    """(F,) the strengths as whole numbers."""
    counts = np.asarray(strengths)
    if counts.size == 0:
        counts = counts.astype(np.int64)
    if counts.ndim != 1 or not np.issubdtype(counts.dtype, np.integer):
        raise InputError("keyframes need one whole number of corners per frame.")
    wrong = (counts < 0) | (counts > complete)
    if wrong.any():
        frame = int(np.argmax(wrong))
        raise InputError(
            f"frame {frame} has {counts[frame]} corners, but the board has {complete}. "
            "Is this the right target?"
        )
    return counts.astype(np.int64)


def _marked_fall(counts: IntArray, usable: BoolArray, complete: int) -> FloatArray:
    """(F,) how far a count has to fall from each frame's for the board to have moved."""
    steps = np.abs(np.diff(counts))[usable[1:] & usable[:-1]]
    # Most neighbours show the same pose: their median difference is flicker, not motion.
    sigma = MAD_SIGMA * float(np.median(steps)) / math.sqrt(2) if steps.size else 0.0
    least = max(DIP_OF_BOARD * complete, DIP_OF_FLICKER * sigma)
    return np.maximum(DIP_OF_FRAME * counts, least)


def _strict_order(counts: IntArray, dips: FloatArray, is_complete: BoolArray) -> IntArray:
    """(F,) rank of each frame, the strongest last; no two are equal."""
    index = np.arange(len(counts))
    starts = np.diff(counts, prepend=-1) != 0
    off_centre = _off_centre(index, starts)
    whole = np.flatnonzero(is_complete)
    if whole.size:
        lowest = np.minimum.reduceat(counts, whole)[:-1]
        starts = np.concatenate([[True], lowest < dips[whole[0]]])
        off_centre[whole] = _off_centre(whole, starts)
    ranks = np.empty(len(counts), dtype=np.int64)
    ranks[np.lexsort((-index, -off_centre, counts))] = index
    return ranks


def _off_centre(frames: IntArray, starts: BoolArray) -> IntArray:
    """(N,) distance of each frame to the median of its run; runs begin at ``starts``."""
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(frames)) - 1
    middle = frames[(first + last) // 2]
    return np.abs(frames - middle[np.cumsum(starts) - 1])


def _suppression(
    counts: IntArray, dips: FloatArray, ranks: IntArray
) -> tuple[FloatArray, BoolArray]:
    """Radius of each frame (F,) and whether it is a pose of its own (F,).

    A count below ``dips[i]`` parts frame i from a stronger one.

    The stack holds the frames that are still waiting for a stronger one, each with the
    lowest count since the frame below it: the way back to the previous stronger frame.
    """
    radii, own_pose = [math.inf] * len(counts), [True] * len(counts)
    strength, dip, rank = counts.tolist(), dips.tolist(), ranks.tolist()
    stack: list[tuple[int, int]] = []

    def meet(frame: int, other: int, lowest: int) -> None:
        radii[frame] = min(radii[frame], abs(frame - other))
        own_pose[frame] &= lowest < dip[frame]

    for frame, count in enumerate(strength):
        lowest = count
        while stack and rank[stack[-1][0]] < rank[frame]:
            weaker, lowest_before = stack.pop()
            meet(weaker, frame, lowest)
            lowest = min(lowest, lowest_before)
        if stack:
            meet(frame, stack[-1][0], lowest)
        stack.append((frame, lowest))
    return np.array(radii), np.array(own_pose, dtype=bool)


def _elbow(radii: FloatArray) -> float:
    """Where the descending curve of radii bends most: furthest below its chord.

    Of the logarithms, as the few longest radii would flatten the rest of the curve. Both
    axes are scaled to one. The point of the bend is the first that is suppressed.
    """
    curve = np.sort(np.log(np.minimum(radii, len(radii))))[::-1]
    if len(curve) < 2 or curve[0] == curve[-1]:
        return 0.0
    along = np.linspace(0, 1, len(curve))
    fall = (curve[0] - curve) / (curve[0] - curve[-1])
    return float(np.exp(curve[np.argmax(fall - along)]))


def _moving(before_px: FloatArray, after_px: FloatArray, diagonal_px: float) -> BoolArray:
    """(N,) whether the board moves in each of N frames, from its steps (N,) before and after them.

    It does unless one neighbour at least shows it in the same place. Not both: the strength
    of a frame takes its neighbours into account already. Where frames are missing, one rest may
    follow the other at once; the first frame of the second then counts as motion between them.
    """
    steps_px = np.append(before_px, after_px[-1:])
    known = steps_px[np.isfinite(steps_px)]
    if not known.size:
        return np.zeros(len(before_px), dtype=bool)
    limit_px = max(STILL * diagonal_px, STILL_OF_TREMOR * float(np.percentile(known, 25)))
    moving = ~(np.fmin(before_px, after_px) <= limit_px)
    rests_before = np.append(False, ~moving[:-1])
    jumped = before_px > max(SAME_POSE * diagonal_px, limit_px)
    return np.asarray(moving | (jumped & rests_before))


def _distinct(
    uv: FloatArray, valid: BoolArray, views: IntArray, counts: IntArray, same_px: float
) -> BoolArray:
    """(K,) of keyframes (K,) in a row between which the board has not moved, the strongest."""
    distinct = np.ones(len(views), dtype=bool)
    if len(views) < 2:
        return distinct
    same = displacement_px(uv, valid, views[:-1], views[1:]) <= same_px
    poses = np.concatenate([[0], np.cumsum(~same)])
    strongest = np.lexsort((np.arange(len(views)), -counts, poses))
    first = np.concatenate([[True], np.diff(poses[strongest]) != 0])
    distinct[:] = False
    distinct[strongest[first]] = True
    return distinct
