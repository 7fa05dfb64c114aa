"""Stretches of footage for the workers of a cluster.

A worker that sees the video under the same path, with the same content, reads it there. To one
that does not, the packets of the stretch are sent. What is wrong with a video is said where it
is: a stretch in which a worker met damage is looked at again there.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.observe.cut import cut_out, open_cut
from influx_wrap.observe.journal import footage_hash
from influx_wrap.observe.stretches import SeenStretch, look_at_stretch
from influx_wrap.run.observe import StretchTask


@dataclass(frozen=True, eq=False)
class SentStretch:
    """A stretch as it travels.

    content    the hash of the whole video
    packets    a file of the stretch, if workers do not see the video
    n_before   how many frames that file has before the stretch
    """

    task: StretchTask
    content: str
    packets: bytes | None = None
    n_before: int = 0


class NotHere:
    """In place of an answer: the worker does not see the video."""


def send_stretch(task: StretchTask, content: str, *, is_seen: bool) -> SentStretch | None:
    """A stretch for a worker; None if nobody but this machine can look at it."""
    if is_seen:
        return SentStretch(task, content)
    cut = cut_out(task.stretch)
    return None if cut is None else SentStretch(task, content, *cut)


def look_afar(sent: SentStretch) -> SeenStretch | Exception | NotHere:
    """What a worker of a cluster does with a stretch."""
    stretch = sent.task.stretch
    if sent.packets is None:
        try:
            is_same = footage_hash(stretch.source.path) == sent.content
        except InputError:
            is_same = False
        return look_at_stretch(stretch) if is_same else NotHere()
    with tempfile.TemporaryDirectory(prefix="influx-") as folder:
        try:
            source = open_cut(sent.packets, Path(folder)).for_one_core()
        except Exception as error:
            return error
        assert stretch.stop is not None
        start, stop = sent.n_before, sent.n_before + stretch.stop - stretch.start
        return look_at_stretch(replace(stretch, source=source, start=start, stop=stop))


def is_doubtful(sent: SentStretch, answer: object) -> bool:
    """Whether the video itself has to be asked: a worker found damage, or fewer frames."""
    stretch = sent.task.stretch
    if not isinstance(answer, SeenStretch) or answer.damage is not None:
        return True
    return stretch.stop is not None and answer.n_frames < stretch.stop - stretch.start
