"""The prior, given the experiments: all eight outputs at once, as their errors are correlated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from influx_wrap.errors import InputError
from influx_wrap.lut.smooth.outputs import ASPECT, N_OUTPUTS
from influx_wrap.lut.smooth.places import Places
from influx_wrap.lut.smooth.prior import (
    ALONE,
    basis,
    covariance,
    linear_variance,
    variance,
)
from influx_wrap.model.arrays import FloatArray

_JITTER = 1e-8


@dataclass(frozen=True, eq=False)
class Posterior:
    """A Gaussian process of eight outputs, conditioned on n experiments.

    hyper    (8, 8) hyper-parameters of each output
    x        (n, 2) places of the experiments
    factor   (8n, 8n) Cholesky factor of the covariance of the measured outputs, output by output
    weights  (8, n) what the experiments weigh in the mean
    """

    kernel: str
    coordinates: Places
    hyper: FloatArray
    x: FloatArray
    factor: FloatArray
    weights: FloatArray

    def mean(self, x: FloatArray) -> FloatArray:
        """(q, 8) at places (q, 2)."""
        return np.stack([self._between(j, x) @ self.weights[j] for j in range(N_OUTPUTS)], axis=-1)

    def mean_and_covariance(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(q, 8) and (q, 8, 8) at places (q, 2)."""
        n, q = len(self.x), len(x)
        mean = np.empty((q, N_OUTPUTS))
        result = np.zeros((q, N_OUTPUTS, N_OUTPUTS))
        halves = []
        for j in range(N_OUTPUTS):
            between = self._between(j, x)
            mean[:, j] = between @ self.weights[j]
            # Rows before the output's own stay zero.
            right = np.zeros(((N_OUTPUTS - j) * n, q))
            right[:n] = between.T
            factor = self.factor[j * n :, j * n :]
            halves.append(solve_triangular(factor, right, lower=True, check_finite=False))
            result[:, j, j] = self._variance(j, x)
            for i in range(j + 1):
                known = np.einsum("aq,aq->q", halves[i][(j - i) * n :], halves[j])
                result[:, i, j] -= known
                if i < j:
                    result[:, j, i] -= known
        return mean, result

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """What each experiment differs by from what the others predict (n, 8), and the covariance
        (n, 8, 8) of that difference; both in closed form."""
        n = len(self.x)
        inverse = cho_solve((self.factor, True), np.eye(N_OUTPUTS * n))
        blocks = inverse.reshape(N_OUTPUTS, n, N_OUTPUTS, n)
        own = np.stack([blocks[:, row, :, row] for row in range(n)])
        spread = np.asarray(np.linalg.inv(own), dtype=float)
        return np.einsum("nij,jn->ni", spread, self.weights), spread

    def _between(self, j: int, x: FloatArray) -> FloatArray:
        return _between(self.kernel, self.hyper[j], j, x, self.x)

    def _variance(self, j: int, x: FloatArray) -> FloatArray:
        smooth = 0.0 if j == ASPECT else variance(self.hyper[j], x)
        return np.asarray(smooth + (basis(x) ** 2) @ linear_variance(j))


def _between(kernel: str, hyper: FloatArray, j: int, x: FloatArray, y: FloatArray) -> FloatArray:
    smooth = 0.0 if j == ASPECT else covariance(kernel, hyper, x, y)
    return smooth + (basis(x) * linear_variance(j)) @ basis(y).T


def predict_measured(posterior: Posterior, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean (q, 8) and covariance (q, 8, 8) of what experiments at places (q, 2) would measure if
    their own covariance were zero."""
    mean, spread = posterior.mean_and_covariance(x)
    return mean, spread + np.diag(np.exp(2 * posterior.hyper[:, ALONE]))


def condition(
    kernel: str,
    coordinates: Places,
    hyper: FloatArray,
    x: FloatArray,
    values: FloatArray,
    noise: FloatArray,
) -> Posterior:
    """The process given outputs (n, 8) at places (n, 2), with covariances (n, 8, 8)."""
    n = len(x)
    total = np.zeros((N_OUTPUTS, n, N_OUTPUTS, n))
    own = np.arange(n)
    for j in range(N_OUTPUTS):
        total[j, :, j] = _between(kernel, hyper[j], j, x, x)
        total[j, own, j, own] += np.exp(2 * hyper[j, ALONE]) + _JITTER
        for i in range(N_OUTPUTS):
            total[i, own, j, own] += noise[:, i, j]
    try:
        factor, _ = cho_factor(total.reshape(N_OUTPUTS * n, -1), lower=True, overwrite_a=True)
    except np.linalg.LinAlgError:
        raise InputError(
            "the smooth lens cannot be computed from these experiments and covariances: build the "
            "table anew, or choose another scheme, as --scheme paper."
        ) from None
    factor = np.tril(factor)
    weights = cho_solve((factor, True), values.T.ravel()).reshape(N_OUTPUTS, n)
    return Posterior(kernel, coordinates, hyper, x, factor, weights)
