"""What commands print of results: numbers against the records, and 80 columns."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console, RenderableType

from influx_wrap.cli.tables import (
    answers,
    calibration_summary,
    error_table,
    run_reasons,
    run_table,
    run_totals,
)
from influx_wrap.evaluate.cells import CellResult, totals
from influx_wrap.model.intrinsics import NAMES, Intrinsics
from influx_wrap.model.record import CellSetting, CellTruth
from influx_wrap.model.result import Assessment, Failure, PaperPick, PickDifference, ViewReport
from influx_wrap.model.suspicion import Suspicion
from tests.model.records import TRUE, make_record, make_result

CARE = Assessment(
    "usable with care",
    ("no corner lies in the upper left of the picture", "k2 is 3.1 sigma apart between halves"),
    ("the board in the upper left corner",),
)
BAD = Assessment("do not use", ("residuals of 3.2 px follow the radius [all views]",))
LONG_NAME = "2025-11-03_canon17_zoom-120mm_focus-infinity_take[2]"


def cell(
    name: str = "z0f1",
    camera: Intrinsics = TRUE,
    sigma: float = 0.5,
    *,
    assessment: Assessment | None = None,
    truth: CellTruth | None = None,
    **setting: Any,
) -> CellResult:
    given = {"lfl_mm": 17.0, "fd_m": 2.0, "target": "800x600", **setting}
    result = make_result(
        camera, covariance=sigma**2 * np.eye(8), assessment=assessment, warnings=()
    )
    return CellResult.of(make_record(result, CellSetting(name, "canon17", **given), truth))


def failed(name: str) -> CellResult:
    failure = Failure("pose", "no pose fits view 7", "Leave it out.")
    return CellResult.of(make_record(failure, CellSetting(name, "canon17")))


TELE = Intrinsics(25678.9, 25678.9, 1711.5, 1100.5)
HARD = [
    cell("z0f1", assessment=Assessment("good")),
    cell(LONG_NAME, TELE, 0.123, assessment=BAD, lfl_mm=119.87, fd_m=math.inf, target="drone"),
    cell("z7f9", TELE, 317.2, assessment=CARE, lfl_mm=120, fd_m=1234.5, target="drone"),
    cell("z3f3", sigma=1e-6),
    failed(f"{LONG_NAME}-failed"),
]


def printed(*shown: RenderableType, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    for one in shown:
        console.print(one)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return [line.rstrip() for line in text.splitlines()]


def row(lines: list[str], start: str) -> list[str]:
    return next(line for line in lines if line.startswith(start)).split()


def test_the_table_of_a_run_fits_80_columns() -> None:
    lines = printed(run_table(HARD, "canon17 on arri-alexa-mini, recipe influx"))
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines), "nothing is cut"
    assert row(lines, "z0f1") == (
        ["z0f1", "17", "2.00", "1000.00", "±0.50", "500.00", "±0.50", "400.00", "±0.50", "good"]
    )
    long = row(lines, LONG_NAME[:8])
    assert long[1:5] == ["119.9", "inf", "25678.90", "±0.12"]
    assert long[-3:] == ["do", "not", "use"]
    assert row(lines, "z7f9")[1:5] == ["120", "1234", "25679", "±317"]
    assert row(lines, "z7f9")[-1] == "care"
    assert row(lines, "z3f3")[3:5] == ["1000.00", "<0.01"], "a sigma is never 0"
    assert row(lines, "z3f3")[-2:] == ["not", "judged"]
    names = "".join(line[:14].split()[0] for line in lines if line[:14].strip(" ─"))
    assert LONG_NAME in names.replace(" ", ""), "a long name goes on in the next line"
    assert sum(line.endswith("failed") for line in lines) >= 1


def test_the_table_of_errors_fits_80_columns() -> None:
    truth = CellTruth(TRUE, dict.fromkeys(NAMES, 0.5))
    off = replace(TRUE, fx=1000.0301, cx=499.0, cy=400.001)
    cells = [
        cell("z0f1", off, truth=truth),
        cell(LONG_NAME, TELE, truth=truth, target="a-board-of-our-own-A0"),
        cell("z0f9", off, truth=CellTruth(TRUE, None), target="drone"),
        cell("real"),
        failed("z9f9"),
    ]
    lines = printed(error_table(cells))
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)
    assert row(lines, "z0f1") == (
        ["z0f1", "800x600", "+0.003", "±0.050", "+0.000", "±0.050", "-1.00", "±0.50", "+0.00",
         "±0.50"]
    )  # fmt: skip
    assert row(lines, "z0f9") == ["z0f9", "drone", "+0.003", "+0.000", "-1.00", "+0.00"]
    assert not any(line.startswith(("real", "z9f9")) for line in lines)


def test_reasons_of_everything_that_is_not_good() -> None:
    typed = Suspicion("lfl_mm", 25.5, 50, "mm", "lfl_mm is 50 mm, the pictures say 25.5 mm")
    judged = make_record(make_result(assessment=Assessment("good")))
    suspect = CellResult.of(replace(judged, suspicions=(typed,)))
    trusted = replace(judged, suspicions=(typed,), is_trusted=True)
    lines = printed(*run_reasons([*HARD, suspect, CellResult.of(trusted)]), width=300)
    assert lines == [
        f"{LONG_NAME}: do not use because residuals of 3.2 px follow the radius [all views]",
        "z7f9: usable with care because no corner lies in the upper left of the picture; "
        "k2 is 3.1 sigma apart between halves",
        "  film next: the board in the upper left corner",
        f"{LONG_NAME}-failed failed: pose: no pose fits view 7",
        "z0f1: suspect, lfl_mm is 50 mm, the pictures say 25.5 mm",
        "z0f1: warning, a warning",
        "z0f1: to be checked, lfl_mm is 50 mm, the pictures say 25.5 mm",
        "z0f1: warning, a warning",
    ]
    assert printed(run_table([suspect], ""))[-1].endswith("suspect")


def test_the_papers_pick_is_one_line_of_a_run() -> None:
    """However many experiments it differs in; the other warnings stay with their cells."""
    centre = "it leaves the principal point where it starts, at the picture's centre"
    some = "it is made from some of the views only"
    differences = {
        "z0f0": PickDifference("cx", 12.34, centre),
        "z0[1]": PickDifference("cy", 30.04, centre),
        "z0f2": PickDifference("fx", 3.2, some, "21 of 100"),
        "z0f3": None,
    }
    cells = []
    for name, difference in differences.items():
        pick = PaperPick(3, TRUE, difference)
        warnings = tuple(filter(None, ["a warning", pick.warning]))
        result = make_result(paper_pick=pick, warnings=warnings, assessment=Assessment("good"))
        cells.append(CellResult.of(make_record(result, CellSetting(name, "canon17"))))
    *others, line = printed(*run_reasons(cells), width=400)
    assert others == [f"{name}: warning, a warning" for name in differences]
    assert line == (
        "the paper's pick differs by more than 3 sigma in 3 of 4 experiments, at most by 30.0 "
        f"sigma (cy of z0[1]): {centre} (2); {some} (1). result.json (paper_pick) and report.html "
        "have each."
    )
    assert f"in 1 of 1 experiment, at most by 12.3 sigma (cx of z0f0): {centre}. " in "".join(
        run_reasons(cells[:1])
    )
    assert len(run_reasons(cells[3:])) == 1


def test_totals() -> None:
    truth = CellTruth(TRUE, dict.fromkeys(NAMES, 0.5))
    cells = [cell("a", replace(TRUE, fx=1000 + error), truth=truth) for error in (0.1, -0.2, 2.0)]
    cells += [failed("b"), cell("c", assessment=Assessment("good"))]
    lines = run_totals(cells, totals(cells), 3.4).splitlines()
    rms = math.sqrt((0.2**2 + 0.4**2 + 4**2) / 3)
    assert lines[0] == (
        f"error / bound, RMS over board cells:  fx {rms:.2f}  fy 0.00  cx 0.00  cy 0.00"
    )
    assert lines[1] == "within 1 sigma, of board cells:  fx 67 %  fy 100 %  cx 100 %  cy 100 %"
    assert lines[3] == (
        "Can this lens be used? Not everywhere: do not use it at 1 of 5 settings, not judged at "
        "3. (1 good, 1 failed, 3 not judged)"
    )
    assert lines[-1] == "4 cells ok, 1 failed, 3 s"


def test_one_calibration_in_words() -> None:
    lines = printed(calibration_summary(make_result(assessment=CARE)), width=200)
    fov = [2 * math.degrees(math.atan(half / 1000)) for half in (500, 400)]
    said = next(line for line in lines if line.startswith("field of view"))
    assert f"horizontal {fov[0]:.2f}°, vertical {fov[1]:.2f}°, " in said
    assert "warning: a warning" in lines
    assert lines[-2].startswith("verdict: usable with care because no corner lies in the upper")
    assert lines[-1] == "  film next: the board in the upper left corner"
    assert printed(calibration_summary(make_result(assessment=Assessment("good"))))[-1] == (
        "verdict: good"
    )
    assert printed(calibration_summary(make_result()))[-1] == "verdict: not judged"
    folded = make_result(replace(TRUE, k1=-1.6))
    assert "diagonal beyond the fold" in " ".join(printed(calibration_summary(folded)))


def test_views_that_were_not_used_are_named() -> None:
    views = [ViewReport(k, False, "no board", 0, (), None, f"left{k:02}.jpg") for k in range(6)]
    views += [ViewReport(9, False, "outlying [see log]", 0, (), None), *make_result().views[:1]]
    lines = printed(calibration_summary(make_result(views=tuple(views))), width=200)
    assert (
        "  6 not used: no board (left00.jpg, left01.jpg, left02.jpg, left03.jpg and 2 more)"
        in lines
    )
    assert "  1 not used: outlying [see log] (view 9)" in lines


def test_columns_of_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert answers().width == 110
    monkeypatch.setenv("COLUMNS", "80")
    assert answers().width == 80
