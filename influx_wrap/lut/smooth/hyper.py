"""The hyper-parameters of one output, by marginal likelihood.

Weak log-normal priors keep them where lenses are: lengths about the whole range of zoom and
focus, amplitudes as in full tables of ray-traced zooms. They hardly matter to twenty experiments;
four or five say nothing about amplitudes, and sigma is made of these. The gradient is analytic; the
search starts at several places, since the likelihood may have several maxima.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from influx_wrap.lut.smooth.prior import (
    ALONE,
    N_HYPER,
    basis,
    covariance_slopes,
)
from influx_wrap.model.arrays import FloatArray

_AMPLITUDES = np.array(
    [
        [0.02, 0.3, 0.3],
        [0.1, 0.1, 0.1],
        [0.3, 0.1, 0.1],
        [0.3, 0.1, 0.1],
        [0.3, 0.3, 0.3],
        [0.15, 0.1, 0.1],
        [0.2, 0.1, 0.1],
        [0.2, 0.1, 0.1],
    ]
)
USUAL = np.log(np.column_stack([_AMPLITUDES, np.tile([0.8] * 4 + [2e-4], (8, 1))]))
"""(8, 8) hyper-parameters of each output, of a lens that nobody has measured: amplitudes, lengths,
and what covariances do not know."""
_SPREAD = np.array([2.3] * 3 + [0.5] * 4 + [1.5])
_SPREAD_UNKNOWN_NOISE = 4.0
_BOUNDS = np.log(np.array([(1e-6, 30.0)] * 3 + [(0.08, 6.0)] * 4 + [(1e-6, 1.0)]))
# One start rough, one smooth with more noise.
_STARTS = np.array([[1.5, 1.5, 0, 0, 0, 0, 0, 0], [-2, -2, -3, 0.3, 0.3, 0.3, 0.3, 1]])
_MOST_STEPS = 100
_JITTER = 1e-8
NO_ANSWER = 1e12


@dataclass(frozen=True, eq=False)
class OutputData:
    """What n experiments say about one output.

    places    (n, 2)
    values    (n,) of the output
    variance  (n,) of the values as their covariances have it
    usual     (8,) hyper-parameters that are expected
    linear    (6,) prior variances of the linear part
    is_noise_known  whether there are covariances
    """

    kernel: str
    places: FloatArray
    values: FloatArray
    variance: FloatArray
    usual: FloatArray
    linear: FloatArray
    is_noise_known: bool = True

    @property
    def spread(self) -> FloatArray:
        """(8,) widths of the priors of the hyper-parameters."""
        spread = _SPREAD.copy()
        if not self.is_noise_known:
            spread[ALONE] = _SPREAD_UNKNOWN_NOISE
        return spread

    def cost(self, hyper: FloatArray) -> tuple[float, FloatArray]:
        """Negative logarithm of the hyper-parameters' posterior, and its gradient (8,)."""
        total, slopes = covariance_slopes(self.kernel, hyper, self.places)
        terms = basis(self.places)
        alone = np.exp(2 * hyper[ALONE])
        total = total + (terms * self.linear) @ terms.T
        total[np.diag_indices_from(total)] += self.variance + alone + _JITTER
        factor, failed = lapack.dpotrf(total, lower=1)
        if failed:
            return NO_ANSWER, np.zeros(N_HYPER)
        inverse = _inverse(factor)
        weights = inverse @ self.values
        away = (hyper - self.usual) / self.spread
        value = 0.5 * self.values @ weights + np.log(np.diag(factor)).sum() + 0.5 * away @ away
        pull = inverse - np.outer(weights, weights)
        gradient = np.append(
            0.5 * slopes.reshape(len(slopes), -1) @ pull.ravel(), alone * np.trace(pull)
        )
        return float(value), gradient + away / self.spread


def _inverse(factor: FloatArray) -> FloatArray:
    """(n, n) inverse of the matrix with this lower Cholesky factor."""
    inverse, failed = lapack.dpotri(factor, lower=1)
    assert not failed
    return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)


def find(evidence: OutputData, near: FloatArray | None = None) -> tuple[FloatArray, float]:
    """The most likely hyper-parameters (8,) and their cost; ``near`` (8,) is a guess at them."""
    best, cost = evidence.usual, np.inf
    for start in evidence.usual + _STARTS if near is None else near[None]:
        found = minimize(
            evidence.cost,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=_BOUNDS,
            options={"maxiter": _MOST_STEPS},
        )
        if found.fun < cost:
            best, cost = found.x, float(found.fun)
    return best, cost
