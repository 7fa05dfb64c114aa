"""The packets of Cooke's /i protocol, which lenses of many makers send with every frame.

The packed reply to the command ``Kd`` is the letter ``d``, then among other things the focus
distance in four bytes, the T-number in two, the ring's T-stop in two and the zoom in two. A byte
carries six bits below the bits 01, the first byte the highest. All bits set is a focus at
infinity, 0 the zoom of a prime. Distances are in millimetres, or in tenths of an inch if the lens
was asked for imperial units, which the packet does not say.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

FD_BYTES, ZOOM_BYTES = slice(1, 5), slice(9, 11)
TENTH_INCH_MM = 2.54
_INFINITE = 2**24 - 1
_BYTES = re.compile(r"(?:0x)?([0-9a-fA-F]{2})(?:[\s/:;,_-]+|(?=[0-9a-fA-F]{2})|$)")


@dataclass(frozen=True)
class CookePacket:
    """Focus distance in the packet's unit, infinite or NaN; focal length in mm, NaN of a prime."""

    fd: float
    lfl_mm: float


def decode_cooke(text: str) -> CookePacket | None:
    """A packet from its bytes in hexadecimal, with or without marks between; None if it is none."""
    text = text.strip()
    data = bytes(int(byte, 16) for byte in _BYTES.findall(text)) if len(text) < 1000 else b""
    if len(data) < ZOOM_BYTES.stop or data[:1] != b"d":
        return None
    values = [_packed(data[part]) for part in (FD_BYTES, ZOOM_BYTES)]
    if None in values:
        return None
    fd, zoom = (float(value or math.nan) for value in values)
    return CookePacket(math.inf if fd == _INFINITE else fd, zoom)


def _packed(data: bytes) -> int | None:
    """The number in bytes of six bits each; None if they are no such bytes."""
    value = 0
    for byte in data:
        if byte >> 6 != 1:
            return None
        value = value << 6 | byte & 0x3F
    return value
