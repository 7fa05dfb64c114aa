"""What all formats share: files read with faults named, files written whole.

A fault of a file becomes an ``InputError`` that names the file, and the line or key
where there is one. Files are written to a temporary sibling and renamed, so that
nobody ever reads half a file.
"""

from __future__ import annotations

import difflib
import errno
import hashlib
import json
import math
import os
import re
import reprlib
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np
import yaml

from influx_wrap.errors import InputError
from influx_wrap.formats.json_text import parse_json_text
from influx_wrap.formats.yaml_text import parse_yaml_text
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.intrinsics import NAMES, Intrinsics

T = TypeVar("T")

PIXEL_ORIGIN = "center"
"""In files of our own, pixel (0, 0) is the centre of the top-left pixel; they say so."""
PICTURES = (".tif", ".tiff", ".png", ".jpg", ".jpeg")
LARGEST_INTEGER = 1 << 53
"""Up to which floating-point numbers have every whole one."""
MOST_TEXT_BYTES = 1 << 28
"""Of a text file that is read as a whole."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns the operating system's complaints about ``path`` into an ``InputError``."""
    try:
        yield
    except FileNotFoundError:
        raise _missing(path) from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder, a file is needed.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file in UTF-8.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None


def _missing(path: Path) -> InputError:
    """Of a path that is not there: a name beside it that is almost the same is meant."""
    try:
        beside = [other.name for other in path.parent.iterdir()]
    except OSError:
        beside = []
    close = difflib.get_close_matches(path.name, beside, n=1, cutoff=0.75)
    if not close:
        return InputError(f"{path} does not exist.")
    meant = path.with_name(close[0])
    return InputError(
        f"{path} does not exist. Did you mean {meant}?", instead=(str(path), str(meant))
    )


def read_text(path: Path) -> str:
    """The whole file, a byte order mark removed, and every end of a line as ``\\n``."""
    data = read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file in UTF-8.") from None
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def read_bytes(path: Path, most: int = MOST_TEXT_BYTES) -> bytes:
    """The whole file, unless it has more than ``most`` bytes."""
    with reading(path):
        if stat.S_ISFIFO(path.stat().st_mode) and not str(path).startswith(("/dev/", "/proc/")):
            raise InputError(f"{path} is a pipe, a file is needed.")
        with path.open("rb") as file:
            data = file.read(most + 1)
    if len(data) > most:
        raise InputError(f"{path} has more than {most >> 20} MiB, which is too much to read.")
    return data


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with reading(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(path: Path, text: str) -> None:
    """Write ``text`` so that ``path`` is either the old file or the complete new one."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` so that ``path`` is either the old file or the complete new one."""
    with writing(path) as file:
        file.write(data)


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A file to write in pieces, which becomes ``path`` when all of it is there."""
    temporary = _temporary(path)
    try:
        try:
            with temporary.open("wb") as file:
                yield file
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from None


def write_json(path: Path, values: Mapping[str, object] | Sequence[object]) -> None:
    """Write JSON; infinities and NaN, which it does not have, are refused."""
    write_text(path, json.dumps(values, indent=2, allow_nan=False) + "\n")


def write_json_lines(path: Path, values: Mapping[str, object]) -> None:
    """Write a JSON object with one key per line, however long."""
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in values.items()]
    write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def check_writable(path: Path) -> None:
    """Refuse a path that could not be written, before the work whose result goes there."""
    temporary = _temporary(path)
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        temporary.touch()
        temporary.unlink()
    except OSError as error:
        raise not_writable(path, error) from None


def not_writable(path: Path, error: OSError) -> InputError:
    """Of a place that cannot be written; the same name in the folder one works in may do."""
    return InputError(
        f"{path} cannot be written: {error.strerror}.", instead=(str(path), path.name)
    )


def make_folder(path: Path) -> None:
    """Create a folder and those above it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be made a folder: {error.strerror}.") from None


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of writers that were killed; nobody may be writing."""
    for path in folder.rglob(".*.tmp"):
        path.unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


@dataclass(frozen=True)
class Record:
    """A mapping from a file; what is asked of it is checked, faults name file and key."""

    where: str
    values: Mapping[str, object]

    def fault(self, key: str, problem: str) -> InputError:
        """The error that says what is wrong with ``key``."""
        return InputError(f"{self.where}: {key} {problem}")

    def check_pixel_origin(self) -> None:
        """Refuse pixels that are not counted as ours are."""
        if self.text("pixel_origin") != PIXEL_ORIGIN:
            problem = f"must be {PIXEL_ORIGIN}: pixel (0, 0) is a pixel's centre."
            raise self.fault("pixel_origin", problem)

    def check_keys(self, required: Collection[str], optional: Collection[str] = ()) -> None:
        """Refuse missing and unknown keys."""
        for key in required:
            if key not in self.values:
                raise self.fault(key, "is missing.")
        known = [*required, *optional]
        for key in self.values:
            if key not in known:
                name = key if isinstance(key, str) else excerpt(key)
                name = name[:80].encode(errors="backslashreplace").decode()
                raise self.fault(name, f"is not known here; the keys are {', '.join(known)}.")

    def build(self, make: Callable[..., T], **values: object) -> T:
        """``make(**values)``; what it refuses is reported as a fault of this file."""
        try:
            return make(**values)
        except InputError as error:
            raise InputError(f"{self.where}: {error}") from None

    def value(self, key: str) -> object:
        """Whatever is there."""
        if key not in self.values:
            raise self.fault(key, "is missing.")
        return self.values[key]

    def text(self, key: str) -> str:
        """Text that is not empty, and that may be a file's name."""
        value = self.value(key)
        if not isinstance(value, str) or not value.strip() or not _is_clean(value):
            raise self.fault(key, f"must be text, got {excerpt(value)}.")
        return value

    def number(
        self,
        key: str,
        *,
        above: float = -math.inf,
        at_least: float = -math.inf,
        infinite: bool = False,
    ) -> float:
        """A number within the given bounds; finite unless ``infinite``."""
        number = self._as_number(key, self.value(key), infinite=infinite)
        if number <= above:
            raise self.fault(key, f"must be above {above:g}, got {number:g}.")
        if number < at_least:
            raise self.fault(key, f"must be at least {at_least:g}, got {number:g}.")
        return number

    def flag(self, key: str) -> bool:
        """True or false; false if it is missing."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.fault(key, f"must be true or false, got {excerpt(value)}.")
        return value

    def integer(self, key: str, *, at_least: int, at_most: int | None = None) -> int:
        """A whole number within the given bounds."""
        value = self.value(key)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.fault(key, f"must be a whole number, got {excerpt(value)}.")
        if value < at_least:
            raise self.fault(key, f"must be at least {at_least}, got {excerpt(value)}.")
        highest = LARGEST_INTEGER if at_most is None else at_most
        if value > highest:
            raise self.fault(key, f"must be at most {highest}, got {excerpt(value)}.")
        return value

    def numbers(self, key: str, n: int | None = None) -> tuple[float, ...]:
        """A list of finite numbers, ``n`` of them."""
        items = self.items(key)
        if n is not None and len(items) != n:
            raise self.fault(key, f"must have {n} numbers, got {len(items)}.")
        return tuple(self._as_number(f"{key}[{i}]", value) for i, value in enumerate(items))

    def integers(self, key: str) -> IntArray:
        """A list of whole numbers: (N,)."""
        numbers = np.array(self.numbers(key))
        wrong = np.flatnonzero((numbers != np.round(numbers)) | (abs(numbers) > LARGEST_INTEGER))
        if len(wrong):
            problem = f"must be a whole number, got {numbers[wrong[0]]:g}."
            raise self.fault(f"{key}[{wrong[0]}]", problem)
        return numbers.astype(np.int64)

    def image_size(self, key: str) -> tuple[int, int]:
        """Width and height in pixels."""
        sides = self.items(key)
        if len(sides) != 2:
            raise self.fault(key, f"must be [width, height], got {excerpt(sides)}.")
        pair = Record(self.where, {f"{key}[0]": sides[0], f"{key}[1]": sides[1]})
        width, height = (pair.integer(side, at_least=1) for side in pair.values)
        return width, height

    def intrinsics(self, key: str) -> Intrinsics:
        """A camera, its parameters by name."""
        camera = self.record(key)
        camera.check_keys(NAMES)
        return Intrinsics(*(camera.number(name) for name in NAMES))

    def rows(self, key: str, columns: int, n: int | None = None) -> FloatArray:
        """A list of rows of finite numbers: (N, columns), N being ``n`` if that is given."""
        rows = []
        for i, row in enumerate(self.items(key)):
            if not isinstance(row, list) or len(row) != columns:
                raise self.fault(f"{key}[{i}]", f"must be a list of {columns} numbers.")
            rows.append([self._as_number(f"{key}[{i}][{j}]", v) for j, v in enumerate(row)])
        if n is not None and len(rows) != n:
            raise self.fault(key, f"must have {n} rows, got {len(rows)}.")
        return np.array(rows, dtype=float).reshape(-1, columns)

    def items(self, key: str) -> list[object]:
        """A list."""
        value = self.value(key)
        if not isinstance(value, list):
            raise self.fault(key, f"must be a list, got {excerpt(value)}.")
        return value

    def record(self, key: str) -> Record:
        """A mapping inside this one."""
        return self._as_record(key, self.value(key))

    def records(self, key: str) -> list[Record]:
        """A list of mappings."""
        return [self._as_record(f"{key}[{i}]", item) for i, item in enumerate(self.items(key))]

    def _as_record(self, key: str, value: object) -> Record:
        if not isinstance(value, dict):
            raise self.fault(key, f"must be a mapping, got {excerpt(value)}.")
        return Record(f"{self.where}: {key}", value)

    def _as_number(self, key: str, value: object, *, infinite: bool = False) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            hint = " (YAML wants exponents written 1.0e-3)" if isinstance(value, str) else ""
            raise self.fault(key, f"must be a number, got {excerpt(value)}{hint}.")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isnan(number) or (math.isinf(number) and not infinite):
            raise self.fault(key, f"must be finite, got {number}.")
        return number


def read_yaml(path: Path) -> Record:
    """A YAML file that holds one mapping."""
    return _as_record(path, parse_yaml_text(read_text(path), str(path)))


def read_json(path: Path, *, bare_nan: bool = False) -> Record:
    """A JSON file that holds one object.

    bare_nan  whether NaN is a value in it, as in files that Python wrote; JSON has none
    """
    return _as_record(path, parse_json(path, bare_nan=bare_nan))


def parse_json(path: Path, *, bare_nan: bool = False) -> object:
    """Whatever a JSON file holds."""
    return parse_json_text(read_bytes(path), str(path), bare_nan=bare_nan)


def natural_key(name: str) -> tuple[list[tuple[int, str]], str]:
    """Sorts frame2 before frame10."""
    parts = re.findall(r"\d+|\D+", name.lower())
    return [(int(p), "") if p.isdecimal() else (-1, p) for p in parts], name


def dump_yaml(values: Mapping[str, object]) -> str:
    """YAML text, one key per line in the given order, innermost lists on one line."""
    return "".join(
        yaml.safe_dump({key: value}, default_flow_style=None if isinstance(value, list) else False)
        for key, value in values.items()
    )


class _Short(reprlib.Repr):
    """Values as they stand in a sentence: not with their hundred digits or thousand items."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxlist, self.maxdict, self.maxstring, self.maxother = 3, 6, 4, 80, 80

    def repr_int(self, x: int, level: int) -> str:
        if abs(x) < 10**20:
            return repr(x)
        # Python refuses to write more than a few thousand digits.
        digits = int(abs(x).bit_length() * math.log10(2)) + 1
        begin = f"{str(x)[:6]}..." if digits < 4000 else "a number"
        return f"{begin} ({digits} digits)"


def excerpt(value: object) -> str:
    """A value from a file, to stand in a sentence."""
    return _SHORT.repr(value).encode(errors="backslashreplace").decode()


_SHORT = _Short()


def _is_clean(text: str) -> bool:
    """Whether text is free of what neither files nor terminals take: NUL, half characters."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _as_record(path: Path, values: object) -> Record:
    if not isinstance(values, dict):
        raise InputError(f"{path}: a mapping of keys to values is needed.")
    return Record(str(path), values)
