"""The hot loops: linearise views, eliminate poses, move poses.

One view contributes residuals r = w (observed - projected) that depend on its
pose (6 numbers) and on what all views share: 8 intrinsics and, on request, 3
coefficients of the board's bow. With J the Jacobian of the projection, the
normal equations of a view are

    | A   B | |d shared|   |a|
    | B'  C | |d pose  | = |c|      where   [A B; B' C] = J'J,  [a; c] = J'r

and eliminating the pose leaves the shared part (Schur complement)

    (A - B C^-1 B') d shared = a - B C^-1 c,     d pose = C^-1 c - C^-1 B' d shared

A pose is (12,): the rotation matrix row by row, then the translation. It moves by
R <- exp([w]) R, t <- t + dt for a step (w, dt).

The columns of J are written into a scratch array with a constant stride, and the
products of columns are plain dot products over it: both loops become SIMD code.
"""

from __future__ import annotations

import math

import numpy as np

from influx_wrap.compute.jit import fast_jit, jit
from influx_wrap.model.projection_kernels import distort

CHUNK = 192
ROWS = 8
"""Points in a chunk of a view's data, and numbers of a point; ``problem`` says which."""

# Scratch rows per image axis: f, c, k1, k2, p1, p2, rotation (3), translation (3),
# residual, bow (3). The shared columns land at these places of the view's system:
_COLUMNS = 16
_RESIDUAL = 12
SCRATCH = 2 * _COLUMNS * CHUNK
_NO_BOW = 13


@fast_jit
def _columns(theta, bow, pose, data, weight, n, out):
    """Weighted Jacobian columns and residuals of n points; returns the smallest depth."""
    fx, fy, cx, cy = theta[0], theta[1], theta[2], theta[3]
    k1, k2, p1, p2 = theta[4], theta[5], theta[6], theta[7]
    r00, r01, r02, r10, r11, r12 = pose[0], pose[1], pose[2], pose[3], pose[4], pose[5]
    r20, r21, r22, t0, t1, t2 = pose[6], pose[7], pose[8], pose[9], pose[10], pose[11]
    b0, b1, b2 = bow[0], bow[1], bow[2]
    v = _COLUMNS * CHUNK
    nearest = np.inf
    for i in range(n):
        w = weight[i]
        x, y, z = data[i], data[CHUNK + i], data[2 * CHUNK + i]
        z += b0 * data[5 * CHUNK + i] + b1 * data[6 * CHUNK + i] + b2 * data[7 * CHUNK + i]
        qx = r00 * x + r01 * y + r02 * z
        qy = r10 * x + r11 * y + r12 * z
        qz = r20 * x + r21 * y + r22 * z
        depth = qz + t2
        nearest = min(nearest, depth)
        iz = 1.0 / depth
        a = (qx + t0) * iz
        b = (qy + t1) * iz
        r2 = a * a + b * b
        ea, eb, eab = r2 + 2.0 * a * a, r2 + 2.0 * b * b, 2.0 * a * b
        xd, yd, xa, xb, yb = distort(k1, k2, p1, p2, a, b)

        wf = w * fx
        out[i] = w * xd
        out[CHUNK + i] = w
        out[2 * CHUNK + i] = wf * a * r2
        out[3 * CHUNK + i] = wf * a * r2 * r2
        out[4 * CHUNK + i] = wf * eab
        out[5 * CHUNK + i] = wf * ea
        gx, gy = wf * iz * xa, wf * iz * xb
        gz = -(gx * a + gy * b)
        out[6 * CHUNK + i] = qy * gz - qz * gy
        out[7 * CHUNK + i] = qz * gx - qx * gz
        out[8 * CHUNK + i] = qx * gy - qy * gx
        out[9 * CHUNK + i] = gx
        out[10 * CHUNK + i] = gy
        out[11 * CHUNK + i] = gz
        out[12 * CHUNK + i] = w * (data[3 * CHUNK + i] - fx * xd - cx)

        wf = w * fy
        out[v + i] = w * yd
        out[v + CHUNK + i] = w
        out[v + 2 * CHUNK + i] = wf * b * r2
        out[v + 3 * CHUNK + i] = wf * b * r2 * r2
        out[v + 4 * CHUNK + i] = wf * eb
        out[v + 5 * CHUNK + i] = wf * eab
        gx, gy = wf * iz * xb, wf * iz * yb
        gz = -(gx * a + gy * b)
        out[v + 6 * CHUNK + i] = qy * gz - qz * gy
        out[v + 7 * CHUNK + i] = qz * gx - qx * gz
        out[v + 8 * CHUNK + i] = qx * gy - qy * gx
        out[v + 9 * CHUNK + i] = gx
        out[v + 10 * CHUNK + i] = gy
        out[v + 11 * CHUNK + i] = gz
        out[v + 12 * CHUNK + i] = w * (data[4 * CHUNK + i] - fy * yd - cy)
    return nearest


@fast_jit
def _bow_columns(pose, data, n, out):
    """Columns of the three bow coefficients: the board's normal times its shapes."""
    n0, n1, n2 = pose[2], pose[5], pose[8]
    for axis in range(2):
        o = axis * _COLUMNS * CHUNK
        for i in range(n):
            g = (
                out[o + 9 * CHUNK + i] * n0
                + out[o + 10 * CHUNK + i] * n1
                + out[o + 11 * CHUNK + i] * n2
            )
            out[o + 13 * CHUNK + i] = g * data[5 * CHUNK + i]
            out[o + 14 * CHUNK + i] = g * data[6 * CHUNK + i]
            out[o + 15 * CHUNK + i] = g * data[7 * CHUNK + i]


@fast_jit
def _add_products(columns, offset, m, n, gram):
    """gram[i, j] += column i . column j for j <= i < m."""
    for i in range(m):
        left = columns[(offset + i) * CHUNK : (offset + i) * CHUNK + n]
        for j in range(i + 1):
            right = columns[(offset + j) * CHUNK : (offset + j) * CHUNK + n]
            total = 0.0
            for k in range(n):
                total += left[k] * right[k]
            gram[i, j] += total


@jit
def _place(local, axis, n_shared):
    """Where a scratch column lands in the view's system (shared, then pose)."""
    if local < 2:
        return 2 * local + axis
    if local < 6:
        return local + 2
    if local < _RESIDUAL:
        return n_shared + local - 6
    return 8 + local - 13


@jit
def linearise_view(theta, bow, n_bow, pose, data, weights, count, first, last, scratch, h, g):
    """Normal equations of one view (chunks first .. last) into h (m, m) and g (m,).

    m = 8 + n_bow + 6. Returns the sum of squared weighted residuals, or inf if a
    point lies behind the camera.
    """
    n_shared = 8 + n_bow
    m = _COLUMNS if n_bow else _NO_BOW
    h[:] = 0.0
    g[:] = 0.0
    cost = 0.0
    grams = np.zeros((2, _COLUMNS, _COLUMNS))
    for c in range(first, last):
        nearest = _columns(theta, bow, pose, data[c], weights[c], count[c], scratch)
        if not nearest > 0.0:
            cost = np.inf
        if n_bow:
            _bow_columns(pose, data[c], count[c], scratch)
        for axis in range(2):
            _add_products(scratch, axis * _COLUMNS, m, count[c], grams[axis])
    for axis in range(2):
        gram = grams[axis]
        cost += gram[_RESIDUAL, _RESIDUAL]
        for i in range(m):
            if i == _RESIDUAL:
                continue
            pi = _place(i, axis, n_shared)
            g[pi] += gram[max(i, _RESIDUAL), min(i, _RESIDUAL)]
            for j in range(i + 1):
                if j == _RESIDUAL:
                    continue
                pj = _place(j, axis, n_shared)
                h[pi, pj] += gram[i, j]
                if pi != pj:
                    h[pj, pi] += gram[i, j]
    return cost


@jit
def reduce_view(h, g, n_shared, damping, s, r, w, c):
    """Eliminate the pose of one view.

    Fills s = A - B C^-1 B' (n_shared, n_shared), r = a - B C^-1 c (n_shared,),
    w = C^-1 B' (6, n_shared) and c = C^-1 c (6,), with ``damping`` added to the
    diagonal of C. Returns False if C is not positive definite.
    """
    factor = np.empty((6, 6))
    for i in range(6):
        for j in range(i + 1):
            total = h[n_shared + i, n_shared + j]
            if i == j:
                total += damping[n_shared + i]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i == j:
                if not total > 0.0:
                    return False
                factor[i, i] = math.sqrt(total)
            else:
                factor[i, j] = total / factor[j, j]
    for column in range(n_shared + 1):
        for i in range(6):
            total = g[n_shared + i] if column == n_shared else h[column, n_shared + i]
            for k in range(i):
                total -= factor[i, k] * (c[k] if column == n_shared else w[k, column])
            total /= factor[i, i]
            if column == n_shared:
                c[i] = total
            else:
                w[i, column] = total
    # w and c hold L^-1 B' and L^-1 c here, whose products are the Schur terms.
    for i in range(n_shared):
        total = g[i]
        for k in range(6):
            total -= w[k, i] * c[k]
        r[i] = total
        for j in range(i + 1):
            total = h[i, j]
            for k in range(6):
                total -= w[k, i] * w[k, j]
            s[i, j] = total
            s[j, i] = total
    for column in range(n_shared + 1):
        for i in range(5, -1, -1):
            total = c[i] if column == n_shared else w[i, column]
            for k in range(i + 1, 6):
                total -= factor[k, i] * (c[k] if column == n_shared else w[k, column])
            total /= factor[i, i]
            if column == n_shared:
                c[i] = total
            else:
                w[i, column] = total
    return True


@jit
def move_pose(pose, step, out):
    """out = pose moved by step (6,): rotation vector, then translation."""
    x, y, z = step[0], step[1], step[2]
    angle2 = x * x + y * y + z * z
    if angle2 > 1e-12:
        angle = math.sqrt(angle2)
        s = math.sin(angle) / angle
        v = (1.0 - math.cos(angle)) / angle2
    else:
        s = 1.0 - angle2 / 6.0
        v = 0.5 - angle2 / 24.0
    e00, e01, e02 = 1.0 - v * (y * y + z * z), v * x * y - s * z, v * x * z + s * y
    e10, e11, e12 = v * x * y + s * z, 1.0 - v * (x * x + z * z), v * y * z - s * x
    e20, e21, e22 = v * x * z - s * y, v * y * z + s * x, 1.0 - v * (x * x + y * y)
    for j in range(3):
        c0, c1, c2 = pose[j], pose[3 + j], pose[6 + j]
        out[j] = e00 * c0 + e01 * c1 + e02 * c2
        out[3 + j] = e10 * c0 + e11 * c1 + e12 * c2
        out[6 + j] = e20 * c0 + e21 * c1 + e22 * c2
    for j in range(3):
        out[9 + j] = pose[9 + j] + step[3 + j]


@jit
def linearise_views(theta, bow, n_bow, poses, data, weights, count, first, h, g):
    """``linearise_view`` for all views: h (V, m, m), g (V, m). Returns the costs (V,)."""
    scratch = np.empty(SCRATCH)
    costs = np.empty(len(poses))
    for v in range(len(poses)):
        costs[v] = linearise_view(
            theta, bow, n_bow, poses[v], data, weights, count, first[v], first[v + 1],
            scratch, h[v], g[v],
        )  # fmt: skip
    return costs


@jit
def reduce_views(h, g, n_shared, damping, s, r, w, c):
    """``reduce_view`` for all views, damping (V, m); s and r are sums over the views."""
    s_view = np.empty((n_shared, n_shared))
    r_view = np.empty(n_shared)
    s[:] = 0.0
    r[:] = 0.0
    for v in range(len(h)):
        if not reduce_view(h[v], g[v], n_shared, damping[v], s_view, r_view, w[v], c[v]):
            return False
        s += s_view
        r += r_view
    return True


@fast_jit
def _residual(theta, bow, pose, data, i):
    """Unweighted residual (observed - projected) of point i of a chunk."""
    x, y, z = data[i], data[CHUNK + i], data[2 * CHUNK + i]
    z += bow[0] * data[5 * CHUNK + i] + bow[1] * data[6 * CHUNK + i] + bow[2] * data[7 * CHUNK + i]
    depth = pose[6] * x + pose[7] * y + pose[8] * z + pose[11]
    a = (pose[0] * x + pose[1] * y + pose[2] * z + pose[9]) / depth
    b = (pose[3] * x + pose[4] * y + pose[5] * z + pose[10]) / depth
    xd, yd, _, _, _ = distort(theta[4], theta[5], theta[6], theta[7], a, b)
    ru = data[3 * CHUNK + i] - theta[0] * xd - theta[2]
    rv = data[4 * CHUNK + i] - theta[1] * yd - theta[3]
    return ru, rv


@jit
def view_residuals(theta, bow, pose, data, count, first, last, out):
    """Unweighted residuals of one view into out (C, CHUNK, 2) at its chunks."""
    for c in range(first, last):
        for i in range(count[c]):
            ru, rv = _residual(theta, bow, pose, data[c], i)
            out[c, i, 0] = ru
            out[c, i, 1] = rv


@jit
def residuals(theta, bow, poses, data, count, first):
    """Unweighted residuals (C, CHUNK, 2) of all views, zero where padded."""
    out = np.zeros((len(data), CHUNK, 2))
    for v in range(len(poses)):
        view_residuals(theta, bow, poses[v], data, count, first[v], first[v + 1], out)
    return out


@jit
def step_poses(poses, w, c, shared_step, out):
    """out = poses after back-substitution; returns the largest component of a step."""
    largest = 0.0
    step = np.empty(6)
    for v in range(len(poses)):
        for i in range(6):
            total = c[v, i]
            for j in range(len(shared_step)):
                total -= w[v, i, j] * shared_step[j]
            step[i] = total
            largest = max(largest, abs(total))
        move_pose(poses[v], step, out[v])
    return largest
