"""A journal survives whatever ends its writer."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from influx_drone.entries import is_entry
from influx_drone.errors import DroneError
from influx_drone.journal import Journal, locked, read_lines


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


def test_a_damaged_line_is_named_and_the_others_are_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A journal of an earlier release, which has no checksums, gone on with by this one."""
    (tmp_path / "j").write_text('{"a":1}\n{"b"\n{"c":1}\n[]\n{"d":NaN}\n')
    journal = Journal(tmp_path / "j")
    assert journal.entries == [{"a": 1}, {"c": 1}]
    assert journal.n_damaged == 3
    assert f"{tmp_path / 'j'}, line 2, 4, 5: damaged" in caplog.text
    journal.append({"e": 1})
    journal.close()
    assert Journal(tmp_path / "j").entries == [{"a": 1}, {"c": 1}, {"e": 1}]


def test_no_flipped_bit_is_accepted_with_changed_content(tmp_path: Path) -> None:
    """Every bit of a journal: one entry is damaged and named at most, and the others are kept."""
    path = tmp_path / "j"
    said = [{"kind": "reading", "id": f"id{k}", "n": k, "fix": [k / 7, None]} for k in range(4)]
    journal = Journal(path)
    for entry in said:
        journal.append(entry)
    journal.close()
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        # The file itself is slow, as it is synchronised.
        if bit % 50 == 0 or bit // 8 == len(whole) - 1:
            path.write_bytes(flipped)
            again = Journal(path)
            again.close()
            entries, n_damaged = again.entries, again.n_damaged
        else:
            entries, damaged = read_lines(bytes(flipped))
            n_damaged = len(damaged)
        assert [entry for entry in said if entry in entries] == entries, bit
        at_line_end = whole[bit // 8] == ord("\n")
        assert len(entries) == (4 if at_line_end else 3), bit
        # A bit may also make a line's end, and two damaged lines of one.
        assert 1 <= n_damaged <= 2, bit


def test_an_entry_after_a_damaged_end_of_the_file_is_a_line_of_its_own(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    journal.append({"a": 1})
    journal.close()
    (tmp_path / "j").write_bytes((tmp_path / "j").read_bytes()[:-1] + b"\x0b")
    journal = Journal(tmp_path / "j")
    journal.append({"b": 1})
    journal.close()
    assert Journal(tmp_path / "j").entries == [{"a": 1}, {"b": 1}]


@pytest.mark.parametrize("line", [
    b"{}", b"[]", b"null", b"7", b'"text"', b"", b"\xff\xfe", b"[" * 100_000, b"1" * 10_000,
    b'{"kind":"reading"}', b'{"kind":"started","id":[],"flight":{},"point":1}', b'{"kind":[]}',
    b'{"kind":"refused","id":"a","flight":"f","point":1,"n":' + b"9" * 400 + b',"reason":""}',
    b'{"kind":"sent","id":"\\ud800","point":1}', b'{"kind":"sent","id":"a","point":true}',
    b'{"kind":"reading","id":"a","flight":"f","point":1,"n":1,"led_on_clock_s":1,"fix":{}}',
])  # fmt: skip
def test_no_line_ends_the_reader(tmp_path: Path, line: bytes) -> None:
    good = {"kind": "sent", "id": "a", "point": 1}
    journal = Journal(tmp_path / "j")
    journal.append(good)
    journal.close()
    content = (tmp_path / "j").read_bytes()
    (tmp_path / "j").write_bytes(content + line + b"\n" + content)
    journal = Journal(tmp_path / "j", is_entry)
    assert journal.entries == [good, good]
    assert journal.n_damaged == 1


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "j").symlink_to(tmp_path / "precious")
    with pytest.raises(DroneError, match="is a link"):
        Journal(tmp_path / "j")
    with pytest.raises(DroneError, match="is a link"), locked(tmp_path / "j", "somebody"):
        pass
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "j")
    with pytest.raises(DroneError, match="not a regular file"):
        Journal(tmp_path / "j")


def test_what_was_deleted_is_not_written_to(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    (tmp_path / "j").unlink()
    with pytest.raises(DroneError, match="it was deleted"):
        journal.append({"a": 1})


def test_a_full_disk_is_told_and_leaves_no_half_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    journal.append({"a": 1})
    whole = (tmp_path / "j").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 5, hard))
    try:
        with pytest.raises(DroneError, match="cannot be written"):
            journal.append({"b": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert journal.entries == [{"a": 1}]
    assert (tmp_path / "j").read_bytes() == whole
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
