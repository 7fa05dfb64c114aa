"""Lengths as cameras write them, against values computed by hand."""

import math
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.lens_text import (
    has_decimal_comma,
    parsed_fd,
    parsed_lfl,
    read_any_text,
)

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("text", "unit", "metres"),
    [
        ("5.83", "ft", 1.776984),
        ("991mm", None, 0.991),
        ("991 mm", "ft", 0.991),
        ("2.924m", None, 2.924),
        ("120 cm", None, 1.2),
        ("39.37in", None, 0.999998),
        ("5' 10\"", None, 1.778),
        ("5'10.5\"", None, 1.7907),
        ("5ft 10in", None, 1.778),
        ("5 Feet", "m", 1.524),
        ('70"', None, 1.778),
        ("6′", None, 1.8288),
        ("1.5e1", "ft", 4.572),
        ("1230/100", "m", 12.3),
        ("inf", None, INF),
        ("Infinity", "ft", INF),
        ("∞", None, INF),
        ("+∞ m", None, INF),
        ("inf ft", None, INF),
        ("4294967295", "mm", INF),
        ("0", "ft", NAN),
        ("0.000", None, NAN),
        ("--", "m", NAN),
        ("", None, NAN),
        ("N/A", None, NAN),
        ("undef", None, NAN),
        ("0/0", None, NAN),
    ],
)
def test_focus_distances(text: str, unit: str | None, metres: float) -> None:
    np.testing.assert_allclose(parsed_fd("f", "FD", text, unit), metres, rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "unit", "mm"),
    [("32", None, 32), ("40mm", None, 40), ("180/10", None, 18), ("24.0 mm", None, 24),
     ("3.5", "cm", 35), ("1.5 in", None, 38.1), ("0", None, NAN), ("--", None, NAN)],
)  # fmt: skip
def test_focal_lengths(text: str, unit: str | None, mm: float) -> None:
    np.testing.assert_allclose(parsed_lfl("f", "LFL", text, unit), mm, rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "unit", "words"),
    [
        ("5.83", None, "has no unit"),
        ("5.83", "parsec", "'parsec' of FD is not known"),
        ("5.83 furlong", "m", "'furlong' of FD is not known"),
        ("-1", "m", "must be positive and finite"),
        ("-1", None, "has no unit"),
        ("1e400", "m", "must be positive and finite"),
        ("9" * 400, "m", r"'99999999999999999999'\.\.\. is not a number"),
        ("0.0005", "m", "0.0005 m, which is no focus distance"),
        ("1e8", "m", "100000000 m, which|1e.08 m, which"),
        ("nearly 3", "m", "'nearly 3' is not a number"),
        ("1_000", "m", "is not a number"),
        ("٣", "m", "is not a number"),
        ("5.83 5.83", "m", "is not a number"),
        ("1.234,5", "m", "is not a number"),
    ],
)
def test_what_is_no_distance(text: str, unit: str | None, words: str) -> None:
    with pytest.raises(InputError, match=f"^f: .*{words}"):
        parsed_fd("f", "FD", text, unit)


@pytest.mark.parametrize("text", ["inf", "1e9", "-18"])
def test_what_is_no_focal_length(text: str) -> None:
    with pytest.raises(InputError):
        parsed_lfl("f", "LFL", text)


@pytest.mark.parametrize(
    ("cells", "separator", "comma"),
    [
        (["5,83", "12", "inf"], ";", True),
        (["1,200"], ";", True),
        (["5,83"], "\t", True),
        (["5,83", "1,5"], ",", True),
        (["5.83", "12"], ";", False),
        ([], ",", False),
        (["5,83 ft", "5,9 ft"], ";", True),
    ],
)
def test_decimal_commas(cells: list[str], separator: str, comma: bool) -> None:
    assert has_decimal_comma("f", cells, separator) is comma


@pytest.mark.parametrize(
    ("cells", "separator", "words"),
    [
        (["5,83", "5.9"], ";", "some numbers have a point and others a comma"),
        (["1,200"], ",", "may be a decimal comma or mark thousands"),
    ],
)
def test_commas_that_may_mean_two_things(cells: list[str], separator: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        has_decimal_comma("f", cells, separator)


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"],
)
def test_encodings(tmp_path: Path, encoding: str) -> None:
    text = "Frame;Focal Length (mm);Notes\n0;35;Käfer 180°\n"
    (tmp_path / "m.csv").write_bytes(text.encode(encoding))
    assert read_any_text(tmp_path / "m.csv") == text
