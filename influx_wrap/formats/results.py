"""``result.json`` and ``failure.json``: what a calibration gave, with a checksum of its own.

Numbers of a result go into a lens's table and from there into every frame that is filmed with it.
So a file that was changed after it was written, by a person or by a disk, is told from one that was
not. The checksum is of the content, not of the bytes: to format the file anew is no change. It
is no signature: somebody who wants to deceive can compute it, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from influx_wrap.errors import InputError
from influx_wrap.formats.files import read_json, write_json
from influx_wrap.formats.json_text import parse_json_text

CHECKSUM = "checksum"


def write_result(path: Path, values: Mapping[str, object]) -> None:
    """Write a result and its checksum."""
    write_json(path, {**values, CHECKSUM: checksum(values)})


@dataclass(frozen=True)
class Stored:
    """The content of a result.

    is_whole  whether it is as it was written; None in a file of an earlier version, which has no
              checksum
    """

    values: Mapping[str, Any]
    is_whole: bool | None


def read_stored(path: Path) -> Stored:
    """A result, edited or not."""
    values = dict(read_json(path).values)
    stated = values.pop(CHECKSUM, None)
    return Stored(values, None if stated is None else stated == checksum(values))


def read_result(path: Path) -> Mapping[str, Any]:
    """The content of a result; raises ``InputError`` if it is not as it was written."""
    stored = read_stored(path)
    if stored.is_whole is False:
        raise InputError(
            f"{path} was changed after it was written: its checksum is another. Give the same "
            "command again, which makes it anew."
        )
    return stored.values


def checksum(values: Mapping[str, object]) -> str:
    """SHA-256 of the content, whatever the order of keys and the space between them."""
    content = parse_json_text(json.dumps(values).encode(), "a result")
    same = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(same.encode()).hexdigest()
