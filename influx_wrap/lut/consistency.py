"""Experiments whose focal length is not what the others of the same lens lead one to expect.

LFL / CFL - 1 of a zoom is a smooth function of the zoom and of 1 / FD (front-group focusing makes
it linear in 1 / FD), which six terms fit to 2 % for the worst of the traced lenses. A setting of
another experiment, typed twice, is off by more than that. The fit minimises absolute values, so
that the odd one does not bend it; it is taken out and the others are asked again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from influx_wrap.model.arrays import FloatArray, IntArray

# Fewer experiments would be fitted by the six terms, whatever they say.
_FEWEST = 16
_TOLERANCE = 0.05
_MOST_ODD = 0.2
_ITERATIONS = 50


@dataclass(frozen=True)
class OddFocalLength:
    """Experiment ``index`` has a CFL of ``cfl_mm``; the others say ``expected_mm``."""

    index: int
    cfl_mm: float
    expected_mm: float


def odd_focal_lengths(
    lfl_mm: FloatArray, fd_m: FloatArray, cfl_mm: FloatArray
) -> list[OddFocalLength]:
    """Those of n experiments that the others contradict, the worst first; arrays are (n,)."""
    kept = np.arange(len(lfl_mm))
    odd: list[OddFocalLength] = []
    while len(kept) >= _FEWEST and len(odd) < _MOST_ODD * len(lfl_mm):
        found = _oddest(kept, lfl_mm, fd_m, cfl_mm)
        if found is None:
            break
        odd.append(found)
        kept = kept[kept != found.index]
    return odd


def _oddest(
    kept: IntArray, lfl_mm: FloatArray, fd_m: FloatArray, cfl_mm: FloatArray
) -> OddFocalLength | None:
    zoom, nearness = np.log(lfl_mm[kept]), fd_m[kept].min() / fd_m[kept]
    zoom = (zoom - zoom.min()) / max(float(np.ptp(zoom)), 1e-9)
    focus = [np.ones_like(zoom), nearness, nearness**2]
    terms = np.stack([*focus, *(zoom * term for term in focus)], axis=-1)
    ratio = lfl_mm[kept] / cfl_mm[kept]
    fitted = terms @ _least_absolute(terms, ratio)
    # Breathing bends most at the nearest focus.
    apart = np.abs(np.log(ratio / np.maximum(fitted, 1e-3))) / (1 + nearness**2)
    worst = int(np.argmax(apart))
    usual = 1.4826 * float(np.median(apart))
    if apart[worst] <= max(_TOLERANCE, 6 * usual):
        return None
    index = int(kept[worst])
    expected_mm = float(lfl_mm[index] / max(fitted[worst], 1e-3))
    return OddFocalLength(index, float(cfl_mm[index]), expected_mm)


def _least_absolute(terms: FloatArray, values: FloatArray) -> FloatArray:
    """Coefficients (k,) of terms (n, k) that minimise the sum of absolute residuals."""
    weights = np.ones(len(values))
    for _ in range(_ITERATIONS):
        root = np.sqrt(weights)[:, None]
        solution = np.linalg.lstsq(terms * root, values * root[:, 0], rcond=None)[0]
        weights = 1 / np.maximum(np.abs(values - terms @ solution), 1e-4)
    return np.asarray(solution)
