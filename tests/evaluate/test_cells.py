"""Errors, bounds and totals of a run's cells."""

import csv
import math
from dataclasses import replace
from typing import Any

import pytest

from influx_wrap.evaluate.cells import (
    CellResult,
    as_csv,
    as_row,
    percent_errors,
    rms_over_bound,
    share_within_sigma,
    totals,
    usability,
)
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.record import CellRecord, CellSetting, CellTruth
from influx_wrap.model.result import Assessment, Failure, Grade
from influx_wrap.model.suspicion import Suspicion
from tests.model.records import TRUE, make_record, make_result

TRUTH = CellTruth(TRUE, dict.fromkeys(NAMES, 0.5))


def record(fx_error: float = 2.0, **changes: Any) -> CellRecord:
    camera = replace(TRUE, fx=1000.0 + fx_error, cx=499.0)
    return replace(make_record(make_result(camera), truth=TRUTH), **changes)


FAILED = record(outcome=Failure("pose", "nothing there", "Leave it out."))
REAL = record(truth=None)
DRONE = record(6.0, cell=CellSetting("z0f9", None, None, "drone", 17.0, math.inf))


def test_errors() -> None:
    cell = CellResult.of(record())
    assert cell.error("fx") == 2.0
    assert cell.error_percent("fx") == pytest.approx(0.2)
    assert cell.error_percent("cx") == pytest.approx(-0.2)
    assert cell.bound_percent("fx") == pytest.approx(0.05)
    assert cell.error_over_bound("fx") == 4.0
    assert cell.sigma_percent("fx") == pytest.approx(100 * 0.5 / 1002)
    assert not cell.is_drone
    assert cell.reason is None


def test_what_is_not_known_is_none() -> None:
    failed, real = CellResult.of(FAILED), CellResult.of(REAL)
    assert failed.reason == "pose: nothing there"
    assert failed.error("fx") is None
    assert failed.sigma_percent("fx") is None
    assert failed.truth is not None
    assert real.error_percent("fx") is None
    assert real.bound_percent("fx") is None
    assert real.error_over_bound("fx") is None


def test_totals() -> None:
    cells = [CellResult.of(r) for r in (record(2.0), record(-1.0), FAILED, DRONE)]
    total = totals(cells)
    assert (total["ok"], total["failed"]) == (3, 1)
    rms = total["rms_error_over_bound"]
    assert rms["board"]["fx"] == pytest.approx(math.sqrt((4.0**2 + 2.0**2) / 2))
    assert rms["drone"]["fx"] == pytest.approx(12.0)
    assert total["error_percent"]["fx"] == pytest.approx({"median": 0.2, "max": 0.6})


def test_share_within_sigma() -> None:
    """Sigma is 0.5 in everything; cx is off by 1, fy and cy are right."""
    cells = [CellResult.of(record(error)) for error in (0.2, -0.49, 0.51, 3.0)]
    assert share_within_sigma([*cells, CellResult.of(REAL), CellResult.of(FAILED)]) == {
        "fx": 0.5,
        "fy": 1.0,
        "cx": 0.0,
        "cy": 1.0,
    }
    total = totals([*cells, CellResult.of(DRONE)])["share_within_sigma"]
    assert (total["board"]["fx"], total["drone"]["fx"]) == (0.5, 0.0)


def graded(grade: Grade | None) -> CellResult:
    judged = None if grade is None else Assessment(grade, ("few views",), ("the corners",))
    return CellResult.of(make_record(make_result(assessment=judged)))


def test_verdicts() -> None:
    good, care, bad = map(graded, ("good", "usable with care", "do not use"))
    unknown, failed = graded(None), CellResult.of(FAILED)
    cells = [good, care, care, bad, failed, unknown]
    assert [cell.verdict for cell in cells[:1] + cells[2:]] == [
        "good", "usable with care", "do not use", "failed", "not judged",
    ]  # fmt: skip
    assert list(totals(cells)["verdicts"].values()) == [1, 2, 1, 0, 1, 1]
    row = as_row(bad)
    assert (row["verdict"], row["verdict_reasons"]) == ("do not use", "few views")
    assert row["film_next"] == "the corners"
    assert as_row(failed)["verdict_reasons"] is None
    for some, words in (
        ([good, good], "Yes, at all 2 settings."),
        ([good], "Yes."),
        ([good, care], "Yes, with care at 1 of 2 settings."),
        ([bad, failed], "No: there is no setting with intrinsics to use."),
        ([good, failed], "Not everywhere: do not use it at 1 of 2 settings."),
        (cells, "Not everywhere: do not use it at 2 of 6 settings, with care at 2 others, "
         "not judged at 1."),
        ([unknown, failed], "Not known: nobody has judged the intrinsics of 1 of 2 settings."),
    ):  # fmt: skip
        assert usability(some) == words


def test_suspect() -> None:
    """What was typed wrong outweighs a good fit, unless somebody insists or it does no harm."""
    typed = Suspicion("lfl_mm", 25.5, 50, "mm", "lfl_mm is 50 mm, the pictures say 25.5 mm")
    judged = make_record(make_result(assessment=Assessment("good")))
    suspect = replace(judged, suspicions=(typed,))
    assert CellResult.of(suspect).verdict == "suspect"
    assert as_row(CellResult.of(suspect))["suspicions"] == typed.sentence
    assert CellResult.of(replace(suspect, is_trusted=True)).verdict == "good"
    harmless = replace(typed, harmful=False)
    assert CellResult.of(replace(judged, suspicions=(harmless,))).verdict == "good"
    bad = make_record(make_result(assessment=Assessment("do not use")))
    assert CellResult.of(replace(bad, suspicions=(typed,))).verdict == "do not use"
    assert usability([CellResult.of(suspect)]).startswith("No")


def test_nothing_to_compare() -> None:
    cells = [CellResult.of(REAL), CellResult.of(FAILED)]
    assert share_within_sigma(cells) is None
    assert rms_over_bound(cells) is None
    assert percent_errors(cells) is None


def test_rows_are_alike_and_complete() -> None:
    rows = [as_row(CellResult.of(r)) for r in (record(), FAILED, REAL, DRONE)]
    text = as_csv(rows)
    read = list(csv.DictReader(text.splitlines()))
    assert [row["status"] for row in read] == ["ok", "failed", "ok", "ok"]
    assert read[0]["selected"] == "7"
    assert float(read[0]["error_over_bound_fx"]) == 4.0
    assert read[1]["fx"] == ""
    assert read[1]["reason"] == "pose: nothing there"
    assert read[2]["true_fx"] == ""
    assert read[3]["fd_m"] == "inf"
