"""Hover points against the paper's equation 2, written out point by point."""

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.model.flight import hover_points_m


def test_hover_points_are_the_papers() -> None:
    cfl, fd, width, height, margin = 24.1e-3, 6.75, 28.25e-3, 18.17e-3, 0.2
    s = (fd - cfl) / cfl
    expected = [
        (
            (x - 1.5) / 1.5 * (p * s * width / 2 - margin),
            (y - 1) * (p * s * height / 2 - margin),
            p * s * cfl,
        )
        for p in (0.75, 1.25)
        for y in (0, 1, 2)
        for x in (0, 1, 2, 3)
    ]
    np.testing.assert_allclose(hover_points_m(24.1, 6.75, (28.25, 18.17)), expected, rtol=1e-12)


def test_a_field_of_view_too_small_for_the_margin_is_refused() -> None:
    with pytest.raises(InputError, match="Use a board"):
        hover_points_m(250, 1.5, (28.25, 18.17))
