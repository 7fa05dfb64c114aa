"""The renderer's hot loops: a camera's rays, what each pixel sees of a table of cells, its blur.

A pixel's four corners land on a quadrilateral of the board's plane. The light from it
is the integral of the cells' brightness v over the quadrilateral, which Green's
theorem turns into a walk along its sides,

    ∬ v dA = ∮ F dy,    F(x, y) = ∫ v dx from the far left to x

F is linear in x inside a cell, so a walk that stops at every line between cells is
exact, however many cells a pixel covers. The first moments of v in the pixel,
∬ v x dA = ∮ (∫ v x dx) dy and ∬ v y dA = ∮ F y dy, are quadratic on each piece, for
which Simpson's rule is exact. The blur needs them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from influx_wrap.compute.jit import fused_jit, jit
from influx_wrap.model.arrays import FloatArray, IntArray

Plane = NDArray[np.float32]

_FAR_M = 1e5
# Beyond the sheet's rim, in half sizes of the grid of points, a bent board goes on flat.
_BENT = 1.5


@jit
def _walk(
    x0: float,
    y0: float,
    i: int,
    j: int,
    x1: float,
    y1: float,
    i1: int,
    j1: int,
    x_lines: FloatArray,
    y_lines: FloatArray,
    value: FloatArray,
    before: FloatArray,
    moment_before: FloatArray,
) -> tuple[float, float, float]:
    """∫ F dy, ∫ (∫ v x dx) dy and ∫ F y dy from (x0, y0) in cell (j, i) to (x1, y1)."""
    light, light_x, light_y = 0.0, 0.0, 0.0
    dx, dy = x1 - x0, y1 - y0
    step_i, step_j = (1 if i1 > i else -1), (1 if j1 > j else -1)
    x, y = x0, y0
    while True:
        to_x = (x_lines[i + (step_i + 1) // 2] - x0) / dx if i != i1 else 2.0
        to_y = (y_lines[j + (step_j + 1) // 2] - y0) / dy if j != j1 else 2.0
        t = min(to_x, to_y)
        if t < 1.0:
            x_end, y_end = x0 + t * dx, y0 + t * dy
        else:
            x_end, y_end = x1, y1
        v, left = value[j, i], x_lines[i]
        f0 = before[j, i] + v * (x - left)
        f1 = before[j, i] + v * (x_end - left)
        rise = y_end - y
        light += 0.5 * rise * (f0 + f1)
        light_y += rise / 6 * (f0 * y + (f0 + f1) * (y + y_end) + f1 * y_end)
        x_mid = 0.5 * (x + x_end)
        squares = (x * x + 4 * x_mid * x_mid + x_end * x_end) / 6
        light_x += rise * (moment_before[j, i] + 0.5 * v * (squares - left * left))
        if i == i1 and j == j1:
            return light, light_x, light_y
        x, y = x_end, y_end
        if to_x < to_y:
            i += step_i
        else:
            j += step_j


@jit
def _bend_row(bow: FloatArray, x: FloatArray, y: FloatArray) -> None:
    """Move the points x, y (n,) of the flat board along their rays to the bent one.

    ``bow`` (10,) holds the coefficients of ``bow_basis``, the middle and half the size of
    the points they refer to, each in x and y, and the camera's centre seen from the board.
    """
    for k in range(len(x)):
        x0, y0 = x[k], y[k]
        # A sheet is bent a little over its size: every round gains two digits or more.
        for _ in range(6):
            s = min(max((x[k] - bow[3]) / bow[5], -_BENT), _BENT)
            t = min(max((y[k] - bow[4]) / bow[6], -_BENT), _BENT)
            z = bow[0] * (1 - s * s) + bow[1] * (1 - t * t) + bow[2] * s * t
            x[k] = x0 + z / bow[9] * (bow[7] - x0)
            y[k] = y0 + z / bow[9] * (bow[8] - y0)


@jit
def _locate_row(
    a: FloatArray,
    b: FloatArray,
    to_board: FloatArray,
    bow: FloatArray,
    x_lines: FloatArray,
    y_lines: FloatArray,
    x: FloatArray,
    y: FloatArray,
    col: IntArray,
    row: IntArray,
) -> None:
    """Where a row of rays (n,) meets the board: x, y (n,) and the cell; column -1 if nowhere."""
    m = to_board
    for k in range(len(a)):
        depth = m[2, 0] * a[k] + m[2, 1] * b[k] + m[2, 2]
        scale = 1.0 / depth if depth > 0 else np.nan
        x[k] = (m[0, 0] * a[k] + m[0, 1] * b[k] + m[0, 2]) * scale
        y[k] = (m[1, 0] * a[k] + m[1, 1] * b[k] + m[1, 2]) * scale
    if bow[0] != 0 or bow[1] != 0 or bow[2] != 0:
        _bend_row(bow, x, y)
    i, j = 0, 0
    for k in range(len(a)):
        if not (abs(x[k]) < _FAR_M and abs(y[k]) < _FAR_M):
            col[k] = -1
            continue
        while x[k] >= x_lines[i + 1]:
            i += 1
        while x[k] < x_lines[i]:
            i -= 1
        while y[k] >= y_lines[j + 1]:
            j += 1
        while y[k] < y_lines[j]:
            j -= 1
        col[k], row[k] = i, j


@jit
def _expose_row(
    top: int,
    x: FloatArray,
    y: FloatArray,
    col: IntArray,
    row: IntArray,
    x_lines: FloatArray,
    y_lines: FloatArray,
    value: FloatArray,
    before: FloatArray,
    moment_before: FloatArray,
    light: Plane,
    light_u: Plane,
    light_v: Plane,
) -> tuple[int, int]:
    """A row of pixels (W,) between the corners in row ``top`` of x, y (2, W + 1) and the other.

    Returns the first pixel with light and the one after the last.
    """
    bottom = 1 - top
    turn_row = (top, top, bottom, bottom, top)
    turn_col = (0, 1, 1, 0, 0)
    first, after = len(light), 0
    for u in range(len(light)):
        i, j = col[0, u], row[0, u]
        light_u[u], light_v[u] = 0, 0
        if (
            (i == col[0, u + 1]) & (i == col[1, u]) & (i == col[1, u + 1]) & (i >= 0)
            & (j == row[0, u + 1]) & (j == row[1, u]) & (j == row[1, u + 1])
        ):  # fmt: skip
            light[u] = value[j, i]
            if light[u] != 0:
                first, after = min(first, u), u + 1
            continue
        i_low = min(i, col[0, u + 1], col[1, u], col[1, u + 1])
        if i_low < 0:
            light[u] = 0
            continue
        i_high = max(i, col[0, u + 1], col[1, u], col[1, u + 1])
        j_low = min(j, row[0, u + 1], row[1, u], row[1, u + 1])
        j_high = max(j, row[0, u + 1], row[1, u], row[1, u + 1])
        plain = True
        for jj in range(j_low, j_high + 1):
            for ii in range(i_low, i_high + 1):
                plain = plain and value[jj, ii] == value[j, i]
        first, after = min(first, u), u + 1
        if plain:
            light[u] = value[j, i]
            continue
        total, total_x, total_y = 0.0, 0.0, 0.0
        for side in range(4):
            r0, c0 = turn_row[side], u + turn_col[side]
            r1, c1 = turn_row[side + 1], u + turn_col[side + 1]
            part, part_x, part_y = _walk(
                x[r0, c0], y[r0, c0], col[r0, c0], row[r0, c0],
                x[r1, c1], y[r1, c1], col[r1, c1], row[r1, c1],
                x_lines, y_lines, value, before, moment_before,
            )  # fmt: skip
            total += part
            total_x += part_x
            total_y += part_y
        x00, x01, x10, x11 = x[top, u], x[top, u + 1], x[bottom, u], x[bottom, u + 1]
        y00, y01, y10, y11 = y[top, u], y[top, u + 1], y[bottom, u], y[bottom, u + 1]
        area = 0.5 * ((x11 - x00) * (y10 - y01) - (x10 - x01) * (y11 - y00))
        mean = total / area
        off_x = total_x / area - mean * 0.25 * (x00 + x01 + x10 + x11)
        off_y = total_y / area - mean * 0.25 * (y00 + y01 + y10 + y11)
        x_u, x_v = 0.5 * (x01 - x00 + x11 - x10), 0.5 * (x10 - x00 + x11 - x01)
        y_u, y_v = 0.5 * (y01 - y00 + y11 - y10), 0.5 * (y10 - y00 + y11 - y01)
        inverse = 1 / (x_u * y_v - x_v * y_u)
        light[u] = mean
        light_u[u] = (y_v * off_x - x_v * off_y) * inverse
        light_v[u] = (x_u * off_y - y_u * off_x) * inverse
    return first, after


@fused_jit
def _blur_row(
    light: Plane,
    light_u: Plane,
    light_v: Plane,
    mean: Plane,
    slope: Plane,
    out: Plane,
    out_v: Plane,
) -> None:
    """Blur a row (W + 2 r,) along itself: ``out`` and its moment ``out_v`` (W,)."""
    n, r = len(out), len(mean) // 2
    # Slices, not offsets in the index: only then does the compiler use SIMD.
    centre, centre_v = light[r : r + n], light_v[r : r + n]
    for u in range(n):
        out[u] = mean[r] * centre[u]
        out_v[u] = mean[r] * centre_v[u]
    for k in range(1, r + 1):
        m, s = mean[r + k], slope[r + k]
        low, high = light[r - k : r - k + n], light[r + k : r + k + n]
        low_u, high_u = light_u[r - k : r - k + n], light_u[r + k : r + k + n]
        low_v, high_v = light_v[r - k : r - k + n], light_v[r + k : r + k + n]
        for u in range(n):
            out[u] += m * (low[u] + high[u]) + s * (high_u[u] - low_u[u])
        for u in range(n):
            out_v[u] += m * (low_v[u] + high_v[u])


@fused_jit
def _blur_column(
    rows: Plane, rows_v: Plane, last: int, mean: Plane, slope: Plane, start: int, out: Plane
) -> None:
    """Add the blur across the rows of a ring (2 r + 1, W) whose newest is number ``last``
    to ``out`` (n,), the pixels from ``start`` on."""
    taps = len(mean)
    r = taps // 2
    here = slice(start, start + len(out))
    centre = rows[(last - r) % taps][here]
    for u in range(len(out)):
        out[u] += mean[r] * centre[u]
    for k in range(1, r + 1):
        m, s = mean[r + k], slope[r + k]
        above, below = (last - r - k) % taps, (last - r + k) % taps
        row0, row1 = rows[above][here], rows[below][here]
        moment0, moment1 = rows_v[above][here], rows_v[below][here]
        for u in range(len(out)):
            out[u] += m * (row0[u] + row1[u]) + s * (moment1[u] - moment0[u])


@jit
def expose(
    a: FloatArray,
    b: FloatArray,
    skip: int,
    to_board: FloatArray,
    bow: FloatArray,
    x_lines: FloatArray,
    y_lines: FloatArray,
    value: FloatArray,
    before: FloatArray,
    moment_before: FloatArray,
    mean: Plane,
    slope: Plane,
    mean_v: Plane,
    slope_v: Plane,
    window: IntArray,
    out: Plane,
) -> None:
    """Add to ``out`` (H, W) the mean of ``value`` over every pixel, seen through a blur.

    ``a``, ``b`` (H + 2 (skip + r) + 1, W + 2 (skip + r) + 1) are the rays of the pixels'
    corners, the outermost ``skip`` of which are not used; ``to_board`` (3, 3) takes
    (a, b, 1) to the board's plane, which ``bow`` (10,) bends (``_bend_row``). ``value``
    (rows, cols) holds the cells between ``x_lines`` (cols + 1,) and ``y_lines``
    (rows + 1,), which reach beyond ``_FAR_M``; ``before`` and ``moment_before``
    (rows, cols) are ∫ v dx and ∫ v x dx left of a cell. A ray that meets nothing adds 0.

    ``window`` (4,) is what of ``out`` may see anything: its first row, the row behind its last
    one, and columns likewise.

    The blur is a sum of Q products of a function of u and one of v, which within each pixel
    are ``mean`` + ``slope`` * offset, (Q, 2 r + 1) each; means are even, slopes odd. It is
    done row by row, so that all stays in the cache.
    """
    terms, taps = mean.shape
    v0, left, out_width = window[0], window[2], window[3] - window[2]
    width = out_width + taps - 1
    light = np.empty(width, dtype=np.float32)
    light_u, light_v = np.empty_like(light), np.empty_like(light)
    ring = np.zeros((terms, taps, out_width), dtype=np.float32)
    ring_v = np.zeros_like(ring)
    # Where the rows of the ring have light; the rest is zero and needs no blur.
    first, after = np.full(taps, out_width), np.zeros(taps, dtype=np.int64)
    x, y = np.empty((2, width + 1)), np.empty((2, width + 1))
    col = np.zeros((2, width + 1), dtype=np.int64)
    row = np.zeros((2, width + 1), dtype=np.int64)
    inner = slice(skip + left, skip + left + width + 1)
    _locate_row(
        a[skip + v0][inner], b[skip + v0][inner], to_board, bow, x_lines, y_lines,
        x[0], y[0], col[0], row[0],
    )  # fmt: skip
    for v in range(window[1] - v0 + taps - 1):
        top, bottom = v % 2, 1 - v % 2
        _locate_row(
            a[skip + v0 + v + 1][inner], b[skip + v0 + v + 1][inner], to_board, bow,
            x_lines, y_lines, x[bottom], y[bottom], col[bottom], row[bottom],
        )  # fmt: skip
        lit, dark = _expose_row(
            top, x, y, col, row, x_lines, y_lines, value, before, moment_before,
            light, light_u, light_v,
        )  # fmt: skip
        slot = v % taps
        lit, dark = max(lit - taps + 1, 0), min(dark, out_width)
        for q in range(terms):
            ring[q, slot][first[slot] : after[slot]] = 0
            ring_v[q, slot][first[slot] : after[slot]] = 0
            if lit < dark:
                source = slice(lit, dark + taps - 1)
                _blur_row(
                    light[source], light_u[source], light_v[source], mean[q], slope[q],
                    ring[q, slot][lit:dark], ring_v[q, slot][lit:dark],
                )  # fmt: skip
        first[slot], after[slot] = lit, dark
        start, stop = first.min(), after.max()
        if v >= taps - 1 and start < stop:
            for q in range(terms):
                _blur_column(
                    ring[q],
                    ring_v[q],
                    v,
                    mean_v[q],
                    slope_v[q],
                    start,
                    out[v0 + v - taps + 1][left + start : left + stop],
                )


@jit
def develop(
    light: Plane,
    background: float,
    loss: float,
    grain: Plane,
    draws: NDArray[np.uint16],
    out: NDArray[np.uint8],
) -> None:
    """Light (H, W) above the background to a picture (H, W) of bytes.

    ``loss`` is the part of the light lost per square half pixel from the middle; the
    grain of pixel k is ``grain[draws[k]]``, none if there are no ``draws``.
    """
    height, width = light.shape
    grainy = draws.size > 0
    for v in range(height):
        dv = 2 * v - height + 1
        for u in range(width):
            du = 2 * u - width + 1
            level = (light[v, u] + background) * (1 - loss * (du * du + dv * dv))
            if grainy:
                level += grain[draws[v, u]]
            out[v, u] = np.uint8(min(max(level + 0.5, 0.0), 255.0))
