"""What one video, or the photographs of one folder, gave for a camera: which frames show the board,
which of them are views, and what was not used, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from influx_wrap.model.observations import Observations
from influx_wrap.model.result import Json
from influx_wrap.model.words import by_reason, counted, size_text
from influx_wrap.observe.frames import FrameSource
from influx_wrap.observe.held_poses import Keyframes, least_corners
from influx_wrap.observe.pictures import Detections

NAMED = 8
"""How many views are named in a sentence."""


def label_of(path: Path) -> str:
    """A path as it was given if that is a relative one, else its name: where a folder lies on a
    machine, and whose it is, is nobody's business."""
    return path.name if path.is_absolute() else str(path)


@dataclass(frozen=True, eq=False)
class CameraFootage:
    """What one video, or the photographs of one folder, gave.

    first      number of its first frame among those of all footage
    prefix     what its frames' names begin with; empty if there is no other footage
    seen       the frames that show the board
    views      those of them to calibrate with
    """

    source: FrameSource
    first: int
    prefix: str
    seen: Detections
    keyframes: Keyframes
    views: Observations

    @property
    def n_frames(self) -> int:
        """How many photographs or frames there are."""
        return len(self.seen.counts)

    @property
    def noun(self) -> str:
        """What a frame is called."""
        return "photograph" if self.seen.is_stills else "frame"

    @property
    def label(self) -> str:
        """What to call it in results, which others may get to see."""
        return label_of(self.source.path)

    @property
    def sentence(self) -> str:
        """What was found, in short."""
        n_seen = int((self.seen.counts > 0).sum())
        return (
            f"{self.label}: {counted(self.n_frames, self.noun)} of "
            f"{size_text(self.source.image_size)} pixels, {n_seen} with the board, "
            f"{self.views.n_views} chosen"
        )

    @property
    def without_board(self) -> tuple[str, ...]:
        """Photographs in which the board was not found; frames of a video are not named."""
        if not self.seen.is_stills:
            return ()
        out = {*self.seen.ambiguous}
        frames = np.flatnonzero(self.seen.counts == 0).tolist()
        names = [self._name(frame) for frame in frames if frame not in out]
        return tuple(name for name in names if name.removeprefix(self.prefix) not in self.unread)

    @property
    def with_few_corners(self) -> tuple[str, ...]:
        """Photographs that show too little of the board."""
        counts, least = self.seen.counts, least_corners(self.views.target)
        few = np.flatnonzero((counts > 0) & (counts < least)).tolist()
        return tuple(map(self._name, few)) if self.seen.is_stills else ()

    @property
    def unread(self) -> Mapping[str, str]:
        """Photographs that were not used, and why."""
        return self.seen.unread

    @property
    def damage(self) -> str | None:
        """How much of a video cannot be read; None if it is whole."""
        if self.seen.truncated is None:
            return None
        source, where = self.source, f"cannot be read, from frame {self.n_frames} on"
        frames, seconds, rate = source.n_frames or 0, source.seconds or 0.0, source.fps or 0.0
        if frames > self.n_frames:
            share = 100 * (1 - self.n_frames / frames)
            n_lost = frames - self.n_frames
            return f"{n_lost} of {frames} frames of {self.label} ({share:.0f} %) {where}"
        if seconds * rate > self.n_frames:
            lost_s = seconds - self.n_frames / rate
            share = 100 * lost_s / seconds
            return f"{lost_s:.2f} of {seconds:.2f} s of {self.label} ({share:.0f} %) {where}"
        return f"part of {self.label}, which does not say how long it is, {where}"

    @property
    def notes(self) -> list[str]:
        """What was not used, a sentence each."""
        several = tuple(map(self._name, self.seen.ambiguous))
        notes = [
            f"{what}: {listed(names)}"
            for what, names in (
                ("the board is not found in", self.without_board),
                ("too little of the board is in", self.with_few_corners),
                ("more than one board is in", several),
            )
            if names
        ]
        notes += by_reason({self.prefix + name: why for name, why in self.unread.items()})
        if self.damage is not None:
            notes.append(f"{self.damage}: {self._truncated}")
        if self.keyframes.mode == "moved":
            notes.append(f"{self.label}: {self.keyframes.why}")
        return notes

    @property
    def _truncated(self) -> str | None:
        why = self.seen.truncated
        return None if why is None else why.replace(str(self.source.path), self.label)

    def _name(self, frame: int) -> str:
        return self.prefix + self.source.name(frame)

    def as_dict(self) -> Json:
        """Plain data."""
        return {
            "path": self.label,
            "frames": self.n_frames,
            "frames_announced": self.source.n_frames,
            "with_board": int((self.seen.counts > 0).sum()),
            "chosen": list(self.views.view_names),
            "mode": self.keyframes.mode,
            "why": self.keyframes.why,
            "board_not_found": list(self.without_board),
            "too_few_corners": list(self.with_few_corners),
            "several_boards": [self._name(frame) for frame in self.seen.ambiguous],
            "unread": dict(self.unread),
            "truncated": self._truncated,
        }


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
