"""A result that was changed after it was written is told from one that was not."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.results import checksum, read_result, read_stored, write_result
from tests.model.records import make_record


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_result(tmp_path / "result.json", make_record().as_dict())
    return tmp_path / "result.json"


def test_round_trip(path: Path) -> None:
    assert read_result(path) == json.loads(json.dumps(make_record().as_dict()))
    assert read_stored(path).is_whole


def test_the_checksum_is_what_the_documentation_says(path: Path) -> None:
    """SHA-256 of the content without it, keys in order and no space: by any other program."""
    values = json.loads(path.read_text())
    stated = values.pop("checksum")
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    assert stated == hashlib.sha256(text.encode()).hexdigest()


def test_formatting_is_no_change(path: Path) -> None:
    values = json.loads(path.read_text())
    path.write_text(json.dumps(values, sort_keys=True, indent=7))
    assert read_stored(path).is_whole


def places(node: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    return [(*way, key) for key in keys] + [
        one for key in keys for one in places(node[key], (*way, key))
    ]


def test_every_value_that_is_changed(path: Path) -> None:
    """Any leaf, by as little as there is."""
    good = json.loads(path.read_text())
    n_changed = 0
    for *way, last in places(good):
        values = json.loads(json.dumps(good))
        parent = values
        for key in way:
            parent = parent[key]
        if last == "checksum" or isinstance(parent[last], dict | list):
            continue
        old = parent[last]
        parent[last] = float(np.nextafter(old, np.inf)) if isinstance(old, float) else [old]
        path.write_text(json.dumps(values))
        assert read_stored(path).is_whole is False, (way, last)
        with pytest.raises(InputError, match=r"result\.json was changed after it was written"):
            read_result(path)
        n_changed += 1
    assert n_changed > 100


def test_results_of_earlier_versions(path: Path) -> None:
    values = json.loads(path.read_text())
    del values["checksum"]
    path.write_text(json.dumps(values))
    assert read_result(path) == values
    assert read_stored(path).is_whole is None


def test_the_order_of_keys_does_not_matter() -> None:
    assert checksum({"a": 1.0, "b": [1, 2]}) == checksum({"b": (1, 2), "a": 1.0})
    assert checksum({"a": 1.0}) != checksum({"a": 1})
