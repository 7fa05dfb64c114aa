"""The plan's figure is written whole or not at all."""

from pathlib import Path

import cv2
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.experiment import Plan
from influx_wrap.plan import make_plan
from influx_wrap.report.plan_figure import draw_plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    catalogue = load_catalogue()
    camera = catalogue.camera("arri-alexa-mini")
    return make_plan(catalogue.lens("canon17"), camera, catalogue.boards.values())


def test_png_has_the_targets_colours(plan: Plan, tmp_path: Path) -> None:
    draw_plan(plan, tmp_path / "plan.png")
    image = cv2.imread(str(tmp_path / "plan.png"))
    assert image is not None
    orange_bgr = (0x00, 0x9F, 0xE6)
    share = (image == orange_bgr).all(axis=2).mean()
    assert 0.1 < share < 19 / 80
    assert list(tmp_path.iterdir()) == [tmp_path / "plan.png"]


@pytest.mark.parametrize("extension", ["pdf", "svg"])
def test_other_formats(plan: Plan, tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"plan.{extension}"
    draw_plan(plan, path)
    assert path.stat().st_size > 1000


@pytest.mark.parametrize("name", ["plan", "plan.docx"])
def test_unknown_extensions_are_refused(plan: Plan, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"known are .*png"):
        draw_plan(plan, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_unwritable_paths_are_refused(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing/plan.png cannot be written"):
        draw_plan(plan, tmp_path / "missing" / "plan.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(InputError, match=r"folder.png cannot be written"):
        draw_plan(plan, tmp_path / "folder.png")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder.png"]
