"""Pictures of what was kept: written whole, of the right size, showing what they should."""

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.observe.coverage import Coverage
from influx_wrap.report.keyframes_figure import (
    MAX_DRAWN,
    _envelope,
    _shortened,
    draw_contact_sheet,
    draw_coverage,
    draw_detections,
)

NAMES = {frame: f"left{frame:02d}.jpg" for frame in range(10)}


def has_colour(image, bgr):
    return bool((np.abs(image.astype(int) - bgr).sum(axis=2) < 30).any())


@pytest.mark.parametrize("n", [1, 50, 20_000])
def test_detections(tmp_path, n):
    counts = np.random.default_rng(0).integers(0, 353, n)
    draw_detections(counts, np.arange(0, n, 40), 352, tmp_path / "detections.png")
    image = cv2.imread(str(tmp_path / "detections.png"))
    assert image.shape[1] > 900
    assert has_colour(image, (0, 94, 213))


def test_many_frames_keep_their_extremes():
    counts = np.zeros(100_000, dtype=int)
    counts[77_777] = 352
    at, low, high = _envelope(counts)
    assert len(at) == len(low) == len(high) == MAX_DRAWN
    assert high.max() == 352
    assert abs(at[high.argmax()] - 77_777) < 100_000 / MAX_DRAWN
    assert low.max() == 0


def test_coverage_hatches_what_is_missing(tmp_path):
    rng = np.random.default_rng(0)
    uv = rng.uniform(0, 1, (6, 50, 2)) * [400, 500]
    views = np.full((5, 8), 6)
    views[:, 4:] = 0
    coverage = Coverage(views, np.full(5, 3), ())
    draw_coverage(uv, np.ones((6, 50), dtype=bool), (800, 500), coverage, tmp_path / "c.png")
    image = cv2.imread(str(tmp_path / "c.png"), cv2.IMREAD_GRAYSCALE)
    height, width = image.shape
    inner = image[height // 4 : 3 * height // 4]
    dark = (inner < 100).mean(axis=0)
    assert (
        dark[6 * width // 10 : 9 * width // 10].mean() > 10 * dark[width // 5 : width // 2].mean()
    )


def test_contact_sheet_streams_and_stays_small(tmp_path):
    rng = np.random.default_rng(0)
    n = 100
    corners = {7 * i: rng.uniform(0, 300, (352, 2)) for i in range(n)}

    def pictures():
        for frame in range(0, 7 * n, 7):
            yield frame, rng.normal(120, 30, (200, 310)).clip(0, 255).astype(np.uint8)

    path = tmp_path / "contact.png"
    assert draw_contact_sheet(pictures(), corners, {i: f"frame {i}" for i in corners}, path) == []
    assert path.stat().st_size < 5e6
    image = cv2.imread(str(path))
    assert image.shape[0] * image.shape[1] < 6e6
    assert has_colour(image, (0, 94, 213))


def test_contact_sheet_of_16_bit_pictures_shows_the_corner_where_it_is(tmp_path):
    picture = np.full((200, 320), 30_000, dtype=np.uint16)
    picture[100:] = 65535
    corners = {3: np.array([[160.0, 50.0]])}
    draw_contact_sheet([(2, picture), (3, picture)], corners, NAMES, tmp_path / "contact.png")
    image = cv2.imread(str(tmp_path / "contact.png"))
    orange = np.argwhere(np.abs(image.astype(int) - (0, 94, 213)).sum(axis=2) < 30)
    assert np.allclose(orange.mean(axis=0), [6 + 50, 6 + 160], atol=1.5)
    assert image[6 + 20, 6 + 20].max() < 140 < image[6 + 150, 6 + 20].min()


def test_long_names_keep_their_ends():
    assert _shortened("left07.jpg", 20) == "left07.jpg"
    assert _shortened("PXL_20240102_030405678.jpg", 12) == "..405678.jpg"


def test_frames_that_never_come_are_named(tmp_path):
    picture = np.zeros((20, 30), dtype=np.uint8)
    corners = {0: np.zeros((0, 2)), 9: np.zeros((0, 2))}
    assert draw_contact_sheet([(0, picture)], corners, NAMES, tmp_path / "contact.png") == [9]
    with pytest.raises(InputError, match="no picture"):
        draw_contact_sheet([], corners, NAMES, tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()
