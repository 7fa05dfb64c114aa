"""The sheet of flashes: a tile for each, its centre where the mark is."""

import cv2
import numpy as np

from influx_wrap.model.flashes import Flashes
from influx_wrap.report.flashes_figure import FLASH_TILE_PX, GAP_PX, draw_flashes

SIZE = (300, 200)


def some_flashes(uv: list[tuple[float, float]], frames: list[int]) -> Flashes:
    n = len(uv)
    return Flashes(
        frames=np.array(frames, dtype=np.int64),
        last_frames=np.array(frames, dtype=np.int64) + 5,
        uv=np.array(uv),
        radii_px=np.full((n, 2), 12.0),
        rule=np.ones(n, dtype=np.int64),
        fps=24.0,
        n_frames=100,
        image_size=SIZE,
    )


def test_each_flash_is_in_the_middle_of_its_tile(tmp_path):
    # One is at the picture's border, and two begin in the same frame.
    uv = [(50.0, 60.0), (299.0, 0.0), (120.0, 150.0), (10.0, 190.0)]
    flashes = some_flashes(uv, [3, 20, 20, 44])
    pictures = {frame: np.zeros((SIZE[1], SIZE[0], 3), np.uint8) for frame in (3, 20)}
    for (u, v), frame in zip(uv, (3, 20, 20), strict=False):
        pictures[frame][int(v), int(u)] = (0, 0, 255)
    missing = draw_flashes(iter(pictures.items()), flashes, tmp_path / "sheet.png")
    assert missing == [44]
    sheet = cv2.imread(str(tmp_path / "sheet.png"))
    assert sheet.shape[1] == 4 * (FLASH_TILE_PX + GAP_PX) + GAP_PX
    for col in range(3):
        left = GAP_PX + col * (FLASH_TILE_PX + GAP_PX)
        tile = sheet[GAP_PX : GAP_PX + FLASH_TILE_PX, left : left + FLASH_TILE_PX].astype(int)
        rows, cols = np.nonzero((tile[..., 2] == 255) & (tile[..., 0] == 0))
        middle = (FLASH_TILE_PX - 1) / 2
        np.testing.assert_allclose([rows.mean(), cols.mean()], middle, atol=1)
        assert len(rows) > 20
    blank = sheet[GAP_PX : GAP_PX + FLASH_TILE_PX, -GAP_PX - FLASH_TILE_PX : -GAP_PX]
    assert len(np.unique(blank)) == 1


def test_many_flashes_take_several_rows(tmp_path):
    flashes = some_flashes([(50.0, 60.0)] * 14, list(range(14)))
    black = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
    assert draw_flashes(((i, black) for i in range(14)), flashes, tmp_path / "sheet.png") == []
    sheet = cv2.imread(str(tmp_path / "sheet.png"))
    assert sheet.shape[0] > 3 * FLASH_TILE_PX
