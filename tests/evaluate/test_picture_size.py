"""What decides about the size of pictures, and what must not contradict it."""

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.evaluate.picture_size import settle_size
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.model.rig import FilmedWith

ASSUMED = (3424, 2202)


def truth(centre: tuple[float, float], size: tuple[int, int] | None = None) -> GroundTruth:
    values = np.array([[3000.0, 3000.0, *centre, 0, 0, 0, 0]])
    metadata = LensMetadata(np.arange(1), np.array([20.0]), np.array([2.0]))
    rig = None if size is None else FilmedWith("canon17", None, size)
    return GroundTruth(metadata, values, np.array([True]), filmed_with=rig)


SMALL, LARGE = (641.5, 412.5), (1711.5, 1100.5)


def test_the_truth_says() -> None:
    told = {"a": truth(SMALL, (1284, 826))}
    assert settle_size(told, None, ASSUMED).size == (1284, 826)
    assert settle_size(told, (1284, 826), ASSUMED).notes == ()
    with pytest.raises(InputError, match=r"a have 1284 x 826 .* 3424 x 2202 by --size"):
        settle_size(told, ASSUMED, ASSUMED)


def test_videos_of_two_sizes() -> None:
    told = {"a": truth(SMALL, (1284, 826)), "b": truth(LARGE, ASSUMED)}
    with pytest.raises(InputError, match=r"b have 3424 x 2202 .* 1284 x 826"):
        settle_size(told, None, ASSUMED)


def test_nobody_says() -> None:
    found = settle_size({"a": truth(LARGE)}, None, ASSUMED)
    assert found.size == ASSUMED
    assert "3424 x 2202 pixels, that is assumed" in found.notes[0]
    assert settle_size({"a": truth(SMALL)}, (1284, 826), ASSUMED).notes == ()


def test_an_assumption_that_cannot_be() -> None:
    with pytest.raises(InputError, match=r"642, 412 px, far .* 3424 x 2202 pixels"):
        settle_size({"a": truth(SMALL)}, None, ASSUMED)
    for centre in ((855.5, 550.0), (851.0, 560.0), (870.0, 540.0)):
        # Of half the size, give or take.
        with pytest.raises(InputError, match=r"3424 x 2202 pixels"):
            settle_size({"a": truth(centre)}, None, ASSUMED)
    with pytest.raises(InputError, match=r"1712, 1100 px, far .* 1284 x 826 pixels"):
        settle_size({"a": truth(LARGE)}, (1284, 826), ASSUMED)


def test_one_says_for_all() -> None:
    found = settle_size({"a": truth(SMALL, (1284, 826)), "b": truth(SMALL)}, None, ASSUMED)
    assert found.size == (1284, 826)
    assert "video b" in found.notes[0]
