"""Where the tags of an AprilGrid are in a picture, and which they are.

Tags are dark quadrilaterals in a regular lattice. Quadrilaterals that are each other's
neighbours, one tag and one gap apart, make up a patch of the lattice; stray shapes have no
such neighbours. Which part of the board a patch is, is read from all of its tags together:
the grey values of their cells are compared with the codes for every place on the board
and every quarter turn that the patch could have, and the best must win clearly. So tags
too small or blurred to be read one by one are still known.

The dark regions are those below a level between the darkest and the brightest pixel
nearby. It lies nearer to the dark one: that parts a tag from the squares that touch its
corners, where the grey value is halfway, however blurred the picture is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
from scipy.spatial import cKDTree

from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.tag36h11 import CODE_CELLS, N_TAGS, tag_cells
from influx_wrap.model.target import AprilGrid
from influx_wrap.observe.corner_kernels import tile_extremes
from influx_wrap.observe.detection import AmbiguousPicture, cross, full_size, reduced

TILE_PX = 4
NEARBY_TILES = 7
MIN_CONTRAST = 24
NOISE_FACTOR = 4.0
MIN_AREA_PX = 40.0
MIN_CORRELATION, MIN_LEAD = 0.4, 0.15
"""Mean likeness of tags to their codes that a large patch needs, and its lead over any other
part of the board. Patches of few tags need more."""
ALONE_CORRELATION = 0.9
RIM, CONCENTRIC = (1.1, 1.9), 0.15
"""How wide the white around a tag is, and how far off the tag's centre, in tag widths. What is dark
inside of a tag's code is less than half as wide as the tag."""


@dataclass(frozen=True, eq=False)
class Tags:
    """Tags of a board in a picture.

    ids      (n,)
    corners  (n, 4, 2) pixels: bottom-left on the board, bottom-right, top-right, top-left
    """

    ids: IntArray
    corners: FloatArray


def find_tags(image: np.ndarray, grid: AprilGrid, scale: int, dark_share: float) -> Tags | None:
    """Tags of ``grid`` in an 8-bit picture (H, W), looked for in one ``scale`` times smaller.

    Tags that are 12 to 120 px wide there are found, if dark regions are those whose
    brightness is below ``dark_share`` of the range nearby. None if there is no board.
    """
    small = reduced(image, scale)
    patches = _patches(_dark_quads(small, dark_share), 1 + grid.tag_spacing)
    board = [_read_together(small, grid, *patch) for patch in patches if len(patch[0]) > 1]
    found = [tags for tags in board if tags is not None]
    if not found:
        return None
    ids = np.concatenate([tags.ids for tags in found])
    alone = [corners for places, corners in patches if len(places) == 1]
    values, counts = np.unique(
        np.concatenate([ids, _read_alone(small, grid, alone)]), return_counts=True
    )
    if (counts > 1).any():
        raise AmbiguousPicture(
            f"tag {int(values[np.argmax(counts > 1)])} is in the picture more than once: "
            "two boards, or a stray tag. Cover one of them."
        )
    corners = full_size(np.concatenate([tags.corners for tags in found]), scale)
    return Tags(ids, corners)


def likeness(image: np.ndarray, corners: FloatArray, grid: AprilGrid, ids: IntArray) -> FloatArray:
    """(n,) how much the cells of an 8-bit picture (H, W) at ``corners`` (n, 4, 2) are like the
    codes of the tags ``ids`` (n,) of ``grid``, from -1 to 1."""
    codes = _codes(grid.tag_rows * grid.tag_cols)[0][ids]
    return np.asarray((_cell_values(image, corners, grid.border_cells) * codes).sum(axis=1))


def read_tags(image: np.ndarray, border_cells: int) -> tuple[int, IntArray, FloatArray]:
    """Tags of any board in an 8-bit picture (H, W), read one by one: the border they were read
    with, ids (n,) and corners (n, 4, 2). Each id once, where it is clearest."""
    quads = np.concatenate([_dark_quads(image, share) for share in (0.35, 0.5)])
    if len(quads) == 0:
        return border_cells, np.empty(0, dtype=np.int64), quads
    seen = _cell_values(image, quads, border_cells)
    likeness = np.einsum("nc,ric->nri", seen, _codes(N_TAGS)).max(axis=1)
    ids, clear = likeness.argmax(axis=1), likeness.max(axis=1)
    order = np.argsort(-clear, kind="stable")
    order = order[clear[order] > ALONE_CORRELATION]
    _, first = np.unique(ids[order], return_index=True)
    return border_cells, ids[order[first]], quads[order[first]]


def _dark_quads(image: np.ndarray, dark_share: float) -> FloatArray:
    """(n, 4, 2) convex dark quadrilaterals, their corners in the order of a board's x to y."""
    low, high = tile_extremes(image, TILE_PX)
    # Of the flattest tiles the range is noise alone; over all tiles nearby it is twice as wide.
    noise = float(np.quantile(high - low, 0.05))
    kernel = np.ones((NEARBY_TILES, NEARBY_TILES), np.uint8)
    low, high = cv2.erode(low, kernel).astype(float), cv2.dilate(high, kernel).astype(float)
    contrast = high - low
    enough = contrast > max(MIN_CONTRAST, NOISE_FACTOR * noise)
    if not enough.any():
        return np.empty((0, 4, 2))
    level = np.where(enough, low + dark_share * contrast, 0)
    light = not_below(image, level.astype(np.uint8))
    # As holes in the light, dark regions that touch at a corner only are not joined.
    contours, _ = cv2.findContours(light, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    quads = []
    for contour in contours:
        # Around a hole a contour runs the other way than around a region.
        if len(contour) < 4 or cv2.contourArea(contour, oriented=True) < MIN_AREA_PX:
            continue
        length = cv2.arcLength(contour, True)
        shape = cv2.approxPolyDP(contour, 0.06 * length, True)
        if len(shape) == 4 and cv2.isContourConvex(shape):
            quads.append(shape.reshape(4, 2))
    if not quads:
        return np.empty((0, 4, 2))
    corners = np.array(quads, dtype=float)
    across = corners[:, 1] - corners[:, 0], corners[:, 3] - corners[:, 0]
    area = across[0][:, 0] * across[1][:, 1] - across[0][:, 1] * across[1][:, 0]
    # Seen from the front, x to y of a board turns against the picture's u to v.
    corners[area > 0] = corners[area > 0][:, ::-1]
    return corners[~_outlines_of_rims(corners, np.sqrt(np.abs(area)))]


def not_below(image: np.ndarray, level: np.ndarray) -> np.ndarray:
    """(H, W) 255 where a pixel is not below the level of its tile, 0 elsewhere."""
    rows, cols = (TILE_PX * side for side in level.shape)
    levels = cv2.resize(level, (cols, rows), interpolation=cv2.INTER_NEAREST)
    light = np.full_like(image, 255)
    cv2.compare(image[:rows, :cols], levels, cv2.CMP_GE, dst=light[:rows, :cols])
    return light


def _outlines_of_rims(quads: FloatArray, side_px: FloatArray) -> BoolArray:
    """(n,) which of n quadrilaterals (n, 4, 2) are the outer edge of the white around a tag.

    The squares at a tag's corners cut that white off from the rest. Its outer edge is as regular
    as the tag itself, lies around it and is one gap wider on each side.
    """
    centres = quads.mean(axis=1)
    around = np.zeros(len(quads), dtype=bool)
    near = cKDTree(centres).query_ball_point(centres, CONCENTRIC * side_px)
    for outer, inner in enumerate(near):
        if len(inner) > 1:
            ratio = side_px[outer] / side_px[inner]
            around[outer] = ((ratio > RIM[0]) & (ratio < RIM[1])).any()
    return around


_Patch = tuple[IntArray, FloatArray]


def _patches(quads: FloatArray, pitch: float) -> list[_Patch]:
    """Connected pieces of a lattice of quadrilaterals (n, 4, 2) ``pitch`` sides apart.

    Of each piece their places (m, 2) counted from the first, and their corners (m, 4, 2),
    turned to the same order. A piece may be a single one.
    """
    if len(quads) == 0:
        return []
    centres = quads.mean(axis=1)
    mid = (quads + np.roll(quads, -1, axis=1)) / 2
    # Outwards through side k (from corner k to k + 1): 0 is down on the board, 1 right, ...
    outward = mid - np.roll(mid, 2, axis=1)
    expected = centres[:, None] + pitch * outward
    size = np.sqrt(np.abs(cross(quads[:, 2] - quads[:, 0], quads[:, 3] - quads[:, 1])) / 2)
    distance, nearest = cKDTree(centres).query(expected)
    neighbour = np.asarray(nearest)
    near = distance < 0.3 * np.linalg.norm(outward, axis=2)
    near &= np.abs(np.log(size[neighbour] / size[:, None])) < np.log(1.7)
    # And back: its own expectation on that side is this one.
    back = np.linalg.norm(expected[neighbour] - centres[:, None, None], axis=3)
    side_back = back.argmin(axis=2)
    near &= np.take_along_axis(back, side_back[..., None], axis=2)[..., 0] < 0.35 * np.linalg.norm(
        outward, axis=2
    )

    members_of, turn, place = _connected(neighbour.tolist(), near.tolist(), side_back.tolist())
    # In the order of their piece; at once, as most pieces of a busy picture are a single one.
    order = (np.arange(4) + turn[:, None]) % 4
    corners = np.take_along_axis(quads, order[..., None], axis=1)
    return [(place[members], corners[members]) for members in members_of]


def _connected(
    neighbour: list[list[int]], near: list[list[bool]], side_back: list[list[int]]
) -> tuple[list[list[int]], IntArray, IntArray]:
    """The quadrilaterals of each piece of a lattice, and of all n of them the quarter turns (n,)
    to their piece's order and their places (n, 2) in it.

    ``neighbour`` is the one beyond each of the four sides, if it is ``near``, and ``side_back`` its
    side that points back.
    """
    steps = ((0, -1), (1, 0), (0, 1), (-1, 0))
    turn, place = [-1] * len(near), [(0, 0)] * len(near)
    pieces = []
    for start in range(len(near)):
        if turn[start] >= 0:
            continue
        turn[start] = 0
        members = [start]
        for i in members:
            for side in range(4):
                j = neighbour[i][side]
                if not near[i][side] or turn[j] >= 0:
                    continue
                # Side k of quad i points to board side k - turn; that of j points back to it.
                direction = (side - turn[i]) % 4
                turn[j] = (side_back[i][side] - direction - 2) % 4
                right, up = steps[direction]
                place[j] = place[i][0] + right, place[i][1] + up
                members.append(j)
        pieces.append(members)
    return pieces, np.array(turn), np.array(place)


@lru_cache(maxsize=4)
def _codes(n_tags: int) -> FloatArray:
    """(4, n_tags, 36) codes, mean 0 and norm 1; by quarter turn, bottom row of cells first."""
    codes = np.empty((4, n_tags, CODE_CELLS**2))
    for tag in range(n_tags):
        white = 1.0 - tag_cells(tag, border_cells=0)[::-1]
        for turn in range(4):
            codes[turn, tag] = np.rot90(white, turn).ravel()
    codes -= codes.mean(axis=2, keepdims=True)
    return codes / np.linalg.norm(codes, axis=2, keepdims=True)


def _read_together(
    image: np.ndarray, grid: AprilGrid, places: IntArray, corners: FloatArray
) -> Tags | None:
    """The tags at places (n, 2) of a lattice with corners (n, 4, 2), without those that are
    misplaced or beyond the board's edge. None if no part of the board fits."""
    seen = _cell_values(image, corners, grid.border_cells)
    codes = _codes(grid.tag_rows * grid.tag_cols)
    scores, answers = [], []
    for turn in range(4):
        to_codes = np.column_stack([seen @ codes[turn].T, np.zeros(len(seen))])
        ids = _ids_by_shift(_turned(places, turn), grid)
        likeness = to_codes[np.arange(len(seen)), ids]
        scores.append(likeness.mean(axis=1))
        answers += [(turn, *row) for row in zip(ids, likeness, strict=True)]
    score = np.concatenate(scores)
    second, best = np.argsort(score)[-2:]
    if (
        score[best] < MIN_CORRELATION + 1 / (1 + len(seen))
        or score[best] - score[second] < MIN_LEAD
    ):
        return None
    turn, ids, likeness = answers[best]
    # A tag that is unlike its code was put into a wrong place of the lattice.
    good = (ids >= 0) & (likeness > score[best] / 2)
    return Tags(ids[good], np.roll(corners, turn, axis=1)[good])


def _read_alone(image: np.ndarray, grid: AprilGrid, quads: list[FloatArray]) -> IntArray:
    """Ids of those single quadrilaterals that are clearly tags of the board."""
    if not quads:
        return np.empty(0, dtype=np.int64)
    codes = _codes(grid.tag_rows * grid.tag_cols)
    seen = _cell_values(image, np.concatenate(quads), grid.border_cells)
    likeness = np.einsum("nc,ric->nri", seen, codes)
    best = likeness.max(axis=1)
    return np.asarray(best.argmax(axis=1)[best.max(axis=1) > ALONE_CORRELATION])


def _ids_by_shift(places: IntArray, grid: AprilGrid) -> IntArray:
    """Ids (shifts, n) of tags at places (n, 2) for every shift that leaves one of them on the
    board; -1 beyond it."""
    span = places.max(axis=0)
    ids = np.pad(
        np.arange(grid.tag_rows * grid.tag_cols).reshape(grid.tag_rows, grid.tag_cols),
        ((span[1], span[1]), (span[0], span[0])),
        constant_values=-1,
    )
    y, x = np.mgrid[: grid.tag_rows + span[1], : grid.tag_cols + span[0]].reshape(2, -1, 1)
    return np.asarray(ids[y + places[:, 1], x + places[:, 0]])


def _turned(places: IntArray, turn: int) -> IntArray:
    """Places (n, 2) after quarter turns, the least of each axis at 0."""
    x, y = places[:, 0], places[:, 1]
    turned = np.stack([(x, y), (-y, x), (-x, -y), (y, -x)][turn], axis=1)
    return np.asarray(turned - turned.min(axis=0))


def _cell_values(image: np.ndarray, corners: FloatArray, border_cells: int) -> FloatArray:
    """(n, 36) the code's cells of tags (n, 4, 2), mean 0 and norm 1, bottom row first."""
    at = (border_cells + 0.5 + np.arange(CODE_CELLS)) / (CODE_CELLS + 2 * border_cells)
    x, y = (axis.ravel() for axis in np.meshgrid(at, at))
    places = _in_quads(corners, x, y).astype(np.float32)
    seen = cv2.remap(image, places[..., 0], places[..., 1], cv2.INTER_LINEAR).astype(float)
    seen -= seen.mean(axis=1, keepdims=True)
    return np.asarray(seen / np.maximum(np.linalg.norm(seen, axis=1, keepdims=True), 1e-9))


def _in_quads(corners: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """(n, m, 2) pixels of the places x, y (m,) from 0 to 1 in quadrilaterals (n, 4, 2)."""
    p0, p1, p2, p3 = (corners[:, k, None] for k in range(4))
    # The homography of the unit square, from where its sides meet.
    d1, d2, d3 = p1 - p2, p3 - p2, p0 - p1 + p2 - p3
    determinant = cross(d1, d2)
    g, h = cross(d3, d2) / determinant, cross(d1, d3) / determinant
    g, h = g[..., None], h[..., None]
    x, y = x[:, None], y[:, None]
    top = (p1 - p0 + g * p1) * x + (p3 - p0 + h * p3) * y + p0
    return np.asarray(top / (g * x + h * y + 1))
