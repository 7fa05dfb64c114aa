"""Blender's pictures against the exact renderer's and against the projection."""

import os
import subprocess
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics, project, unproject
from influx_wrap.model.pose import rotation_matrix
from influx_wrap.model.target import AprilGrid
from influx_wrap.observe.aprilgrid import detect
from influx_wrap.synth.blender import BlenderRenderer
from influx_wrap.synth.board import FRONTAL
from influx_wrap.synth.render import RenderOptions, ray_grid, render_board
from tests.cli.conftest import command_line

pytestmark = pytest.mark.system

BOARD = AprilGrid(tag_cols=11, tag_rows=8, tag_size_m=0.06, tag_spacing=0.3)
SMALL = (96, 64)
# Nothing in the middle, nothing the same in u and v: a mirrored picture would not pass.
SMALL_CAMERA = Intrinsics(70, 71, 51.3, 28.9, -0.15, 0.02, 4e-4, -6e-4)


def pose(depth_m: float = 0.72, board: AprilGrid = BOARD) -> tuple[FloatArray, FloatArray]:
    rotation = rotation_matrix((0.3, -0.45, 0.1)) @ FRONTAL
    return rotation, np.array([0, 0.03, depth_m]) - rotation @ board.points.mean(axis=0)


def exact(options: RenderOptions) -> NDArray[np.uint8]:
    rays, rng = ray_grid(SMALL_CAMERA, SMALL), np.random.default_rng(0)
    return render_board(rays, BOARD, *pose(), options, rng)


def test_corners_agree_with_the_exact_renderer_and_the_projection() -> None:
    # Few tags: with cells below 3 px the detector itself is off by as much as is allowed here.
    board = AprilGrid(tag_cols=7, tag_rows=5, tag_size_m=0.06, tag_spacing=0.3)
    camera = Intrinsics(360, 362, 248.9, 142.7, -0.15, 0.02, 4e-4, -6e-4)
    size, options = (480, 309), RenderOptions(blur_px=0.7)
    rotation, translation = pose(0.6, board)
    picture = BlenderRenderer(camera, size, board, options).render(rotation, translation)
    rays, rng = ray_grid(camera, size), np.random.default_rng(0)
    expected = render_board(rays, board, rotation, translation, options, rng)
    uv, _ = project(camera, board.points @ rotation.T + translation)

    seen, seen_exactly = detect(picture, board), detect(expected, board)
    assert seen.found.all()
    assert seen_exactly.found.all()
    for name, apart in (("renderer", seen.uv - seen_exactly.uv), ("projection", seen.uv - uv)):
        worst, shift = np.abs(apart).max(), np.abs(apart.mean(axis=0)).max()
        rms = np.sqrt(np.mean(apart**2))
        print(
            f"\n{len(uv)} corners in Blender's picture and by the exact {name}: "
            f"{rms:.4f} px RMS apart, {worst:.4f} px at most, {shift:.4f} px on average"
        )
        assert worst < 0.05
        assert shift < 0.01

    levels = picture.astype(float) - expected
    print(f"grey levels: {levels.std():.2f} of 255 RMS apart, {np.abs(levels).max():.0f} at most")
    assert np.abs(levels).max() <= 5
    assert levels.std() < 0.6
    assert abs(levels.mean()) < 0.05


@pytest.mark.parametrize(
    "options",
    [
        RenderOptions(),
        RenderOptions(blur_px=0.5, defocus_px=2.3),
        RenderOptions(black=5, white=250, background=60, vignetting=0.5, sheet_m=(1.0, 0.9)),
    ],
)
def test_pictures_agree(options: RenderOptions) -> None:
    picture = BlenderRenderer(SMALL_CAMERA, SMALL, BOARD, options, samples=256).render(*pose())
    levels = picture.astype(float) - exact(options)
    assert np.abs(levels).max() <= 8
    assert levels.std() < 1.2
    assert abs(levels.mean()) < 0.1


def test_same_picture_again_whatever_the_threads(capfd: pytest.CaptureFixture[str]) -> None:
    first, second = (
        BlenderRenderer(SMALL_CAMERA, SMALL, BOARD, RenderOptions(), samples=8, threads=threads)
        for threads in (1, 2)
    )
    picture = first.render(*pose())
    np.testing.assert_array_equal(picture, second.render(*pose()))
    first.render(*pose(1.5))
    np.testing.assert_array_equal(picture, first.render(*pose()))
    assert capfd.readouterr() == ("", "")


def test_noise_has_the_asked_strength() -> None:
    options = RenderOptions(noise=8)
    renderer = BlenderRenderer(SMALL_CAMERA, SMALL, BOARD, options, samples=1)
    picture = renderer.render(*pose(500.0), np.random.default_rng(1))
    assert picture.mean() == pytest.approx(110, abs=0.5)
    assert picture.std() == pytest.approx(8, rel=0.05)
    with pytest.raises(InputError, match="random"):
        renderer.render(*pose())


def test_beyond_the_fold_is_background() -> None:
    camera = Intrinsics(40, 40, 47.5, 31.5, -0.5)
    options = RenderOptions(background=77)
    renderer = BlenderRenderer(camera, SMALL, BOARD, options, samples=16)
    picture = renderer.render(*pose(0.25))
    _, valid = unproject(camera, np.stack(np.meshgrid(*map(np.arange, SMALL)), axis=-1))
    outside = cv2.erode((~valid).astype(np.uint8), np.ones((3, 3))) > 0
    assert outside.sum() > 100
    assert (picture[outside] == 77).all()
    assert (picture[valid] != 77).mean() > 0.9


def test_the_sphere_is_a_red_disc_around_its_projection() -> None:
    renderer = BlenderRenderer(SMALL_CAMERA, SMALL, BOARD, RenderOptions(white=250), samples=64)
    point = np.array([-0.05, 0.03, 0.2])
    picture = renderer.render_sphere(point)
    assert picture.shape == (64, 96, 3)
    assert picture[0, 0].tolist() == [250] * 3
    covered = 1 - picture[..., 1] / 250
    assert (picture[..., 0] == 250).all()
    # A fine sphere of points, its outline filled.
    direction = np.random.default_rng(0).normal(size=(200_000, 3))
    surface = point + 0.02 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    uv, _ = project(SMALL_CAMERA, surface)
    outline = cv2.convexHull(uv.astype(np.float32))[:, 0].astype(float)
    ends = np.roll(outline, -1, axis=0)
    cross = outline[:, 0] * ends[:, 1] - outline[:, 1] * ends[:, 0]
    centroid = ((outline + ends) * cross[:, None]).sum(axis=0) / (3 * cross.sum())
    assert covered.sum() == pytest.approx(abs(cross.sum()) / 2, rel=0.01)
    rows, columns = np.mgrid[:64, :96]
    found = [(covered * axis).sum() / covered.sum() for axis in (columns, rows)]
    np.testing.assert_allclose(found, centroid, atol=0.02)


def test_mistakes_are_named() -> None:
    renderer = BlenderRenderer(SMALL_CAMERA, SMALL, BOARD, RenderOptions(), samples=1)
    with pytest.raises(InputError, match="shows its back"):
        renderer.render(np.eye(3), [0, 0, 1.0])
    with pytest.raises(InputError, match="finite"):
        renderer.render_sphere([0, np.nan, 1.0])
    with pytest.raises(InputError, match="at least one sample"):
        BlenderRenderer(SMALL_CAMERA, SMALL, BOARD, RenderOptions(), samples=0)


def test_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "catalogue").mkdir()
    (tmp_path / "catalogue" / "tiny.yaml").write_text(
        "{kind: camera, name: tiny, sensor_width_mm: 28.25, sensor_height_mm: 18.17, "
        "width_px: 160, height_px: 103}"
    )
    start = ("--catalogue", tmp_path / "catalogue", "simulate", "canon17", "--camera", "tiny")
    options = ("--cells", "z3f2", "--images", "--views", 2, "--image-noise", 0, "--jobs", 1)
    done = {}
    for renderer in ("fast", "blender"):
        out = ("--renderer", renderer, "--out", tmp_path / renderer)
        done[renderer] = subprocess.run(
            command_line(*start, *options, *out),
            env=os.environ | {"FORCE_COLOR": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
    assert "1 cell of canon17" in done["blender"].stdout
    # The progress bar goes on while Blender is silenced.
    assert done["blender"].stderr.count("0/2") > 5
    for name in ("000000.png", "000001.png"):
        pictures = [cv2.imread(str(tmp_path / r / "z3f2" / "frames" / name), 0) for r in done]
        levels = pictures[1].astype(float) - pictures[0]
        assert pictures[0].std() > 10
        assert levels.std() < 1.2
