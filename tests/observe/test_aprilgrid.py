"""AprilGrid corners in rendered pictures, whose corners are known."""

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.intrinsics import BoolArray, FloatArray, project
from influx_wrap.model.pose import transform
from influx_wrap.model.target import AprilGrid
from influx_wrap.observe.aprilgrid import BORDER_PX, detect
from influx_wrap.plan import make_plan
from influx_wrap.synth.board import board_poses
from influx_wrap.synth.lens import true_intrinsics
from influx_wrap.synth.render import RenderOptions, ray_grid, render_board

CATALOGUE = load_catalogue()
CAMERA = CATALOGUE.camera("arri-alexa-mini")
VIEWS = (0, 12, 27, 48, 66, 93)

Picture = tuple[np.ndarray, FloatArray, BoolArray]


def pictures(lens: str, cell_name: str, options: RenderOptions) -> tuple[AprilGrid, list[Picture]]:
    """Pictures of a cell's board with the true corners and which of them are inside."""
    plan = make_plan(CATALOGUE.lens(lens), CAMERA, CATALOGUE.boards.values())
    cell, truth = plan.cell(cell_name), true_intrinsics(plan)[cell_name]
    assert cell.board is not None
    rng = np.random.default_rng(1)
    rotations, translations = board_poses(cell.board, CAMERA, truth, cell.fd_m, rng)
    rays = ray_grid(truth, CAMERA.image_size)
    grid = cell.board.grid
    made = []
    for view in VIEWS:
        rotation, translation = rotations[view], translations[view]
        image = render_board(rays, grid, rotation, translation, options, rng)
        uv, valid = project(truth, transform(rotation[None], translation[None], grid.points)[0])
        last = np.array(CAMERA.image_size) - 1
        inside = valid & ((uv >= BORDER_PX) & (uv <= last - BORDER_PX)).all(axis=1)
        made.append((image, uv, inside))
    return grid, made


@pytest.mark.parametrize(
    ("lens", "cell"), [("canon17", "z6f5"), ("premista80", "z0f3"), ("premista80", "z8f5")]
)
def test_corners_of_sharp_pictures(lens: str, cell: str) -> None:
    grid, made = pictures(lens, cell, RenderOptions(blur_px=0.7, noise=2))
    errors, found, visible = [], 0, 0
    for image, uv, inside in made:
        detection = detect(image, grid)
        errors.append((detection.uv - uv)[detection.found])
        found += int((detection.found & inside).sum())
        visible += int(inside.sum())
        assert (detection.confidence[detection.found] <= 1).all()
        assert np.isnan(detection.uv[~detection.found]).all()
    error = np.concatenate(errors)
    print(f"{lens} {cell}: {found} of {visible}, RMS {np.sqrt((error**2).mean()):.4f} px")
    assert found >= 0.99 * visible
    assert np.sqrt((error**2).sum(axis=1).mean()) < 0.05
    assert np.linalg.norm(error, axis=1).max() < 1.0
    assert np.abs(error.mean(axis=0)).max() < 0.01


def test_16_bit_is_the_same_picture() -> None:
    grid, made = pictures("canon17", "z6f5", RenderOptions(blur_px=0.7))
    image, uv, inside = made[0]
    detection = detect(image.astype(np.uint16) * 257, grid)
    assert (detection.found & inside).sum() >= 0.99 * inside.sum()
    assert np.nanmax(np.abs(detection.uv - uv)) < 0.2


def test_no_board_no_corners() -> None:
    grid = CATALOGUE.board("400x300").grid
    noise = np.random.default_rng(0).integers(0, 255, (480, 640), dtype=np.uint8)
    for image in (np.zeros((480, 640), np.uint8), noise):
        detection = detect(image, grid)
        assert not detection.found.any()
        assert np.isnan(detection.uv).all()


def test_two_boards_are_refused() -> None:
    grid, made = pictures("premista80", "z0f3", RenderOptions(blur_px=0.7))
    both = cv2.hconcat([made[0][0], made[0][0]])
    with pytest.raises(InputError, match="more than once"):
        detect(both, grid)


def test_what_is_no_grey_picture_is_refused() -> None:
    grid = CATALOGUE.board("400x300").grid
    with pytest.raises(InputError, match="grey picture"):
        detect(np.zeros((10, 10, 3), np.uint8), grid)
    with pytest.raises(InputError, match="8 or 16 bit"):
        detect(np.zeros((10, 10)), grid)
