"""Files as people and programs spoil them: seeded changes of a mapping that is written as YAML."""

import json
from collections.abc import Iterator, Mapping

import numpy as np
import yaml

# As YAML, so that a number may be one that Python has no literal for.
VALUES = (
    ".nan", ".inf", "-.inf", "NaN", "inf", "0", "-1", "-0.0", "1e-320", "1.0e-300", "1.0e+308",
    "1" + "0" * 30, "-1" + "0" * 30, "3" * 400, "0x7fffffffffffffff", "1_000", "1,5", "1.2.3",
    "12mm", "true", "null", "~", "''", "' '", "[]", "{}", "[1, 2]", "{a: 1}", "[[[]]]", "1:30",
    "2026-11-18", "!!binary aGk=", "!!python/object:os.system {}", "'\\0'", '"\\0"', '"\\ud800"',
    "'../..'", "'/'", ".", "naïve", "板", "'a\n\n b'", "|\n  text\n  more", "&x [*x]", "*unknown",
    "1e400", "-5", "0.5", "1000000",
)  # fmt: skip


def spoiled(values: Mapping[str, object], n: int, seed: int) -> Iterator[bytes]:
    """``n`` files, each made from ``values`` by one to three changes."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        lines = [yaml.safe_dump({key: value}, allow_unicode=True) for key, value in values.items()]
        for _ in range(rng.integers(1, 4)):
            lines = _changed(lines, rng)
        yield _encoded("".join(lines), rng)


def _changed(lines: list[str], rng: np.random.Generator) -> list[str]:
    lines = list(lines)
    if not lines:
        return lines
    at = int(rng.integers(len(lines)))
    key = lines[at].partition(":")[0]
    kind = rng.choice(["drop", "value", "value", "value", "value", "twice", "rename", "cut", "tab"])
    if kind == "drop":
        del lines[at]
    elif kind == "value":
        lines[at] = f"{key}: {VALUES[rng.integers(len(VALUES))]}\n"
    elif kind == "twice":
        lines.append(f"{key}: {VALUES[rng.integers(len(VALUES))]}\n")
    elif kind == "rename":
        lines[at] = lines[at].replace(key, str(rng.choice([key.upper(), key + "x", "1", "''"])), 1)
    elif kind == "cut":
        lines[at] = lines[at][: int(rng.integers(len(lines[at])))]
    else:
        lines[at] = "\t" + lines[at]
    return lines


def _encoded(text: str, rng: np.random.Generator) -> bytes:
    kind = rng.choice(["utf-8"] * 16 + ["utf-8-sig", "utf-16", "latin-1", "cp037", "cut"])
    data = text.encode("utf-8" if kind == "cut" else kind, errors="replace")
    return data[: int(rng.integers(len(data) + 1))] if kind == "cut" else data


def holds_nan(text: str) -> bool:
    """Whether JSON text has numbers that JSON does not have."""
    found: list[str] = []
    json.loads(text, parse_constant=found.append)
    return bool(found)
