"""Noise settings that make no sense are refused."""

import math

import pytest

from influx_wrap.errors import InputError
from influx_wrap.model.truth import Noise


@pytest.mark.parametrize(
    "settings",
    [{"corner_px": -0.1}, {"outlier_px": math.inf}, {"rtk_ball_m": math.nan}, {"bow_mm": -1.0}],
)
def test_numbers_must_be_finite_and_not_negative(settings: dict[str, float]) -> None:
    with pytest.raises(InputError, match=f"noise: {next(iter(settings))}"):
        Noise(**settings)


@pytest.mark.parametrize("name", ["outliers", "missing_tags"])
def test_fractions_are_at_most_one(name: str) -> None:
    with pytest.raises(InputError, match=f"noise: {name} is a fraction"):
        Noise(**{name: 1.5})
