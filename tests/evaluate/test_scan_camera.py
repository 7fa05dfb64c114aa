"""Where the camera stands in a scan: in simulated scans whose scanner and floor are known."""

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.evaluate.scan_camera import CAMERA_HEIGHT_M, ScanCamera, look, place_camera
from influx_wrap.model.arrays import FloatArray
from tests.scans import scan_room, turned


def placed(points: FloatArray, size: int = 10_000) -> ScanCamera:
    pieces = [points[k : k + size] for k in range(0, len(points), size)]
    return place_camera(pieces, pieces)


def azimuth_deg(camera: ScanCamera) -> float:
    return float(np.degrees(np.arctan2(camera.axes[2, 1], camera.axes[2, 0])))


@pytest.mark.parametrize("height", [1.1, 1.44, 1.83, 2.4])
def test_it_stands_on_the_floor(height: float) -> None:
    camera = placed(scan_room(height))
    assert camera.position[:2] == pytest.approx([0, 0], abs=0)
    assert camera.position[2] + height == pytest.approx(CAMERA_HEIGHT_M, abs=0.03)


@pytest.mark.parametrize("turn", [0, 77, 180, -100])
def test_it_looks_where_things_are(turn: int) -> None:
    """The room's boxes are around azimuth 0, its other walls are bare."""
    camera = placed(turned(scan_room(1.7), turn))
    difference = (azimuth_deg(camera) - turn + 180) % 360 - 180
    assert abs(difference) < 15
    assert camera.axes @ camera.axes.T == pytest.approx(np.eye(3), abs=1e-12)
    assert np.linalg.det(camera.axes) == pytest.approx(1)
    assert camera.axes[1] == pytest.approx([0, 0, -1])


def test_density_and_order_do_not_matter() -> None:
    """A wall scanned ten times as densely holds nothing more."""
    points = scan_room(1.7)
    rng = np.random.default_rng(0)
    behind = points[points[:, 0] < -2]
    more = np.concatenate([points, *(behind + rng.normal(0, 1e-4, behind.shape) for _ in range(9))])
    shuffled = rng.permutation(more)
    for other in (more, shuffled):
        assert abs(azimuth_deg(placed(other)) - azimuth_deg(placed(points))) <= 3
        assert placed(other).position == pytest.approx(placed(points).position, abs=0.021)
    assert placed(points, 333).axes.tolist() == placed(points).axes.tolist()


def test_a_table_is_not_the_floor() -> None:
    rng = np.random.default_rng(1)
    table = np.column_stack([rng.uniform(-1, 1, (80_000, 2)), np.full(80_000, -0.9)])
    camera = placed(np.concatenate([scan_room(1.7), table]))
    assert camera.position[2] == pytest.approx(CAMERA_HEIGHT_M - 1.7, abs=0.03)


def test_without_a_floor_it_stays_at_the_scanner() -> None:
    points = scan_room(1.7)
    camera = placed(points[points[:, 2] > -0.2])
    assert camera.position.tolist() == [0, 0, 0]


def test_a_camera_by_hand() -> None:
    camera = look([1, 2, 3], [0, 2, 0], [0, 0.3, 5])
    points = np.array([[1.0, 12, 3], [2, 12, 3], [1, 12, 4]])
    expected = [[0, 0, 10], [1, 0, 10], [0, -1, 10]]
    assert camera.to_camera(points) == pytest.approx(np.array(expected))


@pytest.mark.parametrize(("forward", "up"), [([0, 0, 2], [0, 0, -1]), ([0, 0, 0], [0, 0, 1])])
def test_no_direction(forward: list[float], up: list[float]) -> None:
    with pytest.raises(InputError, match="two directions"):
        look([0, 0, 0], forward, up)
