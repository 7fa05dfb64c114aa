"""The thin lens against the paper's closed form and values worked out by hand."""

import math

import pytest

from influx_wrap.errors import InputError
from influx_wrap.model.optics import footprint_m, lens_to_object_m, thin_lens_cfl_mm


@pytest.mark.parametrize("lfl", [17.0, 80.0, 250.0])
@pytest.mark.parametrize("fd", [1.1, 1.5, 7.5, 22.5])
def test_cfl_is_the_smaller_root_of_the_papers_equation(lfl: float, fd: float) -> None:
    fd_mm = 1e3 * fd
    root = (fd_mm - math.sqrt(fd_mm**2 - 4 * fd_mm * lfl)) / 2
    cfl = thin_lens_cfl_mm(lfl, fd)
    assert cfl == pytest.approx(root, rel=1e-12)
    assert 1 / lfl == pytest.approx(1 / cfl + 1 / (fd_mm - cfl), rel=1e-12)


def test_cfl_worked_out_by_hand() -> None:
    # (1500 - sqrt(1500^2 - 4 * 1500 * 250)) / 2 = (1500 - 866.025) / 2
    assert thin_lens_cfl_mm(250, 1.5) == pytest.approx(316.987, abs=1e-3)
    # FD = 4 LFL is life size: sensor and object both at 2 LFL.
    assert thin_lens_cfl_mm(100, 0.4) == pytest.approx(200)


def test_infinity_and_far_away() -> None:
    assert thin_lens_cfl_mm(50, math.inf) == 50
    assert thin_lens_cfl_mm(50, 1e9) == pytest.approx(50 * (1 + 50 / 1e12), rel=1e-15)


@pytest.mark.parametrize("fd", [0.9, 2.0, math.inf])
def test_lfl_follows_from_cfl(fd: float) -> None:
    cfl = thin_lens_cfl_mm(120, fd)
    assert cfl * (1 - cfl / (1e3 * fd)) == pytest.approx(120, rel=1e-12)


def test_footprint_scales_with_distance_over_cfl() -> None:
    assert lens_to_object_m(100, 2.1) == pytest.approx(2.0)
    width, height = footprint_m(100, 2.1, (28.25, 18.17))
    assert width == pytest.approx(0.565)
    assert height == pytest.approx(0.3634)


@pytest.mark.parametrize(
    ("lfl", "fd"),
    [(0, 1), (-1, 1), (math.nan, 1), (math.inf, 1), (50, 0), (50, -1), (50, math.nan)],
)
def test_senseless_numbers_are_refused(lfl: float, fd: float) -> None:
    with pytest.raises(InputError, match="positive number"):
        thin_lens_cfl_mm(lfl, fd)


def test_too_near_is_refused_with_the_limit() -> None:
    with pytest.raises(InputError, match=r"at least four times LFL \(1 m\)"):
        thin_lens_cfl_mm(250, 0.9)
