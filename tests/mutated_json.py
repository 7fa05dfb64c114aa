"""JSON and CSV files as people and programs spoil them: seeded changes of a whole file."""

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

# As text, so that a number may be one that JSON, or Python, does not have.
TOKENS = (
    "NaN", "Infinity", "-Infinity", "0", "-1", "-0.0", "1e-320", "1e-300", "1e308", "-1e308",
    "1" + "0" * 29, "-1" + "0" * 29, "9" * 400, "7" * 5000, "1e400", "0.5", "1000000", "1e16",
    "true", "null", '""', '" "', '"inf"', '"-1"', '"nan"', '"12mm"', '"1,5"', "[]", "{}", "[1, 2]",
    '[null, "a"]', '{"a": 1}', "[[[]]]", '"\\u0000"', '"\\ud800"', '"../.."', '"板"', "'a'",
    "1.2.3", "undefined", '"canon17"', '{"fx": 1}',
)  # fmt: skip
CELLS = (
    "nan", "NaN", "inf", "-inf", "0", "-1", "-0.0", "1e-320", "1e308", "1" + "0" * 29,
    "9" * 400, "7" * 5000, "", " ", "--", "12mm", "1,5", "true", '"', "'", "\0", "板", "\ufeff",
    "\t", "Meter", "Foot", "parsec", "ARRI SP40 T1.8", "1_000", "٣", "5' 10\"", "∞", "-1 m",
    "65535/65535", "1/0", "3F000000", "64/40/40", "7F C0 00 00", "FF" * 700, "1e9 ft", "1" * 18,
    "00:00:00:00", "23:59:59;29", "1" * 15, "Frame 0 Metadata",
)  # fmt: skip
_MARK = "\ue000"


def mutated_json(values: Any, n: int, seed: int) -> Iterator[bytes]:
    """``n`` files, each made from an object or a list by one to three changes."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        text = json.dumps(values)
        for _ in range(rng.integers(1, 4)):
            text = _changed(text, rng)
        yield _encoded(text, rng)


def mutated_lines(text: str, separator: str, n: int, seed: int) -> Iterator[bytes]:
    """``n`` files, each made from lines of cells by one to three changes."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        lines = [line.split(separator) for line in text.splitlines()]
        for _ in range(rng.integers(1, 4)):
            row = lines[rng.integers(len(lines))]
            at = int(rng.integers(len(row)))
            kind = rng.choice(["cell", "cell", "cell", "drop", "twice", "more"])
            if kind == "cell":
                row[at] = CELLS[rng.integers(len(CELLS))]
            elif kind == "drop" and len(row) > 1:
                del row[at]
            elif kind == "twice":
                lines.append(list(row))
            else:
                row.insert(at, CELLS[rng.integers(len(CELLS))])
        yield _encoded("\n".join(map(separator.join, lines)), rng)


def mutated_text(text: str, n: int, seed: int) -> Iterator[bytes]:
    """``n`` files, each made from lines of words, numbers and marks by one to three changes."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        lines = text.splitlines()
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(lines)))
            kind = rng.choice(["word", "word", "word", "drop", "twice", "swap", "cut"])
            if kind == "word":
                words = list(re.finditer(r"[\w.]+", lines[at]))
                if words:
                    word = words[rng.integers(len(words))]
                    cell = CELLS[rng.integers(len(CELLS))]
                    lines[at] = lines[at][: word.start()] + cell + lines[at][word.end() :]
            elif kind == "drop" and len(lines) > 1:
                del lines[at]
            elif kind == "twice":
                lines.insert(int(rng.integers(len(lines))), lines[at])
            elif kind == "swap":
                other = int(rng.integers(len(lines)))
                lines[at], lines[other] = lines[other], lines[at]
            elif kind == "cut":
                lines[at] = lines[at][: int(rng.integers(len(lines[at]) + 1))]
        yield _encoded("\n".join(lines), rng)


def _changed(text: str, rng: np.random.Generator) -> str:
    """One node of a tree replaced, removed, renamed or repeated; or, what is no JSON any more, as
    it is."""
    try:
        tree = json.loads(text)
    except ValueError:
        return text
    places = list(_places(tree, ()))
    if not places:
        return text
    *way, last = places[rng.integers(len(places))]
    parent = tree
    for key in way:
        parent = parent[key]
    kind = rng.choice(["value", "value", "value", "value", "drop", "rename", "twice"])
    token = TOKENS[rng.integers(len(TOKENS))]
    if kind == "drop":
        del parent[last]
    elif kind == "rename" and isinstance(parent, dict):
        names = (str(last).upper(), f"{last}x", "-1", "", "0" * 20, "format", "7")
        parent[names[rng.integers(len(names))]] = parent.pop(last)
    elif kind == "twice" and isinstance(parent, dict):
        parent[_MARK] = None
        return json.dumps(tree).replace(json.dumps(_MARK) + ": null", f'"{last}": {token}')
    else:
        parent[last] = _MARK
    return json.dumps(tree).replace(json.dumps(_MARK), token)


def _places(node: Any, way: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The ways to all nodes below this one."""
    if isinstance(node, dict):
        keys: Any = list(node)
    else:
        keys = range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield (*way, key)
        yield from _places(node[key], (*way, key))


def _encoded(text: str, rng: np.random.Generator) -> bytes:
    kind = rng.choice(["utf-8"] * 20 + ["utf-8-sig", "utf-16", "latin-1", "cut"])
    data = text.encode("utf-8" if kind == "cut" else kind, errors="replace")
    return data[: int(rng.integers(len(data) + 1))] if kind == "cut" else data
