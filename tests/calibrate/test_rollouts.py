"""Orders, fences, the choice of a rollout and the fallback, by hand-computed examples."""

import dataclasses
import importlib

import numpy as np
import pytest

from influx_wrap.calibrate.calibrator import calibrate
from influx_wrap.calibrate.incremental import Rollout
from influx_wrap.calibrate.recipe import RECIPES
from influx_wrap.calibrate.rollouts import (
    RolloutStore,
    inside_fences,
    principal_point_drift_percent,
    select_rollout,
    view_orders,
)
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics, image_centre
from tests.calibrate.scenes import CAMERA, IMAGE_SIZE, board_scene


def rollout(fx: float, fy: float, cx: float, cy: float, *, converged: bool = True) -> Rollout:
    """A rollout of which only the intrinsics matter."""
    theta = np.array([fx, fy, cx, cy, 0, 0, 0, 0], dtype=float)
    empty = np.empty(0)
    return Rollout(
        theta=theta if converged else np.full(8, np.nan), kept=empty.astype(np.int64),
        poses=empty, verdict=empty.astype(np.int64), gain_bits=empty, weights=empty,
        information=np.eye(8), restarts=0, converged=converged,
    )  # fmt: skip


def test_fences() -> None:
    """Quartiles 12.75 and 16.25: the fences are at 7.5 and 21.5."""
    values = np.array([[11.0, 12, 13, 14, 15, 16, 17, 100]]).T
    assert inside_fences(values).tolist() == [True] * 7 + [False]
    for value, inside in ((21.5, True), (21.6, False)):
        edge = np.array([[11.0, 12, 13, 14, 15, 16, 17, value]]).T
        assert inside_fences(edge)[-1] == inside


def test_fences_of_equal_values_keep_them_all() -> None:
    values = np.full((5, 2), 1711.5)
    values[2] += 1e-10
    assert inside_fences(values).all()


def test_an_outlier_in_any_parameter_is_out() -> None:
    values = np.tile(np.arange(10.0)[:, None], (1, 4)) + 100
    values[2, 0], values[5, 3] = 1e4, -1e4
    expected = np.ones(10, dtype=bool)
    expected[[2, 5]] = False
    assert (inside_fences(values) == expected).all()


@pytest.fixture
def seven() -> list[Rollout]:
    """Six rollouts around (1000, 2000, 500, 250) and one far off in cy.

    The quartiles of cy are 248.5 and 252.5, its fences 242.5 and 258.5. Without the last
    rollout the medians are 1000, 2000, 500 and 250, and the summed deviations in per cent
        0:  1.2 + 0.6 + 1.2 + 1.2 = 4.2
        1:  1.2 + 0.6 + 1.2 + 1.2 = 4.2
        2:  0.4 + 0.4 + 0.4 + 0.4 = 1.6
        3:  0.4 + 0.2 + 0.4 + 0.4 = 1.4
        4:  0.8 + 0.2 + 0.8 + 0.8 = 2.6
        5:  0.8 + 0.4 + 0.8 + 0.8 = 2.8
    """
    return [
        rollout(988, 2012, 506, 253),
        rollout(1012, 1988, 494, 247),
        rollout(1004, 1992, 498, 251),
        rollout(996, 1996, 502, 249),
        rollout(1008, 2004, 504, 252),
        rollout(992, 2008, 496, 248),
        rollout(1000, 2000, 500, 300),
    ]


SCORES = [4.2, 4.2, 1.6, 1.4, 2.6, 2.8]


def test_the_rollout_closest_to_the_medians_is_chosen(seven: list[Rollout]) -> None:
    chosen, inside, scores = select_rollout(seven)
    assert inside.tolist() == [True] * 6 + [False]
    np.testing.assert_allclose(scores[:6], SCORES, rtol=1e-12)
    assert np.isnan(scores[6])
    assert chosen == 3


def test_failed_rollouts_count_for_nothing(seven: list[Rollout]) -> None:
    failed = [rollout(0, 0, 0, 0, converged=False)]
    chosen, inside, scores = select_rollout(failed * 2 + seven + failed)
    assert chosen == 2 + 3
    assert not inside[[0, 1, -1]].any()
    np.testing.assert_allclose(scores[2:8], SCORES, rtol=1e-12)
    assert np.isnan(scores[[0, 1, -1]]).all()


def test_no_choice_when_all_failed() -> None:
    chosen, inside, scores = select_rollout([rollout(0, 0, 0, 0, converged=False)] * 3)
    assert chosen is None
    assert not inside.any()
    assert np.isnan(scores).all()


def test_one_rollout_is_its_own_choice() -> None:
    chosen, inside, scores = select_rollout([rollout(1000, 1000, 500, 500)])
    assert (chosen, inside.tolist(), scores.tolist()) == (0, [True], [0.0])


@pytest.mark.parametrize(
    ("cx", "cy", "percent"),
    [(1711.5, 1100.5, 0.0), (1711.5 + 17.12, 1100.5, 1.0), (1711.5, 1100.5 - 33.03, 3.0)],
)
def test_drift_is_measured_as_the_paper_does(cx: float, cy: float, percent: float) -> None:
    """|cx - 1712| / 1712 with the paper's corner origin is |cx - 1711.5| / 1712 with ours."""
    theta = Intrinsics(2000, 2000, cx, cy).array
    assert principal_point_drift_percent(theta, (3424, 2202)) == pytest.approx(percent)


def off_centre(percent: float) -> Intrinsics:
    cx, cy = image_centre(IMAGE_SIZE)
    return dataclasses.replace(CAMERA, cx=cx, cy=cy + percent / 100 * IMAGE_SIZE[1] / 2)


@pytest.mark.parametrize(("percent", "falls_back"), [(1.5, False), (2.5, True)])
def test_fallback_to_the_initialisation(percent: float, falls_back: bool) -> None:
    """A camera whose principal point really is off by more than 2 % gets the centre."""
    camera = off_centre(percent)
    scene = board_scene(61, 25, camera=camera)
    recipe = dataclasses.replace(RECIPES["paper"], rollouts=5)
    result = calibrate(scene.observations, recipe, focal_px=1000.0)
    if falls_back:
        assert result.selected == "initialization"
        assert result.intrinsics == result.stages["initialisation"]
        assert (result.intrinsics.cx, result.intrinsics.cy) == image_centre(IMAGE_SIZE)
        assert len(result.warnings) == 1
        assert "2 %" in result.warnings[0]
        # The stated uncertainty covers what the fallback gives away.
        assert result.sigma[3] > 0.8 * abs(result.intrinsics.cy - camera.cy)
    else:
        assert isinstance(result.selected, int)
        assert result.intrinsics == result.rollouts[result.selected].intrinsics
        assert not result.warnings
        assert abs(result.intrinsics.cy - camera.cy) < 1.5

    kept = dataclasses.replace(recipe, fallback_percent=None)
    assert isinstance(calibrate(scene.observations, kept, focal_px=1000.0).selected, int)


def test_orders_are_permutations_that_depend_on_seed_and_rollout_alone() -> None:
    def orders(rollout: int, seed: int) -> FloatArray:
        return view_orders(30, rollout, seed, 4, shuffle=True)

    first = orders(0, 0)
    assert first.shape == (4, 30)
    assert (np.sort(first, axis=1) == np.arange(30)).all()
    assert len({tuple(order) for order in first}) == 4
    np.testing.assert_array_equal(first, orders(0, 0))
    many = {tuple(orders(r, s)[0]) for r in range(20) for s in range(5)}
    assert len(many) == 100


def test_without_shuffling_the_order_is_the_file_s() -> None:
    orders = view_orders(7, 3, 9, 4, shuffle=False)
    assert orders.tolist() == [list(range(7))]


def test_the_seed_changes_the_rollouts() -> None:
    scene = board_scene(62, 25)
    recipe = dataclasses.replace(RECIPES["influx"], rollouts=3)
    one, same, other = (
        calibrate(scene.observations, recipe, focal_px=1000.0, seed=seed) for seed in (0, 0, 1)
    )
    assert one.rollouts == same.rollouts
    assert one.rollouts != other.rollouts


def test_of_two_the_first_is_chosen_whatever_the_last_digit_says() -> None:
    """Two are equally far from their median: rounding, or the processor, must not choose."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        values = np.array([1000, 1000, 500, 500]) + rng.normal(size=(2, 4))
        assert select_rollout([rollout(*values[0]), rollout(*values[1])])[0] == 0
        assert select_rollout([rollout(*values[1]), rollout(*values[0])])[0] == 0


def test_recipes_that_differ_in_what_they_make_of_rollouts_share_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And answer as they do alone, whichever comes first; another start has rollouts of its own."""
    calibrator = importlib.import_module("influx_wrap.calibrate.calibrator")
    runs: list[int] = []
    run_rollouts = calibrator.run_rollouts

    def counted(*args: object, **settings: object) -> list[Rollout]:
        runs.append(1)
        result: list[Rollout] = run_rollouts(*args, **settings)
        return result

    monkeypatch.setattr(calibrator, "run_rollouts", counted)
    seen = board_scene(3, 12).observations
    few = [dataclasses.replace(RECIPES[name], rollouts=3) for name in ("influx", "stock", "paper")]
    alone = [calibrate(seen, recipe, focal_px=1000.0).as_dict() for recipe in few]
    assert len(runs) == 3
    store = RolloutStore()
    shared = [calibrate(seen, recipe, focal_px=1000.0, store=store).as_dict() for recipe in few]
    assert len(runs) == 5
    assert store.saved_s > 0
    assert shared == alone
    calibrate(seen, few[2], focal_px=1000.0, seed=1, store=store)
    assert len(runs) == 6
