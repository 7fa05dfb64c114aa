"""The one reader of picture files, within limits: JPEG, PNG and TIFF.

A file of a few kilobytes may unpack to more pixels than there is memory, and OpenCV would make up
what is missing of one that was cut off. So its header is read first: how large the picture is, and
whether all of the file is there.

The size is that of the stored pixels. The EXIF orientation, which only says how a screen should
turn them, is not applied: intrinsics belong to the sensor, whichever way the camera was held.
"""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any, BinaryIO, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from influx_wrap.errors import InputError
from influx_wrap.formats.files import read_bytes, reading
from influx_wrap.model.words import size_text

MOST_PIXELS = 160_000_000
"""The largest sensors that anybody films with have 151 million."""
MOST_FILE_BYTES = 1 << 30
DAMAGED = "damaged or not a picture"

_START_OF_FRAME = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_TIFF_WIDTH, _TIFF_HEIGHT = 256, 257
_TIFF_KINDS = {3: "H", 4: "I", 16: "Q"}
_LONGEST_HEADER = 1 << 20
"""In bytes: a JPEG may begin with metadata and previews."""


class UnusablePicture(InputError):
    """A file that is no picture, or not one to be read; ``why`` is the clause that says so."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where} is {why}.")
        self.why = why


def picture_size(path: Path) -> tuple[int, int] | None:
    """(width, height) of the stored pixels; None if the file does not say."""
    with reading(path), path.open("rb") as file:
        return _stated_size(file, _LONGEST_HEADER)


def read_picture(path: Path, *, colour: bool = False) -> NDArray[Any]:
    """The pixels (H, W), or those (H, W, 3) of a picture that has colours if ``colour``."""
    return decode_picture(read_bytes(path, MOST_FILE_BYTES), str(path), colour=colour)


def decode_picture(
    data: bytes | NDArray[np.uint8], where: str, *, colour: bool = False
) -> NDArray[Any]:
    """The pixels of a picture's file, of 8 or 16 bits; ``where`` is what messages call it."""
    data = bytes(data)
    size = _stated_size(io.BytesIO(data), len(data))
    if size is None or not _is_whole(data):
        raise UnusablePicture(where, DAMAGED)
    check_pixels(size, where)
    flags = cv2.IMREAD_ANYDEPTH | cv2.IMREAD_IGNORE_ORIENTATION
    flags |= cv2.IMREAD_ANYCOLOR if colour else cv2.IMREAD_GRAYSCALE
    try:
        picture = cast(Any, cv2.imdecode(np.frombuffer(data, np.uint8), flags))
    except cv2.error:
        picture = None
    if picture is None:
        raise UnusablePicture(where, DAMAGED)
    if picture.dtype not in (np.uint8, np.uint16):
        raise InputError(f"{where} has {picture.dtype} pixels; 8 or 16 bits are needed.")
    return np.asarray(picture)


def check_pixels(size: tuple[int, int], where: str) -> None:
    """Refuse a picture that would not fit into memory."""
    if size[0] * size[1] > MOST_PIXELS:
        raise UnusablePicture(
            where,
            f"too large: {size_text(size)} pixels, at most {MOST_PIXELS // 10**6} million are read",
        )


def _stated_size(file: BinaryIO, longest: int) -> tuple[int, int] | None:
    try:
        start = file.read(26)
        if start.startswith(b"\x89PNG\r\n\x1a\n"):
            width, height = struct.unpack(">II", start[16:24])
        elif start.startswith(b"\xff\xd8"):
            width, height = _jpeg_size(start + file.read(longest))
        elif start[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
            width, height = _tiff_size(file, start)
        else:
            return None
    except (struct.error, IndexError, KeyError, ValueError, OverflowError):
        return None
    return (width, height) if width > 0 and height > 0 else None


def _jpeg_size(data: bytes) -> tuple[int, int]:
    at = 2
    while True:
        while data[at] == 0xFF:
            at += 1
        marker, length = data[at], struct.unpack_from(">H", data, at + 1)[0]
        if marker in _START_OF_FRAME:
            height, width = struct.unpack_from(">HH", data, at + 4)
            return width, height
        if data[at + 1 + length] != 0xFF:
            raise IndexError("there is no marker where one must be")
        at += 1 + length


def _tiff_size(file: BinaryIO, start: bytes) -> tuple[int, int]:
    """Of a TIFF, or of a BigTIFF, whose numbers are longer."""
    order = "<" if start.startswith(b"II") else ">"
    is_big = b"+" in start[:4]
    count, entry = (f"{order}Q", f"{order}HHQ8s") if is_big else (f"{order}H", f"{order}HHI4s")
    file.seek(struct.unpack_from(f"{order}{'Q' if is_big else 'I'}", start, 8 if is_big else 4)[0])
    sides = {}
    for _ in range(struct.unpack(count, file.read(struct.calcsize(count)))[0]):
        tag, kind, _, value = struct.unpack(entry, file.read(struct.calcsize(entry)))
        if tag in (_TIFF_WIDTH, _TIFF_HEIGHT):
            (sides[tag],) = struct.unpack_from(f"{order}{_TIFF_KINDS[kind]}", value)
    return sides[_TIFF_WIDTH], sides[_TIFF_HEIGHT]


def _is_whole(data: bytes) -> bool:
    """False for a JPEG or PNG without its end, of which OpenCV would make up the rest."""
    if data.startswith(b"\xff\xd8"):
        start_of_scan, end_of_image = data.rfind(b"\xff\xda"), data.rfind(b"\xff\xd9")
        return 0 < start_of_scan < end_of_image
    if data.startswith(b"\x89PNG"):
        return b"IEND\xaeB`\x82" in data[-4096:]
    return len(data) > 0
