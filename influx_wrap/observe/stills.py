"""Folders with a picture per frame."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from influx_wrap.formats.files import natural_key
from influx_wrap.formats.pictures import (
    UnusablePicture,
    check_pixels,
    picture_size,
    read_picture,
)
from influx_wrap.model.arrays import Picture
from influx_wrap.model.words import size_text
from influx_wrap.observe.frames import FrameSource, GreyInput, TruncatedInput

T = TypeVar("T")

READ_AHEAD = 4
"""How many pictures of a folder are decoded at once: a PNG takes as long as its corners."""
READ_AHEAD_PIXELS = 160_000_000
"""Of all pictures that are decoded at once, unless it is only one."""


class UnusableStill(TruncatedInput):
    """One picture of a folder is damaged, or too large; ``why`` is the clause that says so."""

    def __init__(self, folder: Path, index: int, file: Path, why: str) -> None:
        super().__init__(folder, index, f"{file.name} is {why}")
        self.why = why


class Stills(FrameSource):
    """A folder with one picture per frame, in the order a person would give them.

    Pixels are as they are stored: the EXIF orientation is ignored, so that photographs taken
    upright and across are pictures of the same sensor. The size is that of most of them.
    """

    def __init__(
        self,
        path: Path,
        files: list[Path],
        colour: bool,
        unread: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.path = path
        self.colour = colour
        self.unread = unread
        self.n_frames = len(files)
        self._files = sorted(files, key=lambda file: natural_key(file.name))
        sizes = [size for size in map(picture_size, self._files) if size is not None]
        if sizes:
            self.image_size = Counter(sizes).most_common(1)[0][0]
            check_pixels(self.image_size, f"{path}: the usual size of its pictures")
        else:
            first = self._read(0)
            self.image_size = (first.shape[1], first.shape[0])
        if colour:
            self._check_colour()

    def name(self, index: int) -> str:
        return self._files[index].name

    def _frames(self, start: int, stop: int | None) -> Iterator[tuple[int, Picture]]:
        last = len(self._files) if stop is None else min(stop, len(self._files))
        for index, picture in self._read_ahead(self._read, range(start, last)):
            self._check_size(index, (picture.shape[1], picture.shape[0]))
            yield index, picture

    def entries(self) -> list[int]:
        return list(range(len(self._files)))

    def photographs(self, start: int = 0) -> Iterator[tuple[int, Picture | None]]:
        yield from self._read_ahead(self._usable, range(start, len(self._files)))

    def samples(self, n: int) -> Iterator[Picture]:
        """About ``n`` of the pictures that are usable, spread over the folder."""
        for index in np.unique(np.linspace(0, len(self._files) - 1, n).astype(int)).tolist():
            picture = self._usable(index)
            if picture is not None:
                yield picture

    def fault(self, index: int) -> str | None:
        try:
            picture = self._read(index)
        except UnusableStill as error:
            return error.why
        size = (picture.shape[1], picture.shape[0])
        if size == self.image_size:
            return None
        return f"{size_text(size)} pixels, the others have {size_text(self.image_size)}"

    def _read_ahead(self, read: Callable[[int], T], indices: range) -> Iterator[tuple[int, T]]:
        """(index, its picture) in order, while threads read the next ones."""
        width, height = self.image_size
        n_ahead = min(READ_AHEAD, max(1, READ_AHEAD_PIXELS // (width * height)))
        threads = ThreadPoolExecutor(n_ahead)
        pending = deque(threads.submit(read, index) for index in indices[:n_ahead])
        try:
            for index in indices:
                picture = pending.popleft().result()
                if index + n_ahead in indices:
                    pending.append(threads.submit(read, index + n_ahead))
                yield index, picture
        finally:
            threads.shutdown(cancel_futures=True)

    def _usable(self, index: int) -> Picture | None:
        try:
            picture = self._read(index)
        except TruncatedInput:
            return None
        return picture if (picture.shape[1], picture.shape[0]) == self.image_size else None

    def _check_colour(self) -> None:
        for index, file in enumerate(self._files):
            with suppress(TruncatedInput):
                if self._decode(index).ndim == 2:
                    raise GreyInput(file)
                return

    def _read(self, index: int) -> Picture:
        picture = self._decode(index)
        if self.colour and picture.ndim == 2:
            # Some programs store a picture without colours, a black one say, as a grey one.
            picture = cv2.cvtColor(picture, cv2.COLOR_GRAY2BGR)
        if self.colour and picture.dtype == np.uint16:
            picture = cv2.convertScaleAbs(picture, alpha=255 / 65535)
        return cast(Picture, picture)

    def _decode(self, index: int) -> NDArray[Any]:
        file = self._files[index]
        try:
            return read_picture(file, colour=self.colour)
        except UnusablePicture as error:
            raise UnusableStill(self.path, index, file, error.why) from None
