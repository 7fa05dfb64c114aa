"""Metadata that lag: whole delays move values, others interpolate, nothing is made up."""

import math

import numpy as np
import pytest

from influx_wrap.annotate.delay import undelayed
from influx_wrap.errors import InputError
from influx_wrap.model.lens_metadata import LensMetadata

NAN, INF = math.nan, math.inf


def metadata(frame: list[int], lfl_mm: list[float], fd_m: list[float]) -> LensMetadata:
    return LensMetadata(np.array(frame), np.array(lfl_mm, float), np.array(fd_m, float))


CLIP = metadata([0, 1, 2, 3], [20, 22, 26, 30], [2, 4, INF, 3])


@pytest.mark.parametrize(
    ("delay", "lfl_mm", "fd_m"),
    [
        (0, [20, 22, 26, 30], [2, 4, INF, 3]),
        (1, [22, 26, 30, NAN], [4, INF, 3, NAN]),
        (-2, [NAN, NAN, 20, 22], [NAN, NAN, 2, 4]),
        # FD is linear in 1 / FD: half of 1/2 and 1/4 is 3/8.
        (0.5, [21, 24, 28, NAN], [8 / 3, 8, 6, NAN]),
        (1.25, [23, 27, NAN, NAN], [16 / 3, 12, NAN, NAN]),
        (-0.25, [NAN, 21.5, 25, 29], [NAN, 3.2, 16, 4]),
        (1000, [NAN] * 4, [NAN] * 4),
    ],
)
def test_by_hand(delay: float, lfl_mm: list[float], fd_m: list[float]) -> None:
    found = undelayed(CLIP, delay)
    assert found.frame.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(found.lfl_mm, lfl_mm, rtol=1e-12)
    np.testing.assert_allclose(found.fd_m, fd_m, rtol=1e-12)


def test_a_moving_lens_in_time() -> None:
    """A lens that is filmed 2.5 frames before it is told: the delay gives its path back."""
    time = np.arange(100)

    def nearness(at: np.ndarray) -> np.ndarray:
        return 0.5 + 0.003 * at

    told = LensMetadata(time, 20 + 0.1 * (time - 2.5), 1 / nearness(time - 2.5))
    found = undelayed(told, 2.5)
    np.testing.assert_allclose(found.lfl_mm[:97], 20 + 0.1 * time[:97], rtol=1e-12)
    np.testing.assert_allclose(found.fd_m[:97], 1 / nearness(time[:97]), rtol=1e-12)
    assert not found.told[97:].any()


def test_gaps_move_too() -> None:
    holed = metadata([0, 1, 3, 4], [20, 21, 23, NAN], [2, 2, 2, 2])
    found = undelayed(holed, 1)
    assert found.frame.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(found.lfl_mm, [21, NAN, 23, NAN, NAN])
    np.testing.assert_array_equal(found.fd_m, [2, NAN, 2, 2, NAN])
    found = undelayed(holed, 0.5)
    assert found.frame.tolist() == [0, 1, 3, 4]
    np.testing.assert_array_equal(found.lfl_mm, [20.5, NAN, NAN, NAN])


@pytest.mark.parametrize("delay", [NAN, INF, 1001, -1001])
def test_no_delays(delay: float) -> None:
    with pytest.raises(InputError, match="from -1000 to 1000 frames"):
        undelayed(CLIP, delay)
