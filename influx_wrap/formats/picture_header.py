"""What a picture's file says before it is decoded: the size of JPEG, PNG and TIFF pictures.

The size is that of the stored pixels. The EXIF orientation, which only says how a screen should
turn them, is not applied: intrinsics belong to the sensor, whichever way the camera was held.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

from influx_wrap.formats.files import reading

_START_OF_FRAME = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_TIFF_WIDTH, _TIFF_HEIGHT = 256, 257
_LONGEST_HEADER = 1 << 20
"""In bytes: a JPEG may begin with metadata and previews."""


def picture_size(path: Path) -> tuple[int, int] | None:
    """(width, height) of the stored pixels; None if the file does not say."""
    with reading(path), path.open("rb") as file:
        try:
            start = file.read(26)
            if start.startswith(b"\x89PNG\r\n\x1a\n"):
                width, height = struct.unpack(">II", start[16:24])
            elif start.startswith(b"\xff\xd8"):
                width, height = _jpeg_size(start + file.read(_LONGEST_HEADER))
            elif start[:4] in (b"II*\0", b"MM\0*"):
                width, height = _tiff_size(file, start)
            else:
                return None
        except (struct.error, IndexError, KeyError):
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
    order = "<" if start.startswith(b"II") else ">"
    file.seek(struct.unpack_from(f"{order}I", start, 4)[0])
    sides = {}
    for _ in range(struct.unpack(f"{order}H", file.read(2))[0]):
        tag, kind, _, value = struct.unpack(f"{order}HHI4s", file.read(12))
        if tag in (_TIFF_WIDTH, _TIFF_HEIGHT):
            (sides[tag],) = struct.unpack_from(f"{order}{'H' if kind == 3 else 'I'}", value)
    return sides[_TIFF_WIDTH], sides[_TIFF_HEIGHT]
