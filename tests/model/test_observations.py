"""What observations refuse, each with a message that says where."""

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import AprilGrid

GRID = AprilGrid(tag_cols=2, tag_rows=2, tag_size_m=0.1, tag_spacing=0.3)
SIZE = (640, 480)


def good() -> tuple[np.ndarray, np.ndarray]:
    """uv (3, 16, 2) and valid (3, 16)."""
    uv = 100 + 1000 * GRID.points[None, :, :2].repeat(3, axis=0)
    return uv, np.ones((3, 16), dtype=bool)


def test_counts_and_default_ids() -> None:
    uv, valid = good()
    valid[1, :3] = False
    observations = Observations(GRID, uv, valid, SIZE)
    assert observations.n_views == 3
    assert observations.n_corners == 45
    assert observations.view_ids.tolist() == [0, 1, 2]


def test_names() -> None:
    uv, valid = good()
    ids = np.array([3, 7, 9])
    plain = Observations(GRID, uv, valid, SIZE, ids)
    assert plain.view_names == ("view 3", "view 7", "view 9")
    assert not plain.has_own_names
    named = Observations(GRID, uv, valid, SIZE, ids, ("a.jpg", "b.jpg", "c.jpg"))
    assert named.has_own_names
    some = named.subset(np.array([0, 2]))
    assert (some.view_ids.tolist(), some.view_names) == ([3, 9], ("a.jpg", "c.jpg"))
    with pytest.raises(InputError, match="1 view names for 3 views"):
        Observations(GRID, uv, valid, SIZE, ids, ("a.jpg",))
    uv[1, 7, 0] = np.nan
    with pytest.raises(InputError, match=r"^b\.jpg, point 7: the coordinates are not finite"):
        Observations(GRID, uv, valid, SIZE, ids, ("a.jpg", "b.jpg", "c.jpg"))


def test_invalid_entries_may_hold_anything() -> None:
    uv, valid = good()
    valid[0, 0], uv[0, 0] = False, np.nan
    valid[0, 1], uv[0, 1] = False, -1e9
    assert Observations(GRID, uv, valid, SIZE).n_corners == 46


def test_wrong_shapes() -> None:
    uv, valid = good()
    with pytest.raises(InputError, match="the target has 16 points"):
        Observations(GRID, uv[:, :15], valid[:, :15], SIZE)
    with pytest.raises(InputError, match="valid has shape"):
        Observations(GRID, uv, valid[:2], SIZE)
    with pytest.raises(InputError, match="there is no view"):
        Observations(GRID, uv[:0], valid[:0], SIZE)
    with pytest.raises(InputError, match="image size"):
        Observations(GRID, uv, valid, (0, 480))
    with pytest.raises(InputError, match="2 view ids for 3 views"):
        Observations(GRID, uv, valid, SIZE, np.array([1, 2]))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_found_points_must_be_finite(value: float) -> None:
    uv, valid = good()
    uv[1, 7, 0] = value
    with pytest.raises(InputError, match="view 12, point 7: the coordinates are not finite"):
        Observations(GRID, uv, valid, SIZE, np.array([10, 12, 14]))


def test_too_few_points() -> None:
    uv, valid = good()
    valid[2, 3:] = False
    with pytest.raises(InputError, match="view 2 has only 3 points"):
        Observations(GRID, uv, valid, SIZE)


def test_points_on_a_line() -> None:
    uv, valid = good()
    valid[0] = False
    valid[0, :4] = True
    with pytest.raises(InputError, match="view 0: all 4 points lie on one line"):
        Observations(GRID, uv, valid, SIZE)


def test_points_outside_the_image() -> None:
    uv, valid = good()
    uv[1, 5] = (640.0, 100.0)
    with pytest.raises(InputError, match=r"view 1, point 5: \(640.0, 100.0\) lies outside"):
        Observations(GRID, uv, valid, SIZE)
    uv[1, 5] = (639.5, -0.5)
    assert Observations(GRID, uv, valid, SIZE).n_views == 3
