"""How the simulated board is held."""

import numpy as np
import pytest

from influx_wrap.model.experiment import Plan
from influx_wrap.model.intrinsics import project
from influx_wrap.model.optics import lens_to_object_m
from influx_wrap.model.pose import transform
from influx_wrap.synth import board as synth_board
from tests.lenses import true_intrinsics


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synth_board, "JITTER", 0.0)
    monkeypatch.setattr(synth_board, "JITTER_DEG", 0.0)


def poses(plan: Plan, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rotations, translations and the board's points in camera space."""
    cell, truth = plan.cell(name), true_intrinsics(plan)[name]
    assert cell.board is not None
    depth_m = lens_to_object_m(cell.cfl_mm, cell.fd_m)
    rotations, translations = synth_board.board_poses(
        cell.board, plan.camera, truth, depth_m, np.random.default_rng(0)
    )
    return rotations, translations, transform(rotations, translations, cell.board.grid.points)


@pytest.mark.usefixtures("steady")
def test_five_orientations_of_twenty_positions(canon: Plan) -> None:
    rotations, _, _ = poses(canon, "z3f3")
    assert rotations.shape == (100, 3, 3)
    np.testing.assert_allclose(rotations[:20], np.diag([1.0, -1, -1])[None].repeat(20, 0))
    c = np.sqrt(0.5)
    flip = np.diag([1.0, -1, -1])
    about_x = np.array([[1, 0, 0], [0, c, -c], [0, c, c]]) @ flip
    about_y = np.array([[c, 0, c], [0, 1, 0], [-c, 0, c]]) @ flip
    in_the_middle = 7
    np.testing.assert_allclose(rotations[20 + in_the_middle], about_x, atol=1e-12)
    np.testing.assert_allclose(rotations[60 + in_the_middle], about_y, atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(rotations), 1)


@pytest.mark.parametrize("name", ["z0f0", "z0f5", "z7f0"])
def test_no_board_is_seen_edge_on(canon: Plan, name: str) -> None:
    rotations, _, points = poses(canon, name)
    middle = (points[:, 0] + points[:, -1]) / 2
    towards_camera = -middle / np.linalg.norm(middle, axis=1, keepdims=True)
    incidence_deg = np.degrees(np.arccos((rotations[:, :, 2] * towards_camera).sum(axis=1)))
    assert incidence_deg.max() < synth_board.MAX_INCIDENCE_DEG + 1e-6
    assert (incidence_deg > 40).sum() > 20


@pytest.mark.usefixtures("steady")
@pytest.mark.parametrize("name", ["z0f0", "z3f3", "z7f0"])
def test_the_middle_is_on_the_plane_in_focus(canon: Plan, name: str) -> None:
    _, _, points = poses(canon, name)
    middle = (points.max(axis=1) + points.min(axis=1)) / 2
    cell = canon.cell(name)
    np.testing.assert_allclose(middle[:, 2], lens_to_object_m(cell.cfl_mm, cell.fd_m), rtol=1e-9)


@pytest.mark.usefixtures("steady")
def test_an_upright_board_is_seen_upright(canon: Plan) -> None:
    _, _, points = poses(canon, "z3f3")
    uv, _ = project(true_intrinsics(canon)["z3f3"], points[7])
    bottom_left, bottom_right, top_left = uv[0], uv[21], uv[-22]
    assert bottom_right[0] > bottom_left[0]
    assert top_left[1] < bottom_left[1]


@pytest.mark.usefixtures("steady")
@pytest.mark.parametrize("name", ["z0f0", "z3f3", "z7f0"])
def test_outermost_positions_reach_over_the_edge(canon: Plan, name: str) -> None:
    cell = canon.cell(name)
    assert cell.board is not None
    _, _, points = poses(canon, name)
    left_middle = points[5].reshape(16, 22, 3)
    uv, valid = project(true_intrinsics(canon)[name], left_middle)
    assert valid.any()
    beyond = np.nanmean(uv[..., 0] < 0)
    assert 0.03 < beyond < 0.2


def test_hands_shake_a_little(canon: Plan) -> None:
    rotations, translations, points = poses(canon, "z3f3")
    angles = np.degrees(
        np.arccos((np.trace(rotations[:20] @ np.diag([1, -1, -1]), axis1=1, axis2=2) - 1) / 2)
    )
    assert 1 < angles.mean() < 6
    middle = (points.max(axis=1) + points.min(axis=1)) / 2
    cell = canon.cell("z3f3")
    depth = middle[:, 2] / lens_to_object_m(cell.cfl_mm, cell.fd_m) - 1
    assert 0.01 < depth.std() < 0.03
    assert len(np.unique(translations[:, 2])) == 100


def test_pixels_beyond_the_fold_do_not_break_the_grid(canon: Plan) -> None:
    truth = true_intrinsics(canon, pp_offset_px=(200.0, 150.0))["z0f0"]
    cell = canon.cell("z0f0")
    assert cell.board is not None
    rotations, translations = synth_board.board_poses(
        cell.board, canon.camera, truth, cell.fd_m - 0.02, np.random.default_rng(0)
    )
    assert np.isfinite(rotations).all()
    assert np.isfinite(translations).all()
