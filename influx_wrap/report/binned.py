"""What the figures of an experiment show: its corners, residuals and distortion over the picture.

All of it is binned, or sampled on a grid, and rounded to more digits than a screen can show.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from influx_wrap.calibrate.uncertainty import uncertainty_map
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics, project
from influx_wrap.model.result import Json
from influx_wrap.observe.coverage import name_parts

COVERAGE_COLUMNS = 32
ARROW_COLUMNS = 16
MIN_CORNERS_PER_ARROW = 4
SINGLE_CORNERS = 400
"""Up to so many corners are drawn one by one, not binned."""
HISTOGRAM_SIGMAS, HISTOGRAM_BINS, FEW_BINS = 4.5, 45, 15
DISTORTION_COLUMNS = 25
CHANCE_OF_ARROW = 0.05


def coverage(uv: FloatArray, image_size: tuple[int, int]) -> Json:
    """How many corners (n, 2) lie in each part of the picture, and in words where none do."""
    columns, rows = _parts(image_size, COVERAGE_COLUMNS)
    column, row = _part(uv, image_size, columns, rows)
    counts = np.bincount(row * columns + column, minlength=rows * columns).reshape(rows, columns)
    coarse = np.add.reduceat(np.add.reduceat(counts, _starts(rows), axis=0), _starts(columns), 1)
    data: Json = {
        "columns": columns,
        "rows": rows,
        "counts": counts.ravel().tolist(),
        "corners": len(uv),
        "empty": name_parts(coarse == 0),
    }
    if len(uv) <= SINGLE_CORNERS:
        data["points"] = np.round(uv, 1).ravel().tolist()
    return data


def arrows(uv: FloatArray, residuals: FloatArray, image_size: tuple[int, int]) -> FloatArray:
    """(m, 5) mean residuals of the parts of the picture: u, v, du, dv and how many corners.

    An arrow stands where its corners are on the average. Of a few corners each has its own.
    """
    if len(uv) <= SINGLE_CORNERS:
        return np.concatenate([uv, residuals, np.ones((len(uv), 1))], axis=1)
    columns, rows = _parts(image_size, ARROW_COLUMNS)
    column, row = _part(uv, image_size, columns, rows)
    part = row * columns + column
    count = np.bincount(part, minlength=rows * columns)
    kept = count >= MIN_CORNERS_PER_ARROW
    means = [
        np.bincount(part, weights, rows * columns)[kept] / count[kept]
        for weights in (*uv.T, *residuals.T)
    ]
    return np.stack([*means, count[kept].astype(float)], axis=1)


def residual_figures(
    uv: FloatArray, residuals: FloatArray, image_size: tuple[int, int], sigma_px: float
) -> Json:
    """Arrows over the picture and a histogram of residuals (n, 2) of the corners (n, 2)."""
    drawn = arrows(uv, residuals, image_size)
    reach = HISTOGRAM_SIGMAS * sigma_px
    if not reach > 0:
        reach = float(np.abs(residuals).max()) or 1.0
    is_single = len(uv) <= SINGLE_CORNERS
    edges = np.linspace(-reach, reach, (FEW_BINS if is_single else HISTOGRAM_BINS) + 1)
    inside = np.clip(residuals, -reach, reach)
    # A mean of n residuals is longer than this once in twenty times if there is only noise.
    by_chance = sigma_px * np.sqrt(-2 * math.log(CHANCE_OF_ARROW) / drawn[:, 4])
    lengths = np.linalg.norm(drawn[:, 2:4], axis=1)
    return {
        "rms": float(np.sqrt((residuals**2).mean())),
        "arrows": _digits(drawn, 5),
        "longest": float(lengths.max(initial=0.0)),
        "single": is_single,
        "unlikely": int((lengths > by_chance).sum()) if sigma_px > 0 else None,
        "reach": reach,
        "histogram": [np.histogram(inside[:, axis], edges)[0].tolist() for axis in (0, 1)],
        "beyond": float((np.abs(residuals) > 3 * sigma_px).mean()) if sigma_px > 0 else None,
    }


def distortion(intrinsics: Intrinsics, image_size: tuple[int, int]) -> Json:
    """Where the lens shows a grid of pixels of an ideal lens: shifts in pixels, row by row.

    Null from where the model's polynomial turns back.
    """
    width, height = image_size
    columns = DISTORTION_COLUMNS
    rows = max(3, round((columns - 1) * height / width) + 1)
    u, v = np.meshgrid(np.linspace(0, width - 1, columns), np.linspace(0, height - 1, rows))
    x, y = (u - intrinsics.cx) / intrinsics.fx, (v - intrinsics.cy) / intrinsics.fy
    shown, _ = project(intrinsics, np.stack([x, y, np.ones_like(x)], axis=-1))
    shift = shown - np.stack([u, v], axis=-1)
    lengths = np.linalg.norm(shift, axis=-1)
    at = None
    if np.isfinite(lengths).any():
        row, column = np.unravel_index(np.nanargmax(lengths), lengths.shape)
        at = [float(u[row, column]), float(v[row, column])]
    return {
        "columns": columns,
        "rows": rows,
        "shift": _digits(shift, 5),
        "largest": None if at is None else float(np.nanmax(lengths)),
        "at": at,
    }


def uncertainty_figure(
    intrinsics: Intrinsics, covariance: FloatArray, image_size: tuple[int, int]
) -> Json:
    """How well it is known where a point is projected to, over the picture."""
    values = uncertainty_map(intrinsics, covariance, image_size)
    return {"steps": len(values), "values": _digits(values, 4)}


def _parts(image_size: tuple[int, int], columns: int) -> tuple[int, int]:
    """Columns and rows of nearly square parts of the picture."""
    width, height = image_size
    return columns, max(1, round(columns * height / width))


def _part(
    uv: FloatArray, image_size: tuple[int, int], columns: int, rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Column and row (n,) of the parts that pixels (n, 2) lie in."""
    width, height = image_size
    column = np.clip((uv[:, 0] + 0.5) * columns / width, 0, columns - 1).astype(np.int64)
    row = np.clip((uv[:, 1] + 0.5) * rows / height, 0, rows - 1).astype(np.int64)
    return column, row


def _starts(n: int) -> list[int]:
    """Where the fifths of n parts begin: few enough to be named."""
    return sorted({n * k // 5 for k in range(5)})


def _digits(values: FloatArray, digits: int) -> list[float | None]:
    """All numbers with so many significant digits; what is not finite is None."""
    return [
        float(f"{value:.{digits}g}") if math.isfinite(value) else None
        for value in values.ravel().tolist()
    ]
