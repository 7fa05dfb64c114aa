"""The detector's hot loops: dark regions of a picture, and corners fitted to its grey values.

A corner is not looked for as a feature. What is printed around it is known, and so is,
from its neighbours, how the board lies there: a picture of the surroundings is computed,

    I(p) = mean + contrast P(s, t),    (s, t) = A (p - corner)

with P the printed cells, blurred, and fitted to the real one in (corner, mean, contrast,
blur) by least squares. All grey values around the corner take part, in the best
proportion, and how well the two pictures agree says whether it is a corner at all.
The surroundings are symmetric about the corner, so a tone curve does not move it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from influx_wrap.compute.jit import fast_jit, jit
from influx_wrap.model.arrays import FloatArray, IntArray

Grey8 = NDArray[np.uint8]

# The normal distribution and its density at multiples of 1 / _STEPS up to _REACH.
_REACH, _STEPS = 4.0, 256
_Z = np.arange(int(2 * _REACH) * _STEPS + 2) / _STEPS - _REACH
_DENSITY = np.exp(-0.5 * _Z * _Z) / math.sqrt(2 * math.pi)
_STEP = np.array([0.5 * (1 + math.erf(z / math.sqrt(2))) for z in _Z])

_MAX_CELLS = 12
_MIN_PIXELS = 12
_MIN_BLUR_PX = 0.25
_CONVERGED_PX = 0.01


@jit
def tile_extremes(image: Grey8, tile: int) -> tuple[Grey8, Grey8]:
    """Least and greatest value of each tile (H // tile, W // tile) of a picture (H, W)."""
    rows, cols = image.shape[0] // tile, image.shape[1] // tile
    low = np.empty((rows, cols), np.uint8)
    high = np.empty((rows, cols), np.uint8)
    for row in range(rows):
        for col in range(cols):
            least, most = np.uint8(255), np.uint8(0)
            for i in range(row * tile, (row + 1) * tile):
                for j in range(col * tile, (col + 1) * tile):
                    least, most = min(least, image[i, j]), max(most, image[i, j])
            low[row, col], high[row, col] = least, most
    return low, high


@fast_jit
def _weights(
    s: float,
    lines: FloatArray,
    first: int,
    last: int,
    sigma: float,
    weight: FloatArray,
    slope: FloatArray,
    change: FloatArray,
) -> None:
    """How much of a blurred view at ``s`` falls into the cells between ``lines[first:last]``.

    Fills weight, its derivative by s and by sigma (last - first + 1,).
    """
    step_before, density_before, change_before = 1.0, 0.0, 0.0
    n = last - first
    for k in range(n):
        z = (s - lines[first + k]) / sigma
        if z <= -_REACH:
            step, density = 0.0, 0.0
        elif z >= _REACH:
            step, density = 1.0, 0.0
        else:
            at = (z + _REACH) * _STEPS
            i = int(at)
            part = at - i
            step = _STEP[i] + part * (_STEP[i + 1] - _STEP[i])
            density = (_DENSITY[i] + part * (_DENSITY[i + 1] - _DENSITY[i])) / sigma
        weight[k] = step_before - step
        slope[k] = density_before - density
        change[k] = change_before + z * density
        step_before, density_before, change_before = step, density, -z * density
    weight[n] = step_before
    slope[n] = density_before
    change[n] = change_before


@jit
def _solve(matrix: FloatArray, vector: FloatArray, n: int) -> bool:
    """Solve a symmetric positive definite system in place by Cholesky; False if it is not."""
    for i in range(n):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            if i == j:
                if not total > 0:
                    return False
                matrix[i, i] = math.sqrt(total)
            else:
                matrix[i, j] = total / matrix[j, j]
    for i in range(n):
        for k in range(i):
            vector[i] -= matrix[i, k] * vector[k]
        vector[i] /= matrix[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            vector[i] -= matrix[k, i] * vector[k]
        vector[i] /= matrix[i, i]
    return True


@jit
def _copy(source: FloatArray, target: FloatArray) -> None:
    """A matrix into another one. As a slice, it would take seconds more to compile."""
    for row in range(source.shape[0]):
        for col in range(source.shape[1]):
            target[row, col] = source[row, col]


@fast_jit
def fit_corners(
    image: Grey8,
    uv: FloatArray,
    right: FloatArray,
    up: FloatArray,
    half: FloatArray,
    line_of_corner: IntArray,
    x_lines: FloatArray,
    y_lines: FloatArray,
    cells: FloatArray,
    blur_px: float,
    iterations: int,
) -> FloatArray:
    """Fit corners to a picture (H, W).

    uv              (n, 2) where they are expected, in pixels
    right, up       (n, 2) pixels per unit of the board's x and y, at the corners
    half            (n, 2) half the window in x and in y, in units of the board
    line_of_corner  (n, 2) which of the lines in x and in y cross there
    x_lines         (X,) lines between the printed cells, in units of the board
    y_lines         (Y,)
    cells           (Y + 1, X + 1) +1 white, -1 black; the outermost reach to infinity
    blur_px         to start with

    Returns (n, 7): corner u, v; contrast (half of white minus black); blur in pixels;
    correlation of the computed with the real picture; standard deviation of u and v from
    the picture's misfit. NaN where the fit failed or left the picture.

    A step solves for mean, contrast and contrast times the changes of corner and blur,
    in which the linearised picture is linear: there is nothing to guess but the corner.
    """
    n = len(uv)
    result = np.full((n, 7), np.nan)
    height, width = image.shape
    wx, sx, cx = np.empty(_MAX_CELLS), np.empty(_MAX_CELLS), np.empty(_MAX_CELLS)
    wy, sy, cy = np.empty(_MAX_CELLS), np.empty(_MAX_CELLS), np.empty(_MAX_CELLS)
    normal, right_side, row = np.empty((5, 5)), np.empty(5), np.empty(5)
    factor, answer = np.empty((5, 5)), np.empty(5)
    for k in range(n):
        determinant = right[k, 0] * up[k, 1] - right[k, 1] * up[k, 0]
        if not abs(determinant) > 1e-12:
            continue
        a00, a01 = up[k, 1] / determinant, -up[k, 0] / determinant
        a10, a11 = -right[k, 1] / determinant, right[k, 0] / determinant
        along_s, along_t = math.hypot(a00, a01), math.hypot(a10, a11)
        reach_u = abs(right[k, 0]) * half[k, 0] + abs(up[k, 0]) * half[k, 1]
        reach_v = abs(right[k, 1]) * half[k, 0] + abs(up[k, 1]) * half[k, 1]
        column, line = line_of_corner[k, 0], line_of_corner[k, 1]
        x0, y0 = x_lines[column], y_lines[line]
        u, v, sigma = uv[k, 0], uv[k, 1], blur_px
        for iteration in range(iterations):
            if not (u >= 0 and v >= 0 and u <= width - 1 and v <= height - 1):
                break
            # Only lines whose blur can be seen in the window matter.
            seen_x = half[k, 0] + 3.5 * sigma * along_s
            seen_y = half[k, 1] + 3.5 * sigma * along_t
            x_first, x_last = column, column + 1
            while x_first > 0 and x0 - x_lines[x_first - 1] < seen_x and column - x_first < 5:
                x_first -= 1
            while x_last < len(x_lines) and x_lines[x_last] - x0 < seen_x and x_last - column < 6:
                x_last += 1
            y_first, y_last = line, line + 1
            while y_first > 0 and y0 - y_lines[y_first - 1] < seen_y and line - y_first < 5:
                y_first -= 1
            while y_last < len(y_lines) and y_lines[y_last] - y0 < seen_y and y_last - line < 6:
                y_last += 1
            n_x, n_y = x_last - x_first + 1, y_last - y_first + 1

            normal[:] = 0.0
            right_side[:] = 0.0
            pixels, total_square = 0, 0.0
            v_first, v_last = (
                max(0, math.ceil(v - reach_v)),
                min(height - 1, math.floor(v + reach_v)),
            )
            u_first, u_last = (
                max(0, math.ceil(u - reach_u)),
                min(width - 1, math.floor(u + reach_u)),
            )
            for j in range(v_first, v_last + 1):
                for i in range(u_first, u_last + 1):
                    s = a00 * (i - u) + a01 * (j - v)
                    t = a10 * (i - u) + a11 * (j - v)
                    if abs(s) > half[k, 0] or abs(t) > half[k, 1]:
                        continue
                    s, t = s + x0, t + y0
                    _weights(s, x_lines, x_first, x_last, sigma * along_s, wx, sx, cx)
                    _weights(t, y_lines, y_first, y_last, sigma * along_t, wy, sy, cy)
                    p, p_s, p_t, p_blur = 0.0, 0.0, 0.0, 0.0
                    for y in range(n_y):
                        inner, inner_s, inner_blur = 0.0, 0.0, 0.0
                        for x in range(n_x):
                            value = cells[y_first + y, x_first + x]
                            inner += value * wx[x]
                            inner_s += value * sx[x]
                            inner_blur += value * cx[x]
                        p += inner * wy[y]
                        p_s += inner_s * wy[y]
                        p_t += inner * sy[y]
                        p_blur += inner_blur * wy[y] * along_s + inner * cy[y] * along_t
                    value = float(image[j, i])
                    pixels += 1
                    total_square += value * value
                    row[0] = -(p_s * a00 + p_t * a10)
                    row[1] = -(p_s * a01 + p_t * a11)
                    row[2], row[3], row[4] = 1.0, p, p_blur
                    for x in range(5):
                        right_side[x] += row[x] * value
                        for y in range(x + 1):
                            normal[x, y] += row[x] * row[y]
            if pixels < _MIN_PIXELS:
                break
            # Hardly any weight, but an invisible blur stays as it was.
            normal[4, 4] += 1e-3 * normal[3, 3]
            _copy(normal, factor)
            for x in range(5):
                answer[x] = right_side[x]
            if not _solve(factor, answer, 5) or not answer[3] > 0:
                break
            du, dv, change = answer[0] / answer[3], answer[1] / answer[3], answer[4] / answer[3]
            step = math.hypot(du, dv)
            if step > 1.0:
                du, dv = du / step, dv / step
            u, v = u + du, v + dv
            sigma = max(_MIN_BLUR_PX, min(max(sigma + change, 0.6 * sigma), 1.6 * sigma))
            if step < _CONVERGED_PX or iteration == iterations - 1:
                misfit = total_square
                for x in range(5):
                    misfit -= answer[x] * right_side[x]
                variance = total_square - right_side[2] * right_side[2] / pixels
                if not variance > 0 or step > 10 * _CONVERGED_PX:
                    break
                misfit = max(misfit, 0.0)
                noise = misfit / max(1, pixels - 5) / (answer[3] * answer[3])
                result[k, 0], result[k, 1] = u, v
                result[k, 2], result[k, 3] = answer[3], sigma
                result[k, 4] = math.sqrt(max(0.0, 1 - misfit / variance))
                for axis in range(2):
                    _copy(normal, factor)
                    answer[:] = 0.0
                    answer[axis] = 1.0
                    if _solve(factor, answer, 5):
                        result[k, 5 + axis] = math.sqrt(noise * max(answer[axis], 0.0))
                break
    return result
