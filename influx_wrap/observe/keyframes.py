"""Which frames of a calibration video to keep: the paper's adaptive non-maximum suppression.

The board is moved jerkily from pose to pose, so that the frames of a pose show many
corners and those in between, blurred, few. The strength of a frame is its number of
corners, its suppression radius the distance in frames to the nearest stronger one
(c_robust = 1), and the frames whose radius exceeds a threshold are kept (supplement,
"ANMS-based Keyframe Selection"). Nothing is stronger than a complete frame: all of them
would be kept, but those of one pose are reduced to their median.

Two things the paper leaves open are settled here.

*Ties.* The frames are put into a strict order, so that of two frames one always
suppresses the other: by strength; then by nearness to the middle of their run of equal
strength, so that a still board gives the middle of its rest; then the earlier first. A
run of complete frames goes on across frames that miss a few corners.

*One frame per pose.* The count of a board at rest flickers, and a second maximum of the
same rest can be further from the first than two poses are from each other, so that no
threshold would tell them apart. A frame therefore stands for a pose of its own only if
the count falls by a quarter of its own, and by a tenth of the board, on the way to the next
stronger frame on either side: the board has moved. The tenth also removes the specks of
corners found here and there while it moves.

Both neighbours of all frames are found with one monotone stack, in linear time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from influx_wrap.errors import InputError
from influx_wrap.model.intrinsics import BoolArray, FloatArray
from influx_wrap.model.observations import MIN_POINTS_PER_VIEW

IntArray = NDArray[np.int64]

# A board in motion loses most of its corners, one at rest a few tags at most.
DIP_OF_FRAME = 0.25
DIP_OF_BOARD = 0.1

# Ten seconds at 25 frames a second. A radius beyond it says no more about whether a
# frame is a pose of its own, but would flatten the rest of the curve in a long video.
MAX_ELBOW_RADIUS = 250


class Reason(IntEnum):
    """Why a frame was kept (the first two) or left out."""

    COMPLETE = 0
    STRONGEST_AROUND = 1
    FEW_CORNERS = 2
    SAME_POSE = 3
    SUPPRESSED = 4


@dataclass(frozen=True, eq=False)
class Keyframes:
    """The frames chosen out of F.

    frames     (K,) indices, ascending
    radii      (F,) suppression radii in frames; inf where nothing is stronger
    threshold  in frames; radii up to it are suppressed
    reasons    (F,) a ``Reason`` for every frame
    """

    frames: IntArray
    radii: FloatArray
    threshold: float
    reasons: NDArray[np.uint8]


def select_keyframes(strengths: ArrayLike, complete: int) -> Keyframes:
    """One frame for each pose in which the board was held still.

    strengths  (F,) number of corners found in each frame of a video
    complete   number of corners of the whole board

    Frames with fewer than four corners are never chosen. The frames have to be those of
    a video: of separate photographs in a row that are all complete, one would be left.
    """
    counts = _check_strengths(strengths, complete)
    usable = counts >= MIN_POINTS_PER_VIEW
    is_complete = usable & (counts == complete)
    dips = counts - np.maximum(DIP_OF_FRAME * counts, DIP_OF_BOARD * complete)
    radii, moved = _suppression(counts, dips, _strict_order(counts, dips, is_complete))
    own_pose = usable & moved
    threshold = _elbow(np.where(own_pose, radii, 1.0)[usable], len(counts))
    radii[is_complete & own_pose] = np.inf

    reasons = np.full(len(counts), Reason.SUPPRESSED, dtype=np.uint8)
    reasons[radii > threshold] = Reason.STRONGEST_AROUND
    reasons[~own_pose] = Reason.SAME_POSE
    reasons[~usable] = Reason.FEW_CORNERS
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
    radii = np.full(len(counts), np.inf)
    own_pose = np.ones(len(counts), dtype=bool)
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
    return radii, own_pose


def _elbow(radii: FloatArray, n_frames: int) -> float:
    """Where the descending curve of radii bends most: furthest below its chord.

    Both axes are scaled to one. The point of the bend is the first that is suppressed.
    """
    longest = min(n_frames, MAX_ELBOW_RADIUS)
    curve = np.sort(np.minimum(radii, longest))[::-1]
    if len(curve) < 2 or curve[0] == curve[-1]:
        return 0.0
    along = np.linspace(0, 1, len(curve))
    fall = (curve[0] - curve) / (curve[0] - curve[-1])
    return float(curve[np.argmax(fall - along)])
