"""The lens metadata of a clip: read back as written, faults named with their line."""

import math
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.lens_metadata import LensMetadata, read_lens_metadata, write_lens_metadata


def test_round_trip(tmp_path: Path) -> None:
    written = LensMetadata(
        np.array([0, 1, 5]), np.array([24.1, 24.1, 1 / 3]), np.array([1.9, math.inf, 1e6 / 7])
    )
    write_lens_metadata(tmp_path / "m.csv", written)
    assert (tmp_path / "m.csv").read_text().splitlines()[2] == "1,24.1,inf"
    found = read_lens_metadata(tmp_path / "m.csv")
    for name in ("frame", "lfl_mm", "fd_m"):
        np.testing.assert_array_equal(getattr(found, name), getattr(written, name))


def test_frames_in_any_order_with_gaps_and_blank_lines(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("﻿frame, lfl_mm, fd_m\r\n7,20,3\r\n\r\n2, 21 ,inf\r\n")
    found = read_lens_metadata(tmp_path / "m.csv")
    assert found.frame.tolist() == [2, 7]
    assert found.lfl_mm.tolist() == [21, 20]
    assert found.fd_m.tolist() == [math.inf, 3]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("", "line 1: the header frame,lfl_mm,fd_m is needed"),
        ("0,20,3\n", "line 1: the header"),
        ("frame,lfl_mm,fd_m\n", "has no frame"),
        ("frame,lfl_mm,fd_m\n0,20,3\n1,20\n", "line 3: 2 values instead of 3"),
        ("frame,lfl_mm,fd_m\n0,20,3\n\n0,20,3\n", "line 4: frame 0 has had a line already"),
        ("frame,lfl_mm,fd_m\n0.5,20,3\n", "line 2: frame '0.5' is not a number of a frame"),
        ("frame,lfl_mm,fd_m\n-1,20,3\n", "line 2: frame '-1'"),
        ("frame,lfl_mm,fd_m\n0,nan,3\n", "line 2: lfl_mm must be above 0, got nan"),
        ("frame,lfl_mm,fd_m\n0,inf,3\n", "line 2: lfl_mm must be finite"),
        ("frame,lfl_mm,fd_m\n0,20,-3\n", "line 2: fd_m must be above 0"),
        ("frame,lfl_mm,fd_m\n0,20,\n", "line 2: fd_m is missing"),
        ("frame,lfl_mm,fd_m\n0,20mm,3\n", "line 2: lfl_mm '20mm' is not a number"),
    ],
)
def test_faults_name_the_line(tmp_path: Path, lines: str, words: str) -> None:
    (tmp_path / "m.csv").write_text(lines)
    with pytest.raises(InputError, match=words) as error:
        read_lens_metadata(tmp_path / "m.csv")
    assert "m.csv" in str(error.value)
