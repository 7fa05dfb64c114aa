"""The match is written down, for people and for programs."""

import csv
import json
from pathlib import Path

import pytest

from influx_wrap.flight.files import write_match
from tests.flight.flown import fly, match


def test_match_is_written_down(tmp_path: Path) -> None:
    matched = match(fly(19, missed=(9,), lost=(20,)))
    write_match(tmp_path, matched)
    rows = list(csv.DictReader((tmp_path / "pairs.csv").read_text().splitlines()))
    assert len(rows) == 24
    assert [row["remark"] for row in rows if row["remark"]] == ["no flash", "no reading"]
    assert rows[9]["reading"] == "r09"
    assert rows[9]["frame"] == ""
    assert rows[20]["reading"] == ""
    record = json.loads((tmp_path / "match.json").read_text())
    assert record["verdict"] == "proposed"
    assert record["pairs"] == 22
    assert record["readings_without_flash"] == ["r09"]
    assert record["flashes_without_reading"] == [int(rows[20]["frame"])]
    assert record["questions"] == matched.questions
    assert record["clock_offset_s"] == pytest.approx(1.7e9, abs=86500)
