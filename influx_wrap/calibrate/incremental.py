"""Stage 4: views one by one, kept if they tell something new (Kalibr's procedure).

Starting from the intrinsics of stage 3, views are offered in a given order. Each
is added, all kept views and the intrinsics are optimised again, and the view stays
if the information about the intrinsics grew by more than 0.2 bits (or its numerical
rank rose). Once more than twenty views are kept, corners more than four sigma off
are removed, and a view that lost corners has to earn its place again.

The optimiser is Gauss-Newton on the reduced system of the eight intrinsics. Each
kept view is held as its linearisation: the Schur complement, valid around the
intrinsics and the pose it was formed at. As long as both stay close to that point
the view's contribution to the normal equations is known without touching its corners
again, so offering a view costs little more than linearising that view. A view is
linearised anew as soon as the neglected second-order term could exceed
``linearisation_px`` somewhere in the image; ``TRIAL_FACTOR`` times that will do to turn
an offer down that is more than ``close_call_bits`` short. The first few views and the
final optimisation are done with every view linearised anew in every iteration;
``linearisation_px`` 0 does that always.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from influx_wrap.calibrate.incremental_kernels import (
    Corners,
    Limits,
    corner_sigmas,
    drop_corners,
    linearise,
    new_views,
    optimise,
)
from influx_wrap.calibrate.kernels import SCRATCH
from influx_wrap.calibrate.problem import Problem
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.observations import MIN_POINTS_PER_VIEW

FEW_VIEWS = 6
"""Below so many views the intrinsics still swing and the rank is in doubt: no shortcuts."""
TRIAL_FACTOR = 100.0
"""Most offers are turned down by a wide margin, which a coarser linearisation shows as well."""


class Verdict(IntEnum):
    """What became of a view in a rollout."""

    KEPT = 0
    LITTLE_INFORMATION = 1
    COST_ROSE = 2
    NO_CONVERGENCE = 3
    TOO_FEW_CORNERS = 4


@dataclass(frozen=True)
class IncrementalOptions:
    """Kalibr's settings; ``linearisation_px`` and ``close_call_bits`` are ours.

    rank_tolerance is relative to the largest singular value: Kalibr's 1e-6 times the
    eight parameters, as numerical ranks are counted.
    """

    information_gain_bits: float = 0.2
    outlier_sigmas: float = 4.0
    min_views_outlier: int = 20
    remove_outliers: bool = True
    filter_at_end: bool = True
    rank_tolerance: float = 8e-6
    max_iterations: int = 50
    step_tolerance: float = 1e-3
    cost_tolerance: float = 1e-3
    linearisation_px: float = 1e-5
    close_call_bits: float = 0.03
    max_restarts: int = 3


@dataclass(frozen=True, eq=False)
class Rollout:
    """One pass over the views.

    theta          (8,) intrinsics; NaN if the stage diverged
    kept           (K,) views in the order they were accepted
    poses          (K, 12) of the kept views
    verdict        (V,) a ``Verdict`` for each view
    gain_bits      (V,) information gain when last offered, inf where the rank rose
    weights        (C, CHUNK) 0 where a corner was removed
    information    (8, 8) of the intrinsics for a corner sigma of 1 px
    """

    theta: FloatArray
    kept: IntArray
    poses: FloatArray
    verdict: IntArray
    gain_bits: FloatArray
    weights: FloatArray
    information: FloatArray
    restarts: int
    converged: bool


def run_rollout(
    problem: Problem,
    theta: FloatArray,
    poses: FloatArray,
    orders: IntArray,
    options: IncrementalOptions,
) -> Rollout:
    """Offer the views in the order orders[0]; orders[1:] serve the restarts.

    theta (8,) and poses (V, 12) are where stage 3 ended, orders is (1 + restarts, V).
    """
    for restarts, order in enumerate(orders):
        attempt = _Pass(problem, theta, options)
        try:
            attempt.run(order, poses)
        except _Diverged:
            continue
        return attempt.result(restarts)
    return attempt.failure(len(orders) - 1)


class _Diverged(Exception):
    """An optimisation ran out of iterations."""


class _Pass:
    """The state of one pass over the views: what is kept, and where the optimum is now."""

    def __init__(self, problem: Problem, theta: FloatArray, options: IncrementalOptions) -> None:
        self.options = options
        self.limits = Limits(
            rank_tolerance=options.rank_tolerance,
            max_iterations=options.max_iterations,
            step_tolerance=options.step_tolerance,
            cost_tolerance=options.cost_tolerance,
            linearisation_px=options.linearisation_px,
            reach=_reach(theta, problem.image_size),
        )
        self.exact_limits = self.limits._replace(linearisation_px=0.0)
        self.trial_limits = self.limits._replace(
            linearisation_px=TRIAL_FACTOR * options.linearisation_px
        )
        self.corners = Corners(problem.data, problem.weights.copy(), problem.count, problem.first)
        self.table, self.views = new_views(problem.n_views)
        self.scratch = np.empty(SCRATCH)
        self.residual = np.empty((*problem.weights.shape, 2))
        self.theta = theta.copy()
        self.information = np.zeros((8, 8))
        self.rank = 0
        self.bits = np.full(8, -math.inf)
        self.kept: list[int] = []
        self.verdict = np.full(problem.n_views, Verdict.LITTLE_INFORMATION, dtype=np.int64)
        self.gain_bits = np.full(problem.n_views, np.nan)

    def run(self, order: IntArray, poses: FloatArray) -> None:
        """Offer the views in this order, removing outlying corners on the way and at the end."""
        filtered = False
        for view in order.tolist():
            self._offer(view, poses[view])
            if self.verdict[view] == Verdict.KEPT and self._enough_to_filter():
                self._filter(self.kept[-1:] if filtered else self.kept[::-1])
                filtered = True
        if self.options.filter_at_end and self._enough_to_filter():
            self._filter(self.kept[::-1])
        limits = self.exact_limits._replace(step_tolerance=1e-6, cost_tolerance=0.0)
        self.rank, _, _ = self._optimise(self.kept, self.theta, limits, self.information)

    def result(self, restarts: int) -> Rollout:
        """What the pass ended with."""
        return Rollout(
            theta=self.theta,
            kept=np.array(self.kept, dtype=np.int64),
            poses=self.views.pose[self.kept],
            verdict=self.verdict,
            gain_bits=self.gain_bits,
            weights=self.corners.weights,
            information=self.information,
            restarts=restarts,
            converged=True,
        )

    def failure(self, restarts: int) -> Rollout:
        """The same with NaN for an answer."""
        nothing = np.full(8, np.nan)
        return dataclasses.replace(self.result(restarts), theta=nothing, converged=False)

    def _enough_to_filter(self) -> bool:
        return self.options.remove_outliers and len(self.kept) > self.options.min_views_outlier

    def _optimise(
        self, kept: list[int], theta: FloatArray, limits: Limits, information: FloatArray
    ) -> tuple[int, float, float]:
        """Optimise in place; returns rank, cost before and cost after."""
        views = np.array(kept, dtype=np.int64)
        try:
            converged, rank, before, after = optimise(
                views, theta, self.corners, self.views, self.scratch, limits, information
            )
        except np.linalg.LinAlgError as error:
            raise _Diverged from error
        if not converged:
            raise _Diverged
        return rank, before, after

    def _offer(self, view: int, pose: FloatArray) -> None:
        """Add a view and optimise; keep it, or restore what was before."""
        saved = self.table[self.kept]
        theta, information = self.theta.copy(), np.empty((8, 8))
        candidates = [*self.kept, view]
        self.verdict[view] = Verdict.NO_CONVERGENCE
        if linearise(view, theta, pose, self.corners, self.views, self.scratch):
            few = len(self.kept) < FEW_VIEWS
            limits = self.exact_limits if few else self.trial_limits
            rank, before, after = self._optimise(candidates, theta, limits, information)
            bits = _bits(information)
            gain = self._gain(bits, rank)
            needed = self.options.information_gain_bits - self.options.close_call_bits
            if not few and gain > needed:
                rank, _, after = self._optimise(candidates, theta, self.limits, information)
                bits = _bits(information)
                gain = self._gain(bits, rank)
            self.gain_bits[view] = gain
            if after > before:
                self.verdict[view] = Verdict.COST_ROSE
            elif gain > self.options.information_gain_bits:
                self.verdict[view] = Verdict.KEPT
                self.kept, self.theta = candidates, theta
                self.information, self.rank, self.bits = information, rank, bits
                return
            else:
                self.verdict[view] = Verdict.LITTLE_INFORMATION
        self.table[self.kept] = saved

    def _gain(self, bits: FloatArray, rank: int) -> float:
        """Bits gained over the current state; inf if the rank rose."""
        if rank > self.rank:
            return math.inf
        return float(bits[8 - rank :].sum() - self.bits[8 - rank :].sum())

    def _filter(self, checked: list[int]) -> None:
        """Remove outlying corners from views; one that lost any must earn its place anew."""
        residual = self.residual
        sigma: FloatArray | None = None
        for view in checked:
            if sigma is None:
                kept = np.array(self.kept, dtype=np.int64)
                sigma = corner_sigmas(kept, self.theta, self.corners, self.views, residual)
            dropped, remaining = drop_corners(
                view, residual, sigma, self.options.outlier_sigmas, self.corners
            )
            if dropped == 0:
                continue
            sigma = None
            self.kept = [v for v in self.kept if v != view]
            self.rank, _, _ = self._optimise(self.kept, self.theta, self.limits, self.information)
            self.bits = _bits(self.information)
            if remaining < MIN_POINTS_PER_VIEW:
                self.verdict[view] = Verdict.TOO_FEW_CORNERS
            else:
                self._offer(view, self.views.pose[view].copy())


def _bits(information: FloatArray) -> FloatArray:
    """(8,) half the log2 of the singular values, ascending."""
    bits: FloatArray = 0.5 * np.log2(np.maximum(np.linalg.eigvalsh(information), 1e-300))
    return bits


def _reach(theta: FloatArray, image_size: tuple[int, int]) -> float:
    """Normalised radius of the farthest image corner from the centre."""
    return 0.5 * math.hypot(*image_size) / min(abs(theta[0]), abs(theta[1]))
