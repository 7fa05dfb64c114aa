"""Which experiments tell most about a lens.

What a Gaussian process will know after an experiment depends on where it is made and on how
exact it is, not on what it measures. So designs are compared before anything is filmed, by sigma
at the settings that count of where a point at the picture's corner is seen, as far as focal
length and radial distortion displace it. Experiments are chosen one after the other, each the best
beside those before it; then each is exchanged for a better one while there is one.

The measure of a design is a high mean of these sigmas, near the largest: the largest alone does
not change until all of several bad places are cured. Infinity counts more than the rest: no
experiment is made there, and most of what is filmed outdoors is beyond all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from influx_wrap.compute.progress import Progress
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray

POWER = 12
WORTH_A_FLIGHT = 1.05
"""How much better a drone experiment has to be than the best board's, to be worth its night."""
_MOST_PASSES = 2
_BETTER = 1e-3


@dataclass(frozen=True, eq=False)
class Process:
    """What one Gaussian process knows, at c candidates and p places.

    weight    of its answers among others'
    own       (2c, 2c) covariance of the candidates' two outputs, candidate by candidate
    seen      (p, 2c) covariance of the corner's displacement at places with these
    variance  (p,) of the displacement, px^2
    noise     (c, 2, 2) of what experiments at the candidates would measure
    """

    weight: float
    own: FloatArray
    seen: FloatArray
    variance: FloatArray
    noise: FloatArray


@dataclass(frozen=True)
class Known:
    """Sigma of the corner's position over the settings that count, in px."""

    largest_px: float
    mean_px: float


@dataclass(frozen=True, eq=False)
class DesignProblem:
    """Candidates to choose from.

    apart     (p,) px^2, variance by what the processes' answers differ in
    weight    (p,) how much a place's sigma counts among the others
    is_drone  (c,) which candidates are the drone's
    end       (c,) 1 at the shortest focal length, 2 at the longest, 0 between: a design has one of
              each kind, as a table answers no further than its focal lengths go
    """

    processes: tuple[Process, ...]
    apart: FloatArray
    weight: FloatArray
    is_drone: BoolArray
    end: IntArray

    def sigma(self, chosen: Sequence[int]) -> FloatArray:
        """(p,) px, with the chosen experiments made."""
        within = sum(one.weight * _given(one, chosen)[0] for one in self.processes)
        return self._sigma(np.asarray(within))

    def known(self, chosen: Sequence[int]) -> Known:
        """The same in two numbers."""
        sigma = self.sigma(chosen)
        return Known(float(sigma.max()), float(sigma.mean()))

    def sigma_with_each(self, chosen: Sequence[int]) -> FloatArray:
        """(c, p) px, with the chosen experiments and one of the candidates made."""
        within = 0.0
        for one in self.processes:
            variance, seen, own = _given(one, chosen)
            half = np.linalg.inv(np.linalg.cholesky(own + one.noise))
            told = np.einsum("cij,pcj->cpi", half, seen)
            within = within + one.weight * (variance - np.sum(told**2, axis=-1))
        return self._sigma(np.asarray(within))

    def _sigma(self, within: FloatArray) -> FloatArray:
        # What answers differ in gets smaller as each of them gets better.
        before = sum(one.weight * one.variance for one in self.processes)
        return np.asarray(np.sqrt(np.maximum(within, 0) * (1 + self.apart / before)))

    def best(self, chosen: Sequence[int], left: int = 1) -> int:
        """The candidate to add to the chosen, when ``left`` are to be added in all."""
        measure = _measure(self.weight * self.sigma_with_each(chosen))
        costs = np.where(self.is_drone, WORTH_A_FLIGHT, 1.0) * measure
        costs[list(chosen)] = np.inf
        missing = np.setdiff1d(self.end, np.append(self.end[np.array(chosen, dtype=np.int64)], 0))
        if left <= len(missing):
            costs[~np.isin(self.end, missing)] = np.inf
        return int(np.argmin(costs))


def add(problem: DesignProblem, chosen: Sequence[int], count: int) -> list[int]:
    """``count`` candidates to add to the chosen, the best first."""
    design = list(chosen)
    count = min(count, len(problem.is_drone) - len(design))
    for left in range(count, 0, -1):
        design.append(problem.best(design, left))
    return design[len(chosen) :]


def exchange(
    problem: DesignProblem, design: Sequence[int], progress: Progress | None = None
) -> list[int]:
    """A design of as many experiments, each the best beside the others."""
    design = list(design)
    for turn in range(_MOST_PASSES):
        before = float(_measure(problem.weight * problem.sigma(design)))
        for k in range(len(design)):
            rest = design[:k] + design[k + 1 :]
            design = [*design[:k], problem.best(rest), *design[k + 1 :]]
            if progress is not None:
                progress(turn * len(design) + k + 1, _MOST_PASSES * len(design))
        if float(_measure(problem.weight * problem.sigma(design))) > (1 - _BETTER) * before:
            break
    return design


def _measure(sigma: FloatArray) -> FloatArray:
    return np.asarray(np.mean(sigma**POWER, axis=-1) ** (1 / POWER))


def _given(one: Process, chosen: Sequence[int]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Variance at places (p,), and covariances with candidates (p, c, 2) and of candidates
    (c, 2, 2), with the chosen experiments made."""
    n = len(one.noise)
    blocks = one.own.reshape(n, 2, n, 2)[np.arange(n), :, np.arange(n)]
    seen = one.seen.reshape(-1, n, 2)
    if not len(chosen):
        return one.variance, seen, blocks
    rows = np.array([[2 * k, 2 * k + 1] for k in chosen]).ravel()
    total = one.own[np.ix_(rows, rows)]
    for k, row in enumerate(chosen):
        total[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] += one.noise[row]
    factor = np.linalg.cholesky(total)
    both = np.concatenate([one.own[rows], one.seen[:, rows].T], axis=1)
    told = solve_triangular(factor, both, lower=True, check_finite=False)
    here, there = told[:, : 2 * n], told[:, 2 * n :]
    here_pairs = here.reshape(-1, n, 2)
    return (
        one.variance - np.sum(there**2, axis=0),
        seen - (there.T @ here).reshape(-1, n, 2),
        blocks - np.einsum("kci,kcj->cij", here_pairs, here_pairs),
    )
