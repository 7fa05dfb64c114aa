"""Many random orders instead of one, and the choice of a representative.

The incremental stage depends on the order in which views are offered. The paper runs
a hundred orders, discards those whose fx, fy, cx or cy lies outside the 1.5 IQR fences,
and picks the one closest to the medians of what is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from influx_wrap.calibrate.incremental import IncrementalOptions, Rollout, run_rollout
from influx_wrap.calibrate.problem import Problem
from influx_wrap.compute.progress import Progress
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.intrinsics import image_centre

TIE = 1e-9
"""Share by which two scores may differ and still be the same."""


@dataclass
class RolloutStore:
    """Rollouts of one experiment, for recipes that differ in what they make of them only.

    saved_s  what it would have taken to run them again
    """

    saved_s: float = 0.0
    _known: dict[Hashable, tuple[list[Rollout], float]] = field(default_factory=dict)

    def obtain(self, key: Hashable, run: Callable[[], list[Rollout]]) -> list[Rollout]:
        """Rollouts that all that ``key`` says leads to: known, or those that ``run`` gives."""
        if key not in self._known:
            start = time.perf_counter()
            self._known[key] = run(), time.perf_counter() - start
        else:
            self.saved_s += self._known[key][1]
        return self._known[key][0]


def view_orders(n_views: int, rollout: int, seed: int, attempts: int, shuffle: bool) -> IntArray:
    """(attempts, V): the order of a rollout, and one for each restart.

    Depends on seed and rollout alone, so that the number of workers does not matter.
    """
    if not shuffle:
        return np.arange(n_views)[None]
    rng = np.random.default_rng([seed, rollout])
    return np.stack([rng.permutation(n_views) for _ in range(attempts)])


def run_rollouts(
    problem: Problem,
    theta: FloatArray,
    poses: FloatArray,
    *,
    n_rollouts: int,
    shuffle: bool,
    options: IncrementalOptions,
    seed: int,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[Rollout]:
    """All rollouts in order of their number; ``jobs`` threads (the kernels hold no lock)."""

    def one(rollout: int) -> Rollout:
        attempts = 1 + options.max_restarts
        orders = view_orders(problem.n_views, rollout, seed, attempts, shuffle)
        return run_rollout(problem, theta, poses, orders, options)

    results = []
    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        for result in pool.map(one, range(n_rollouts)):
            results.append(result)
            if progress is not None:
                progress(len(results), n_rollouts)
    return results


def fences(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lower and upper fence (P,) of values (N, P): 1.5 IQR beyond the quartiles."""
    q1, q3 = np.percentile(values, [25, 75], axis=0)
    reach = 1.5 * (q3 - q1)
    return q1 - reach, q3 + reach


def inside_fences(values: FloatArray) -> BoolArray:
    """(N,) whether values (N, P) lie between the fences in every column."""
    low, high = fences(values)
    # Identical values have no spread; rounding must not make outliers of them.
    slack = 1e-9 * np.abs(values).max(axis=0)
    inside = (values >= low - slack) & (values <= high + slack)
    return np.logical_and.reduce(inside, axis=1)


def select_rollout(rollouts: list[Rollout]) -> tuple[int | None, BoolArray, FloatArray]:
    """Index of the representative rollout (None if all failed), fence mask and scores (N,).

    The score is the summed percent deviation of fx, fy, cx, cy from their medians; NaN
    for rollouts outside the fences or failed. Of scores that differ by rounding only the first
    counts: two rollouts are equally far from their median, whatever the last digit says.
    """
    converged = np.array([r.converged for r in rollouts], dtype=bool)
    inside = np.zeros(len(rollouts), dtype=bool)
    scores = np.full(len(rollouts), np.nan)
    if not converged.any():
        return None, inside, scores
    values = np.stack([r.theta[:4] for r in rollouts])
    inside[converged] = inside_fences(values[converged])
    if not inside.any():
        inside[:] = converged
    medians = np.median(values[inside], axis=0)
    scores[inside] = 100 * (np.abs(values[inside] - medians) / medians).sum(axis=1)
    tied = scores <= np.nanmin(scores) * (1 + TIE)
    return int(np.argmax(tied)), inside, scores


def principal_point_drift_percent(theta: FloatArray, image_size: tuple[int, int]) -> float:
    """Larger of cx's and cy's distance from the image centre, in percent of the centre."""
    centre = np.array(image_centre(image_size))
    half_size = np.array(image_size) / 2
    return float(np.max(100 * np.abs(theta[2:4] - centre) / half_size))
