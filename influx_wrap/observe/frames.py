"""Frames of a recording, one after the other: videos, folders of pictures, ARRIRAW clips.

A source yields (index, picture) and holds one picture at a time, so that memory does not
grow with the length. It can be read again and from any frame, and a frame has the same
index each time: frames are counted as decoded, never guessed from a time.

Pictures are grey, as the sensor recorded them: the luma plane of a video is taken as it
is, without a conversion (its range, 16..235 or 0..255, does not move a corner), and
rotation flags are ignored. 8 bits stay ``uint8``; more bits become ``uint16`` scaled to the
full range, so that 65535 is the top of the scale whether a recording has 10, 12 or 16.

In colour, on request, they are as a screen would show them: 8 bits of blue, green and red,
converted with the matrix and range the video states.

A recording that ends early or is damaged yields what can be trusted; ``TruncatedInput``
follows in place of the regular end and says how far the recording is readable. Damage in
the middle is noticed as far as a codec has checksums or an order that can be broken;
bytes overwritten in a ProRes, DNxHD, HEVC or JPEG picture may show as wrong pixels only. Of
separate photographs (``FrameSource.photographs``) a damaged one is left out, and the rest is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import MappingProxyType

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import Picture
from influx_wrap.model.words import size_text
from influx_wrap.observe.luma import Luma, luma_of


class TruncatedInput(InputError):
    """A recording ended early; its first ``n_read`` frames are good."""

    def __init__(self, path: Path, n_read: int, problem: str) -> None:
        said = f"{path}: no frame is readable: {problem}. Copy the recording again."
        if n_read:
            said = (
                f"{path}: frames 0 to {n_read - 1} are readable, then {problem}. Copy the "
                "recording again, or go on with the readable part."
            )
        super().__init__(said)
        self.n_read = n_read
        self.problem = problem


class GreyInput(InputError):
    """A recording has no colour, which is needed."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is grey: nothing in it can be told to be red. Record in colour, or give "
            "the camera's own file."
        )


class FrameSource(ABC):
    """A recording.

    path        file or folder
    image_size  (width, height) in pixels
    n_frames    number of frames the recording claims to have; None if it does not say
    fps         frames per second; None if it does not say
    seconds     its length, if it says how long it is and not how many frames it has
    decoder     the hardware that decodes it; None for none
    colour      True if pictures are (H, W, 3) ``uint8``, OpenCV's order; else (H, W), grey
    unread      files beside the frames that look like pictures, and why they are not among them
    """

    path: Path
    image_size: tuple[int, int]
    n_frames: int | None
    fps: float | None = None
    seconds: float | None = None
    decoder: str | None = None
    colour: bool = False
    unread: Mapping[str, str] = MappingProxyType({})

    @property
    def n_expected(self) -> int | None:
        """About how many frames it has; None if it does not say."""
        if self.n_frames is None and self.seconds and self.fps:
            return round(self.seconds * self.fps)
        return self.n_frames

    def name(self, index: int) -> str:
        """What to call a frame in a message: a file's name, or ``frame 12``."""
        return f"frame {index}"

    def photographs(self, start: int = 0) -> Iterator[tuple[int, Picture | None]]:
        """(index, picture) of all frames from ``start`` on, None where only this one is unusable.

        ``fault`` says why. Of a video it is ``frames``: what is behind damage is not trusted.
        """
        yield from self.frames(start)

    def fault(self, index: int) -> str | None:
        """Why ``photographs`` has no picture there."""
        return None

    def all_unread(self, unusable: Iterable[int]) -> dict[str, str]:
        """Files that were not used, and why: ``unread``, and the ``unusable`` photographs."""
        faults = {self.name(index): self.fault(index) for index in unusable}
        return {**{name: why for name, why in faults.items() if why}, **self.unread}

    def frames(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, Picture]]:
        """(index, picture) of the frames from ``start`` up to before ``stop``.

        Raises ``TruncatedInput`` at the end of what is readable, if that lies before
        ``stop`` and is not the regular end.
        """
        if start < 0:
            raise InputError(f"{self.path}: frames are counted from 0, got {start}.")
        if stop is not None and stop <= start:
            return iter(())
        return islice(self._frames(start, stop), None if stop is None else stop - start)

    def lumas(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, Luma]]:
        """As ``frames``, of a grey recording, with pictures that are converted on request only."""
        for index, picture in self.frames(start, stop):
            yield index, luma_of(picture)

    def for_one_core(self) -> FrameSource:
        """The same, to be read by one of several processes."""
        return self

    def entries(self) -> list[int] | None:
        """The frames at which reading can begin, ascending, 0 the first; None if that is not
        known without reading all of them."""
        return None

    def samples(self, n: int) -> Iterator[Picture]:
        """About ``n`` pictures spread over the recording, as far as it is readable."""
        wanted = np.unique(np.linspace(0, (self.n_frames or 1) - 1, n).astype(int))
        for index in wanted.tolist():
            try:
                yield from (picture for _, picture in self.frames(index, index + 1))
            except TruncatedInput:
                return

    def at(self, indices: Iterable[int]) -> Iterator[tuple[int, Picture]]:
        """(index, picture) of some frames in their order, as far as they are readable."""
        for index in sorted(indices):
            with suppress(TruncatedInput):
                yield from self.frames(index, index + 1)

    @abstractmethod
    def _frames(self, start: int, stop: int | None) -> Iterator[tuple[int, Picture]]:
        """(index, picture) of all frames from ``start`` on; those from ``stop`` on need not be
        there, nor be without fault."""

    def _check_size(self, index: int, size: tuple[int, int]) -> None:
        if size != self.image_size:
            raise InputError(
                f"{self.path}, {self.name(index)} has {size_text(size)} pixels, the others "
                f"{size_text(self.image_size)}: a recording needs one size."
            )
