"""What is drawn on a frame, against OpenCV's camera and closed forms."""

import math
from itertools import combinations

import cv2
import numpy as np
import pytest

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.report.preview import (
    CELLS_ACROSS,
    COLOURS,
    OPACITY,
    PLATE,
    PLATE_INK,
    PLATE_QUIET,
    FrameNote,
    Standing,
    draw_note,
    scaled,
    undistortion_grid,
)

SIZE = (640, 412)
BARREL = Intrinsics(400.0, 410.0, 323.0, 201.0, -0.15, 0.02, 1e-3, -8e-4)
PINCUSHION = Intrinsics(2400.0, 2400.0, 310.5, 220.5, 4.0, 10.0, -2e-3, 1e-3)
FOLDED = Intrinsics(400.0, 400.0, 319.5, 205.5, -0.5)


def matrix(camera: Intrinsics) -> FloatArray:
    return np.array([[camera.fx, 0, camera.cx], [0, camera.fy, camera.cy], [0, 0, 1]])


def undistorted(camera: Intrinsics, uv: FloatArray) -> FloatArray:
    """(n, 2) pixels of OpenCV's ideal camera with the same matrix."""
    criteria = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 500, 1e-12)
    points = cv2.undistortPointsIter(
        uv.reshape(-1, 1, 2), matrix(camera), camera.array[4:], None, matrix(camera), criteria
    )
    return np.asarray(points, dtype=float).reshape(-1, 2)


@pytest.mark.parametrize("camera", [BARREL, PINCUSHION])
def test_opencv_undistorts_the_grid_to_squares(camera: Intrinsics) -> None:
    """Each line becomes straight, at a whole number of cells from the principal point."""
    cell = SIZE[0] / CELLS_ACROSS
    middle = np.array([camera.cx, camera.cy])
    seen: list[set[int]] = [set(), set()]
    for line in undistortion_grid(camera, SIZE):
        cells = (undistorted(camera, line) - middle) / cell
        axis = int(np.argmin(np.ptp(cells, axis=0)))
        number = round(float(cells[0, axis]))
        np.testing.assert_allclose(cells[:, axis], number, atol=1e-4)
        seen[axis].add(number)
    assert all(0 in numbers for numbers in seen)
    for numbers in seen:
        assert numbers == set(range(min(numbers), max(numbers) + 1))
    # As far as the picture's corners.
    corners = np.array([[-0.5, -0.5], [SIZE[0] - 0.5, SIZE[1] - 0.5]])
    for axis in (0, 1):
        low, high = ((undistorted(camera, corners) - middle) / cell)[:, axis].tolist()
        assert min(seen[axis]) <= math.ceil(low)
        assert max(seen[axis]) >= math.floor(high)


def test_where_opencv_projects_a_known_line() -> None:
    lines = undistortion_grid(BARREL, SIZE)
    cell = SIZE[0] / CELLS_ACROSS
    b = np.linspace(-0.4, 0.4, 9)
    ray = np.column_stack([np.full(9, 3 * cell / BARREL.fx), b, np.ones(9)])
    expected, _ = cv2.projectPoints(ray, np.zeros(3), np.zeros(3), matrix(BARREL), BARREL.array[4:])
    for uv in expected.reshape(-1, 2):
        distance = min(
            float(np.abs(np.interp(uv[1], line[:, 1], line[:, 0]) - uv[0]))
            for line in lines
            if np.ptp(line[:, 1]) > np.ptp(line[:, 0])
        )
        assert distance < 0.02


def test_a_grid_ends_at_the_fold() -> None:
    """With k1 alone the picture of the model ends at 2/3 of the radius 1 / sqrt(-3 k1)."""
    lines = undistortion_grid(FOLDED, SIZE)
    points = np.concatenate(lines)
    assert np.isfinite(points).all()
    end_px = FOLDED.fx * 2 / 3 / math.sqrt(-3 * FOLDED.k1)
    assert end_px < SIZE[0] / 2
    radius = np.hypot(*(points - (FOLDED.cx, FOLDED.cy)).T)
    assert 0.99 * end_px < radius.max() < end_px
    # What is beyond is not drawn: no line jumps to the other side.
    steps = np.concatenate([np.linalg.norm(np.diff(line, axis=0), axis=1) for line in lines])
    assert steps.max() < 1.5 * SIZE[0] / 160


@pytest.mark.parametrize(
    "camera",
    [
        Intrinsics(400, 400, 320, 206, -40.0, 900.0, 0.3, -0.3),
        Intrinsics(1.0, 1.0, -5000, 9000, 50.0, 50.0),
        Intrinsics(1e6, 1e6, 320, 206, -1e9, 0.0),
    ],
)
def test_a_grid_of_nonsense_is_small(camera: Intrinsics) -> None:
    lines = undistortion_grid(camera, SIZE)
    assert len(lines) < 500
    assert all(len(line) < 2000 for line in lines)
    draw_note(picture(0), FrameNote(0, Standing.INTERPOLATED, intrinsics=camera), SIZE)


def test_scaled_as_pixels_are() -> None:
    """The centre of a spot, seen in the picture that OpenCV has made smaller."""
    u, v = 391.3, 120.6
    cols, rows = np.arange(SIZE[0]), np.arange(SIZE[1])[:, None]
    spot = np.exp(-((cols - u) ** 2 + (rows - v) ** 2) / (2 * 12.0**2))
    to_size = (256, 166)
    small = cv2.resize(spot, to_size, interpolation=cv2.INTER_AREA)
    weight = small.sum()
    found = (
        float((small * np.arange(to_size[0])).sum() / weight),
        float((small * np.arange(to_size[1])[:, None]).sum() / weight),
    )
    camera = scaled(Intrinsics(400, 500, u, v, 0.1, 0.2, 0.3, 0.4), SIZE, to_size)
    assert (camera.cx, camera.cy) == pytest.approx(found, abs=2e-3)
    assert (camera.fx, camera.fy) == pytest.approx((400 * 256 / 640, 500 * 166 / 412))
    assert (camera.k1, camera.k2, camera.p1, camera.p2) == (0.1, 0.2, 0.3, 0.4)


def picture(grey: int) -> np.ndarray:
    return np.full((SIZE[1], SIZE[0], 3), grey, dtype=np.uint8)


def changed(note: FrameNote, grey: int = 128) -> np.ndarray:
    """(H, W) pixels that are drawn on."""
    drawn = picture(grey)
    draw_note(drawn, note, SIZE)
    return (drawn != grey).any(axis=2)


def test_lines_plate_and_nothing_else() -> None:
    nothing = changed(FrameNote(7, Standing.NO_METADATA))
    rows, cols = np.flatnonzero(nothing.any(axis=1)), np.flatnonzero(nothing.any(axis=0))
    assert nothing[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1].mean() > 0.99
    assert nothing.mean() < 0.2
    grid = changed(FrameNote(7, Standing.INTERPOLATED, 35, 2, BARREL)) & ~nothing
    expected = np.zeros(grid.shape, np.uint8)
    lines = [np.round(line).astype(np.int32) for line in undistortion_grid(BARREL, SIZE)]
    cv2.polylines(expected, lines, False, 255, 1)
    assert grid[(expected > 0) & ~nothing].all()
    cross = (round(BARREL.cx), round(BARREL.cy))
    cv2.circle(expected, cross, 12, 255, -1)
    elsewhere = cv2.dilate(expected, np.ones((9, 9))) == 0
    # The rim of a line just outside of the picture may be seen at its edge.
    assert not (grid & elsewhere)[5:-5, 5:-5].any()


def test_the_principal_point_of_a_smaller_picture() -> None:
    """The cross is where the scaled principal point is, though the numbers are the table's."""
    twice = (2 * SIZE[0], 2 * SIZE[1])
    camera = Intrinsics(900, 900, 601.0, 501.0)
    drawn = picture(0)
    draw_note(drawn, FrameNote(0, Standing.INTERPOLATED, 35, 2, camera), twice)
    bright = (drawn == PLATE_INK).all(axis=2)
    bright[:150, :300] = False
    rows, cols = np.nonzero(bright)
    assert (cols.mean(), rows.mean()) == pytest.approx(
        ((601.5 / 2 - 0.5), 501.5 / 2 - 0.5), abs=0.3
    )


def test_every_row_tells_something() -> None:
    told = FrameNote(7, Standing.INTERPOLATED, 35, 2, BARREL, (0.5, 0.6))
    others = [
        FrameNote(8, Standing.INTERPOLATED, 35, 2, BARREL, (0.5, 0.6)),
        FrameNote(7, Standing.INTERPOLATED, 36, 2, BARREL, (0.5, 0.6)),
        FrameNote(7, Standing.INTERPOLATED, 35, math.inf, BARREL, (0.5, 0.6)),
        FrameNote(7, Standing.INTERPOLATED, 35, 2, BARREL, (0.7, 0.6)),
        FrameNote(7, Standing.INTERPOLATED, 35, 2, BARREL, (0.5, 0.7)),
        FrameNote(7, Standing.INTERPOLATED, math.nan, 2, BARREL, (0.5, 0.6), is_filled=True),
    ]
    drawn = []
    for note in (told, *others):
        drawn.append(picture(255))
        draw_note(drawn[-1], note, SIZE)
    rows = []
    for other in drawn[1:]:
        different = np.flatnonzero((other != drawn[0]).any(axis=(1, 2)))
        assert 0 < np.ptp(different) < 16
        rows.append(float(different.mean()))
    order = ("frame", "LFL", "FD", "fx", "fy")
    assert sorted(rows[:5]) == rows[:5], order
    assert rows[5] == pytest.approx(rows[1], abs=2)


def test_standings_differ_in_shape_as_in_words() -> None:
    """Marks, their colours left aside, for those who cannot tell these apart."""
    marks = {}
    for standing in Standing:
        drawn = picture(0)
        large = cv2.resize(drawn, None, fx=4, fy=4)
        draw_note(large, FrameNote(0, standing), SIZE)
        em = large.shape[0] / 50
        top, left = round(1.7 * em), round(1.5 * em)
        part = large[top : top + round(1.6 * em), left : left + round(1.6 * em)]
        marks[standing] = (part == COLOURS[standing]).all(axis=2)
        assert marks[standing].sum() > 100
    for one, other in combinations(marks.values(), 2):
        assert (one & other).sum() < 0.9 * (one | other).sum()
    assert len({standing.value for standing in Standing}) == len(Standing)
    with_answer = [COLOURS[Standing.INTERPOLATED], COLOURS[Standing.EXTRAPOLATED]]
    assert len({*with_answer, COLOURS[Standing.LFL_OUTSIDE], COLOURS[Standing.NO_METADATA]}) == 4


def test_text_is_legible_on_any_picture() -> None:
    """Contrast of at least 4.5 to 1 as WCAG defines it, before white and before black."""

    def luminance(bgr: FloatArray) -> float:
        share = bgr / 255
        linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.0722, 0.7152, 0.2126))

    for grey in (0, 255):
        plate = luminance((1 - OPACITY) * grey + OPACITY * np.array(PLATE))
        for colour in (PLATE_INK, PLATE_QUIET, *COLOURS.values()):
            assert (luminance(np.array(colour)) + 0.05) / (plate + 0.05) >= 4.5


@pytest.mark.parametrize("size", [(2, 2), (31, 20), (160, 90), (90, 160)])
def test_small_pictures(size: tuple[int, int]) -> None:
    drawn = np.zeros((size[1], size[0], 3), np.uint8)
    draw_note(drawn, FrameNote(10**7, Standing.EXTRAPOLATED, 35, 2, BARREL, (1.0, 1.0)), SIZE)
