"""Which frames of a recording to calibrate with.

Of separate photographs all. Of a video one for each pose in which the board was held
(``held_poses``, the paper's procedure). Many people never pause, however, and of their video that
leaves next to nothing. So the frames are counted that show the board where a chosen frame has it,
at rest, and the others, in motion. If more are in motion, poses were not held, and slow frames are
chosen that differ from each other (``moving_board``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.looks import Looks
from influx_wrap.model.observations import Observations
from influx_wrap.model.words import counted
from influx_wrap.observe.held_poses import (
    SAME_POSE,
    Keyframes,
    Reason,
    least_corners,
    select_held_poses,
)
from influx_wrap.observe.moving_board import displacement_px, spread_views, steps_px

LONG_REST_FRAMES = 60
"""A board that lies on the table for a minute before it is moved counts for no more than this."""


def choose_keyframes(
    seen: Observations, n_frames: int, *, is_stills: bool, looks: Looks | None = None
) -> tuple[Keyframes, Observations]:
    """Which frames of a recording to calibrate with, and what they show.

    All of separate photographs. Of a video one for each pose, or, if the board was moved without
    pause, slow frames that differ. ``seen`` are the frames that show the target, of ``n_frames``.
    If there are ``looks`` at all frames, they tell rest from motion, and one of their candidates
    is chosen. Raises ``InputError`` if there is no such frame.
    """
    if is_stills:
        keyframes = keep_stills(seen, n_frames)
    else:
        some = seen
        if looks is not None:
            some = seen.subset(np.flatnonzero(looks.is_candidate[seen.view_ids]))
        keyframes = _select_frames(some, n_frames, looks) if some.n_views else _nothing(n_frames)
    if len(keyframes.frames) == 0:
        raise InputError(_nothing_chosen(seen, n_frames))
    views = np.searchsorted(seen.view_ids, keyframes.frames)
    return keyframes, seen.subset(views)


def _nothing(n_frames: int) -> Keyframes:
    reasons = np.full(n_frames, Reason.FEW_CORNERS, dtype=np.uint8)
    return Keyframes(np.empty(0, dtype=np.int64), np.full(n_frames, np.inf), 0.0, reasons)


def _select_frames(seen: Observations, n_frames: int, looks: Looks | None) -> Keyframes:
    """Of a video: by ``select_held_poses``, or ``spread_views`` if most frames are in motion."""
    held = select_held_poses(seen, n_frames, looks)
    useful = np.flatnonzero(seen.valid.sum(axis=1) >= least_corners(seen.target))
    if not useful.size:
        return held
    some = seen.subset(useful)
    motion = _measured_motion(some) if looks is None else _looked_motion(some, looks)
    same_px = SAME_POSE * math.hypot(*seen.image_size)
    rest = _rest_frames(held.frames, motion, same_px)
    n_moving = int((np.isfinite(motion.speed_px) & (rest < 0)).sum())
    n_rest = int(np.minimum(np.bincount(rest[rest >= 0]), LONG_REST_FRAMES).sum())
    if n_moving <= n_rest:
        why = f"poses were held: the board is at rest in {counted(n_rest, 'frame')}, in motion "
        return replace(held, why=why + f"in {n_moving}; one sharp frame is taken for each pose")
    frames = some.view_ids
    speed_px = motion.speed_px[np.searchsorted(motion.frames, frames)]
    views, slow_enough = spread_views(some, speed_px, same_px)
    if len(views) <= len(held.frames):
        return held
    reasons = np.full(n_frames, Reason.FEW_CORNERS, dtype=np.uint8)
    reasons[motion.frames] = Reason.LIKE_CHOSEN
    reasons[frames] = np.where(slow_enough, Reason.LIKE_CHOSEN, Reason.MOVING)
    is_complete = some.valid[views].all(axis=1)
    reasons[frames[views]] = np.where(is_complete, Reason.COMPLETE, Reason.STRONGEST_AROUND)
    why = (
        f"poses were not held: the board is in motion in {counted(n_moving, 'frame')}, at rest in "
        f"{n_rest}; slow frames are taken that differ in place, size and tilt"
    )
    return Keyframes(frames[views], held.radii, held.threshold, reasons, "moved", why)


@dataclass(frozen=True, eq=False)
class _Motion:
    """How the board moves in ``frames`` (N,): its speed (N,), NaN if that is not known, and how
    far it is in frames from where it is in others, both of them given by their numbers."""

    frames: IntArray
    speed_px: FloatArray
    displacement_px: Callable[[IntArray, IntArray], FloatArray]


def _measured_motion(seen: Observations) -> _Motion:
    """By the corners of all frames."""
    frames, uv, valid = seen.view_ids, seen.uv, seen.valid
    step_px = steps_px(frames, uv, valid)

    def between(some: IntArray, others: IntArray) -> FloatArray:
        views, other_views = (np.searchsorted(frames, these) for these in (some, others))
        return displacement_px(uv, valid, views, other_views)

    return _Motion(frames, np.fmin(step_px[:-1], step_px[1:]), between)


def _looked_motion(seen: Observations, looks: Looks) -> _Motion:
    """By a first look at all frames."""
    frames = np.union1d(np.flatnonzero(looks.is_seen), seen.view_ids)
    between = partial(looks.displacement_px, seen.target, seen.image_size)
    return _Motion(frames, looks.speed_px()[frames], between)


def _rest_frames(keyframes: IntArray, motion: _Motion, same_px: float) -> IntArray:
    """(N,) which of ``keyframes`` shows the board where each frame of ``motion`` does, -1 if none.

    Only the keyframes before and after a frame are looked at.
    """
    frames = motion.frames
    rest = np.full(len(frames), -1)
    if len(keyframes) == 0:
        return rest
    after = np.searchsorted(keyframes, frames)
    for nearest in (after - 1, after):
        there = (nearest >= 0) & (nearest < len(keyframes))
        own, other = np.flatnonzero(there), nearest[there]
        same = motion.displacement_px(frames[own], keyframes[other]) <= same_px
        rest[own[same]] = other[same]
    return rest


def _nothing_chosen(seen: Observations, n_frames: int) -> str:
    most, least = int(seen.valid.sum(axis=1).max()), least_corners(seen.target)
    if most < least:
        why = f"none of them has the {least} corners needed, the best has {most}"
        advice = "Show more of the board, in focus and larger in the picture."
    else:
        why = "the board is never held still for three frames, nor seen in two frames in a row"
        advice = "Record again, moving the board from pose to pose and holding it for half a "
        advice += "second in each."
    return f"no keyframe in {n_frames} frames: {why}. {advice}"


def keep_stills(observations: Observations, n_frames: int) -> Keyframes:
    """All separate photographs that show enough of the board."""
    counts = np.zeros(n_frames, dtype=np.int64)
    counts[observations.view_ids] = observations.valid.sum(axis=1)
    enough = counts >= least_corners(observations.target)
    is_complete = counts == observations.valid.shape[1]
    kept = np.where(is_complete, Reason.COMPLETE, Reason.STRONGEST_AROUND)
    reasons = np.where(enough, kept, Reason.FEW_CORNERS).astype(np.uint8)
    why = "separate photographs: all are kept that show enough of the board"
    radii = np.full(n_frames, np.inf)
    return Keyframes(np.flatnonzero(enough), radii, 0.0, reasons, "photographs", why)
