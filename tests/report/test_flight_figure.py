"""The figure of a flight: drawn for every kind of flight, both layers to be seen."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from influx_wrap.plan.flight import plan_flight
from influx_wrap.plan.mission import Request, Rules
from influx_wrap.report.flight_figure import (
    FLIGHT_COLOUR,
    GROUND_COLOUR,
    LAYER_COLOURS,
    draw_flight,
)


def share(image: np.ndarray, colour: str) -> float:
    bgr = 255 * np.array(to_rgb(colour))[::-1]
    return float((np.abs(image.astype(float) - bgr).sum(axis=2) < 30).mean())


@pytest.mark.parametrize(("tilt", "test_flight"), [(58.0, False), (0.0, True)])
def test_layers_path_and_ground_are_drawn(tmp_path: Path, tilt: float, test_flight: bool) -> None:
    rules = Rules(crew_distance_m=0)
    request = Request(
        40.343, -74.655, 1.44, 30.0, tilt, 17.0215, 13.5, (28.25, 18.17), test_flight, rules=rules
    )
    draw_flight(plan_flight(request), tmp_path / "flight.png")
    image = cv2.imread(str(tmp_path / "flight.png"))
    assert image is not None
    near, far = (share(image, colour) for colour in LAYER_COLOURS)
    assert far > 1e-3
    assert (near > 1e-3) != test_flight
    assert share(image, FLIGHT_COLOUR) > 1e-4
    assert (share(image, GROUND_COLOUR) > 1e-4) == (tilt > 0)
