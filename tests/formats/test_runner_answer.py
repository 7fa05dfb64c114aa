"""What a runner says of a camera, with our pixel origin."""

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.runner_answer import camera_of
from influx_wrap.model.predictions import MEI, RAD_TAN

PINHOLE = {"fx": 1000, "fy": 1001.0, "cx": 320, "cy": 240.0}


def test_distortion_is_zero_unless_named() -> None:
    row = camera_of({"frame": 3, **PINHOLE, "k1": -0.1}, RAD_TAN)
    assert row is not None
    assert row.tolist() == [1000, 1001, 319.5, 239.5, -0.1, 0, 0, 0]
    row = camera_of({**PINHOLE, "xi": 0.7}, MEI)
    assert row is not None
    assert row.tolist() == [1000, 1001, 319.5, 239.5, 0.7]


def test_what_is_not_known() -> None:
    assert camera_of({"frame": 3}, RAD_TAN) is None
    row = camera_of({**PINHOLE, "fx": None, "cx": 1e301}, RAD_TAN)
    assert row is not None
    assert np.flatnonzero(np.isnan(row)).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({**PINHOLE, "fx": "wide"}, "fx = 'wide'"),
        ({**PINHOLE, "fy": True}, "fy = True"),
        ({"fx": 1000, "fy": 1000, "cx": 320}, "cy = 'nothing'"),
    ],
)
def test_what_is_no_number(answer: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        camera_of(answer, RAD_TAN)
