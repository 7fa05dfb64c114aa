"""The incremental stage against a plain twin that spares itself nothing.

The twin is the procedure as it is published, line by line: every view is linearised in
every iteration, the whole dense system is formed and solved with numpy, nothing is kept
from one offer to the next but intrinsics, poses and the list of corners.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from benchmarks.montecarlo import CLEAN_INFLUX, Trial, bound_of, experiment_of, focal_guess_px
from influx_wrap.calibrate.incremental import (
    IncrementalOptions,
    Rollout,
    Verdict,
    run_rollout,
)
from influx_wrap.calibrate.initialise import fixed_point, single
from influx_wrap.calibrate.pose import estimate_poses
from influx_wrap.calibrate.problem import pack
from influx_wrap.calibrate.rollouts import run_rollouts, view_orders
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.intrinsics import Intrinsics
from tests.calibrate import twins
from tests.calibrate.scenes import Scene, board_scene

OPTIONS = IncrementalOptions()
EXACT = dataclasses.replace(OPTIONS, linearisation_px=0.0)
FOCAL_GUESS_PX = 1000.0
TELEPHOTO = Intrinsics(9000.0, 9000.0, 645.0, 475.0, 1.0, 0.5, 1e-3, -1e-3)


class PlainIncremental:
    """The twin: state, and what is done to it."""

    def __init__(self, scene: Scene, theta: FloatArray, poses: FloatArray) -> None:
        self.points = scene.observations.target.points
        self.uv = scene.observations.uv
        self.use = scene.observations.valid.copy()
        self.theta = theta.copy()
        self.start_poses = poses
        self.poses = poses.copy()
        self.kept: list[int] = []
        self.rank = 0
        self.marginal = np.zeros((8, 8))

    def view_system(self, view: int) -> tuple[FloatArray, FloatArray]:
        seen = self.use[view]
        return twins.view_system(
            self.theta, self.poses[view], self.points[seen], self.uv[view][seen], None
        )

    def full_system(self) -> tuple[FloatArray, FloatArray, float]:
        """Normal equations of the intrinsics and all kept poses, and the cost."""
        size = 8 + 6 * len(self.kept)
        h, g, cost = np.zeros((size, size)), np.zeros(size), 0.0
        for k, view in enumerate(self.kept):
            residual, jacobian = self.view_system(view)
            index = np.r_[0:8, 8 + 6 * k : 14 + 6 * k]
            h[np.ix_(index, index)] += jacobian.T @ jacobian
            g[index] += jacobian.T @ residual
            cost += float(residual @ residual)
        return h, g, cost

    def refine_pose(self, view: int) -> None:
        step = np.ones(6)
        while np.abs(step).max() > 1e-9:
            residual, jacobian = self.view_system(view)
            step = np.linalg.lstsq(jacobian[:, 8:], residual, rcond=None)[0]
            self.poses[view] = twins.moved(self.poses[view], step)

    def iterate(self) -> tuple[float, float]:
        """One Gauss-Newton step; returns its largest component and the cost before it."""
        h, g, cost = self.full_system()
        self.marginal, pull = twins.schur(h, g, 8)
        scale = 1 / np.sqrt(np.diag(h)[:8])
        u, values, vt = np.linalg.svd(self.marginal * np.outer(scale, scale))
        informed = values > OPTIONS.rank_tolerance * values[0]
        self.rank = int(informed.sum())
        inverse = np.where(informed, 1 / values, 0.0)
        step = scale * (vt.T @ (inverse * (u.T @ (scale * pull))))
        pose_steps = np.linalg.solve(h[8:, 8:], g[8:] - h[8:, :8] @ step).reshape(-1, 6)
        self.theta = self.theta + step
        for view, pose_step in zip(self.kept, pose_steps, strict=True):
            self.poses[view] = twins.moved(self.poses[view], pose_step)
        return max(np.abs(step).max(), np.abs(pose_steps).max()), cost

    def optimise(self) -> float:
        """To convergence; returns the cost and leaves the marginal information behind."""
        for _ in range(OPTIONS.max_iterations):
            largest, before = self.iterate()
            h, g, cost = self.full_system()
            self.marginal, _ = twins.schur(h, g, 8)
            if largest < OPTIONS.step_tolerance or abs(before - cost) < OPTIONS.cost_tolerance:
                return cost
        raise AssertionError("the twin diverged: choose another scene")

    def offer(self, view: int, start_pose: FloatArray) -> bool:
        saved = (self.theta, self.poses.copy(), list(self.kept), self.rank, self.marginal)
        self.poses[view] = start_pose
        self.refine_pose(view)
        self.kept.append(view)
        _, _, before = self.full_system()
        cost = self.optimise()
        _, _, _, old_rank, old_marginal = saved
        bits = [
            0.5 * np.log2(np.linalg.svd(m, compute_uv=False)[: self.rank]).sum()
            if m.any()
            else -np.inf
            for m in (old_marginal, self.marginal)
        ]
        informative = self.rank > old_rank or bits[1] - bits[0] > OPTIONS.information_gain_bits
        if informative and cost <= before:
            return True
        self.theta, self.poses, self.kept, self.rank, self.marginal = saved
        return False

    def residuals(self) -> dict[int, FloatArray]:
        return {view: self.view_system(view)[0].reshape(-1, 2) for view in self.kept}

    def remove_outliers(self, views: list[int]) -> None:
        for view in views:
            residuals = self.residuals()
            sigma = np.concatenate(list(residuals.values())).std(axis=0)
            bad = (np.abs(residuals[view]) > OPTIONS.outlier_sigmas * sigma).any(axis=1)
            if not bad.any():
                continue
            self.use[view, np.flatnonzero(self.use[view])[bad]] = False
            self.kept.remove(view)
            self.optimise()
            if self.use[view].sum() >= 4:
                self.offer(view, self.poses[view].copy())

    def run(self, order: FloatArray) -> None:
        checked = False
        for view in order:
            if not self.offer(view, self.start_poses[view]):
                continue
            if len(self.kept) > OPTIONS.min_views_outlier:
                self.remove_outliers([view] if checked else self.kept[::-1])
                checked = True
        if len(self.kept) > OPTIONS.min_views_outlier:
            self.remove_outliers(self.kept[::-1])
        for _ in range(10):
            self.iterate()


def start(scene: Scene) -> tuple[FloatArray, FloatArray]:
    theta = fixed_point(scene.problem, FOCAL_GUESS_PX)
    return theta, estimate_poses(scene.problem, theta)


def rollout(scene: Scene, order: FloatArray, options: IncrementalOptions = OPTIONS) -> Rollout:
    return run_rollout(scene.problem, *start(scene), np.array([order]), options)


def corners_used(scene: Scene, result: Rollout) -> BoolArray:
    return twins.scatter(scene.problem, result.weights) > 0


@pytest.mark.parametrize("seed", [41, 42])
def test_same_as_the_plain_twin(seed: int) -> None:
    scene = board_scene(seed, 42, n_outliers=12, sigma_px=0.15)
    theta, poses = start(scene)
    order = np.random.default_rng(seed).permutation(42)
    plain = PlainIncremental(scene, theta, poses)
    plain.run(order)
    assert OPTIONS.min_views_outlier < len(plain.kept) < 42
    removed = scene.observations.valid & ~plain.use
    assert removed[plain.kept].sum() >= 3

    for options in (EXACT, OPTIONS):
        ours = rollout(scene, order, options)
        assert ours.converged
        assert ours.restarts == 0
        assert ours.kept.tolist() == plain.kept
        np.testing.assert_array_equal(corners_used(scene, ours), plain.use)
        np.testing.assert_allclose(ours.theta, plain.theta, rtol=1e-6)
        np.testing.assert_allclose(ours.poses, plain.poses[plain.kept], atol=1e-7)
        scale = np.sqrt(np.diag(plain.marginal))
        np.testing.assert_allclose(
            ours.information / np.outer(scale, scale),
            plain.marginal / np.outer(scale, scale),
            atol=1e-6,
        )


@pytest.mark.parametrize("seed", [51, 52])
def test_same_as_the_plain_twin_on_a_telephoto_lens(seed: int) -> None:
    """Two directions carry too little information here and stay where they started."""
    scene = board_scene(seed, 30, camera=TELEPHOTO, depth_m=4.5)
    theta = fixed_point(scene.problem, 1.01 * TELEPHOTO.fx)
    poses = estimate_poses(scene.problem, theta)
    order = np.random.default_rng(seed).permutation(30)
    plain = PlainIncremental(scene, theta, poses)
    plain.run(order)
    assert plain.rank == 6
    sigma = 0.1 * np.sqrt(np.diag(np.linalg.inv(plain.marginal)))
    for options in (EXACT, OPTIONS):
        ours = run_rollout(scene.problem, theta, poses, order[None], options)
        assert ours.kept.tolist() == plain.kept
        assert np.abs((ours.theta - plain.theta) / sigma).max() < 1e-3
        assert np.abs(ours.theta - theta)[2:4].max() < 0.5
        assert sigma[2:4].min() > 2


def test_outliers_are_what_is_removed() -> None:
    """What is removed of the kept views is what was displaced, or beyond four sigma."""
    scene = board_scene(41, 45, n_outliers=12, sigma_px=0.15)
    result = rollout(scene, np.random.default_rng(41).permutation(45))
    removed = scene.observations.valid & ~corners_used(scene, result)
    displaced = scene.outliers[result.kept]
    assert displaced.any()
    assert removed[result.kept][displaced].all()
    assert removed[result.kept].sum() <= displaced.sum() + 4


def test_nothing_is_removed_when_that_is_switched_off() -> None:
    scene = board_scene(41, 45, n_outliers=12)
    order = np.arange(45)
    options = dataclasses.replace(OPTIONS, remove_outliers=False)
    result = rollout(scene, order, options)
    np.testing.assert_array_equal(corners_used(scene, result), scene.observations.valid)


def test_verdicts_and_gains_fit_together() -> None:
    scene = board_scene(44, 40)
    result = rollout(scene, np.arange(40))
    kept = np.zeros(40, dtype=bool)
    kept[result.kept] = True
    np.testing.assert_array_equal(kept, result.verdict == Verdict.KEPT)
    little = result.verdict == Verdict.LITTLE_INFORMATION
    assert little.any()
    assert (result.gain_bits[little] <= OPTIONS.information_gain_bits).all()
    assert (result.gain_bits[kept] > OPTIONS.information_gain_bits).all()
    # Kept views are listed as they were accepted, the first one for its rank.
    assert result.kept[0] == 0
    assert result.gain_bits[0] == np.inf


def test_a_threshold_of_zero_bits_keeps_all_a_large_one_hardly_any() -> None:
    scene = board_scene(45, 25)
    order = np.arange(25)
    greedy = rollout(scene, order, dataclasses.replace(OPTIONS, information_gain_bits=0.0))
    picky = rollout(scene, order, dataclasses.replace(OPTIONS, information_gain_bits=8.0))
    usual = rollout(scene, order)
    assert len(picky.kept) < len(usual.kept) < len(greedy.kept)
    assert len(greedy.kept) >= 24


@pytest.mark.parametrize("seed", range(8))
def test_cached_linearisations_change_nothing(seed: int) -> None:
    """The default tolerance keeps the views that linearising every time keeps."""
    scene = board_scene(100 + seed, 30, n_outliers=5 * (seed % 2))
    for order in view_orders(30, 0, seed, 4, shuffle=True):
        fast, exact = rollout(scene, order), rollout(scene, order, EXACT)
        assert fast.kept.tolist() == exact.kept.tolist()
        np.testing.assert_array_equal(fast.weights, exact.weights)
        np.testing.assert_allclose(fast.theta, exact.theta, rtol=1e-6)


@pytest.mark.parametrize("place", ["canon17 z0f0", "canon17 z7f5", "premista80 z8f8"])
def test_cached_linearisations_change_nothing_on_whole_experiments(place: str) -> None:
    """The same on a hundred views, from the shortest lens to the longest."""
    trial = Trial(CLEAN_INFLUX, *place.split(), seed=7)
    experiment = experiment_of(trial)
    bound = bound_of(experiment)
    problem = pack(experiment.observations)
    theta = fixed_point(problem, focal_guess_px(trial))
    poses = estimate_poses(problem, theta)
    for order in view_orders(problem.n_views, 0, 7, 2, shuffle=True):
        fast, exact = (run_rollout(problem, theta, poses, order[None], o) for o in (OPTIONS, EXACT))
        assert fast.kept.tolist() == exact.kept.tolist()
        np.testing.assert_array_equal(fast.weights, exact.weights)
        assert np.abs((fast.theta - exact.theta) / bound).max() < 0.02


@pytest.mark.parametrize("jobs", [2, 5])
def test_rollouts_do_not_depend_on_the_number_of_workers(jobs: int) -> None:
    scene = board_scene(46, 30, n_outliers=5)
    theta, poses = start(scene)

    def run(workers: int) -> list[Rollout]:
        return run_rollouts(
            scene.problem, theta, poses, n_rollouts=12, shuffle=True, options=OPTIONS, seed=3,
            jobs=workers,
        )  # fmt: skip

    for one, many in zip(run(1), run(jobs), strict=True):
        for field in dataclasses.fields(Rollout):
            np.testing.assert_array_equal(getattr(one, field.name), getattr(many, field.name))


def test_progress_counts_the_rollouts() -> None:
    scene = board_scene(46, 12)
    seen: list[tuple[int, int | None]] = []
    run_rollouts(
        scene.problem, *start(scene), n_rollouts=5, shuffle=True, options=OPTIONS, seed=0,
        jobs=2, progress=lambda *done: seen.append(done),
    )  # fmt: skip
    assert seen == [(done, 5) for done in (1, 2, 3, 4, 5)]


def test_diverging_everywhere_gives_up_after_the_last_restart() -> None:
    """One iteration never suffices from a poor start: every attempt runs out."""
    scene = board_scene(47, 12)
    theta = single(scene.problem, FOCAL_GUESS_PX)
    theta[:2] *= 1.05
    hasty = dataclasses.replace(OPTIONS, max_iterations=1)
    orders = view_orders(12, 0, 0, 1 + hasty.max_restarts, shuffle=True)
    poses = estimate_poses(scene.problem, theta)
    result = run_rollout(scene.problem, theta, poses, orders, hasty)
    assert not result.converged
    assert result.restarts == hasty.max_restarts == 3
    assert np.isnan(result.theta).all()


def test_a_restart_takes_the_next_order() -> None:
    """With few iterations some orders diverge; a restart is a fresh run of the next one."""
    scene = board_scene(48, 12)
    orders = np.stack([np.random.default_rng(i).permutation(12) for i in range(40)])

    def separating() -> tuple[FloatArray, FloatArray, IncrementalOptions, list[Rollout]]:
        for scale in (1.0005, 1.001, 1.002, 1.005):
            theta = single(scene.problem, FOCAL_GUESS_PX)
            theta[:2] *= scale
            poses = estimate_poses(scene.problem, theta)
            for iterations in range(2, 6):
                hasty = dataclasses.replace(OPTIONS, max_iterations=iterations)
                alone = [run_rollout(scene.problem, theta, poses, o[None], hasty) for o in orders]
                if 1 <= sum(r.converged for r in alone) <= len(orders) - 2:
                    return theta, poses, hasty, alone
        pytest.fail("no number of iterations separates the orders")

    theta, poses, hasty, alone = separating()
    good = [i for i, r in enumerate(alone) if r.converged]
    bad = [i for i, r in enumerate(alone) if not r.converged]
    chain = orders[[bad[0], bad[1], good[0]]]
    result = run_rollout(scene.problem, theta, poses, chain, hasty)
    assert result.converged
    assert result.restarts == 2
    np.testing.assert_array_equal(result.theta, alone[good[0]].theta)
    np.testing.assert_array_equal(result.kept, alone[good[0]].kept)
    np.testing.assert_array_equal(result.weights, alone[good[0]].weights)
