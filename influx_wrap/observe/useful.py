"""Whether anything can come of what was found in footage, and why not."""

from __future__ import annotations

from collections.abc import Mapping

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import IntArray
from influx_wrap.model.target import BoardTarget
from influx_wrap.model.words import by_reason
from influx_wrap.observe.explain import MIN_SHARE, SAMPLES, other_board, what_is_there
from influx_wrap.observe.frames import FrameSource, TruncatedInput


def check_useful(
    source: FrameSource,
    target: BoardTarget,
    counts: IntArray,
    n_seen: int,
    ambiguous: tuple[int, ...],
    truncated: TruncatedInput | None,
    unread: Mapping[str, str],
) -> None:
    """Refuse what no view comes of; ``n_seen`` frames show the target."""
    path = source.path
    if len(ambiguous) > n_seen:
        raise InputError(
            f"{path}: {len(ambiguous)} of the {len(ambiguous) + n_seen} frames with tags show the "
            f"target more than once, {source.name(ambiguous[0])} first: two boards, or tags of "
            "another. Cover one of them and record again."
        )
    if n_seen == 0 and truncated is not None:
        raise truncated
    if n_seen == 0:
        raise not_found(source, target, len(counts), unread)
    other = hardly_seen(source, target, counts)
    if other is not None:
        raise other


def hardly_seen(source: FrameSource, target: BoardTarget, counts: IntArray) -> InputError | None:
    """The error that even the best frame shows little of the target, because the frames show
    another; ``counts`` (F,) are the points seen in each frame."""
    most = int(counts.max())
    if most >= MIN_SHARE * len(target.points):
        return None
    other = other_board(list(source.samples(SAMPLES)), target)
    if other is None:
        return None
    return InputError(
        f"{source.path}: no frame shows more than {most} of the target's {len(target.points)} "
        f"points. {other}"
    )


def not_found(
    source: FrameSource, target: BoardTarget, n_frames: int, unread: Mapping[str, str]
) -> InputError:
    """The error that none of the frames shows the target: what they show instead, and which of
    them were not read."""
    there = what_is_there(list(source.samples(SAMPLES)), target)
    others = "".join(f" {text}." for text in by_reason(unread))
    return InputError(
        f"{source.path}: the target is in none of the {n_frames} frames. {there}{others}"
    )
