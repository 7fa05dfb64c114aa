"""Folders with a picture per frame."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import cv2
import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.files import reading
from influx_wrap.model.arrays import Picture
from influx_wrap.observe.frames import FrameSource, GreyInput, TruncatedInput

READ_AHEAD = 4
"""How many pictures of a folder are decoded at once: a PNG takes as long as its corners."""


class Stills(FrameSource):
    """A folder with one picture per frame, in the order a person would give them."""

    def __init__(self, path: Path, files: list[Path], colour: bool) -> None:
        self.path = path
        self.colour = colour
        self.n_frames = len(files)
        self._files = sorted(files, key=_natural_key)
        first = self._read(0)
        self.image_size = (first.shape[1], first.shape[0])

    def _frames(self, start: int, stop: int | None) -> Iterator[tuple[int, Picture]]:
        last = len(self._files) if stop is None else min(stop, len(self._files))
        for index, picture in _read_ahead(self._read, range(start, last)):
            name = f" ({self._files[index].name})"
            self._check_size(index, name, (picture.shape[1], picture.shape[0]))
            yield index, picture

    def _read(self, index: int) -> Picture:
        file = self._files[index]
        with reading(file):
            data = file.read_bytes()
        flags = cv2.IMREAD_ANYDEPTH | cv2.IMREAD_IGNORE_ORIENTATION
        flags |= cv2.IMREAD_ANYCOLOR if self.colour else cv2.IMREAD_GRAYSCALE
        picture = None
        if _is_whole(data):
            try:
                picture = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
            except cv2.error:
                picture = None
        if picture is None:
            raise TruncatedInput(self.path, index, f"{file.name} is damaged or not a picture")
        if picture.dtype not in (np.uint8, np.uint16):
            raise InputError(f"{file} has {picture.dtype} pixels; 8 or 16 bits are needed.")
        if self.colour and picture.ndim == 2:
            if index == 0:
                raise GreyInput(file)
            # Some programs store a picture without colours, a black one say, as a grey one.
            picture = cv2.cvtColor(picture, cv2.COLOR_GRAY2BGR)
        if self.colour and picture.dtype == np.uint16:
            picture = cv2.convertScaleAbs(picture, alpha=255 / 65535)
        return cast(Picture, picture)


def _read_ahead(read: Callable[[int], Picture], indices: range) -> Iterator[tuple[int, Picture]]:
    """(index, its picture) in order, while threads read the next ones."""
    threads = ThreadPoolExecutor(READ_AHEAD)
    pending = deque(threads.submit(read, index) for index in indices[:READ_AHEAD])
    try:
        for index in indices:
            picture = pending.popleft().result()
            if index + READ_AHEAD in indices:
                pending.append(threads.submit(read, index + READ_AHEAD))
            yield index, picture
    finally:
        threads.shutdown(cancel_futures=True)


def _natural_key(path: Path) -> tuple[list[tuple[int, str]], str]:
    """Sorts frame2 before frame10."""
    parts = re.findall(r"\d+|\D+", path.name.lower())
    return [(int(p), "") if p.isdecimal() else (-1, p) for p in parts], path.name


def _is_whole(data: bytes) -> bool:
    """False for a JPEG or PNG without its end, of which OpenCV would make up the rest."""
    if data.startswith(b"\xff\xd8"):
        start_of_scan, end_of_image = data.rfind(b"\xff\xda"), data.rfind(b"\xff\xd9")
        return 0 < start_of_scan < end_of_image
    if data.startswith(b"\x89PNG"):
        return b"IEND\xaeB`\x82" in data[-4096:]
    return len(data) > 0
