"""The smooth lens of a table: hyper-parameters found, members weighed.

A member is a Gaussian process with one kernel and one offset of the focus distance. The two
smooth kernels count the same, as the data of a lens hardly tell them apart but their answers
between experiments differ; the offsets count by the likelihood of the focal lengths. A rough kernel
(Matern's with nu = 3/2) joins them where it is about as likely: where a lens has a kink or a jump.
What differs between members is part of sigma.

The most likely amplitudes are smaller than the probable ones, as noise hides what is small:
they are widened by ``WIDENING``, which the traced lenses ask for (docs/lut.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.lut.smooth.hyper import USUAL, OutputData, find
from influx_wrap.lut.smooth.outputs import ASPECT, FOCAL, N_OUTPUTS, Outputs
from influx_wrap.lut.smooth.places import Places
from influx_wrap.lut.smooth.prior import KERNELS, N_HYPER, ROUGH, linear_variance
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.smooth_fit import Member
from influx_wrap.model.table import ROUNDING, Table

FEWEST = 4
"""Experiments that a smooth lens needs."""
OFFSETS = (0.0, 0.2, 0.4, 0.6)
WIDENING = 1.5
_LEAST_WEIGHT = 0.1
_LEAST_ROUGH = 0.4
_NONE = np.log(1e-6)
_OWN = np.arange(N_OUTPUTS)
_LARGEST = 1e4
"""Of an output, of which one is much."""
_LEAST_LFL_SHARE = 0.05
"""Of the camera's focal length, which focusing may change, but not so much."""
_NEAREST_M, _FARTHEST_M = 1e-3, 1e9
_BOARD_SIGMA = np.array([6e-4, 4.5e-3, 0.1, 0.08, 6e-4, 4.5e-3, 0.015, 0.015])
_DRONE_SIGMA = np.array([0.013, 0.2, 7, 5, 0.07, 0.8, 0.6, 0.8])
"""Of outputs, at the nearest focus and anywhere, where covariances are not known."""
_FARTHEST_BOARD = 16.0
"""In units of the nearest focus."""
_LONG = 6.0
"""Focal length of ``_BOARD_SIGMA``, in units of the picture's half diagonal."""
_SINGULAR = 1e-6
"""Least eigenvalue of the correlations of a covariance that is believed; boards have 1e-4."""
_LEAST_SIGMA = 1e-3
"""In units of a board's, below which an output was kept, not measured."""
_OTHERS = [j for j in range(N_OUTPUTS) if j not in (FOCAL, ASPECT)]


@dataclass(frozen=True, eq=False)
class Measured:
    """What the experiments of a table say, as outputs.

    values  (n, 8)
    noise   (n, 8, 8) their covariance
    is_noise_known  whether the table has covariances
    is_singular     (n,) whose covariance claims that something is known exactly
    """

    outputs: Outputs
    values: FloatArray
    noise: FloatArray
    is_noise_known: bool
    is_singular: BoolArray

    @classmethod
    def of(cls, table: Table) -> Measured:
        """That of a table; an experiment without a covariance is as uncertain as the others of its
        kind at their worst, and if none has one as usual; the scatter tells if it is more.

        A singular covariance says that a combination of intrinsics is known exactly, as does one of
        fewer repetitions than intrinsics. Its variances are believed, its correlations are not;
        nor is a variance of zero.
        """
        outputs = Outputs.of(table)
        values = outputs.outputs(table.values, table.lfl_mm)
        _check(table, values)
        is_known = np.isfinite(table.covariance).all(axis=(1, 2))
        usual = _usual_variance(table, outputs)
        noise = np.eye(N_OUTPUTS) * usual[:, None]
        noise[is_known] = outputs.covariance(
            table.values[is_known], table.lfl_mm[is_known], table.covariance[is_known]
        )
        is_singular = np.zeros(len(values), dtype=bool)
        is_singular[is_known] = _is_singular(noise[is_known])
        variance = np.einsum("nii->ni", noise)
        variance[is_singular] = np.where(variance < _LEAST_SIGMA**2 * usual, usual, variance)[
            is_singular
        ]
        noise[is_singular] = np.eye(N_OUTPUTS) * variance[is_singular][:, None]
        for kind in (table.is_drone, ~table.is_drone):
            if (kind & is_known).any():
                worst = variance[kind & is_known].max(axis=0)
                noise[kind & ~is_known] = np.diag(worst)
        # A covariance may be singular, or below zero by its own rounding.
        noise[:, _OWN, _OWN] *= 1 + ROUNDING
        return cls(outputs, values, noise, bool(is_known.any()), is_singular)

    def of_output(self, kernel: str, x: FloatArray, j: int) -> OutputData:
        """What they say about output ``j`` at their places (n, 2)."""
        return OutputData(
            kernel,
            x,
            self.values[:, j],
            self.noise[:, j, j],
            USUAL[j],
            linear_variance(j),
            self.is_noise_known,
        )


def _is_singular(noise: FloatArray) -> BoolArray:
    """(n,) which covariances (n, 8, 8) of outputs are; pixels may have been kept square."""
    free = np.delete(np.delete(noise, ASPECT, axis=1), ASPECT, axis=2)
    sigma = np.sqrt(np.einsum("nii->ni", free))
    has_zero = (sigma <= 0).any(axis=1)
    sigma[has_zero] = 1.0
    least = np.linalg.eigvalsh(free / sigma[:, :, None] / sigma[:, None, :]).min(axis=1)
    return np.asarray(has_zero | (least < _SINGULAR))


def _usual_variance(table: Table, outputs: Outputs) -> FloatArray:
    """(n, 8) variance of the outputs, by calibrations with corners found to 0.1 px: less exact the
    farther the board; and the principal point the longer the lens."""
    farther = np.minimum(table.fd_m / table.fd_m.min(), _FARTHEST_BOARD)[:, None]
    board = np.tile(_BOARD_SIGMA, (len(table.names), 1))
    length = np.sqrt(table.values[:, 0] * table.values[:, 1]) / outputs.corner_px
    board[:, 2:4] *= (length[:, None] / _LONG) ** 1.5
    return np.where(table.is_drone[:, None], _DRONE_SIGMA**2, board**2 * farther)


def _check(table: Table, values: FloatArray) -> None:
    """Refuse experiments whose outputs (n, 8) are no lens's."""
    is_lens = np.asarray(np.abs(values).max(axis=1) < _LARGEST)
    is_lens &= table.lfl_mm / (table.values[:, 0] * 1e-3 * table.pixel_um[0]) > _LEAST_LFL_SHARE
    is_lens &= (table.fd_m > _NEAREST_M) & ((table.fd_m < _FARTHEST_M) | np.isinf(table.fd_m))
    if not is_lens.all():
        row = int(np.argmin(is_lens))
        raise InputError(
            f"experiment {table.names[row]} of the table cannot be right: at an LFL of "
            f"{table.lfl_mm[row]:g} mm and an FD of {table.fd_m[row]:g} m it has fx "
            f"{table.values[row, 0]:g} px and k1 {table.values[row, 4]:g}. Leave it out, or choose "
            "another scheme, as --scheme paper."
        )


def find_members(table: Table) -> tuple[Member, ...]:
    """The members of a table's smooth lens."""
    measured = Measured.of(table)
    places = [Places.of(table, offset).all(table.lfl_mm, table.fd_m) for offset in OFFSETS]
    focal = np.empty((len(KERNELS), len(OFFSETS), N_HYPER))
    costs = np.empty((len(KERNELS), len(OFFSETS)))
    near: list[FloatArray | None] = [None] * N_OUTPUTS
    for row, kernel in enumerate(KERNELS):
        for k, x in enumerate(places):
            near[FOCAL], costs[row, k] = find(measured.of_output(kernel, x, FOCAL), near[FOCAL])
            focal[row, k] = near[FOCAL]
    members: list[Member] = []
    weights = _weights(costs)
    for row, k in np.argwhere(weights > 0).tolist():
        for j in _OTHERS:
            near[j], _ = find(measured.of_output(KERNELS[row], places[k], j), near[j])
        near[FOCAL] = focal[row, k]
        hyper = _widened(near)
        members.append(Member(float(weights[row, k]), KERNELS[row], OFFSETS[k], hyper))
    return tuple(members)


def _weights(costs: FloatArray) -> FloatArray:
    """(kernels, offsets) weights of members, by the costs of their focal lengths."""
    weights = np.exp(costs.min(axis=1, keepdims=True) - costs)
    weights[weights < _LEAST_WEIGHT] = 0
    best = costs.min(axis=1)
    share = np.ones(len(KERNELS))
    rough = KERNELS.index(ROUGH)
    share[rough] = (len(KERNELS) - 1) * min(1.0, np.exp(np.delete(best, rough).min() - best[rough]))
    if share[rough] < _LEAST_ROUGH:
        share[rough] = 0
    weights *= share[:, None] / weights.sum(axis=1, keepdims=True)
    return np.asarray(weights / weights.sum())


def _widened(found: list[FloatArray | None]) -> FloatArray:
    """(8, 8) hyper-parameters to answer with, of those found (8,) of each output."""
    hyper = np.empty((N_OUTPUTS, N_HYPER))
    for j, one in enumerate(found):
        # Pixels have one shape.
        hyper[j] = _NONE if one is None else one
    hyper[:, :3] += np.log(WIDENING)
    return hyper
