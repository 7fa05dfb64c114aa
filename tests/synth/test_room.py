"""Pictures of the room against OpenCV's camera and a plain-numpy twin of the renderer."""

import math
from dataclasses import replace

import cv2
import numpy as np
import pytest

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics, fold_radius, unproject
from influx_wrap.model.pose import rotation_matrix
from influx_wrap.synth import room_kernels as kernels
from influx_wrap.synth.room import Room, _bounds, _lit, _solids, make_room, render_room, walk

SIZE = (240, 154)
WIDE = Intrinsics(150.0, 151.0, 121.3, 74.6, -0.12, 0.01, 0.003, -0.002)
LONG = Intrinsics(1100.0, 1100.0, 119.5, 76.5, 5.0)
NO_RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def room() -> Room:
    return make_room(1.44, np.random.default_rng(3))


@pytest.fixture(scope="module")
def poses() -> tuple[FloatArray, FloatArray]:
    return walk(60, np.random.default_rng(4))


def camera_matrix(camera: Intrinsics) -> tuple[FloatArray, FloatArray]:
    """OpenCV's matrix (3, 3) and distortion (4,)."""
    matrix = np.array([[camera.fx, 0, camera.cx], [0, camera.fy, camera.cy], [0, 0, 1]])
    return matrix, camera.array[4:]


def projected(
    camera: Intrinsics, rotation: FloatArray, translation: FloatArray, points: FloatArray
) -> FloatArray:
    """OpenCV's pixels (n, 2) of points (n, 3) in the world."""
    vector, _ = cv2.Rodrigues(rotation)
    return cv2.projectPoints(points, vector, translation, *camera_matrix(camera))[0][:, 0]


def met(
    room: Room, rotation: FloatArray, translation: FloatArray, ab: FloatArray
) -> tuple[np.ndarray, FloatArray]:
    """Twin of ``meet``: surfaces (n,) and world points (n, 3) of rays (n, 2), box by box."""
    origin = -rotation.T @ translation
    rays = np.column_stack([ab, np.ones(len(ab))]) @ rotation
    nearest, surface = np.full(len(ab), np.inf), np.full(len(ab), -1)
    for k, (turn, centre, half) in enumerate(
        zip(room.rotations, room.centres_m, room.half_m, strict=True)
    ):
        start, along = (origin - centre) @ turn, rays @ turn
        depths = np.stack([(side * half - start) / along for side in (-1, 1)], axis=-1)
        enter, leave = depths.min(axis=-1), depths.max(axis=-1)
        if k == 0:
            depth, axis = leave.min(axis=1), leave.argmin(axis=1)
            ahead = np.ones(len(ab), dtype=bool)
        else:
            depth, axis = enter.max(axis=1), enter.argmax(axis=1)
            ahead = (depth > 0) & (depth < leave.min(axis=1))
        forward = np.take_along_axis(along, axis[:, None], axis=1)[:, 0] > 0
        better = ahead & (depth < nearest)
        nearest = np.where(better, depth, nearest)
        surface = np.where(better, 6 * k + 2 * axis + (forward == (k == 0)), surface)
    return surface, origin + nearest[:, None] * rays


def painted(room: Room, surface: int, world: FloatArray, jacobian: FloatArray) -> FloatArray:
    """Twin of ``paint``: colours (n, 3) at world points (n, 3) of a surface; ``jacobian``
    (n, 3, 2) takes pixels to metres along it."""
    keys = np.random.default_rng(room.seed).integers(
        1 << 32, size=(6 * len(room.half_m), kernels.N_OCTAVES), dtype=np.uint32
    )[surface]
    box, normal = surface // 6, surface % 6 // 2
    axes = room.rotations[box][:, [(normal + 1) % 3, (normal + 2) % 3]]
    place, footprint = (world - room.centres_m[box]) @ axes, axes.T @ jacobian
    total = np.zeros((len(world), 3))
    for octave, key in enumerate(keys.tolist()):
        per_m = kernels.FINER**octave / kernels.COARSEST_M
        angle = kernels.TURNS_RAD[octave % 2]
        sides = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        along = per_m * place @ sides
        widths = per_m * kernels.SOFT_PX * np.linalg.norm(sides.T @ footprint, axis=-1)
        weight = np.clip(2 - widths, 0, 1).prod(axis=1)
        first = np.floor(along - 0.5)
        share = np.clip((along - first - 1) / np.minimum(widths, 1) + 0.5, 0, 1)
        mean = np.zeros((len(world), 3))
        for i, j in np.ndindex(2, 2):
            part = np.abs(1 - i - share[:, 0]) * np.abs(1 - j - share[:, 1])
            mean += part[:, None] * square_colours(first.astype(np.int64) + np.array([i, j]), key)
        total += weight[:, None] * (mean / 127.5 - 1)
    total *= kernels.CONTRAST
    return total / (1 + np.abs(total))


def square_colours(square: np.ndarray, key: int) -> FloatArray:
    """Colours (n, 3), of 255, of squares (n, 2): the kernel's hash in Python's integers."""
    colours = []
    for column, row in square.tolist():
        h = (column * 0x9E3779B1 ^ row * 0x85EBCA77 ^ key) & 0xFFFFFFFF
        h = (h ^ h >> 15) * 0x2C1B3C6D & 0xFFFFFFFF
        h = (h ^ h >> 12) * 0x9E3779B1 & 0xFFFFFFFF
        h ^= h >> 15
        colours.append([0.7 * (h >> 24) + 0.3 * (h >> shift & 255) for shift in (0, 8, 16)])
    return np.array(colours)


def expected(
    room: Room,
    camera: Intrinsics,
    rotation: FloatArray,
    translation: FloatArray,
    pixels: FloatArray,
) -> tuple[FloatArray, np.ndarray]:
    """Brightness (n, 3) at pixels (n, 2) by OpenCV's camera and the twins, and the surfaces."""

    def rays(offset: tuple[float, float]) -> FloatArray:
        matrix, distortion = camera_matrix(camera)
        criteria = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 100, 1e-14)
        uv = (pixels + np.array(offset)).reshape(-1, 1, 2)
        return cv2.undistortPointsIter(uv, matrix, distortion, None, None, criteria)[:, 0]

    step = 1e-3
    surface, world = met(room, rotation, translation, rays((0, 0)))
    # Footprints by differences along the surface, which stay on its plane.
    moved = [met(room, rotation, translation, rays(d))[1] for d in ((step, 0), (0, step))]
    jacobian = np.stack([(other - world) / step for other in moved], axis=-1)
    light = np.empty((len(pixels), 3))
    for s in np.unique(surface):
        own = surface == s
        share = room.painted[s // 6] * painted(room, s, world[own], jacobian[own])
        light[own] = _lit(room)[s] * (1 + share)
    return light, surface


@pytest.mark.parametrize(("camera", "frame"), [(WIDE, 0), (WIDE, 40), (LONG, 25)])
def test_surfaces_equal_those_of_every_ray_against_every_box(
    room: Room, poses: tuple[FloatArray, FloatArray], camera: Intrinsics, frame: int
) -> None:
    v, u = np.mgrid[: SIZE[1], : SIZE[0]].astype(float)
    ab, valid = unproject(camera, np.stack([u, v], axis=-1))
    assert valid.all()
    backwards = rotation_matrix([0.1, math.pi - 0.3, 0.0])
    for turn in (np.eye(3), backwards):
        rotation, translation = turn @ poses[0][frame], turn @ poses[1][frame]
        found = np.empty(u.shape, dtype=np.int32)
        a, b = np.ascontiguousarray(ab[..., 0]), np.ascontiguousarray(ab[..., 1])
        solids = _solids(room, rotation, translation)
        kernels.find_surfaces(a, b, solids, _bounds(room, rotation, translation), found)
        twin, _ = met(room, rotation, translation, ab.reshape(-1, 2))
        np.testing.assert_array_equal(found.ravel(), twin)


@pytest.mark.parametrize(("camera", "frame"), [(WIDE, 10), (LONG, 50)])
def test_a_picture_equals_its_twin(
    room: Room, poses: tuple[FloatArray, FloatArray], camera: Intrinsics, frame: int
) -> None:
    rotation, translation = poses[0][frame], poses[1][frame]
    picture = render_room(room, camera, SIZE, rotation, translation, NO_RNG)
    pixels = np.random.default_rng(1).integers(1, np.array(SIZE) - 1, (400, 2))
    light, surface = expected(room, camera, rotation, translation, pixels.astype(float))
    corners = [(i, j) for i in (-0.6, 0.6) for j in (-0.6, 0.6)]
    around = [
        expected(room, camera, rotation, translation, pixels + np.array(c))[1] for c in corners
    ]
    inner = np.all([other == surface for other in around], axis=0)
    assert inner.sum() > 250
    off = np.abs(picture[pixels[:, 1], pixels[:, 0]][inner] - light[inner]).max(axis=1)
    # Rounded to a byte, and computed with 24 bits where an edge may be steep.
    assert np.quantile(off, 0.98) < 0.8
    assert off.max() < 4


def test_a_patch_of_paint_is_where_opencv_projects_it(
    room: Room, poses: tuple[FloatArray, FloatArray]
) -> None:
    rotation, translation = poses[0][30], poses[1][30]
    picture = render_room(room, WIDE, SIZE, rotation, translation, NO_RNG).mean(axis=2)
    half = 10
    for u, v in ((30, 20), (200, 25), (30, 130), (215, 125)):
        # A surface's point that is seen about there, back through OpenCV's projection.
        ab, _ = unproject(WIDE, [[u + 0.3, v - 0.2]])
        _, world = met(room, rotation, translation, ab)
        (uv,) = projected(WIDE, rotation, translation, world)
        window = np.stack(np.meshgrid(*(np.arange(-half, half + 1.0),) * 2), axis=-1)
        pixels = np.round(uv) + window
        light, _ = expected(room, WIDE, rotation, translation, pixels.reshape(-1, 2))
        patch = light.mean(axis=1).reshape(window.shape[:2])
        column, row = pixels[..., 0].astype(int), pixels[..., 1].astype(int)
        off = picture[row, column] - patch
        down, right = (slope.ravel() for slope in np.gradient(patch))
        shift, *_ = np.linalg.lstsq(np.column_stack([right, down]), off.ravel(), rcond=None)
        assert np.linalg.norm(shift) < 0.02
        assert np.corrcoef(picture[row, column].ravel(), patch.ravel())[0, 1] > 0.99


@pytest.mark.parametrize("camera", [WIDE, LONG])
def test_a_mark_is_where_opencv_projects_it(camera: Intrinsics) -> None:
    """A white plate before dark walls: the middle of its light, and of its projected area."""
    rng = np.random.default_rng(5)
    for place in ((0.1, 0.05), (-0.3, 0.2), (0.35, -0.2)):
        scale = 1.5 / (camera.fx / WIDE.fx)
        centre = np.array([place[0] * scale * 5, place[1] * scale * 5, 5.0])
        size = 9 * 5.0 / camera.fx
        turn = rotation_matrix(rng.uniform(-0.5, 0.5, 3))
        room = Room(
            np.array([np.eye(3), turn]),
            np.array([[0, 0, 3.0], centre]),
            np.array([[6, 6, 6.0], [size / 2, size / 2, 1e-6]]),
            np.array([[20.0] * 3, [200.0] * 3]),
            np.zeros(2),
            0,
        )
        picture = render_room(room, camera, SIZE, np.eye(3), np.zeros(3), NO_RNG)
        flat = np.stack(np.meshgrid(*(np.linspace(-0.5, 0.5, 41) * size,) * 2), axis=-1)
        points = np.column_stack([flat.reshape(-1, 2), np.zeros(41 * 41)]) @ turn.T + centre
        uv = projected(camera, np.eye(3), np.zeros(3), points)
        middle = uv.mean(axis=0)
        v, u = np.mgrid[: SIZE[1], : SIZE[0]]
        walls = render_room(
            replace(room, tints=room.tints * [[1], [0]] + [[0], [20]]),
            camera, SIZE, np.eye(3), np.zeros(3), NO_RNG,
        )  # fmt: skip
        light = picture[..., 1].astype(float) - walls[..., 1]
        light[np.hypot(u - middle[0], v - middle[1]) > 15] = 0
        found = np.array([(light * u).sum(), (light * v).sum()]) / light.sum()
        assert light.sum() > 3000
        assert np.linalg.norm(found - middle) < 0.1


def test_small_pixels_averaged_are_a_large_one(
    room: Room, poses: tuple[FloatArray, FloatArray]
) -> None:
    """No aliasing: detail too fine for a pixel is gone, not sampled."""
    n = 6
    fine = Intrinsics(
        n * WIDE.fx, n * WIDE.fy, n * (WIDE.cx + 0.5) - 0.5, n * (WIDE.cy + 0.5) - 0.5
    )
    coarse = Intrinsics(WIDE.fx, WIDE.fy, WIDE.cx, WIDE.cy)
    pose = poses[0][20], poses[1][20]
    large = render_room(room, coarse, SIZE, *pose, NO_RNG).astype(float)
    small = render_room(room, fine, (n * SIZE[0], n * SIZE[1]), *pose, NO_RNG).astype(float)
    # As the paint, over somewhat more than a pixel.
    mean = cv2.blur(small, (round(kernels.SOFT_PX * n),) * 2)[n // 2 :: n, n // 2 :: n]
    off = large - mean
    assert abs(off.mean()) < 1
    assert off.std() < 0.3 * large.std()
    sampled = small[n // 2 :: n, n // 2 :: n] - mean
    assert off.std() < 0.6 * sampled.std()


def test_features_are_many_and_move_as_the_geometry_says(room: Room) -> None:
    size, camera = (480, 309), Intrinsics(420.0, 420.0, 239.5, 154.0, -0.05)
    zoomed = replace(camera, fx=432.0, fy=432.0)
    rotations, translations = walk(120, np.random.default_rng(8))
    rng = np.random.default_rng(1)
    pictures = [
        render_room(room, one, size, rotations[k], translations[k], rng, noise=2.0)
        for one, k in ((camera, 60), (zoomed, 61))
    ]
    sift = cv2.SIFT_create()
    (first, one), (second, two) = (
        sift.detectAndCompute(cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY), None)
        for picture in pictures
    )
    assert min(len(first), len(second)) > 1000
    pairs = cv2.BFMatcher().knnMatch(one, two, k=2)
    good = [m for m, n in pairs if m.distance < 0.75 * n.distance]
    assert len(good) > 500
    start = np.array([first[m.queryIdx].pt for m in good])
    ends = np.array([second[m.trainIdx].pt for m in good])
    ab, _ = unproject(camera, start)
    _, world = met(room, rotations[60], translations[60], ab)
    moved = projected(zoomed, rotations[61], translations[61], world)
    assert np.median(np.linalg.norm(moved - start, axis=1)) > 2
    off = np.linalg.norm(moved - ends, axis=1)
    assert np.median(off) < 0.3
    assert np.mean(off < 2) > 0.9


def test_noise_and_vignetting(room: Room, poses: tuple[FloatArray, FloatArray]) -> None:
    pose = poses[0][5], poses[1][5]
    plain = render_room(room, WIDE, SIZE, *pose, NO_RNG).astype(float)
    noisy = render_room(room, WIDE, SIZE, *pose, np.random.default_rng(2), noise=5.0)
    assert (noisy - plain)[plain > 30].std() == pytest.approx(5, rel=0.03)
    dim = render_room(room, WIDE, SIZE, *pose, NO_RNG, vignetting=0.4)
    assert dim[0, 0].sum() == pytest.approx(0.6 * plain[0, 0].sum(), abs=3)
    middle = SIZE[1] // 2, SIZE[0] // 2
    np.testing.assert_allclose(dim[middle], plain[middle], atol=1)


def test_beyond_the_fold_is_black(room: Room, poses: tuple[FloatArray, FloatArray]) -> None:
    camera = replace(WIDE, k1=-0.4, k2=0.0, p1=0.0, p2=0.0)
    picture = render_room(room, camera, SIZE, poses[0][0], poses[1][0], NO_RNG)
    fold = fold_radius(camera.k1, 0)
    rim = fold * (1 + camera.k1 * fold**2)
    v, u = np.mgrid[: SIZE[1], : SIZE[0]]
    radius = np.hypot((u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy)
    assert (radius > rim + 0.02).any()
    assert not picture[radius > rim + 0.02].any()
    assert picture[radius < rim - 0.02].any(axis=-1).all()


def test_the_walk_is_smooth_and_free(room: Room) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        place = make_room(1.44, rng)
        rotations, translations = walk(100, rng)
        np.testing.assert_allclose(
            rotations @ rotations.transpose(0, 2, 1), np.tile(np.eye(3), (100, 1, 1)), atol=1e-12
        )
        positions = -np.einsum("fji,fj->fi", rotations, translations)
        steps = np.linalg.norm(np.diff(positions, axis=0), axis=1)
        assert steps.min() > 0
        assert steps.max() < 0.06
        turns = np.einsum("fij,fij->f", rotations[1:], rotations[:-1])
        assert np.degrees(np.arccos((turns - 1) / 2)).max() < 1
        local = np.einsum("bji,fbj->fbi", place.rotations, positions[:, None] - place.centres_m)
        inside = (np.abs(local) < place.half_m + 0.2).all(axis=-1)
        assert inside[:, 0].all()
        assert not inside[:, 1:].any()
