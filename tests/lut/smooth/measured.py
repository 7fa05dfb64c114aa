"""Tables of simulated zooms of thin groups: no Gaussian process made them."""

from __future__ import annotations

from functools import cache

import numpy as np

from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.table import Table, grid_of
from influx_wrap.plan import make_plan
from influx_wrap.synth.lens import SimulatedLens, simulated_lens

SIGMA = np.array([1.0, 1.0, 2.0, 2.0, 5e-4, 2e-3, 5e-5, 5e-5])


@cache
def zoom(name: str = "premista80") -> SimulatedLens:
    """The lens itself."""
    catalogue = load_catalogue()
    camera = catalogue.camera("arri-alexa-mini")
    return simulated_lens(make_plan(catalogue.lens(name), camera, catalogue.boards.values()))


def true_values(lfl_mm: FloatArray, fd_m: FloatArray, name: str = "premista80") -> FloatArray:
    """(n, 8) its intrinsics at settings (n,)."""
    pairs = zip(lfl_mm.tolist(), fd_m.tolist(), strict=True)
    return np.array([zoom(name).intrinsics(lfl, fd).array for lfl, fd in pairs])


def table_at(
    lfl_mm: FloatArray, fd_m: FloatArray, seed: int = 0, *, sigma: FloatArray = SIGMA
) -> Table:
    """The lens measured at settings (n,), with noise that is correlated as real covariances are."""
    n = len(lfl_mm)
    covariance = np.diag(sigma**2)
    for i, j, correlation in ((0, 1, 0.95), (2, 7, 0.7), (3, 6, 0.7), (4, 5, -0.6)):
        covariance[i, j] = covariance[j, i] = correlation * sigma[i] * sigma[j]
    rng = np.random.default_rng(seed)
    factor = np.linalg.cholesky(covariance)
    noise = rng.standard_normal((n, 8)) @ factor.T
    return Table(
        lens="premista80",
        camera="arri-alexa-mini",
        image_size=(3424, 2202),
        pixel_um=(8.25, 8.25),
        names=tuple(f"e{k}" for k in range(n)),
        lfl_mm=lfl_mm,
        fd_m=fd_m,
        values=true_values(lfl_mm, fd_m) + noise,
        covariance=np.tile(covariance, (n, 1, 1)),
        is_drone=np.zeros(n, dtype=bool),
        grid=grid_of(lfl_mm, np.minimum(fd_m, 1e6)),
    )


def settings(n_lfl: int = 5, n_fd: int = 4) -> tuple[FloatArray, FloatArray]:
    """(n,) focal lengths and focus distances, evenly in ln LFL and in 1 / FD."""
    lfl = np.geomspace(80, 250, n_lfl)
    fd = 1 / np.linspace(1 / 2.0, 1 / 15.0, n_fd)
    return np.repeat(lfl, n_fd), np.tile(fd, n_lfl)
