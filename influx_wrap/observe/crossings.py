"""Lattices of checkerboard corners in a picture, of any number of rows and columns.

A corner is where four squares meet: around it the picture is dark, bright, dark, bright, and
the same after half a turn. The two lines that cross there point to the corner's neighbours, of
which each has dark and bright exchanged. Corners that name each other as neighbours make up
a lattice; what else has such corners (text, a keyboard, a plaid) names nothing that answers.

Nothing is assumed about how far the squares reach: the outer ones may be cut.
"""

from __future__ import annotations

import cv2
import numpy as np
from scipy.spatial import cKDTree

from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.observe.crossing_kernels import RING_PX, crossing_response
from influx_wrap.observe.detection import grey_values

MIN_CONTRAST = 12
MIN_RESPONSE = 40
FULL_CONTRAST, LEAST_RANGE = 80.0, 10.0
"""Grey values between the dark and the bright parts of a picture that need no stretching, and
those that are noise."""
MAX_CORNERS = 4000
SAMPLES = 64
MIN_SYMMETRY = 0.7
"""Least contrast of the ring's mean with itself after half a turn, as a share of its own."""
NEIGHBOURS = 20
CONE_RAD, LINE_RAD = 0.22, 0.35
"""How far a neighbour may lie off the line that points to it, and its own line off that line."""
MIN_FILLED = 0.5
"""Share of an outer row that must be corners for the row to belong to the board."""


def find_lattices(image: np.ndarray) -> list[FloatArray]:
    """Lattices (rows, cols, 2) of corners in an 8-bit picture (H, W), the largest first.

    To about a pixel, in pixels; NaN where a corner is missing. Rows and columns are in no
    particular direction. Each has at least 2 x 2 corners.
    """
    corners, lines = _corners(image)
    if len(corners) < 4:
        return []
    neighbour, side_back = _neighbours(corners, lines)
    lattices = [
        lattice
        for members, places in _pieces(neighbour, side_back)
        if (lattice := _rectangle(corners[members], places)) is not None
    ]
    return sorted(lattices, key=lambda lattice: -int(np.isfinite(lattice[..., 0]).sum()))


def _corners(image: np.ndarray) -> tuple[FloatArray, FloatArray]:
    """Candidates (n, 2), and the directions (n, 2) of their two lines in radians, from 0 to
    below 2 pi: from the first to the second, by less than half a turn, it is dark."""
    if min(image.shape) <= 2 * RING_PX:
        return np.empty((0, 2)), np.empty((0, 2))
    smooth = cv2.GaussianBlur(_stretched(image), (0, 0), 1.0)
    response = crossing_response(smooth, MIN_CONTRAST)
    peaks = response >= cv2.dilate(response, np.ones((7, 7), np.uint8))
    v, u = np.nonzero(peaks & (response > MIN_RESPONSE))
    strongest = np.argsort(-response[v, u].astype(int), kind="stable")[:MAX_CORNERS]
    corners = np.stack([u, v], axis=1)[strongest].astype(float)
    return _crossed(smooth, corners)


def _stretched(image: np.ndarray) -> np.ndarray:
    """A dim picture with more contrast; others as they are."""
    sample = image[::8, ::8]
    low, high = np.quantile(sample, (0.02, 0.98)).tolist()
    if high - low >= FULL_CONTRAST:
        return image
    gain = FULL_CONTRAST / max(high - low, LEAST_RANGE)
    levels = np.clip(gain * (np.arange(256) - low) + LEAST_RANGE, 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(image, levels))


def _crossed(image: np.ndarray, corners: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Those of the corners (n, 2) where exactly two lines cross, and their directions."""
    angle = np.arange(SAMPLES) * (np.pi / SAMPLES)
    along = RING_PX * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    ring = [grey_values(image, corners[:, None] + sign * along) for sign in (1.0, -1.0)]
    # Of half a turn only: opposite sides are averaged, which leaves little of an edge.
    values = (ring[0] + ring[1]) / 2
    high, low = values.max(axis=1, keepdims=True), values.min(axis=1, keepdims=True)
    both = np.concatenate(ring, axis=1)
    symmetric = (high - low)[:, 0] > MIN_SYMMETRY * np.ptp(both, axis=1)
    values -= (high + low) / 2
    after = np.roll(values, -1, axis=1)
    falls, rises = (values > 0) & (after <= 0), (values <= 0) & (after > 0)
    two = symmetric & (falls.sum(axis=1) == 1) & (rises.sum(axis=1) == 1)
    part = values / np.where(values == after, 1.0, values - after)
    at = (np.arange(SAMPLES) + part) * (np.pi / SAMPLES)
    first, last = (at[two, flags[two].argmax(axis=1)] for flags in (falls, rises))
    last = np.where(last < first, last + np.pi, last)
    return corners[two], np.stack([first, last], axis=1)


def _apart(a: FloatArray, b: FloatArray, turn: float) -> FloatArray:
    """Angles between directions that are the same after ``turn``, from 0 to half of it."""
    return np.asarray(np.abs((a - b + turn / 2) % turn - turn / 2))


def _neighbours(corners: FloatArray, lines: FloatArray) -> tuple[IntArray, IntArray]:
    """Of each corner (n,) the next one in its four directions, -1 for none, and which of the
    other's directions points back: two arrays (n, 4).

    Directions are the first line, the second, and both the other way.
    """
    n = len(corners)
    directions = np.concatenate([lines, lines + np.pi], axis=1)
    near = np.asarray(cKDTree(corners).query(corners, k=min(NEIGHBOURS + 1, n))[1])[:, 1:]
    step = corners[near] - corners[:, None]
    heading, length = np.arctan2(step[..., 1], step[..., 0]), np.linalg.norm(step, axis=2)
    next_one = np.full((n, 4), -1)
    for side in range(4):
        off = _apart(heading, directions[:, side, None], 2 * np.pi)
        # One square on, dark and bright are exchanged: its other line continues this one.
        continued = lines[near, 1 - side % 2]
        fits = off < CONE_RAD
        fits &= _apart(continued, directions[:, side, None], np.pi) < LINE_RAD
        fits &= _apart(continued, heading, np.pi) < CONE_RAD
        distance = np.where(fits, length, np.inf)
        best = distance.argmin(axis=1)
        found = np.isfinite(distance[np.arange(n), best])
        next_one[found, side] = near[np.arange(n), best][found]
    side_back = np.zeros((n, 4), dtype=np.int64)
    for side in range(4):
        back = (directions[:, side] + np.pi)[:, None]
        turned = _apart(directions[next_one[:, side]], back, 2 * np.pi)
        side_back[:, side] = turned.argmin(axis=1)
    answered = np.take_along_axis(next_one[next_one], side_back[..., None], axis=2)[..., 0]
    mutual = (next_one >= 0) & (answered == np.arange(n)[:, None])
    return np.where(mutual, next_one, -1), side_back


def _pieces(neighbour: IntArray, side_back: IntArray) -> list[tuple[IntArray, IntArray]]:
    """Connected corners: their numbers (m,) and places (m, 2) in x and y, none taken twice."""
    steps = ((1, 0), (0, 1), (-1, 0), (0, -1))
    turn = np.full(len(neighbour), -1)
    pieces = []
    for start in range(len(neighbour)):
        if turn[start] >= 0:
            continue
        turn[start] = 0
        place = {start: (0, 0)}
        taken = {(0, 0)}
        members = [start]
        for i in members:
            for side in range(4):
                j = int(neighbour[i, side])
                if j < 0 or turn[j] >= 0:
                    continue
                across, down = steps[(side - turn[i]) % 4]
                spot = place[i][0] + across, place[i][1] + down
                if spot in taken:
                    continue
                turn[j] = (side_back[i, side] - (side - turn[i]) - 2) % 4
                place[j] = spot
                taken.add(spot)
                members.append(j)
        if len(members) >= 4:
            pieces.append((np.array(members), np.array([place[i] for i in members])))
    return pieces


def _rectangle(corners: FloatArray, places: IntArray) -> FloatArray | None:
    """(rows, cols, 2) of corners (m, 2) at places (m, 2), without ragged outer rows."""
    places = places - places.min(axis=0)
    cols, rows = places.max(axis=0) + 1
    lattice = np.full((rows, cols, 2), np.nan)
    lattice[places[:, 1], places[:, 0]] = corners
    while min(lattice.shape[:2]) >= 2:
        filled = np.isfinite(lattice[..., 0])
        worst, cut = min(_outer_rows(filled), key=lambda row: row[0])
        if worst >= MIN_FILLED:
            return lattice
        lattice = lattice[cut]
    return None


def _outer_rows(filled: BoolArray) -> list[tuple[float, tuple[slice, slice]]]:
    """How full each outer row is, and what is left without it."""
    every = slice(None)
    return [
        (float(filled[0].mean()), (slice(1, None), every)),
        (float(filled[-1].mean()), (slice(None, -1), every)),
        (float(filled[:, 0].mean()), (every, slice(1, None))),
        (float(filled[:, -1].mean()), (every, slice(None, -1))),
    ]
