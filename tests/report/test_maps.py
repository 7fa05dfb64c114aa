"""Figures of runs and comparisons: every state of a cell has its look."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from influx_wrap.evaluate.cells import CellResult
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.experiment import Plan
from influx_wrap.model.intrinsics import NAMES, Intrinsics
from influx_wrap.plan import make_plan
from influx_wrap.report.compare_figure import draw_epe, draw_errors
from influx_wrap.report.run_figure import draw_run

BLUE_BGR = (0xB2, 0x72, 0x00)


@pytest.fixture(scope="module")
def plan() -> Plan:
    catalogue = load_catalogue()
    camera = catalogue.camera("arri-alexa-mini")
    return make_plan(catalogue.lens("canon17"), camera, catalogue.boards.values())


def results(plan: Plan, *, truth: bool = True) -> list[CellResult]:
    """All cells but the last ten; every seventh failed, one is exact."""
    true = Intrinsics(2000.0, 2000.0, 1711.5, 1100.5)
    cells = []
    for index, cell in enumerate(plan.cells[:-10]):
        failed = index % 7 == 3
        found = Intrinsics(2000.0 + 0.01 * index, 2001.0, 1711.0, 1100.0)
        cells.append(
            CellResult(
                cell=cell.name,
                lfl_mm=cell.lfl_mm,
                fd_m=cell.fd_m,
                target=cell.target_name,
                reason="pose: no" if failed else None,
                selected=None if failed else 0,
                intrinsics=None if failed else found,
                sigma=None if failed else dict.fromkeys(NAMES, 0.5),
                truth=true if truth else None,
                bound=None,
            )
        )
    return cells


def share(path: Path, colour_bgr: tuple[int, int, int]) -> float:
    image = cv2.imread(str(path))
    assert image is not None
    return float((image == colour_bgr).all(axis=2).mean())


@pytest.mark.parametrize("truth", [True, False])
def test_run(plan: Plan, tmp_path: Path, truth: bool) -> None:
    path = tmp_path / "errors.png"
    draw_run(plan, results(plan, truth=truth), "a title", path)
    assert share(path, BLUE_BGR) > 0.001
    assert share(path, (0xEE, 0xEE, 0xEE)) > 0.02, "cells that were not run are grey"


def test_the_same_bytes_every_time(plan: Plan, tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        draw_run(plan, results(plan), "a title", tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_a_run_without_any_answer(plan: Plan, tmp_path: Path) -> None:
    failed = [cell for cell in results(plan) if cell.reason is not None]
    draw_run(plan, failed, "a title", tmp_path / "errors.png")
    assert (tmp_path / "errors.png").exists()


def test_compare(plan: Plan, tmp_path: Path) -> None:
    by_recipe = {name: results(plan) for name in ("stock", "influx", "batch")}
    draw_errors(plan, by_recipe, tmp_path / "errors.png")
    assert share(tmp_path / "errors.png", BLUE_BGR) > 0.001


def test_epe(tmp_path: Path) -> None:
    thresholds = np.geomspace(0.01, 1000, 11)
    shares = {name: np.linspace(0, 1, 11) for name in ("stock", "influx", "batch")}
    draw_epe("a title", thresholds, shares, tmp_path / "epe.png")
    green_bgr = (0x5F, 0x80, 0x00)
    assert share(tmp_path / "epe.png", green_bgr) > 0.0005
