"""docs/printed/PAGE.txt: every command of a page with what it printed when it was last run.

A session as a terminal shows it: ``$`` before a command, ``>`` before its further lines. The
pages quote it, and a run of the same commands is compared with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from tests.docs.pages import NUMBER, Page

_BUSY = "The machine is busy"
_UNIT = r"(?:s|ms|µs|min|h|MB|GB|kB|MiB|GiB|fps)\b|times\b|frames (?:a|per) second"
_COST = re.compile(rf"\d+(?:\.\d+)? ?(?:{_UNIT})|(?<=seconds per frame )[\d.]+")
"""Times and memory: another run has others."""
_CARRIES_OVER = 1e-5
"""Relative: another processor may round digits beyond differently."""
_ANY_NUMBER = re.compile(rf"(?<![\d.])-?(?:{NUMBER})")
_PLAIN_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_COMPARED = re.compile(r"((?:(?<![\w.)])[-+])?\d+(?:\.\d+)?(?:e[-+]?\d+)?)( ?%)?")
"""A number with its sign, which a rounded zero may have either of; and whether it is a share."""


@dataclass(frozen=True)
class Entry:
    """A command and its output."""

    command: str
    output: str

    def __str__(self) -> str:
        """As it stands in the file."""
        return "$ " + self.command.replace("\n", "\n> ") + "\n" + self.output


def recording_path(page: Page) -> Path:
    """Where the page's recording is."""
    folder = page.path.parent
    # The README's folder is the clone's, and that may be called docs, too.
    is_docs = folder.name == "docs" and page.name != "README.md"
    return (folder if is_docs else folder / "docs") / "printed" / f"{page.path.stem}.txt"


def read_recording(path: Path) -> list[Entry]:
    """The entries of a file; none if there is no file."""
    if not path.exists():
        return []
    parts = re.split(r"^\$ ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    entries = []
    for part in parts:
        lines = part.splitlines(keepends=True)
        end = next((i for i in range(1, len(lines)) if not lines[i].startswith("> ")), len(lines))
        command = "".join([lines[0], *(line[2:] for line in lines[1:end])]).rstrip("\n")
        entries.append(Entry(command, "".join(lines[end:])))
    return entries


def write_recording(path: Path, entries: Iterable[Entry]) -> None:
    """The entries, one after the other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(map(str, entries)), encoding="utf-8")


def quotes(printed: str, text: str) -> bool:
    """Whether the text's lines were printed in this order; a line ``...`` stands for any."""
    lines = [line.rstrip() for line in printed.splitlines()]
    start = 0
    for part in re.split(r"^\.\.\.\n", text, flags=re.MULTILINE):
        wanted = [line.rstrip() for line in part.splitlines()]
        places = range(start, len(lines) - len(wanted) + 1)
        found = next((i for i in places if lines[i : i + len(wanted)] == wanted), None)
        if found is None:
            return False
        start = found + len(wanted)
    return True


def numbers_in(entries: Iterable[Entry]) -> set[float]:
    """All numbers of commands and outputs; groups of digits also one by one."""
    found: set[float] = set()
    for entry in entries:
        for pattern in (_ANY_NUMBER, _PLAIN_NUMBER):
            found.update(float(n.replace(" ", "")) for n in pattern.findall(str(entry)))
    return found


def is_rounding(number: str, printed: Iterable[float]) -> bool:
    """Whether a number of the page is one of those printed, or one of them rounded.

    Zeros at a whole number's end may be rounded ones, but two digits are left. A minus must
    have been printed; the size of a negative number may be told without it.
    """
    value, half = float(number), _last_digit(number) / 2
    digits = number.lstrip("+-")
    if digits.isdigit():
        zeros = len(digits) - len(digits.rstrip("0"))
        half *= 10 ** max(0, min(zeros, len(digits) - 2))
    seen = (other if number.startswith("-") else abs(other) for other in printed)
    return any(abs(other - value) <= half * (1 + 1e-9) for other in seen)


def _last_digit(number: str) -> float:
    """What a step of a number's last digit is worth."""
    mantissa, _, exponent = number.partition("e")
    return float(10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])))


def differences(recorded: Entry, now: Entry) -> Iterator[str]:
    """Lines that differ by more than time and memory, or a step of a rounded number's last digit.

    Whole numbers count something and must be the same, unless they are per cent.
    """
    for old, new in zip_longest(_lines(recorded), _lines(now), fillvalue=""):
        if not _same(_COST.sub("?", old), _COST.sub("?", new)):
            yield f"$ {recorded.command}\n  recorded: {old}\n  now:      {new}"


def _lines(entry: Entry) -> list[str]:
    """Without what depends on how wide a column was."""
    lines = (re.sub(r"─+", "─", " ".join(line.split())) for line in entry.output.splitlines())
    return [line for line in lines if not line.startswith(_BUSY)]


def _same(old: str, new: str) -> bool:
    if _COMPARED.sub(r"#\2", old) != _COMPARED.sub(r"#\2", new):
        return False
    pairs = zip(_COMPARED.findall(old), _COMPARED.findall(new), strict=True)
    return all(
        a == b or abs(float(a) - float(b)) <= _slack(a, b, unit) for (a, unit), (b, _) in pairs
    )


def _slack(a: str, b: str, unit: str) -> float:
    """How far two numbers may be apart that were rounded from nearly the same."""
    carried = _CARRIES_OVER * abs(float(a))
    if not unit and all(number.lstrip("+-").isdigit() for number in (a, b)):
        return carried
    return max(1.001 * _last_digit(a), 1.001 * _last_digit(b), carried)
