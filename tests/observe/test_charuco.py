"""ChArUco corners in rendered pictures, next to OpenCV's own detector."""

import cv2
import numpy as np
import pytest

from influx_wrap.formats.charuco import charuco_board
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics, project
from influx_wrap.model.pose import transform
from influx_wrap.model.target import Charuco
from influx_wrap.observe.charuco import detect
from influx_wrap.observe.detection import AmbiguousPicture
from influx_wrap.synth.render import RenderOptions, ray_grid, render_board

BOARD = charuco_board(8, 6, 0.06, 0.045, "5X5_100")
SIZE = (1000, 700)
CAMERA = Intrinsics(1500.0, 1505.0, 503.0, 346.0, -0.08, 0.03, 5e-4, -3e-4)
TILTS = [(0.0, 0.0), (0.5, 0.1), (-0.2, 0.6), (0.45, -0.5)]


def picture(
    target: Charuco,
    tilt: tuple[float, float] = (0.3, -0.2),
    roll: float = 0.0,
    options: RenderOptions = RenderOptions(blur_px=0.7, noise=2),  # noqa: B008
    at: tuple[float, float] = (0.0, 0.0),
) -> tuple[np.ndarray, FloatArray]:
    """A picture and the true corners (T, 2)."""
    in_plane = cv2.Rodrigues(np.array([0.0, 0.0, roll]))[0]
    rotation = np.diag([1.0, -1.0, -1.0]) @ cv2.Rodrigues(np.array([*tilt, 0.0]))[0] @ in_plane
    translation = np.array([*at, 1.5]) - rotation @ target.points.mean(axis=0)
    rng = np.random.default_rng(3)
    image = render_board(ray_grid(CAMERA, SIZE), target, rotation, translation, options, rng)
    uv, _ = project(CAMERA, transform(rotation[None], translation[None], target.points)[0])
    return image, uv


def by_opencv(image: np.ndarray, target: Charuco) -> FloatArray:
    """(T, 2) corners that OpenCV finds, refined by ``cornerSubPix``; NaN where it finds none."""
    markers = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, target.dictionary))
    size = (target.cols, target.rows)
    board = cv2.aruco.CharucoBoard(size, target.square_size_m, target.marker_size_m, markers)
    board.setLegacyPattern(target.legacy)
    corners, ids, _, _ = cv2.aruco.CharucoDetector(board).detectBoard(image)
    from_top, col = np.divmod(ids.ravel(), target.cols - 1)
    uv = np.full((len(target.points), 2), np.nan)
    criteria = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_COUNT, 50, 1e-3)
    refined = cv2.cornerSubPix(image, corners, (4, 4), (-1, -1), criteria)
    uv[(target.rows - 2 - from_top) * (target.cols - 1) + col] = refined.reshape(-1, 2)
    return uv


@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize("roll", [0.0, 2.0])
def test_corners_are_more_exact_than_opencv_s(tilt: tuple[float, float], roll: float) -> None:
    image, uv = picture(BOARD, tilt, roll)
    detection = detect(image, BOARD)
    peer = by_opencv(image, BOARD)
    assert detection.found.all()
    ours = np.sqrt(((detection.uv - uv) ** 2).sum(axis=1).mean())
    theirs = np.sqrt(np.nanmean(((peer - uv) ** 2).sum(axis=1)))
    print(f"RMS {ours:.4f} px, OpenCV with cornerSubPix {theirs:.4f} px")
    assert ours < 0.02
    assert ours < theirs
    assert np.nanmax(np.abs(peer - uv)) < 1


@pytest.mark.parametrize(
    ("cols", "rows", "dictionary", "legacy"),
    [
        (5, 7, "DICT_4X4_50", False),
        (7, 4, "6x6_250", True),
        (7, 4, "6x6_250", False),
        (6, 6, "DICT_APRILTAG_36h11", False),
    ],
)
def test_boards_of_many_kinds(cols: int, rows: int, dictionary: str, legacy: bool) -> None:
    target = charuco_board(cols, rows, 0.07, 0.05, dictionary, legacy=legacy)
    image, uv = picture(target, (0.3, 0.2), 0.4)
    detection = detect(image, target)
    assert detection.found.all()
    assert np.abs(detection.uv - uv).max() < 0.1
    assert np.nanmax(np.abs(by_opencv(image, target) - uv)) < 1


def test_a_board_may_leave_the_picture() -> None:
    image, uv = picture(BOARD, (0.2, 0.3), 0.2, at=(0.45, 0.15))
    inside = ((uv > 8) & (uv < np.array(SIZE) - 9)).all(axis=1)
    assert 10 < inside.sum() < len(uv) - 5
    detection = detect(image, BOARD)
    assert detection.found[inside].mean() > 0.9
    assert np.nanmax(np.abs(detection.uv - uv)) < 0.2


def test_blur_and_noise() -> None:
    image, uv = picture(BOARD, (0.3, 0.2), 0.4, RenderOptions(blur_px=1.5, noise=8))
    detection = detect(image, BOARD)
    assert detection.found.mean() > 0.9
    assert np.sqrt(np.nanmean((detection.uv - uv) ** 2)) < 0.06


def test_no_board_another_board_two_boards() -> None:
    assert not detect(np.full((480, 640), 128, np.uint8), BOARD).found.any()
    image, _ = picture(charuco_board(8, 6, 0.06, 0.045, "4X4_50"))
    assert not detect(image, BOARD).found.any()
    image, _ = picture(BOARD)
    with pytest.raises(AmbiguousPicture, match="more than once"):
        detect(cv2.hconcat([image, image]), BOARD)
