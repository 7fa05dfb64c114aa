"""LFL and FD values against the paper's lists."""

import pytest

from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.hardware import Lens
from influx_wrap.plan.grid import sample_fd_m, sample_lfl_mm

CATALOGUE = load_catalogue()


def test_lfl_values_are_the_papers() -> None:
    assert sample_lfl_mm(CATALOGUE.lens("canon17")) == (17, 18, 20, 24, 32, 48, 80, 120)
    assert sample_lfl_mm(CATALOGUE.lens("premista80")) == (80, 81, 83, 87, 95, 111, 143, 207, 250)


def test_fd_values_are_the_papers() -> None:
    canon = [0.85344, 1.5, 1.6875, 1.92857, 2.25, 2.7, 3.375, 4.5, 6.75, 13.5]
    premista = [1.5, 2.5, 2.8125, 3.21429, 3.75, 4.5, 5.625, 7.5, 11.25, 22.5]
    assert sample_fd_m(CATALOGUE.lens("canon17")) == pytest.approx(canon, abs=1e-5)
    assert sample_fd_m(CATALOGUE.lens("premista80")) == pytest.approx(premista, abs=1e-5)


def test_a_step_that_lands_on_the_longest_lfl_is_listed_once() -> None:
    assert sample_lfl_mm(Lens("l", 17, 24, 1, 2)) == (17, 18, 20, 24)


def test_a_lens_without_zoom_has_one_lfl() -> None:
    assert sample_lfl_mm(Lens("l", 50, 50, 1, 2)) == (50,)


def test_the_nearest_focus_is_listed_once() -> None:
    fds = sample_fd_m(Lens("l", 17, 24, 1.5, 1.5))
    assert len(fds) == 9
    assert fds[0] == 1.5
