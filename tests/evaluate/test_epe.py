"""End-point errors: against hand-made shifts."""

import math
from dataclasses import replace

import numpy as np
import pytest

from influx_wrap.evaluate.cells import CellResult
from influx_wrap.evaluate.epe import cell_epe_px, epe_px, share_below
from influx_wrap.evaluate.points import builtin
from influx_wrap.model.intrinsics import Intrinsics

SIZE = (3424, 2202)
WIDE = Intrinsics(2063.0, 2063.0, 1711.5, 1100.5, k1=-0.15)
TELE = Intrinsics(38000.0, 38000.0, 1711.5, 1100.5, k1=50.0)
POINTS = builtin().points


@pytest.mark.parametrize("true", [WIDE, TELE])
def test_every_lens_sees_thousands_of_points(true: Intrinsics) -> None:
    errors = epe_px(true, true, POINTS, SIZE)
    assert len(errors) > 3000
    assert errors.max() == 0


def test_a_shift_of_the_principal_point_is_the_error() -> None:
    shifted = replace(WIDE, cx=WIDE.cx + 3, cy=WIDE.cy - 4)
    np.testing.assert_allclose(epe_px(WIDE, shifted, POINTS, SIZE), 5.0, rtol=1e-9)


def test_points_outside_the_picture_do_not_count() -> None:
    camera = Intrinsics(1000.0, 1000.0, 499.5, 399.5)
    points = [(0, 0, 2), (0.49, 0, 1), (0.51, 0, 1), (0, -0.41, 1), (0, 0, -1)]
    errors = epe_px(camera, replace(camera, fx=1010.0), points, (1000, 800))
    np.testing.assert_allclose(errors, [0, 4.9])


def test_no_estimate_is_infinitely_far() -> None:
    errors = epe_px(WIDE, None, POINTS, SIZE)
    assert len(errors) == len(epe_px(WIDE, WIDE, POINTS, SIZE))
    assert np.isinf(errors).all()


def test_where_an_estimate_is_no_camera_it_is_infinitely_far() -> None:
    folded = replace(WIDE, k1=-2.0)
    errors = epe_px(WIDE, folded, POINTS, SIZE)
    assert np.isinf(errors).any()
    assert np.isfinite(errors).any()
    broken = replace(WIDE, fx=math.nan)
    assert np.isinf(epe_px(WIDE, broken, POINTS, SIZE)).all()


def test_share_below() -> None:
    errors = [np.array([0.5, 1.0, np.inf]), np.array([2.0])]
    shares = share_below(errors, np.array([0.1, 1.0, 10.0]))
    np.testing.assert_allclose(shares, [0, 0.5, 0.75])


def test_failed_cells_count_and_real_ones_do_not() -> None:
    def cell(intrinsics: Intrinsics | None, truth: Intrinsics | None) -> CellResult:
        return CellResult("z0f0", 17, 1, "drone", None, 0, intrinsics, None, truth, None)

    cells = [cell(WIDE, WIDE), cell(None, WIDE), cell(WIDE, None)]
    errors = list(cell_epe_px(cells, POINTS, SIZE))
    assert len(errors) == 2
    assert errors[0].max() == 0
    assert np.isinf(errors[1]).all()
