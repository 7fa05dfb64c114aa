"""The tags are OpenCV's, turned the way Kalibr prints them."""

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from influx_wrap.errors import InputError
from influx_wrap.model.tag36h11 import N_TAGS, tag_cells
from influx_wrap.model.target import AprilGrid
from tests.boards import ink

DICTIONARY = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_APRILTAG_36h11)


def white(tag_id: int) -> NDArray[np.int64]:
    """(6, 6) cells of a tag's code, 1 where they are white."""
    cells = tag_cells(tag_id)
    assert cells.shape == (10, 10)
    assert cells.sum() - cells[2:-2, 2:-2].sum() == 64
    return np.asarray(~cells[2:-2, 2:-2], dtype=np.int64)


def test_codes_are_the_familys_published_ones() -> None:
    """Row by row, the first cell in the highest bit."""
    published = {0: 0xD5D628584, 1: 0xD97F18B49, 2: 0xDD280910E, 586: 0xE83BE4B73}
    for tag_id, word in published.items():
        assert int("".join(map(str, white(tag_id).ravel())), 2) == word


def test_tags_differ_in_eleven_cells_however_they_are_turned() -> None:
    codes = np.array([white(tag_id) for tag_id in range(N_TAGS)])
    assert len(DICTIONARY.bytesList) == N_TAGS
    for turns in range(4):
        turned = np.rot90(codes, turns, axes=(1, 2)).reshape(N_TAGS, -1)
        apart = (codes.reshape(N_TAGS, 1, -1) != turned).sum(axis=2)
        if turns == 0:
            np.fill_diagonal(apart, 36)
        assert apart.min() >= 11


@pytest.mark.parametrize("tag_id", [-1, 587])
def test_no_such_tag(tag_id: int) -> None:
    with pytest.raises(InputError, match="ids 0 to 586"):
        tag_cells(tag_id)


def test_a_sheet_reads_like_a_kalibr_board() -> None:
    """Ids row by row from the bottom left; OpenCV's first corner is the bottom-right one."""
    grid = AprilGrid(tag_cols=11, tag_rows=8, tag_size_m=0.1, tag_spacing=0.3)
    px_per_m = 600
    x = np.arange(-0.1, 1.6, 1 / px_per_m)
    y = np.arange(1.2, -0.1, -1 / px_per_m)
    sheet = np.where(ink(grid, x, y[:, None]), 0, 255).astype(np.uint8)

    parameters = cv2.aruco.DetectorParameters()
    parameters.markerBorderBits = 2
    corners, ids, _ = cv2.aruco.ArucoDetector(DICTIONARY, parameters).detectMarkers(sheet)
    assert sorted(ids.ravel().tolist()) == list(range(88))
    for quad, tag_id in zip(corners, ids.ravel(), strict=True):
        left, bottom = (tag_id % 11) * 0.13, (tag_id // 11) * 0.13
        right, top = left + 0.1, bottom + 0.1
        expected = [[right, bottom], [left, bottom], [left, top], [right, top]]
        found = np.column_stack([x[0] + quad[0, :, 0] / px_per_m, y[0] - quad[0, :, 1] / px_per_m])
        np.testing.assert_allclose(found, expected, atol=2.5 / px_per_m)
