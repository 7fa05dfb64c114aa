"""Text and lengths as cameras and other people's programs write them.

A length is a number with or without its unit (``991mm``, ``5.83``, ``180/10``), feet with inches
(``5' 10"``), or a word for infinity. What a unit is may stand in the value, in a column of its
own or in the column's name; a focus distance whose unit stands nowhere is refused, as 5.83 may be
feet or metres. Spreadsheets of many countries write a decimal comma.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.formats.files import read_bytes, reading
from influx_wrap.model.rig import ReportedRig

INCH_M = 0.0254
NOT_TOLD = ("", "--")
NO_NAME = ("-", "n/a", "n.a.", "none", "unknown")
"""What stands where a name would, in any case, beside ``NOT_TOLD``."""
NO_VALUE = {*NOT_TOLD, *NO_NAME, "---", "na", "nan", "null", "undef", "undefined", "#n/a"}
"""What stands where a length would, in any case."""
ALL_BITS_SET = ("4294967295", "16777215")
"""How cameras and lenses write infinity in 32 and in 24 bits."""
INFINITE = ("inf", "infinity", "infinite", "∞")
UNITS_M = {
    **dict.fromkeys(("m", "meter", "meters", "metre", "metres", "metric"), 1.0),
    **dict.fromkeys(("mm", "millimeter", "millimeters"), 1e-3),
    **dict.fromkeys(("ft", "foot", "feet", "imperial"), 12 * INCH_M),
    **dict.fromkeys(("in", "inch", "inches"), INCH_M),
}
MORE_UNITS_M = {
    **UNITS_M,
    **dict.fromkeys(("millimetre", "millimetres"), 1e-3),
    **dict.fromkeys(("cm", "centimeter", "centimeters", "centimetre", "centimetres"), 1e-2),
    **dict.fromkeys(("'", "′"), 12 * INCH_M),
    **dict.fromkeys(('"', "″", "''"), INCH_M),
}
LEAST_FD_M, MOST_FD_M, MOST_LFL_MM = 1e-3, 1e7, 1e5
"""A nearer or farther focus, or a longer lens, is a value in another unit, or no length."""

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_LENGTH = re.compile(rf"({_NUMBER})(?:\s*/\s*([0-9]+))?\s*([^\s0-9.,;/+-]*)\.?")
_FEET = re.compile(
    rf"({_NUMBER})\s*(?:'|′|ft|feet|foot)\s*({_NUMBER})\s*(?:\"|″|''|in|inch|inches)?"
)
_INFINITE = re.compile(rf"\+?({'|'.join(INFINITE)})\s*([^\s0-9.,]*)")
_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+(?![0-9,])")
_LONGEST = 60
"""Characters of a number, and of one in a message."""
_LONGEST_NAME = 150
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def read_any_text(path: Path) -> str:
    """A text file in UTF-8, in UTF-16 as spreadsheets and shells write it, or in Windows' own."""
    data = read_bytes(path)
    with reading(path):
        return data.decode(_encoding(data))


def parsed_length(where: str, name: str, text: str, unit: str | None, in_m: float = 1.0) -> float:
    """A length in units of ``in_m``, infinity, or NaN where there is none.

    ``unit`` is of values that state none. A point is the decimal mark, and 0 is what lenses say
    that do not know.
    """
    text = text.strip()
    word = text.casefold()
    if word in NO_VALUE:
        return math.nan
    if len(text) > _LONGEST:
        raise InputError(f"{where}: {name} {quoted_text(text)} is not a number.")
    if word in ALL_BITS_SET or _INFINITE.fullmatch(word):
        return math.inf
    if feet := _FEET.fullmatch(word):
        value = (float(feet[1]) * 12 + float(feet[2])) * (INCH_M / in_m)
    else:
        value = _single_length(where, name, text, unit, in_m)
    if value < 0 or math.isinf(value):
        raise InputError(f"{where}: {name} must be positive and finite, got {text}.")
    return value or math.nan


def parsed_fd(where: str, name: str, text: str, unit: str | None) -> float:
    """A focus distance in metres, infinity for a word that means it; NaN where there is none."""
    metres = parsed_length(where, name, text, unit)
    check_fd(where, name, text, metres)
    return metres


def check_fd(where: str, name: str, text: str, metres: float) -> None:
    """Refuse a distance, from its text, that no lens has; NaN and infinity pass."""
    if metres < LEAST_FD_M or MOST_FD_M < metres < math.inf:
        raise InputError(
            f"{where}: {name} {quoted_text(text)} is {metres:g} m, which is no focus distance. "
            "Is its unit another one?"
        )


def parsed_lfl(where: str, name: str, text: str, unit: str | None = "mm") -> float:
    """A focal length in millimetres; NaN where there is none."""
    lfl_mm = parsed_length(where, name, text, unit or "mm", 1e-3)
    if math.isinf(lfl_mm):
        raise InputError(f"{where}: {name} must be finite, got {text}.")
    if lfl_mm > MOST_LFL_MM:
        raise InputError(f"{where}: {name} {text} is no focal length in millimetres.")
    return lfl_mm


def middle_fd(near_m: float, far_m: float) -> float:
    """The middle in 1 / FD of two bounds, which is all that some lenses know; NaN if there is none,
    as between a distance and infinity."""
    if math.isinf(far_m):
        return math.inf if math.isinf(near_m) else math.nan
    return 2 / (1 / near_m + 1 / far_m)


def short_text(text: str) -> str:
    """A text in a message, its beginning only if it is long."""
    return text if len(text) <= _LONGEST else f"{text[:20]}..."


def quoted_text(text: str) -> str:
    """A text in a message: in quotation marks, and its beginning only if it is long."""
    return repr(text) if len(text) <= _LONGEST else f"{text[:20]!r}..."


def has_decimal_comma(where: str, cells: Iterable[str], separator: str) -> bool:
    """Whether numbers among the cells have a decimal comma; refused where that is a guess."""
    commas, points = [], False
    for cell in cells:
        if "," in cell and _COMMA.search(cell):
            commas.append(cell)
        points |= "." in cell and any(letter.isdigit() for letter in cell)
    if not commas:
        return False
    if points:
        raise InputError(
            f"{where}: some numbers have a point and others a comma "
            f"({quoted_text(commas[0])}): export it with one decimal mark."
        )
    thousands = all(re.search(r",[0-9]{3}(?![0-9])", cell) for cell in commas)
    if separator == "," and thousands:
        raise InputError(
            f"{where}: {quoted_text(commas[0])} may be a decimal comma or mark thousands: export "
            "it with points, or with semicolons between columns."
        )
    return True


def make_rig(
    lenses: Sequence[object],
    cameras: Sequence[object],
    sizes: Sequence[Sequence[object]],
    aliases: Sequence[Sequence[object]] = (),
) -> ReportedRig:
    """From what stands in a file for names and sizes (width, height), whatever that is.

    ``aliases`` are names of one and the same lens or camera.
    """
    pairs = [tuple(map(_pixels, size)) for size in sizes]
    told = [(pair[0], pair[1]) for pair in pairs if min(pair) > 0]
    groups = [names(group) for group in aliases]
    return ReportedRig(
        names(lenses),
        names(cameras),
        tuple(dict.fromkeys(told)),
        tuple(dict.fromkeys(group for group in groups if len(group) > 1)),
    )


def names(values: Sequence[object]) -> tuple[str, ...]:
    """The texts among the values that name something, each once; too long ones are cut."""
    texts = [value.strip()[:_LONGEST_NAME] for value in values if isinstance(value, str)]
    return tuple(dict.fromkeys(t for t in texts if t.lower() not in (*NOT_TOLD, *NO_NAME)))


def _single_length(where: str, name: str, text: str, unit: str | None, in_m: float) -> float:
    """A number or a fraction, with a unit or without; NaN if it is 0."""
    found = _LENGTH.fullmatch(text)
    if found is None:
        raise InputError(f"{where}: {name} {text!r} is not a number.")
    number, divisor, own = found.groups()
    value = float(number)
    if divisor is not None:
        if int(divisor) == 0:
            return math.nan
        value /= int(divisor)
    if value == 0:
        return math.nan
    stated = own.casefold() or (unit or "").strip().casefold()
    if not stated:
        raise InputError(
            f"{where}: {name} {text!r} has no unit, neither there nor in the column's name nor in "
            "a column of its own: nobody knows whether it is in metres or feet. Export it with "
            f"units, or name the column {name.strip()} (m) or (ft)."
        )
    if stated not in MORE_UNITS_M:
        raise InputError(f"{where}: the unit {quoted_text(stated)} of {name} is not known; known: "
                         f"{', '.join(UNITS_M)}.")  # fmt: skip
    return value * (MORE_UNITS_M[stated] / in_m)


def _encoding(data: bytes) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    start = data[:400]
    if len(start) > 3 and start[1::2].count(0) > len(start) // 4:
        return "utf-16-le"
    if len(start) > 3 and start[::2].count(0) > len(start) // 4:
        return "utf-16-be"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _pixels(value: object) -> int:
    """A whole number from a number or its text; 0 for anything else."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
