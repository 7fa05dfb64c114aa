"""Settings at which experiments can be made, and settings at which a lens has to be known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.hardware import Board, Camera, Lens
from influx_wrap.model.optics import thin_lens_cfl_mm
from influx_wrap.plan.grid import choose_board
from influx_wrap.plan.measuring import expected_covariance

N_LFL, N_FD = 13, 12
"""Settings to choose from: focal lengths evenly in their logarithm, focus distances in 1 / FD, with
one more between the farthest two."""
N_PLACES = 9
"""Settings that count, along either ring."""
FAR = 1.5
"""How much more sigma counts at infinity than elsewhere."""
DIGITS = 3
"""Of settings that a person turns to."""


@dataclass(frozen=True)
class Reach:
    """What a lens can be set to: focal lengths, and the nearest focus distance."""

    lfl_mm: tuple[float, float]
    nearest_m: float

    @classmethod
    def of(cls, lens: Lens) -> Reach:
        """That of a lens of the catalogue."""
        return cls((float(lens.lfl_min_mm), float(lens.lfl_max_mm)), float(lens.fd_min_m))

    def places(self) -> FloatArray:
        """(p, 2) LFL in mm and FD in m, to infinity, at which the lens has to be known."""
        lfl = self._focal_lengths(N_PLACES)
        with np.errstate(divide="ignore"):
            fd = self.nearest_m / np.linspace(1, 0, N_PLACES)
        return np.column_stack([np.repeat(lfl, len(fd)), np.tile(fd, len(lfl))])

    def weight(self) -> FloatArray:
        """(p,) how much sigma counts at these places."""
        return np.where(np.isinf(self.places()[:, 1]), FAR, 1.0)

    def settings(self) -> list[tuple[float, float]]:
        """LFL and FD, in few digits, that experiments can be made at."""
        low, high = self.lfl_mm
        lfls = [min(max(_rounded(lfl), low), high) for lfl in self._focal_lengths(N_LFL).tolist()]
        parts = [*range(N_FD, 1, -1), 1.5, 1]
        fds = [max(_rounded(self.nearest_m * N_FD / part), self.nearest_m) for part in parts]
        lfls[0], lfls[-1], fds[0] = low, high, self.nearest_m
        return [(lfl, fd) for lfl in dict.fromkeys(lfls) for fd in fds]

    def _focal_lengths(self, count: int) -> FloatArray:
        low, high = self.lfl_mm
        return np.geomspace(low, high, count) if high > low else np.array([low])


@dataclass(frozen=True, eq=False)
class Candidate:
    """An experiment that could be made.

    board       to film; None: the drone flies
    covariance  (2, 2) that is expected, of ln f and of K1 in px
    """

    lfl_mm: float
    fd_m: float
    board: Board | None
    covariance: FloatArray

    @property
    def target_name(self) -> str:
        """The board's name, or ``drone``."""
        return self.board.name if self.board else "drone"


def candidates(
    reach: Reach,
    camera: Camera,
    boards: Iterable[Board],
    *,
    boards_only: bool = False,
    cfl_mm: Callable[[FloatArray, FloatArray], FloatArray] | None = None,
) -> list[Candidate]:
    """Experiments at the settings within reach, each with its target.

    cfl_mm  camera focal lengths (n,) at LFL and FD (n,), if better known than a thin lens's
    """
    boards, settings, result = tuple(boards), reach.settings(), []
    known = (thin_cfl_mm if cfl_mm is None else cfl_mm)(*np.array(settings).T)
    for (lfl, fd), cfl in zip(settings, known.tolist(), strict=True):
        board = choose_board(cfl, fd, camera, boards)
        if board is not None or not boards_only:
            covariance = expected_covariance(board, cfl, fd, camera)
            result.append(Candidate(lfl, fd, board, covariance))
    return result


def thin_cfl_mm(lfl_mm: FloatArray, fd_m: FloatArray) -> FloatArray:
    """(n,) of a thin lens at LFL and FD (n,)."""
    # Real lenses focus nearer than a thin one could, at four times its focal length.
    pairs = zip(lfl_mm.tolist(), fd_m.tolist(), strict=True)
    return np.array([thin_lens_cfl_mm(lfl, max(fd, 4e-3 * lfl)) for lfl, fd in pairs])


def _rounded(value: float) -> float:
    return round(value, DIGITS - 1 - math.floor(math.log10(value)))
