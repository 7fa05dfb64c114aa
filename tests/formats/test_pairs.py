"""A person's review, read back or refused with the line."""

import csv
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.pairs import (
    PAIR_COLUMNS,
    Action,
    ReviewRow,
    flash_names,
    read_review,
    write_pairs,
    write_review,
)
from influx_wrap.model.flashes import Flashes, Readings

FRAMES = np.array([10, 30, 30, 50])
FLASHES = Flashes(
    frames=FRAMES,
    last_frames=FRAMES + 5,
    uv=np.array([[1.5, 2.25], [100.0, 50.0], [3.0, 4.0], [319.0, 199.0]]),
    radii_px=np.full((4, 2), 12.0),
    rule=np.ones(4, dtype=np.int64),
    fps=24.0,
    n_frames=100,
    image_size=(320, 200),
)
READINGS = Readings(np.arange(4.0), np.zeros((4, 3)), None, ("a", "b, the second", "c", "d"))
HEADER = "flash,reading,frame,u,v,action\n"
GOOD = HEADER + "10,a,10,1.5,2.25,use\n30,c,30,100,50,use\n30.2,,30,3,4,leave\n50,d,50,9,9,use\n"


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "review.csv"
    rows = [
        ReviewRow("10", "a", 10, (1.5, 2.25), Action.USE),
        ReviewRow(None, "b, the second", None, None, Action.UNDECIDED),
        ReviewRow("30", "c", 31, (-0.5, 199.5), Action.USE),
        ReviewRow("30.2", None, 30, (3.0, 4.0), Action.LEAVE),
        ReviewRow("50", "d", 50, (319.0, 199.0), Action.USE),
    ]
    write_review(path, rows)
    found = read_review(path, FLASHES, READINGS)
    assert [row.line for row in found] == [2, 3, 4, 5, 6]
    assert [(r.flash, r.reading, r.frame, r.uv, r.action) for r in found] == [
        (r.flash, r.reading, r.frame, r.uv, r.action) for r in rows
    ]


def test_an_editor_may_leave_its_marks(tmp_path: Path) -> None:
    """A byte order mark, Windows' line ends, spaces and empty lines."""
    path = tmp_path / "review.csv"
    text = GOOD.replace("\n", "\r\n").replace(",", " , ") + "\r\n , , , , , \r\n"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert [row.reading for row in read_review(path, FLASHES, READINGS)] == ["a", "c", None, "d"]


def test_flash_names_tell_all_apart() -> None:
    assert flash_names(FLASHES) == ("10", "30", "30.2", "50")


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("flash,reading", "flash,point", 1, "header"),
        ("10,a,10,1.5,2.25,use", "10,a,10,1.5,2.25", 2, "5 values instead of 6"),
        ("10,a,10,1.5,2.25,use", "10,a,10,1.5,2.25,used", 2, "'used' is none of use, leave"),
        ("10,a,10", "10,z,10", 2, "no reading 'z'"),
        ("10,a,10", "10,,10", 2, "needs a reading"),
        ("10,a,10", "10,a,", 2, "needs a frame"),
        ("1.5,2.25", ",", 2, "needs u and v"),
        ("10,a,10,1.5,2.25", "10,,,,", 2, "needs a reading and a frame and u and v"),
        ("10,a,10", "10,a,1e1", 2, "'1e1' is not a whole number"),
        ("10,a,10", "10,a,-1", 2, "'-1' is not a whole number"),
        ("10,a,10", "10,a,100", 2, "frame 100 is not in the video"),
        ("10,a,10", f"10,a,{'9' * 5000}", 2, "not in the video"),
        ("1.5,2.25", "1.5,x", 2, "not two numbers"),
        ("1.5,2.25", "1.5,", 2, "not two numbers"),
        ("1.5,2.25", "nan,2", 2, "outside the 320 x 200"),
        ("1.5,2.25", "1.5,inf", 2, "outside the 320 x 200"),
        ("1.5,2.25", "1.5,199.6", 2, "outside the 320 x 200"),
        ("10,a,10", "11,a,10", 2, "no flash was detected in frame 11"),
        ("30.2,,30", "30,,30", 4, "flash 30 has a row already, line 3"),
        ("30.2,,30,3,4,leave\n", "", None, "no row for flash 30.2"),
        ("30,c,30", "30,a,30", 3, "reading a is used already, line 2"),
        ("30,c,30,100,50", "30,c,55,100,50", 5, "frame 50 is not later than 55"),
        ("50,d,50,9", "50,d,30,9", 5, "frame 30 is not later than 30"),
        ("use\n30,", 'use\n"30,', None, "review.csv"),
    ],
)
def test_a_bad_row_is_named(
    tmp_path: Path, old: str, new: str, line: int | None, words: str
) -> None:
    path = tmp_path / "review.csv"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(InputError, match=r"review\.csv") as error:
        read_review(path, FLASHES, READINGS)
    assert words in str(error.value)
    if line is not None:
        assert f"review.csv, line {line}: " in str(error.value)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe\x00", b'flash,"reading\x00\n'])
def test_what_is_no_review(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "review.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"review\.csv"):
        read_review(path, FLASHES, READINGS)


def test_no_bytes_crash_it(tmp_path: Path) -> None:
    path = tmp_path / "review.csv"
    rng = np.random.default_rng(0)
    for _ in range(300):
        data = bytearray(GOOD.encode())
        for _ in range(int(rng.integers(1, 4))):
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
        path.write_bytes(bytes(data[: int(rng.integers(1, len(data) + 1))]))
        with suppress(InputError):
            read_review(path, FLASHES, READINGS)


def test_pairs_csv(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    write_pairs(path, [{"reading": "b, the second", "u": "1.000", "remark": ""}, {"frame": 3}])
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert tuple(rows[0]) == PAIR_COLUMNS
    assert rows[0]["reading"] == "b, the second"
    assert rows[1] == dict.fromkeys(PAIR_COLUMNS, "") | {"frame": "3"}
