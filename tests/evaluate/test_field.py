"""The union of fields of view: against projecting into every camera."""

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.evaluate.field import N_COARSE, edge_radius, union_field
from influx_wrap.model.intrinsics import Intrinsics, project, unproject

SIZE = (3424, 2202)
PINHOLE = np.array([[2000.0, 2100.0, 1650.0, 1130.0, 0, 0, 0, 0]])


def _frames(n: int) -> np.ndarray:
    """Zooms of two lenses, mostly at their wide end, no two frames alike."""
    rng = np.random.default_rng(0)
    share = rng.uniform(0, 1, n) ** 4
    fx = 2063 * (120 / 17) ** share
    fx[::2] = 9700 * (250 / 80) ** share[::2]
    k1 = np.where(np.arange(n) % 2, -0.15 + 0.3 * share, -0.6 + 50 * share**3)
    k2, p1, p2 = rng.normal(0, [[0.01], [1e-3], [1e-3]], (3, n))
    centre = np.array(SIZE) / 2 - 0.5 + rng.normal(0, 20, (n, 2))
    return np.column_stack([fx, fx * 1.001, centre, k1, k2, p1, p2])


def test_a_pinhole_sees_a_rectangle() -> None:
    fx, fy, cx, cy = PINHOLE[0, :4]
    angles = np.radians([0, 90, 180, 270, 30])
    straight = [(3423.5 - cx) / fx, (2201.5 - cy) / fy, (cx + 0.5) / fx, (cy + 0.5) / fy]
    slanted = min(straight[0] / np.cos(angles[4]), straight[1] / np.sin(angles[4]))
    assert edge_radius(PINHOLE, SIZE, angles)[0] == pytest.approx([*straight, slanted], rel=1e-9)


def test_distortion_moves_the_edge() -> None:
    camera = Intrinsics(2063.0, 2070.0, 1700.0, 1110.0, k1=-0.1, k2=0.02, p1=2e-3, p2=-1e-3)
    border = [[3423.5, 1110.0], [1700.0, -0.5], [-0.5, 300.0], [3000.0, 2201.5]]
    (a, b), valid = (values.T for values in unproject(camera, border))
    assert valid.all()
    found = edge_radius(camera.array[None], SIZE, np.arctan2(b, a))[0]
    assert found == pytest.approx(np.hypot(a, b), rel=1e-8)


def test_the_fold_is_the_edge() -> None:
    camera = Intrinsics(500.0, 500.0, 1711.5, 1100.5, k1=-0.3)
    angles = np.linspace(0, 6, 20)
    assert edge_radius(camera.array[None], SIZE, angles) == pytest.approx(np.sqrt(1 / 0.9))


def test_union_against_every_camera() -> None:
    frames = _frames(60)
    rng = np.random.default_rng(2)
    points = np.column_stack([rng.uniform(-1.3, 1.3, (40_000, 2)), np.ones(40_000)])
    points *= rng.uniform(0.5, 50, (40_000, 1))
    points[::10] *= -1
    seen = np.zeros(len(points), dtype=bool)
    nearly = np.zeros(len(points), dtype=bool)
    for theta in frames:
        uv, valid = project(Intrinsics(*theta), points)
        with np.errstate(invalid="ignore"):
            edge = np.minimum(uv + 0.5, np.array(SIZE) - 0.5 - uv).min(axis=1)
        seen |= valid & (edge >= 0)
        nearly |= valid & (np.abs(edge) < 2)
    found = union_field(frames, SIZE).contains(points)
    assert 0.1 < seen.mean() < 0.6
    np.testing.assert_array_equal(found[~nearly], seen[~nearly])
    assert (found != seen).mean() < 1e-3


def test_a_corner_between_the_directions() -> None:
    """A camera that is widest nowhere but at its corners, where nothing is looked up at first."""
    pinhole = np.array([[2000.0, 2000, 1711.5, 1100.5, 0, 0, 0, 0]])
    stretched = np.array([[2490.0, 2490, 1711.5, 1100.5, -0.2, 0, 0, 0]])
    coarse = 2 * np.pi * np.arange(N_COARSE) / N_COARSE
    assert (edge_radius(stretched, SIZE, coarse) <= edge_radius(pinhole, SIZE, coarse)).all()
    corner = np.array([np.arctan2(SIZE[1], SIZE[0])])
    expected = edge_radius(stretched, SIZE, corner)[0]
    assert expected > 1.02 * edge_radius(pinhole, SIZE, corner)[0]
    field = union_field(np.vstack([pinhole, stretched]), SIZE)
    assert field.edge(corner) == pytest.approx(expected, rel=5e-4)


def test_cameras_that_do_not_count() -> None:
    points = np.array([[0.0, 0.0, 1.0], [3.0, 0.0, 1.0]])
    unknown = np.full((1, 8), np.nan)
    outside = PINHOLE.copy()
    outside[0, 2] = -9000.0
    field = union_field(np.vstack([unknown, outside, PINHOLE]), SIZE)
    assert field.contains(points).tolist() == [True, False]
    np.testing.assert_array_equal(field.radius, union_field(PINHOLE, SIZE).radius)
    for frames in (unknown, outside, np.zeros((0, 8))):
        with pytest.raises(InputError, match="no point is in view"):
            union_field(frames, SIZE)
