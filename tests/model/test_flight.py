"""Way points against the paper's formulas, written out point by point."""

from itertools import pairwise

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.model.flight import (
    CORNERS,
    boustrophedon_orders,
    corner_points_m,
    hover_points_m,
    outline_m,
)


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


def test_the_test_flight_goes_round_the_papers_corners() -> None:
    cfl, fd, width, height, margin = 24.1e-3, 6.75, 28.25e-3, 18.17e-3, 0.2
    s = (fd - cfl) / cfl
    x, y = s * width / 2 - margin, s * height / 2 - margin
    by_name = {
        "top-left": (-x, -y),
        "top-right": (x, -y),
        "bottom-right": (x, y),
        "bottom-left": (-x, y),
    }
    expected = [(*by_name[name], s * cfl) for name in CORNERS]
    np.testing.assert_allclose(corner_points_m(24.1, 6.75, (28.25, 18.17)), expected, rtol=1e-12)


@pytest.mark.parametrize("factor", [0.75, 1.0, 1.25])
def test_an_outline_is_seen_at_the_pictures_corners(factor: float) -> None:
    outline = outline_m(24.1, 6.75, (28.25, 18.17), factor)
    np.testing.assert_allclose(outline[:, 2], factor * (6.75 - 0.0241), rtol=1e-12)
    on_sensor_mm = 24.1 * outline[:, :2] / outline[:, 2:]
    expected = [[-14.125, -9.085], [14.125, -9.085], [14.125, 9.085], [-14.125, 9.085]]
    np.testing.assert_allclose(on_sensor_mm, expected, rtol=1e-12)


def test_orders_visit_all_points_once_from_neighbour_to_neighbour() -> None:
    orders = boustrophedon_orders()
    assert orders.shape == (128, 24)
    assert len({tuple(order) for order in orders.tolist()}) == 128
    for order in orders.tolist():
        assert sorted(order) == list(range(24))
        places = [(i // 12, i % 12 // 4, i % 4) for i in order]
        for index, (a, b) in enumerate(pairwise(places), 1):
            steps = [abs(p - q) for p, q in zip(a, b, strict=True)]
            assert steps[0] == (index == 12)
            if index != 12:
                assert sum(steps) == 1
