"""Checkerboard corners in rendered pictures, whose corners are known."""

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics, project
from influx_wrap.model.pose import transform
from influx_wrap.model.target import Checkerboard
from influx_wrap.observe import checkerboard
from influx_wrap.observe.checkerboard import detect
from influx_wrap.synth import render
from influx_wrap.synth.render import RenderOptions, ray_grid, render_board

BOARD = Checkerboard(cols=10, rows=7, col_spacing_m=0.06, row_spacing_m=0.06)
SIZE = (1000, 700)
CAMERA = Intrinsics(1150.0, 1155.0, 503.0, 346.0, -0.08, 0.03, 5e-4, -3e-4)
SHARP = RenderOptions(blur_px=0.7, noise=2)
TILTS = [(0.0, 0.0), (0.5, 0.1), (-0.2, 0.6), (0.45, -0.5), (-0.7, 0.0)]


def picture(
    target: Checkerboard,
    tilt: tuple[float, float] = (0.3, -0.2),
    roll: float = 0.0,
    *,
    options: RenderOptions = SHARP,
    camera: Intrinsics = CAMERA,
    size: tuple[int, int] = SIZE,
) -> tuple[np.ndarray, FloatArray]:
    """A picture and the true corners (T, 2); ``roll`` turns the board in its own plane."""
    in_plane = cv2.Rodrigues(np.array([0.0, 0.0, roll]))[0]
    rotation = np.diag([1.0, -1.0, -1.0]) @ cv2.Rodrigues(np.array([*tilt, 0.0]))[0] @ in_plane
    translation = np.array([0.0, 0.0, 1.8]) - rotation @ target.points.mean(axis=0)
    rng = np.random.default_rng(3)
    image = render_board(ray_grid(camera, size), target, rotation, translation, options, rng)
    points = transform(rotation[None], translation[None], target.points)[0]
    uv, valid = project(camera, points)
    assert valid.all()
    return image, uv


@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize("roll", [0.0, 0.8, 3.0])
def test_corners_of_sharp_pictures(tilt: tuple[float, float], roll: float) -> None:
    """Rows and columns with an odd sum: known whichever way up the board is held."""
    image, uv = picture(BOARD, tilt, roll)
    detection = detect(image, BOARD)
    assert detection.found.all()
    error = np.linalg.norm(detection.uv - uv, axis=1)
    assert np.sqrt((error**2).mean()) < 0.05
    assert error.max() < 0.2
    assert (detection.confidence > 0.6).all()
    assert (detection.confidence <= 1).all()


@pytest.fixture
def cut_squares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boards are rendered with a third of their outer squares, on paper that ends there."""
    whole = render.sheet_cells

    def cut(target: Checkerboard, options: RenderOptions) -> tuple[FloatArray, ...]:
        x_lines, y_lines, value = whole(target, options)
        for lines, first_m in ((x_lines, 0.35), (y_lines, 0.3)):
            square_m = lines[4] - lines[3]
            lines[2], lines[-3] = lines[3] - first_m * square_m, lines[-4] + first_m * square_m
            lines[1], lines[-2] = lines[2] - 0.1 * square_m, lines[-3] + 0.02 * square_m
        return x_lines, y_lines, value

    monkeypatch.setattr(render, "sheet_cells", cut)


@pytest.mark.usefixtures("cut_squares")
@pytest.mark.parametrize("tilt", TILTS)
def test_outer_squares_may_be_cut(tilt: tuple[float, float]) -> None:
    image, uv = picture(BOARD, tilt, 0.6, options=RenderOptions(blur_px=0.8, noise=2))
    detection = detect(image, BOARD)
    assert detection.found.all()
    error = np.linalg.norm(detection.uv - uv, axis=1).reshape(BOARD.grid_shape)
    inner = error[1:-1, 1:-1]
    assert np.sqrt((inner**2).mean()) < 0.02
    assert error.max() < 0.1


def test_corners_are_more_exact_than_corner_sub_pix() -> None:
    ours, opencv = [], []
    criteria = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_COUNT, 50, 1e-3)
    for tilt in TILTS:
        image, uv = picture(BOARD, tilt, 0.7, options=RenderOptions(blur_px=1.0, noise=4))
        found = detect(image, BOARD).uv
        start = found.astype(np.float32).reshape(-1, 1, 2)
        refined = cv2.cornerSubPix(image, start, (5, 5), (-1, -1), criteria).reshape(-1, 2)
        ours.append(found - uv)
        opencv.append(refined - uv)
    assert np.square(ours).mean() < 0.5 * np.square(opencv).mean()


def test_what_opencv_alone_finds_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    image, uv = picture(BOARD)
    monkeypatch.setattr(checkerboard, "find_lattices", lambda _: [])
    detection = detect(image, BOARD)
    assert detection.found.all()
    assert np.abs(detection.uv - uv).max() < 0.2


def test_a_dim_picture() -> None:
    image, uv = picture(BOARD)
    detection = detect((0.12 * image + 180).astype(np.uint8), BOARD)
    assert detection.found.all()
    assert np.abs(detection.uv - uv).max() < 0.3


def test_covered_corners_are_missing() -> None:
    image, uv = picture(BOARD)
    hidden = np.linalg.norm(uv - uv[23], axis=1) < 60
    assert 1 < hidden.sum() < 10
    covered = cv2.circle(image.copy(), uv[23].round().astype(int).tolist(), 60, 128, -1)
    detection = detect(covered, BOARD)
    assert not detection.found[hidden].any()
    assert detection.found.sum() > 55
    assert np.nanmax(np.abs(detection.uv - uv)) < 0.2


def test_no_systematic_shift() -> None:
    errors = []
    for tilt in TILTS:
        image, uv = picture(BOARD, tilt, 0.3)
        errors.append(detect(image, BOARD).uv - uv)
    assert np.abs(np.concatenate(errors).mean(axis=0)).max() < 0.01


def test_large_picture() -> None:
    """Found small, refined large."""
    camera = Intrinsics(4000.0, 4000.0, 1705.0, 1110.0, -0.05)
    image, uv = picture(BOARD, (0.4, -0.3), 0.5, camera=camera, size=(3424, 2202))
    detection = detect(image, BOARD)
    assert detection.found.all()
    assert np.sqrt(((detection.uv - uv) ** 2).sum(axis=1).mean()) < 0.05


def turned(target: Checkerboard, quarters: int) -> np.ndarray:
    """Numbers (T,) of the corners of a board turned counterclockwise by quarter turns."""
    grid = np.arange(len(target.points)).reshape(target.grid_shape)
    return np.rot90(grid, quarters).ravel()


@pytest.mark.parametrize("roll", [0.2, 1.2, 3.0, -2.5])
@pytest.mark.parametrize(("cols", "rows", "looks_the_same"), [(9, 7, 2), (7, 7, 2), (8, 8, 1)])
def test_ambiguous_boards_start_at_the_bottom(
    cols: int, rows: int, looks_the_same: int, roll: float
) -> None:
    """``looks_the_same`` after so many quarter turns."""
    target = Checkerboard(cols, rows, 0.06, 0.06)
    image, uv = picture(target, (0.2, 0.1), roll)
    detection = detect(image, target)
    candidates = [uv[turned(target, quarters)] for quarters in range(0, 4, looks_the_same)]
    errors = [np.abs(detection.uv - candidate).max() for candidate in candidates]
    assert min(errors) < 0.2
    # The board's first row is lower in the picture than that of any other numbering.
    lowest = [candidate[:cols, 1].mean() for candidate in candidates]
    assert np.argmin(errors) == np.argmax(lowest)


def test_swapped_colours_are_found_too() -> None:
    """Seen in a mirror, an even number of columns of squares has black and white swapped."""
    target = Checkerboard(9, 7, 0.06, 0.06)
    image, uv = picture(target)
    mirrored = np.array([SIZE[0] - 1, 0]) + np.array([-1, 1]) * uv
    expected = mirrored.reshape(7, 9, 2)[:, ::-1].reshape(-1, 2)
    detection = detect(np.ascontiguousarray(image[:, ::-1]), target)
    assert detection.found.all()
    assert np.abs(detection.uv - expected).max() < 0.2


def test_16_bit_is_the_same_picture() -> None:
    image, uv = picture(BOARD)
    detection = detect(image.astype(np.uint16) * 16, BOARD)
    assert detection.found.all()
    assert np.abs(detection.uv - uv).max() < 0.2


def test_no_board_no_corners() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (480, 640), dtype=np.uint8)
    for image in (np.full((480, 640), 128, np.uint8), noise, np.zeros((1, 1), np.uint8)):
        detection = detect(image, BOARD)
        assert not detection.found.any()
        assert np.isnan(detection.uv).all()
        assert detection.uv.shape == (70, 2)


def test_part_of_a_board_or_another_board_is_no_board() -> None:
    image, uv = picture(BOARD)
    cut = image[:, : int(uv[:, 0].max()) - 60]
    assert not detect(cut, BOARD).found.any()
    other = Checkerboard(cols=8, rows=7, col_spacing_m=0.06, row_spacing_m=0.06)
    assert not detect(image, other).found.any()


def test_what_is_no_grey_picture_is_refused() -> None:
    with pytest.raises(InputError, match="grey picture"):
        detect(np.zeros((10, 10, 3), np.uint8), BOARD)
    with pytest.raises(InputError, match="8 or 16 bit"):
        detect(np.zeros((10, 10)), BOARD)
