"""The one reader of JSON that is taken as a whole, within limits.

JSON comes from other people: it may be nested a thousand times, hold a number with ten thousand
digits, half a character, or NaN where a number belongs. What would cost too much time or memory,
or what neither files nor terminals take later, is refused here, with the line where it stands.
Files of gigabytes are read piece by piece instead (``json_stream``).
"""

from __future__ import annotations

import json
import re

import numpy as np

from influx_wrap.errors import InputError

MOST_VALUES = 10_000_000
"""Each of them takes up to a hundred bytes of memory."""
MOST_LEVELS = 100
MOST_DIGITS = 1000
"""Of a number, in YAML too; from 309 digits on it is infinite for all that computes with it."""

_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_OPENING = np.frombuffer(b"[{", np.uint8)
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NOT_DIGIT = re.compile(rb"[^0-9]")
_SUSPECT = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]|u([dD][89a-fA-F][0-9a-fA-F]{2}|0000)|.)",
    re.DOTALL,
)


def parse_json_text(data: bytes, where: str, *, bare_nan: bool = False) -> object:
    """The value that UTF-8 text holds; ``where`` is what messages call it.

    bare_nan  whether NaN is a value, as in files that Python wrote; JSON has none
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InputError(f"{where} is not a text file in UTF-8.") from None
    _check_size(data, where)
    _check_content(data, where)
    try:
        return json.loads(text, parse_constant=None if bare_nan else _constant)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}, line {error.lineno}: this is not JSON: {error.msg}.") from None
    except RecursionError:
        raise _too_deep(where) from None
    except ValueError:
        line = _line(data, _STRING.sub(_blanks, data).find(b"NaN"))
        raise InputError(f"{where}, line {line}: NaN stands where a number belongs.") from None


def _check_size(data: bytes, where: str) -> None:
    """Refuse what would take too much memory or too many levels, before it is parsed."""
    brackets = np.frombuffer(data.translate(None, _NOT_BRACKETS), np.uint8)
    if data.count(b",") + len(brackets) // 2 > MOST_VALUES:
        raise InputError(f"{where} has more than {MOST_VALUES} values, which is too much to read.")
    if _levels(brackets) > MOST_LEVELS:
        # Perhaps only because of brackets in texts.
        bare = _STRING.sub(b"", data).translate(None, _NOT_BRACKETS)
        if _levels(np.frombuffer(bare, np.uint8)) > MOST_LEVELS:
            raise _too_deep(where)


def _levels(brackets: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> int:
    steps = np.where(np.isin(brackets, _OPENING), np.int8(1), np.int8(-1))
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))


def _check_content(data: bytes, where: str) -> None:
    """Refuse numbers without end, and escapes that are no characters."""
    at = _long_number(data)
    if at is not None:
        line = _line(data, at)
        raise InputError(f"{where}, line {line}: a number has more than {MOST_DIGITS} digits.")
    if _SUSPECT.search(data) is None:
        return
    for escape in _ESCAPE.finditer(data):
        if escape[1] is not None:
            raise InputError(
                f"{where}, line {_line(data, escape.start())}: \\u{escape[1].decode()} is no "
                "character that text may hold."
            )


def _long_number(data: bytes) -> int | None:
    """Where there are more than ``MOST_DIGITS`` digits in a row, if anywhere.

    So many of them stand on one of every ``MOST_DIGITS`` characters, and only those are looked at.
    """
    some = np.frombuffer(data, np.uint8)[::MOST_DIGITS]
    for k in np.flatnonzero((some >= ord("0")) & (some <= ord("9"))).tolist():
        at = k * MOST_DIGITS
        end = _NOT_DIGIT.search(data, at, at + MOST_DIGITS + 1)
        before = data[max(at - MOST_DIGITS, 0) : at]
        n_before = len(before) - len(before.rstrip(b"0123456789"))
        n_after = (len(data[at : at + MOST_DIGITS + 1])) if end is None else end.start() - at
        if n_before + n_after > MOST_DIGITS:
            return at
    return None


def _constant(name: str) -> float:
    if name == "NaN":
        raise ValueError(name)
    return float(name)


def _blanks(text: re.Match[bytes]) -> bytes:
    return b" " * len(text[0])


def _line(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, max(at, 0)) + 1


def _too_deep(where: str) -> InputError:
    return InputError(f"{where} is nested more than {MOST_LEVELS} levels deep.")
