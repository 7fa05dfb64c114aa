"""The hot loops of a room's pictures: which surface a ray meets, and what is painted there.

Solids are boxes. A ray is (a, b, 1) in camera space, so that its parameter is the depth, and
``solids`` (B, 15) tells of each box, in the box's own axes: where the camera is (3), what
turns rays into these axes (3, 3), and half the box's size (3). The first one is the room,
seen from inside. A surface's number is 6 times the box's plus that of its face.

The paint is a patchwork at every scale: octave after octave of squares, each of a colour that
is a hash of its place, turned so that no octave's edges lie on the next one's. The mean of such
a pattern over a box is a ramp across the squares' edges, so that each pixel is the mean over
its own footprint, stretched as the surface is tilted; octaves too fine for it fade away. The
picture thus never flickers, and there is detail at any focal length.

Paint is laid on in runs of pixels of one surface, octave by octave, in 32 bits and without
branches: only then does the compiler use SIMD.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from influx_wrap.compute.jit import fused_jit, jit
from influx_wrap.model.arrays import FloatArray, IntArray

Row = NDArray[np.float32]

TILE = 32
COARSEST_M = 1.1
FINER = 2.7
N_OCTAVES = 10
CONTRAST = 0.45
SOFT_PX = 1.6
"""The width of the box, in pixels, over which paint is averaged: a pixel and some blur."""
SAMPLES = 4
"""A pixel that sees several surfaces weighs them by so many samples each way."""
TURNS_RAD = (0.31, 1.02)
"""How the squares are turned on their surface, octave by octave in turns."""

_COS = (math.cos(TURNS_RAD[0]), math.cos(TURNS_RAD[1]))
_SIN = (math.sin(TURNS_RAD[0]), math.sin(TURNS_RAD[1]))
_COLUMN, _ROW, _MIX = np.uint32(0x9E3779B1), np.uint32(0x85EBCA77), np.uint32(0x2C1B3C6D)


@jit
def _grey_and_colours(square: np.uint32) -> tuple[np.float32, np.float32, np.float32]:
    """Blue, green and red, of 255, from a square's place and key; more grey than colour."""
    h = np.uint32((square ^ (square >> np.uint32(15))) * _MIX)
    h = np.uint32((h ^ (h >> np.uint32(12))) * _COLUMN)
    h = np.uint32(h ^ (h >> np.uint32(15)))
    grey = np.float32(0.7) * np.float32(np.int32(h >> np.uint32(24)))
    blue = np.float32(np.int32(h & np.uint32(255)))
    green = np.float32(np.int32((h >> np.uint32(8)) & np.uint32(255)))
    red = np.float32(np.int32((h >> np.uint32(16)) & np.uint32(255)))
    share = np.float32(0.3)
    return grey + share * blue, grey + share * green, grey + share * red


@fused_jit
def _octave(
    x: Row, y: Row, w_x: Row, w_y: Row, per_m: float, key: int, blue: Row, green: Row, red: Row
) -> None:
    """Add an octave of squares, ``per_m`` to the metre, to colours (n,) at x, y (n,) in metres
    along the squares' sides, averaged over w_x, w_y (n,) metres."""
    scale, half, one, two = np.float32(per_m), np.float32(0.5), np.float32(1), np.float32(2)
    zero, middle, byte = np.float32(0), np.float32(127.5), np.float32(1 / 127.5)
    for k in range(len(x)):
        along_x, along_y = scale * x[k], scale * y[k]
        width_x, width_y = scale * w_x[k], scale * w_y[k]
        weight = byte * min(max(two - width_x, zero), one) * min(max(two - width_y, zero), one)
        # The edge nearest to the pixel, and the share of its footprint on the edge's far side.
        left, top = np.floor(along_x - half), np.floor(along_y - half)
        right = min(max((along_x - left - one) / min(width_x, one) + half, zero), one)
        below = min(max((along_y - top - one) / min(width_y, one) + half, zero), one)
        column = np.uint32(np.uint32(np.int32(left)) * _COLUMN)
        row = np.uint32(np.uint32(np.int32(top)) * _ROW) ^ np.uint32(key)
        next_column = np.uint32(column + _COLUMN)
        next_row = np.uint32(np.uint32(np.int32(top) + np.int32(1)) * _ROW) ^ np.uint32(key)
        b0, g0, r0 = _grey_and_colours(np.uint32(column ^ row))
        b1, g1, r1 = _grey_and_colours(np.uint32(next_column ^ row))
        b2, g2, r2 = _grey_and_colours(np.uint32(column ^ next_row))
        b3, g3, r3 = _grey_and_colours(np.uint32(next_column ^ next_row))
        b0, b2 = b0 + right * (b1 - b0), b2 + right * (b3 - b2)
        g0, g2 = g0 + right * (g1 - g0), g2 + right * (g3 - g2)
        r0, r2 = r0 + right * (r1 - r0), r2 + right * (r3 - r2)
        blue[k] += weight * (b0 + below * (b2 - b0) - middle)
        green[k] += weight * (g0 + below * (g2 - g0) - middle)
        red[k] += weight * (r0 + below * (r2 - r0) - middle)


@fused_jit
def _extent(g_uu: float, g_uv: float, g_vv: float, cos: float, sin: float) -> np.float32:
    """The width in metres of the box to average over, along (cos, sin)."""
    square = cos * cos * g_uu + 2 * cos * sin * g_uv + sin * sin * g_vv
    return np.float32(SOFT_PX * math.sqrt(max(square, 1e-18)))


@fused_jit
def paint(
    solid: FloatArray,
    face: int,
    keys: NDArray[np.uint32],
    rays: FloatArray,
    start: np.int64,
    stop: np.int64,
    work: Row,
    colours: Row,
) -> None:
    """Paint from -1 to 1, blue first, where pixels from ``start`` to before ``stop`` see the
    plane of a face: n of them, put first in the rows of ``colours`` (3, n or more).

    ``rays`` (6, W) are the pixels' a, b, and da/dx, da/dy, db/dx, db/dy, ``keys`` (O,) those of
    the surface's octaves, and ``work`` (8, n or more) is to be written over.
    """
    a, b, a_x = rays[0][start:stop], rays[1][start:stop], rays[2][start:stop]
    a_y, b_x, b_y = rays[3][start:stop], rays[4][start:stop], rays[5][start:stop]
    n = face // 2
    first, second = (n + 1) % 3, (n + 2) % 3
    side = (solid[12 + n] if face % 2 else -solid[12 + n]) - solid[n]
    n_a, n_b, n_c = solid[3 + 3 * n], solid[4 + 3 * n], solid[5 + 3 * n]
    u_a, u_b, u_c = solid[3 + 3 * first], solid[4 + 3 * first], solid[5 + 3 * first]
    v_a, v_b, v_c = solid[3 + 3 * second], solid[4 + 3 * second], solid[5 + 3 * second]
    u_0, v_0 = solid[first], solid[second]
    cos_0, sin_0, cos_1, sin_1 = _COS[0], _SIN[0], _COS[1], _SIN[1]
    count = len(a)
    x_0, y_0, x_1, y_1 = work[0][:count], work[1][:count], work[2][:count], work[3][:count]
    w_x0, w_y0, w_x1, w_y1 = work[4][:count], work[5][:count], work[6][:count], work[7][:count]
    for k in range(count):
        inverse = 1 / (n_a * a[k] + n_b * b[k] + n_c)
        depth = side * inverse
        u_along = u_a * a[k] + u_b * b[k] + u_c
        v_along = v_a * a[k] + v_b * b[k] + v_c
        slope_a, slope_b = n_a * inverse, n_b * inverse
        du_a, du_b = u_a - u_along * slope_a, u_b - u_along * slope_b
        dv_a, dv_b = v_a - v_along * slope_a, v_b - v_along * slope_b
        u_x = depth * (du_a * a_x[k] + du_b * b_x[k])
        u_y = depth * (du_a * a_y[k] + du_b * b_y[k])
        v_x = depth * (dv_a * a_x[k] + dv_b * b_x[k])
        v_y = depth * (dv_a * a_y[k] + dv_b * b_y[k])
        g_uu, g_uv, g_vv = u_x * u_x + u_y * u_y, u_x * v_x + u_y * v_y, v_x * v_x + v_y * v_y
        u, v = u_0 + depth * u_along, v_0 + depth * v_along
        x_0[k], y_0[k] = cos_0 * u + sin_0 * v, cos_0 * v - sin_0 * u
        x_1[k], y_1[k] = cos_1 * u + sin_1 * v, cos_1 * v - sin_1 * u
        w_x0[k] = _extent(g_uu, g_uv, g_vv, cos_0, sin_0)
        w_y0[k] = _extent(g_uu, g_uv, g_vv, -sin_0, cos_0)
        w_x1[k] = _extent(g_uu, g_uv, g_vv, cos_1, sin_1)
        w_y1[k] = _extent(g_uu, g_uv, g_vv, -sin_1, cos_1)
    blue, green, red = colours[0][:count], colours[1][:count], colours[2][:count]
    finest_m = np.float32(math.inf)
    for k in range(count):
        blue[k] = green[k] = red[k] = 0
        finest_m = min(finest_m, max(w_x0[k], w_y0[k]), max(w_x1[k], w_y1[k]))
    per_m = 1 / COARSEST_M
    for octave in range(N_OCTAVES):
        if per_m * finest_m >= 2:
            break
        x, y = (x_1, y_1) if octave % 2 else (x_0, y_0)
        w_x, w_y = (w_x1, w_y1) if octave % 2 else (w_x0, w_y0)
        _octave(x, y, w_x, w_y, per_m, keys[octave], blue, green, red)
        per_m *= FINER
    strength, one = np.float32(CONTRAST), np.float32(1)
    for c in range(3):
        colour = colours[c][:count]
        for k in range(count):
            value = strength * colour[k]
            colour[k] = value / (one + abs(value))


@jit
def meet(solids: FloatArray, others: IntArray, a: float, b: float) -> int:
    """The surface that the ray (a, b, 1) meets first, of the room or of one of ``others``
    among the boxes; -1 if there is no ray."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return -1
    nearest, surface = math.inf, -1
    for axis in range(3):
        along = solids[0, 3 + 3 * axis] * a + solids[0, 4 + 3 * axis] * b + solids[0, 5 + 3 * axis]
        depth = (math.copysign(solids[0, 12 + axis], along) - solids[0, axis]) / along
        if depth < nearest:
            nearest, surface = depth, 2 * axis + (1 if along > 0 else 0)
    for box in others:
        enter, leave, face = 0.0, nearest, -1
        for axis in range(3):
            along = (
                solids[box, 3 + 3 * axis] * a
                + solids[box, 4 + 3 * axis] * b
                + solids[box, 5 + 3 * axis]
            )
            inverse = 1 / along
            reach = math.copysign(solids[box, 12 + axis], along)
            depth = (-reach - solids[box, axis]) * inverse
            if depth > enter:
                enter, face = depth, 2 * axis + (0 if along > 0 else 1)
            leave = min(leave, (reach - solids[box, axis]) * inverse)
        if face >= 0 and enter < leave:
            nearest, surface = enter, 6 * box + face
    return surface


@jit
def _candidates(a: FloatArray, b: FloatArray, bounds: FloatArray, found: IntArray) -> int:
    """How many boxes may be seen by the rays a, b (h, w) of a tile; they are put first in
    ``found`` (B,)."""
    low_a = low_b = math.inf
    high_a = high_b = -math.inf
    for y in range(a.shape[0]):
        for x in range(a.shape[1]):
            # No comparison with NaN is true.
            low_a = a[y, x] if a[y, x] < low_a else low_a
            high_a = a[y, x] if a[y, x] > high_a else high_a
            low_b = b[y, x] if b[y, x] < low_b else low_b
            high_b = b[y, x] if b[y, x] > high_b else high_b
    n = 0
    for box in range(1, len(bounds)):
        if (
            bounds[box, 0] <= high_a
            and bounds[box, 1] >= low_a
            and bounds[box, 2] <= high_b
            and bounds[box, 3] >= low_b
        ):
            found[n] = box
            n += 1
    return n


@jit
def find_surfaces(
    a: FloatArray,
    b: FloatArray,
    solids: FloatArray,
    bounds: FloatArray,
    surfaces: NDArray[np.int32],
) -> None:
    """The surface (H, W) that each ray (a, b, 1) of a picture meets first, -1 if there is none.

    ``bounds`` (B, 4) are the least a, greatest a, least b and greatest b of each box.
    """
    height, width = a.shape
    found = np.empty(len(solids), dtype=np.int64)
    for top in range(0, height, TILE):
        bottom = min(top + TILE, height)
        for left in range(0, width, TILE):
            right = min(left + TILE, width)
            tile_a, tile_b = a[top:bottom, left:right], b[top:bottom, left:right]
            n = _candidates(tile_a, tile_b, bounds, found)
            others, tile = found[:n], surfaces[top:bottom, left:right]
            for y in range(bottom - top):
                for x in range(right - left):
                    tile[y, x] = meet(solids, others, tile_a[y, x], tile_b[y, x])


@jit
def _edge_pixel(
    solids: FloatArray,
    others: IntArray,
    keys: NDArray[np.uint32],
    tints: Row,
    painted: FloatArray,
    ray: FloatArray,
    work: Row,
    colours: Row,
    light: Row,
) -> None:
    """Add the light (3,) of a pixel that sees several surfaces, from its ``ray`` (6,): a, b and
    their derivatives. Each surface is painted once, in the middle of what is seen of it."""
    seen = np.empty(SAMPLES * SAMPLES, dtype=np.int64)
    for j in range(SAMPLES):
        dy = (j + 0.5) / SAMPLES - 0.5
        for i in range(SAMPLES):
            dx = (i + 0.5) / SAMPLES - 0.5
            a = ray[0] + dx * ray[2] + dy * ray[3]
            b = ray[1] + dx * ray[4] + dy * ray[5]
            seen[SAMPLES * j + i] = meet(solids, others, a, b)
    one, start, stop = np.empty((6, 1)), np.int64(0), np.int64(1)
    for first in range(len(seen)):
        surface = seen[first]
        if surface < 0:
            continue
        n, dx, dy = 0, 0.0, 0.0
        for k in range(first, len(seen)):
            if seen[k] == surface:
                n += 1
                dx += (k % SAMPLES + 0.5) / SAMPLES - 0.5
                dy += (k // SAMPLES + 0.5) / SAMPLES - 0.5
                seen[k] = -1
        for k in range(6):
            one[k, 0] = ray[k]
        one[0, 0] += (dx * ray[2] + dy * ray[3]) / n
        one[1, 0] += (dx * ray[4] + dy * ray[5]) / n
        box = surface // 6
        paint(solids[box], surface % 6, keys[surface], one, start, stop, work, colours)
        for c in range(3):
            level = tints[surface, c] * (1 + painted[box] * colours[c, 0])
            light[c] += level * n / len(seen)


@jit
def expose_room(
    a: FloatArray,
    b: FloatArray,
    surfaces: NDArray[np.int32],
    solids: FloatArray,
    bounds: FloatArray,
    tints: Row,
    painted: FloatArray,
    keys: NDArray[np.uint32],
    light: Row,
) -> None:
    """Light (H, 3, W) of a room, blue first, of 255.

    a, b      (H + 1, W + 1) rays of the corners of the pixels, NaN where there is none
    surfaces  (H + 1, W + 1) that they meet
    bounds    (B, 4) as for ``find_surfaces``
    tints     (6 B, 3) brightness of every surface, of 255
    painted   (B,) how much the paint changes it, from 0 to 1
    keys      (6 B, O) of the surfaces' paint
    """
    height, width = a.shape[0] - 1, a.shape[1] - 1
    rays, work = np.empty((6, width)), np.empty((8, width), dtype=np.float32)
    colours, one_colour = np.empty((3, width), np.float32), np.empty((3, 1), np.float32)
    found, pixel = np.empty(len(solids), dtype=np.int64), np.empty(3, dtype=np.float32)
    for y in range(height):
        a0, a1, a2, a3 = a[y, :-1], a[y, 1:], a[y + 1, :-1], a[y + 1, 1:]
        b0, b1, b2, b3 = b[y, :-1], b[y, 1:], b[y + 1, :-1], b[y + 1, 1:]
        ray_a, ray_b, a_x, a_y, b_x, b_y = rays[0], rays[1], rays[2], rays[3], rays[4], rays[5]
        for x in range(width):
            ray_a[x] = 0.25 * (a0[x] + a1[x] + a2[x] + a3[x])
            ray_b[x] = 0.25 * (b0[x] + b1[x] + b2[x] + b3[x])
            a_x[x] = 0.5 * (a1[x] - a0[x] + a3[x] - a2[x])
            a_y[x] = 0.5 * (a2[x] - a0[x] + a3[x] - a1[x])
            b_x[x] = 0.5 * (b1[x] - b0[x] + b3[x] - b2[x])
            b_y[x] = 0.5 * (b2[x] - b0[x] + b3[x] - b1[x])
        upper, lower = surfaces[y], surfaces[y + 1]
        # A plain 0 would have ``paint`` compiled for it once more.
        here = np.int64(0)
        while here < width:
            s = upper[here]
            stop = here
            while stop < width and s == upper[stop + 1] and s == lower[stop] == lower[stop + 1]:
                stop += 1
            if stop > here and s >= 0:
                paint(solids[s // 6], s % 6, keys[s], rays, here, stop, work, colours)
                share = np.float32(painted[s // 6])
                for c in range(3):
                    tint, row, paint_row = tints[s, c], light[y, c][here:stop], colours[c]
                    for k in range(stop - here):
                        row[k] = tint * (1 + share * paint_row[k])
                here = stop
                continue
            for c in range(3):
                pixel[c] = 0
            if min(s, upper[here + 1], lower[here], lower[here + 1]) >= 0:
                near_a, near_b = a[y : y + 2, here : here + 2], b[y : y + 2, here : here + 2]
                others = found[: _candidates(near_a, near_b, bounds, found)]
                ray = rays[:, here]
                _edge_pixel(solids, others, keys, tints, painted, ray, work, one_colour, pixel)
            for c in range(3):
                light[y, c, here] = pixel[c]
            here += 1


@jit
def develop_colour(
    light: Row, loss: float, grain: Row, draws: NDArray[np.uint16], out: NDArray[np.uint8]
) -> None:
    """Light (H, 3, W) to a picture (H, W, 3) of bytes.

    ``loss`` is the part of the light lost per square half pixel from the middle; the grain of
    a value is ``grain[draw]`` of its draw (H, 3, W), none if there are no ``draws``.
    """
    height, _, width = light.shape
    grainy = draws.size > 0
    for y in range(height):
        dv = 2 * y - height + 1
        for c in range(3):
            for x in range(width):
                du = 2 * x - width + 1
                level = light[y, c, x] * np.float32(1 - loss * (du * du + dv * dv))
                if grainy:
                    level += grain[draws[y, c, x]]
                level = min(max(level + np.float32(0.5), np.float32(0)), np.float32(255))
                out[y, x, c] = np.uint8(level)
