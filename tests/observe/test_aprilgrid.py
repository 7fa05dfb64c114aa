"""AprilGrid corners in rendered pictures, whose corners are known."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.intrinsics import Intrinsics, project
from influx_wrap.model.optics import lens_to_object_m
from influx_wrap.model.pose import transform
from influx_wrap.model.tag36h11 import tag_cells
from influx_wrap.model.target import AprilGrid
from influx_wrap.observe.aprilgrid import detect
from influx_wrap.observe.detection import BORDER_PX, AmbiguousPicture
from influx_wrap.plan import make_plan
from influx_wrap.synth.board import board_poses
from influx_wrap.synth.render import RenderOptions, ray_grid, render_board
from tests.lenses import true_intrinsics

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
    depth_m = lens_to_object_m(cell.cfl_mm, cell.fd_m)
    rotations, translations = board_poses(cell.board, CAMERA, truth, depth_m, rng)
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


def errors_of(lens: str, cell: str, options: RenderOptions) -> tuple[FloatArray, float]:
    """Errors (n, 2) of all corners found in a cell's pictures, and the share found."""
    grid, made = pictures(lens, cell, options)
    errors, found, visible = [], 0, 0
    for image, uv, inside in made:
        detection = detect(image, grid)
        errors.append((detection.uv - uv)[detection.found])
        found += int((detection.found & inside).sum())
        visible += int(inside.sum())
        assert (detection.confidence <= 1).all()
        assert np.isnan(detection.uv[~detection.found]).all()
    error = np.concatenate(errors)
    rms = np.sqrt((error**2).sum(axis=1).mean())
    print(f"{lens} {cell}: {found} of {visible}, RMS {rms:.4f} px")
    return error, found / visible


# Wide lenses with small and with strongly tilted tags, and a telephoto one.
CELLS = [("canon17", "z0f2"), ("canon17", "z0f5"), ("canon17", "z6f5"), ("premista80", "z8f5")]


@pytest.mark.parametrize(("lens", "cell"), CELLS)
def test_corners_of_sharp_pictures(lens: str, cell: str) -> None:
    error, share = errors_of(lens, cell, RenderOptions(blur_px=0.7, noise=2))
    assert share >= 0.99
    assert np.sqrt((error**2).sum(axis=1).mean()) < 0.02
    assert np.linalg.norm(error, axis=1).max() < 0.3
    assert np.abs(error.mean(axis=0)).max() < 0.003


@pytest.mark.parametrize(("lens", "cell"), CELLS)
def test_corners_of_blurred_and_noisy_pictures(lens: str, cell: str) -> None:
    error, share = errors_of(lens, cell, RenderOptions(blur_px=1.5, noise=8))
    assert share >= 0.95
    assert np.sqrt((error**2).sum(axis=1).mean()) < 0.1
    assert np.linalg.norm(error, axis=1).max() < 1.0
    assert np.abs(error.mean(axis=0)).max() < 0.01


@pytest.fixture(scope="module")
def telephoto() -> tuple[AprilGrid, list[Picture]]:
    return pictures("premista80", "z0f3", RenderOptions(blur_px=0.7, noise=1))


@pytest.mark.parametrize("exponent", [0.45, 2.2])
def test_a_tone_curve_moves_no_corner(
    telephoto: tuple[AprilGrid, list[Picture]], exponent: float
) -> None:
    grid, made = telephoto
    image, uv, inside = made[1]
    detection = detect((255 * (image / 255) ** exponent).round().astype(np.uint8), grid)
    assert (detection.found & inside).sum() >= 0.99 * inside.sum()
    assert np.nanmax(np.abs(detection.uv - uv)) < 0.1


@pytest.mark.parametrize("length_px", [4, 8, 16, 32, 64])
def test_a_smeared_picture_gives_no_wrong_corners(
    telephoto: tuple[AprilGrid, list[Picture]], length_px: int
) -> None:
    grid, made = telephoto
    image, uv, _ = made[0]
    smear = np.eye(length_px, dtype=np.float32) / length_px
    detection = detect(cv2.filter2D(image, -1, smear), grid)
    # An even mask has its middle half a pixel beside its anchor.
    error = detection.uv - uv - 0.5
    if length_px >= 32:
        assert not detection.found.any()
    else:
        assert np.linalg.norm(error[detection.found], axis=1).max(initial=0) < 0.5


def test_what_covers_the_board_covers_corners_only(
    telephoto: tuple[AprilGrid, list[Picture]],
) -> None:
    grid, made = telephoto
    image, uv, inside = made[0]
    middle = np.array(image.shape[::-1]) // 2
    covered = cv2.circle(image.copy(), middle.tolist(), 300, 90, -1)
    detection = detect(covered, grid)
    under = np.linalg.norm(uv - middle, axis=1) < 300
    assert not detection.found[under].any()
    assert detection.found[inside & ~under].mean() > 0.97
    assert np.nanmax(np.abs(detection.uv - uv)) < 0.2


@pytest.mark.parametrize("quarter_turns", [1, 2, 3])
def test_a_turned_camera_sees_the_same_corners(
    telephoto: tuple[AprilGrid, list[Picture]], quarter_turns: int
) -> None:
    grid, made = telephoto
    image, uv, inside = made[2]
    width, height = CAMERA.image_size
    for _ in range(quarter_turns):
        image, uv = np.rot90(image), np.column_stack([uv[:, 1], width - 1 - uv[:, 0]])
        width, height = height, width
    detection = detect(np.ascontiguousarray(image), grid)
    assert (detection.found & inside).sum() >= 0.99 * inside.sum()
    assert np.nanmax(np.abs(detection.uv - uv)) < 0.1


def test_a_mirrored_board_is_no_board(telephoto: tuple[AprilGrid, list[Picture]]) -> None:
    grid, made = telephoto
    assert not detect(np.ascontiguousarray(made[0][0][:, ::-1]), grid).found.any()


def test_another_board_is_not_taken_for_this_one(
    telephoto: tuple[AprilGrid, list[Picture]],
) -> None:
    """Its tags are the same but lie elsewhere; what is found must be one row at most."""
    grid, made = telephoto
    other = AprilGrid(grid.tag_cols - 4, grid.tag_rows, grid.tag_size_m, grid.tag_spacing)
    assert detect(made[0][0], other).found.sum() <= 4 * other.tag_cols


def test_a_stray_tag_of_the_board_is_refused(telephoto: tuple[AprilGrid, list[Picture]]) -> None:
    grid, made = telephoto
    image = made[0][0].copy()
    tag = np.kron(np.where(tag_cells(17), 20, 235), np.ones((8, 8))).astype(np.uint8)
    image[40:160, 40:160] = 235
    image[60:140, 60:140] = tag
    with pytest.raises(AmbiguousPicture, match="tag 17 is in the picture more than once"):
        detect(image, grid)


@pytest.mark.parametrize("spacing", [0.25, 0.3])
def test_tags_with_a_border_of_one_cell(spacing: float) -> None:
    plan = make_plan(CATALOGUE.lens("canon17"), CAMERA, CATALOGUE.boards.values())
    cell, truth = plan.cell("z6f5"), true_intrinsics(plan)["z6f5"]
    assert cell.board is not None
    grid = replace(cell.board.grid, tag_spacing=spacing, border_cells=1)
    rng = np.random.default_rng(1)
    rotations, translations = board_poses(cell.board, CAMERA, truth, cell.fd_m, rng)
    rays = ray_grid(truth, CAMERA.image_size)
    for view in VIEWS[:3]:
        pose = rotations[view], translations[view]
        image = render_board(rays, grid, *pose, RenderOptions(blur_px=0.7, noise=2), rng)
        uv, _ = project(truth, transform(pose[0][None], pose[1][None], grid.points)[0])
        detection = detect(image, grid)
        inside = ((uv >= 20) & (uv <= np.array(CAMERA.image_size) - 21)).all(axis=1)
        assert detection.found[inside].mean() > 0.98
        error = (detection.uv - uv)[detection.found]
        assert np.sqrt((error**2).sum(axis=1).mean()) < 0.02
        # Read with the other border, tags are less like their codes, but none is another.
        told_two = detect(image, replace(grid, border_cells=2))
        assert np.nanmax(np.abs(told_two.uv - uv), initial=0) < 0.3


def test_a_board_close_to_the_camera_is_seen_once() -> None:
    """The white around a large tag has four corners, too, and was taken for the tag once more."""
    grid = AprilGrid(tag_cols=6, tag_rows=6, tag_size_m=0.03, tag_spacing=0.3)
    camera = Intrinsics(1000.0, 1000.0, 639.5, 359.5, 0.0, 0.0, 0.0, 0.0)
    rotation = np.diag([1.0, -1.0, -1.0]) @ cv2.Rodrigues(np.array([0.1, 0.0, 0.0]))[0]
    translation = np.array([0.0, 0.02, 0.16]) - rotation @ grid.points.mean(axis=0)
    rays, rng = ray_grid(camera, (1280, 720)), np.random.default_rng(0)
    image = render_board(rays, grid, rotation, translation, RenderOptions(blur_px=0.7), rng)
    uv, _ = project(camera, transform(rotation[None], translation[None], grid.points)[0])
    detection = detect(image, grid)
    assert detection.found.sum() >= 50
    assert np.nanmax(np.abs(detection.uv - uv)) < 0.1


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
