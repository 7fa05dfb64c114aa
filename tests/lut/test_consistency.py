"""A focal length typed for another setting stands out among those of the same lens."""

import numpy as np
import pytest

from influx_wrap.lut.consistency import odd_focal_lengths
from influx_wrap.model.optics import thin_lens_cfl_mm

LFL_MM, FD_M = (
    grid.ravel()
    for grid in np.meshgrid(np.geomspace(80, 200, 5), [1.5, 2.1, 3.6, 12.0], indexing="ij")
)


def front_focusing() -> np.ndarray:
    """A lens that breathes by 120 % at its nearest focus and longest focal length."""
    shrinks = 0.33 * (LFL_MM / 80) ** 0.55 * (1.5 - 0.3) / (FD_M - 0.3)
    return np.asarray(LFL_MM / (1 - shrinks))


@pytest.fixture(params=["thin", "front"])
def cfl_mm(request: pytest.FixtureRequest) -> np.ndarray:
    if request.param == "front":
        return front_focusing()
    return np.array([thin_lens_cfl_mm(*each) for each in zip(LFL_MM, FD_M, strict=True)])


def test_a_lens_that_breathes_has_no_odd_one(cfl_mm: np.ndarray) -> None:
    assert odd_focal_lengths(LFL_MM, FD_M, cfl_mm) == []


@pytest.mark.parametrize("factor", [1.25, 0.8])
def test_each_wrong_one_is_found_and_no_other(factor: float, cfl_mm: np.ndarray) -> None:
    for wrong in range(len(LFL_MM)):
        typed = LFL_MM.copy()
        typed[wrong] *= factor
        (odd,) = odd_focal_lengths(typed, FD_M, cfl_mm)
        assert odd.index == wrong
        assert odd.cfl_mm == cfl_mm[wrong]
        assert odd.expected_mm == pytest.approx(factor * cfl_mm[wrong], rel=0.15)


def test_few_experiments_contradict_nobody(cfl_mm: np.ndarray) -> None:
    typed = LFL_MM.copy()
    typed[3] *= 1.3
    assert odd_focal_lengths(typed[:8], FD_M[:8], cfl_mm[:8]) == []
