"""What ground and drone say to each other: one JSON object per line, a request and its reply.

    hello     {"token", "flight"}               who is there; must come first
    status    {}                                the fix now, and whether it would do
    trigger   {"id", "point", "not_after_s",    flash, and keep the position; the same id
               "accept_float"}                  always gets the same answer
    readings  {"after"}                         answers of this flight after number ``after``

A request has its ``type`` and a whole number ``seq``; the reply repeats ``seq``, and has a ``type``
of its own: ``hello``, ``status``, ``reading``, ``refused``, ``readings`` or ``error``. Times called
``clock_s`` and ``not_after_s`` are the drone's own clock since it was switched on, which no
time server moves: a trigger that was held up on its way must not flash a drone that has
flown on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn, TypeGuard

VERSION = 1
REQUEST_BYTES = 4096
"""The longest request a server reads."""
REPLY_BYTES = 1 << 20
READINGS_PER_REPLY = 50

Message = dict[str, Any]

LARGEST = 1e18
"""The largest number that anything here can mean."""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class ProtocolError(ValueError):
    """The other side said something that is not in the protocol."""


def encode(message: Mapping[str, Any]) -> bytes:
    """The message as a line."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def decode(line: bytes) -> Message:
    """The message in a line."""
    try:
        message = json.loads(line.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ProtocolError("this is not a line of JSON") from None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ProtocolError("a message is an object with a type")
    return message


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number; a flag is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -LARGEST <= value <= LARGEST


def name(message: Mapping[str, Any], key: str) -> str:
    """A short name of letters, digits, dots, dashes and underscores."""
    value = message.get(key)
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ProtocolError(f"{key} must be 1 to 64 letters, digits, dots, - or _")
    return value


def whole(message: Mapping[str, Any], key: str) -> int:
    """A whole number from 0 to a million."""
    value = message.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1_000_000:
        raise ProtocolError(f"{key} must be a whole number from 0 to 1000000")
    return value


def number(message: Mapping[str, Any], key: str) -> float:
    """A finite number."""
    value = message.get(key)
    if not is_number(value):
        raise ProtocolError(f"{key} must be a finite number")
    return float(value)


def flag(message: Mapping[str, Any], key: str) -> bool:
    """True or false; false if it is not there."""
    value = message.get(key, False)
    if not isinstance(value, bool):
        raise ProtocolError(f"{key} must be true or false")
    return value
