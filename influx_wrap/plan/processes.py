"""What a Gaussian process of a lens knows at candidates and at places, for ``design``.

Of the eight outputs of the smooth lens two displace the corner: the focal length and K1. An
experiment is taken to measure these two; what it says about the others adds little to them.
"""

from __future__ import annotations

import numpy as np

from influx_wrap.lut.smooth.outputs import FOCAL
from influx_wrap.lut.smooth.prior import ALONE, basis, covariance, linear_variance
from influx_wrap.model.arrays import FloatArray
from influx_wrap.plan.candidates import Candidate
from influx_wrap.plan.design import Process

RADIAL = 4
"""Which output is K1."""
PAIR = (FOCAL, RADIAL)


def prior_pair(
    kernel: str, hyper: FloatArray, x: FloatArray, other: FloatArray
) -> list[FloatArray]:
    """Covariance (n, m), before any experiment, of each of the two outputs between places (n, 2)
    and (m, 2); ``hyper`` (8, 8) is that of all outputs."""
    terms, others = basis(x), basis(other)
    return [
        (terms * linear_variance(j)) @ others.T + covariance(kernel, hyper[j], x, other)
        for j in PAIR
    ]


def make_process(
    weight: float,
    joint: FloatArray,
    asked: list[Candidate],
    displaced: FloatArray,
    hyper: FloatArray,
    scale: FloatArray,
    exactness: float = 1.0,
) -> Process:
    """What a process with a joint covariance (2, k, 2, k) of the two outputs, at c candidates and
    then p places, says about them.

    displaced  (p, 2) px of the corner by one of each output
    scale      (2,) ln f and px that one of each output is
    exactness  sigma of experiments in units of that expected
    """
    n = len(asked)
    own = joint[:, :n, :, :n].transpose(1, 0, 3, 2).reshape(2 * n, 2 * n)
    to_places = np.einsum("pi,ipjc->pcj", displaced, joint[:, n:, :, :n])
    diagonal = np.einsum("ipjp->pij", joint[:, n:, :, n:])
    variance = np.einsum("pi,pij,pj->p", displaced, diagonal, displaced)
    noise = np.array([one.covariance for one in asked]) * exactness**2 / np.outer(scale, scale)
    # LFL / CFL - 1 gets smaller as the focal length gets larger.
    noise = noise * np.array([[1, -1], [-1, 1]])
    noise += np.diag(np.exp(2 * hyper[list(PAIR), ALONE]))
    return Process(weight, own, to_places.reshape(len(displaced), -1), variance, noise)
