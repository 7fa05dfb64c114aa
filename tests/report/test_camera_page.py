"""The page of one camera, in a browser; what is in it, ``tests/run/test_camera.py`` checks."""

from pathlib import Path

import numpy as np
import pytest

import influx_wrap as iw
from influx_wrap.errors import InputError
from influx_wrap.model.target import Checkerboard
from influx_wrap.report.camera_page import draw_residuals
from tests.cameras import pinhole_pictures, write_photographs
from tests.report.browser import SCHEMES_AND_WIDTHS, check_accessible, open_page

BOARD = Checkerboard(9, 6, 0.03, 0.03)
NASTY = "</script><b>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of photographs whose names a page has to be careful with."""
    folder = tmp_path_factory.mktemp("page")
    name = NASTY.replace("/", "")
    photographs = write_photographs(folder / "photos", pinhole_pictures(BOARD, 8), name)
    return iw.calibrate_camera(photographs, recipe="batch").write(folder / "out")[-1]


@pytest.mark.parametrize("n", [30, 3000])
def test_residuals_of_few_and_of_many_corners(tmp_path: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    uv = rng.uniform((0, 0), (639, 479), (n, 2))
    draw_residuals(uv, 0.1 * rng.standard_normal((n, 2)), (640, 480), tmp_path / "r.png")
    assert (tmp_path / "r.png").stat().st_size > 5000


def test_residuals_that_are_all_nothing(tmp_path: Path) -> None:
    draw_residuals(np.ones((5, 2)), np.zeros((5, 2)), (640, 480), tmp_path / "r.png")
    with pytest.raises(InputError, match="cannot draw"):
        draw_residuals(np.ones((5, 2)), np.zeros((5, 2)), (640, 480), tmp_path / "r.what")


@pytest.mark.system
def test_what_is_shown(page: Path) -> None:
    with open_page(page) as tab:
        assert tab.inner_text("#grade") in ("Yes: good", "With care")
        assert "fx (px)" in tab.inner_text("#intrinsics")
        assert "horizontal" in tab.inner_text("#said")
        rows = tab.inner_text("#views").splitlines()
        assert any(row.startswith("<script><b>01.png") for row in rows)
        assert tab.locator("#figures img").count() == 3


@pytest.mark.system
@pytest.mark.parametrize(("dark", "width"), SCHEMES_AND_WIDTHS)
def test_accessible(page: Path, dark: bool, width: int) -> None:
    with open_page(page, dark=dark, width=width) as tab:
        check_accessible(tab)
