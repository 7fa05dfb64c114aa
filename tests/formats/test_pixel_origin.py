"""Principal points move by half a pixel and back, nothing else does."""

import numpy as np

from influx_wrap.formats.pixel_origin import from_corner, to_corner


def test_there_and_back() -> None:
    cameras = np.array([[2000.0, 2001.0, 1711.5, 1100.5, -0.1, 0.0, -0.0, 1e-5]])
    before = cameras.copy()
    moved = to_corner(cameras)
    assert moved[0].tolist() == [2000, 2001, 1712, 1101, -0.1, 0, 0, 1e-5]
    assert from_corner(moved).tobytes() == before.tobytes()
    assert cameras.tobytes() == before.tobytes()


def test_one_camera_with_other_parameters() -> None:
    assert from_corner(np.array([10.0, 11.0, 2.5, 3.5, 0.8])).tolist() == [10, 11, 2, 3, 0.8]
