"""What is known of a lens before it is measured: the prior of one output over (u, v).

    b . (1, u - 1/2, v, (u - 1/2) v, v^2, w)    wide priors
    + s0^2 M(du / l0)                           what zoom does at infinity
    + s1^2 v v' M(du / l1)                      how focus changes it, to first order
    + s2^2 v v' M(du / l2) M(dv / l3)           the rest
    + s3^2                                      of each experiment alone: what its covariance
                                                does not know, as errors of its setting

M is the squared exponential, Matern's with nu = 9/2, or, for a rough lens, with nu = 3/2. The
eight hyper-parameters are the logarithms of s0, s1, s2, l0, l1, l2, l3 and s3.
"""

from __future__ import annotations

import numpy as np

from influx_wrap.lut.smooth.outputs import ASPECT, FOCAL, N_OUTPUTS
from influx_wrap.model.arrays import FloatArray

SMOOTH_KERNELS = ("gauss", "matern")
ROUGH = "rough"
KERNELS = (*SMOOTH_KERNELS, ROUGH)
N_HYPER = 8
ALONE = 7
"""Which hyper-parameter is ln s3."""
_LINEAR_VARIANCE = np.tile([100.0, 25.0, 25.0, 25.0, 9.0, 25.0], (N_OUTPUTS, 1))
# LFL is the focal length at infinity: zooming changes LFL / CFL - 1 there by a few per cent.
_LINEAR_VARIANCE[FOCAL, [1, 5]] = 0.04
# Pixels have one shape, whatever the lens does.
_LINEAR_VARIANCE[ASPECT, 1:] = 1e-4


def linear_variance(j: int) -> FloatArray:
    """(6,) of the coefficients b of output ``j``, in outputs of which one is much."""
    return np.asarray(_LINEAR_VARIANCE[j])


def correlation(kernel: str, distance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """M of distances in units of the length, and its derivative by the length's logarithm."""
    if kernel == "gauss":
        value = np.exp(-0.5 * distance**2)
        return value, distance**2 * value
    if kernel == ROUGH:
        a = np.sqrt(3) * np.abs(distance)
        decay = np.exp(-a)
        return (1 + a) * decay, a**2 * decay
    a = 3 * np.abs(distance)
    decay = np.exp(-a)
    value = (1 + a * (1 + a * (3 / 7 + a * (2 / 21 + a / 105)))) * decay
    return value, a**2 * (1 + a * (1 + a * (2 / 5 + a / 15))) * decay / 7


def basis(x: FloatArray) -> FloatArray:
    """(n, 6) terms of the linear part at places (n, 3)."""
    u, v = x[:, 0] - 0.5, x[:, 1]
    return np.stack([np.ones_like(u), u, v, u * v, v**2, x[:, 2]], axis=-1)


def covariance(kernel: str, hyper: FloatArray, x: FloatArray, other: FloatArray) -> FloatArray:
    """(n, m) of one output between places (n, 2) and (m, 2), without the linear part."""
    s0, s1, s2 = np.exp(2 * hyper[:3])
    l0, l1, l2, l3 = np.exp(hyper[3:7])
    # On a grid, few values of u and of v make up all places.
    u, row = np.unique(x[:, 0], return_inverse=True)
    v, column = np.unique(x[:, 1], return_inverse=True)
    du, dv = u[:, None] - other[:, 0], v[:, None] - other[:, 1]
    vv = v[:, None] * other[:, 1]
    rest = s2 * vv * correlation(kernel, dv / l3)[0]
    m0, m1, m2 = (correlation(kernel, du / length)[0] for length in (l0, l1, l2))
    result = (s1 * vv)[column] * m1[row]
    result += rest[column] * m2[row]
    result += (s0 * m0)[row]
    return np.asarray(result)


def covariance_slopes(
    kernel: str, hyper: FloatArray, x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """``covariance`` (n, n) between places (n, 2), and its derivatives (7, n, n) by all but the
    last hyper-parameter."""
    s0, s1, s2 = np.exp(2 * hyper[:3])
    lengths = np.exp(hyper[3:7])
    du = x[:, None, 0] - x[None, :, 0]
    dv = x[:, None, 1] - x[None, :, 1]
    vv = x[:, None, 1] * x[None, :, 1]
    m0, d0 = correlation(kernel, du / lengths[0])
    m1, d1 = correlation(kernel, du / lengths[1])
    m2, d2 = correlation(kernel, du / lengths[2])
    m3, d3 = correlation(kernel, dv / lengths[3])
    linear, rest = s1 * vv, s2 * vv
    t0, t1, t2 = s0 * m0, linear * m1, rest * m2 * m3
    slopes = s0 * d0, linear * d1, rest * d2 * m3, rest * m2 * d3
    return t0 + t1 + t2, np.stack([2 * t0, 2 * t1, 2 * t2, *slopes])


def variance(hyper: FloatArray, x: FloatArray) -> FloatArray:
    """(n,) of one output at places (n, 2), without the linear part."""
    s0, s1, s2 = np.exp(2 * hyper[:3])
    return np.asarray(s0 + (s1 + s2) * x[:, 1] ** 2)
