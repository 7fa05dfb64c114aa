"""A journal survives whatever ends its writer."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from influx_drone.errors import DroneError
from influx_drone.journal import Journal, locked


def test_entries_come_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    journal.append({"a": 1})
    journal.append({"b": [1.5, None]})
    journal.close()
    assert Journal(tmp_path / "j").entries == [{"a": 1}, {"b": [1.5, None]}]


def test_any_truncation_leaves_the_lines_before_it(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = Journal(path)
    for k in range(3):
        journal.append({"k": k})
    journal.close()
    whole = path.read_bytes()
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        again = Journal(path)
        assert again.entries == [{"k": k} for k in range(whole[:size].count(b"\n"))]
        again.append({"k": "new"})
        again.close()
        assert Journal(path).entries[-1] == {"k": "new"}


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "j").write_text('{"a":1}\n{"b"\n{"c":1}\n')
    with pytest.raises(DroneError, match="line 2"):
        Journal(tmp_path / "j")


def test_a_full_disk_is_told_and_leaves_no_half_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    journal.append({"a": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (12, hard))
    try:
        with pytest.raises(DroneError, match="cannot be written"):
            journal.append({"b": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert journal.entries == [{"a": 1}]
    assert (tmp_path / "j").read_text() == '{"a":1}\n'
    journal.append({"c": 3})
    assert Journal(tmp_path / "j").entries == [{"a": 1}, {"c": 3}]


def test_nan_is_never_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    with pytest.raises(ValueError, match="not JSON compliant"):
        journal.append({"a": float("nan")})
    assert (tmp_path / "j").read_bytes() == b""


def test_a_lock_is_for_one(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "lock", "somebody"),
        pytest.raises(DroneError, match="in use by somebody"),
        locked(tmp_path / "lock", "somebody"),
    ):
        pass
    with locked(tmp_path / "lock", "somebody"):
        pass
    assert os.listdir(tmp_path) == ["lock"]
