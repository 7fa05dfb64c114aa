"""The jerky motion of a board: held, moved smoothly, and seen by a shutter."""

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.pose import rotation_matrix
from influx_wrap.synth.motion import (
    HOLD_FRAMES,
    MOVE_FRAMES,
    Trajectory,
    between,
    jerky,
    standing,
)

MIDDLE = np.array([0.4, 0.3, 0.0])
TREMOR_RAD = 1e-4


def key_poses(n: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(5)
    rotations = rotation_matrix(rng.uniform(-0.6, 0.6, (n, 3))) @ np.diag([1.0, -1.0, -1.0])
    centres = np.array([0, 0, 2.0]) + rng.uniform(-0.5, 0.5, (n, 3))
    return rotations, centres - rotations @ MIDDLE


def moved(n: int = 40, seed: int = 0) -> Trajectory:
    return jerky(*key_poses(n), MIDDLE, TREMOR_RAD, np.random.default_rng(seed))


def runs(pose: FloatArray) -> list[tuple[int, int]]:
    """(value, length) of the runs of equal values."""
    edges = np.flatnonzero(np.diff(pose)) + 1
    return [(int(part[0]), len(part)) for part in np.split(pose, edges)]


def test_every_pose_is_held_and_left_once_in_order() -> None:
    found = runs(moved().pose)
    assert [value for value, _ in found[::2]] == list(range(40))
    assert [value for value, _ in found[1::2]] == [-1] * 39
    held, on_the_way = ({length for _, length in found[k::2]} for k in (0, 1))
    assert held == set(range(HOLD_FRAMES[0], HOLD_FRAMES[1] + 1))
    assert on_the_way == set(range(MOVE_FRAMES[0], MOVE_FRAMES[1] + 1))


def test_held_still_but_for_a_tremor() -> None:
    rotations, translations = key_poses(40)
    found = moved()
    held = found.pose >= 0
    np.testing.assert_allclose(
        found.rotations[held], np.repeat(rotations[found.pose[held], None], 2, axis=1), atol=1e-12
    )
    away = found.translations[held] - translations[found.pose[held], None]
    centre = rotations @ MIDDLE + translations
    seen = np.abs(away).max(axis=(1, 2)) / np.linalg.norm(centre, axis=1)[found.pose[held]]
    assert 0.9 * TREMOR_RAD < seen.max() <= TREMOR_RAD * (1 + 1e-9)


def test_moves_are_smooth_and_much_faster() -> None:
    found = moved()
    centres = found.rotations @ MIDDLE + found.translations
    speed = np.linalg.norm(centres[:, 1] - centres[:, 0], axis=1)
    on_the_way = found.pose < 0
    assert speed[on_the_way].min() > 5 * speed[~on_the_way].max()
    # No frame begins elsewhere than the one before it was heading: no jump is longer than
    # the fastest moment of a smooth move of this length.
    gap = np.linalg.norm(centres[1:, 0] - centres[:-1, 1], axis=1)
    longest = np.linalg.norm(np.diff(centres[found.pose >= 0][:, 0], axis=0), axis=1).max()
    assert gap.max() < 1.5 * longest * 0.5 / MOVE_FRAMES[0] + 1e-3
    for matrices in (found.rotations, found.mid_exposure()[0]):
        np.testing.assert_allclose(np.linalg.det(matrices), 1, atol=1e-12)


def test_half_way_through_an_exposure() -> None:
    found = moved(5)
    rotations, translations = found.mid_exposure()
    for frame in range(len(found.pose)):
        rotation, translation = between(
            found.rotations[frame], found.translations[frame], [0.0, 0.5, 1.0]
        )
        np.testing.assert_allclose(rotation[::2], found.rotations[frame], atol=1e-12)
        np.testing.assert_allclose(translation[::2], found.translations[frame], atol=1e-12)
        np.testing.assert_allclose(rotation[1], rotations[frame], atol=1e-12)
        np.testing.assert_allclose(translation[1], translations[frame], atol=1e-12)
        there, back = rotation[1] @ rotation[0].T, rotation[2] @ rotation[1].T
        np.testing.assert_allclose(there, back, atol=1e-12)


def test_same_seed_same_motion() -> None:
    np.testing.assert_array_equal(moved(seed=1).translations, moved(seed=1).translations)
    assert len(moved(seed=1).pose) != len(moved(seed=2).pose)


def test_one_pose_and_none() -> None:
    assert set(moved(1).pose.tolist()) == {0}
    with pytest.raises(InputError, match="at least one pose"):
        moved(0)


def test_standing() -> None:
    rotations, translations = key_poses(3)
    found = standing(rotations, translations)
    assert found.pose.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found.rotations[:, 0], found.rotations[:, 1])
    np.testing.assert_allclose(found.mid_exposure()[0], rotations, atol=1e-15)
    np.testing.assert_array_equal(found.mid_exposure()[1], translations)
