"""Made already from the same inputs: what such a thing says of itself.

Beside something that takes long to make lies a small JSON file with what it was made from:
versions, settings, hashes of the inputs. If that is what it would be made from now, it need
not be made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.formats.files import parse_json

MADE_FROM = "made_from.json"


def is_made_from(path: Path, made_from: Mapping[str, object]) -> bool:
    """True if the JSON file at ``path`` says just this; a file that is missing or damaged
    says nothing."""
    try:
        said = parse_json(path)
    except InputError:
        return False
    return bool(said == made_from)
