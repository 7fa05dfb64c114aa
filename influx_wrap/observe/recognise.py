"""Which board is in some pictures, if nobody says.

Tags tell the most: an AprilGrid's and a ChArUco board's are read one by one, and their ids say
how many rows and columns there are (``layout``). Without tags, a lattice of corners is a
checkerboard (``crossings``), and blobs in a lattice are a circle grid. What is recognised is then
looked for by its own detector: only what that finds is an answer.

How large the board is, no picture tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
from scipy.optimize import minimize_scalar

from influx_wrap.formats.charuco import charuco_board, marker_dictionaries
from influx_wrap.model.arrays import FloatArray, IntArray, Picture
from influx_wrap.model.target import AprilGrid, BoardTarget, Charuco, Checkerboard, CircleGrid
from influx_wrap.observe import aprilgrid, charuco, checkerboard, circles
from influx_wrap.observe.board_map import MIN_CORNERS, fit_map
from influx_wrap.observe.crossings import find_lattices
from influx_wrap.observe.detection import AmbiguousPicture, as_8_bit, reduced
from influx_wrap.observe.lattice import read_tags
from influx_wrap.observe.layout import (
    MIN_READ,
    Layout,
    charuco_place,
    find_layout,
    grid_place,
    legacy_place,
)

MAX_PICTURES = 12
WIDTH_PX = 1100
FAMILIES = (
    "DICT_4X4_1000", "DICT_5X5_1000", "DICT_6X6_1000", "DICT_7X7_1000", "DICT_ARUCO_ORIGINAL",
    "DICT_ARUCO_MIP_36h12", "DICT_APRILTAG_36h11", "DICT_APRILTAG_25h9", "DICT_APRILTAG_16h5",
)  # fmt: skip
SIZES = (50, 100, 250, 1000)
MIN_SEEN = 0.5
"""Share of the corners near the tags that the board's own detector must find."""
MIN_SIDE = 3
MIN_FILLED = 0.9
USUAL_STEP, USUAL_WITHIN = 0.05, 0.008
"""Gaps between tags are printed as multiples of this; a measured one so near to it is one."""
MOST_BLOBS, MAX_ASPECT = 400, 3.0


@dataclass(frozen=True)
class Recognised:
    """A board in some pictures.

    target    with squares, tags or distances of the size that was given
    sentence  what it is, such as "a checkerboard of 9 x 6 inner corners"
    ids       of the tags or markers that were read
    """

    target: BoardTarget
    sentence: str
    ids: tuple[int, ...] = ()


def recognise(pictures: Sequence[Picture], size_m: float = 1.0) -> Recognised | None:
    """The board that grey pictures (H, W) of 8 or 16 bit show; None if they show none.

    size_m  how wide a square or a tag is, or how far circles are apart; only the scale of
            the target depends on it
    """
    step = max(1, -(-len(pictures) // MAX_PICTURES))
    small = [_small(picture) for picture in pictures[::step]]
    for look in (_aprilgrid, _charuco, _checkerboard, _circles):
        found = look(small, size_m)
        if found is not None:
            return found
    return None


def with_all_rows(found: Recognised, pictures: Iterable[Picture]) -> Recognised:
    """What was recognised, an AprilGrid with the rows that only further pictures show.

    A row must have been read twice: of thousands of tags, one may be misread.
    """
    grid = found.target
    if not isinstance(grid, AprilGrid):
        return found
    read = [read_tags(_small(picture), grid.border_cells)[1] for picture in pictures]
    ids = np.concatenate([np.array(found.ids, dtype=np.int64), *read])
    readings = np.bincount(ids // grid.tag_cols, minlength=grid.tag_rows)
    rows = grid.tag_rows
    while rows < len(readings) and readings[rows] > 1:
        rows += 1
    whole = replace(grid, tag_rows=rows)
    seen = np.unique(ids[ids < rows * grid.tag_cols]).tolist()
    return Recognised(whole, _aprilgrid_sentence(whole), tuple(seen))


def stray_markers(pictures: Iterable[Picture]) -> str | None:
    """Markers that are on no board which is recognised, such as "20 markers of DICT_6X6_50 (ids 0
    to 19)", or None if no picture shows some."""
    for picture in map(_small, pictures):
        for family in FAMILIES:
            ids = np.unique(charuco.find_markers(picture, family)[0])
            if len(ids) >= MIN_READ:
                name = _smallest_set(family, int(ids[-1]) + 1)
                return f"{len(ids)} markers of {name} (ids {ids[0]} to {ids[-1]})"
    return None


def _small(picture: Picture) -> np.ndarray:
    grey = as_8_bit(picture)
    return reduced(grey, max(1, round(max(grey.shape) / WIDTH_PX)))


def _aprilgrid(pictures: list[np.ndarray], size_m: float) -> Recognised | None:
    read = [max((read_tags(p, n) for n in (2, 1)), key=lambda tags: len(tags[1])) for p in pictures]
    best = max(read, key=lambda tags: len(tags[1]), default=None)
    if best is None or len(best[1]) < MIN_READ:
        return None
    ids = np.concatenate([tags[1] for tags in read if tags[0] == best[0]])
    for index in np.argsort([-len(tags[1]) for tags in read])[:3].tolist():
        border, some_ids, corners = read[index]
        layout = find_layout(some_ids, corners.mean(axis=1), grid_place)
        if layout is None:
            continue
        rows = int(_trusted(ids, layout.cols).max()) // layout.cols + 1
        rough = AprilGrid(layout.cols, rows, size_m, _rough_gap(layout, corners), border)
        grid = _with_measured_gap(pictures[index], rough)
        if grid is not None:
            seen = sorted({int(i) for i in ids if i < rows * layout.cols})
            return Recognised(grid, _aprilgrid_sentence(grid), tuple(seen))
    return None


def _trusted(ids: IntArray, cols: int) -> IntArray:
    """Those ids (n,) whose row another id shares or adjoins: a misread one stands alone."""
    rows = np.unique(ids // cols)
    near = np.array([np.isin(row - 1, rows) or row == 0 for row in rows])
    last = rows[: int(np.argmin(near))] if not near.all() else rows
    return ids[np.isin(ids // cols, last)] if len(last) else ids


def _rough_gap(layout: Layout, corners: FloatArray) -> float:
    """The gap in tag widths, from how wide tags (n, 4, 2) are in distances from tag to tag."""
    flat = cv2.perspectiveTransform(corners.reshape(1, -1, 2), np.linalg.inv(layout.homography))
    quads = flat.reshape(-1, 4, 2)
    sides = np.linalg.norm(quads - np.roll(quads, 1, axis=1), axis=2)
    return max(1 / float(np.median(sides)) - 1, 0.0)


def _with_measured_gap(picture: np.ndarray, grid: AprilGrid) -> AprilGrid | None:
    """The grid with the gap for which its corners lie best in one plane; None if it has none."""
    try:
        seen = aprilgrid.detect(picture, grid)
    except AmbiguousPicture:
        return None
    found = seen.found
    if found.sum() < 2 * MIN_CORNERS:
        return None

    def misfit(gap: float) -> float:
        board = replace(grid, tag_size_m=1.0, tag_spacing=gap).points[found, :2]
        return float(np.square(fit_map(board, seen.uv[found])(board) - seen.uv[found]).mean())

    rough = grid.tag_spacing
    bounds = (max(0.0, rough - 0.15), rough + 0.15)
    gap = float(minimize_scalar(misfit, bounds=bounds, method="bounded").x)
    usual = USUAL_STEP * round(gap / USUAL_STEP)
    if abs(gap - usual) < USUAL_WITHIN:
        gap = usual
    return replace(grid, tag_spacing=round(gap, 3))


def _aprilgrid_sentence(grid: AprilGrid) -> str:
    cells = {1: "one cell", 2: "two cells"}[grid.border_cells]
    return (
        f"an AprilGrid of {grid.tag_rows} rows and {grid.tag_cols} columns of tags (tag36h11), "
        f"with a border of {cells} and gaps of {grid.tag_spacing:g} tag widths"
    )


def _charuco(pictures: list[np.ndarray], size_m: float) -> Recognised | None:
    # Its squares have corners: a picture without any need not be searched for markers.
    corners = [max((_n_corners(x) for x in find_lattices(p)), default=0) for p in pictures]
    order = [i for i in np.argsort(corners)[::-1].tolist() if corners[i] >= MIN_READ]
    for index in order[:2]:
        picture = pictures[index]
        for family in FAMILIES:
            ids, quads = charuco.find_markers(picture, family)
            if len(ids) < MIN_READ or len(np.unique(ids)) < len(ids):
                continue
            board = _charuco_board(picture, family, ids, quads, size_m)
            if board is not None:
                return _whole_charuco(pictures, board)
    return None


def _n_corners(lattice: FloatArray) -> int:
    return int(np.isfinite(lattice[..., 0]).sum())


def _charuco_board(
    picture: np.ndarray, family: str, ids: IntArray, quads: FloatArray, size_m: float
) -> Charuco | None:
    """The board whose markers (n,) at (n, 4, 2) were read, with as many rows as they show."""
    layouts = [
        (layout, place)
        for place in (charuco_place, legacy_place)
        if (layout := find_layout(ids, quads.mean(axis=1), place)) is not None
    ]
    if not layouts:
        return None
    layout, place = min(layouts, key=lambda found: found[0].off)
    legacy = place is legacy_place
    rows = int(place(ids, layout.cols)[:, 1].max()) + 1
    # Only boards with an even number of rows begin with a marker; the last was not seen.
    rows += legacy and rows % 2
    # OpenCV's corners lie on a marker's outermost dark pixels, half a pixel inside its edge.
    side_px = float(np.linalg.norm(quads - np.roll(quads, 1, axis=1), axis=2).mean())
    marker_m = size_m * (1 + 1 / side_px) / (1 + _rough_gap(layout, quads))
    if rows < 2 or not marker_m < size_m:
        return None
    board = charuco_board(layout.cols, rows, size_m, marker_m, family, legacy=legacy)
    return board if charuco.detect(picture, board).found.mean() >= MIN_SEEN / 2 else None


def _whole_charuco(pictures: list[np.ndarray], board: Charuco) -> Recognised:
    """With as many rows as all pictures together show, and the smallest set of markers."""
    read = np.concatenate([charuco.find_markers(p, board.dictionary)[0] for p in pictures])
    counts = Counter(read.tolist())
    often = [i for i, n in counts.items() if n > 1 or len(pictures) == 1]
    place = legacy_place if board.legacy else charuco_place
    places = place(np.array([*often, len(board.marker_squares) - 1]), board.cols)
    rows = max(board.rows, min(int(places[:, 1].max()) + 1, 2 * board.rows))
    rows += board.legacy and rows % 2
    name = _smallest_set(board.dictionary, board.cols * rows // 2)
    whole = charuco_board(
        board.cols, rows, board.square_size_m, board.marker_size_m, name, legacy=board.legacy
    )
    sentence = (
        f"a ChArUco board of {whole.cols} x {whole.rows} squares with markers of {name}, "
        f"{whole.marker_size_m / whole.square_size_m:.2f} of a square wide"
        f"{', in the pattern of OpenCV before 4.6' if whole.legacy else ''}"
    )
    ids = [i for i in counts if i < len(whole.marker_squares)]
    return Recognised(whole, sentence, tuple(sorted(ids)))


def _smallest_set(dictionary: str, n_markers: int) -> str:
    """The smallest set of the same kind of markers that has so many."""
    for size in SIZES:
        smaller = dictionary.replace("_1000", f"_{size}")
        if smaller in marker_dictionaries() and n_markers <= size:
            return smaller
    return dictionary


def _checkerboard(pictures: list[np.ndarray], size_m: float) -> Recognised | None:
    votes: Counter[tuple[int, int]] = Counter()
    for picture in pictures:
        lattice = max(_whole_lattices(picture), key=_n_corners, default=None)
        if lattice is not None:
            votes[max(lattice.shape[:2]), min(lattice.shape[:2])] += 1
    if not votes:
        return None
    # Parts of a board give smaller lattices, each picture another; the whole is seen often.
    enough = 0.4 * max(votes.values())
    cols, rows = max((s for s, n in votes.items() if n >= enough), key=lambda s: s[0] * s[1])
    target = Checkerboard(cols, rows, size_m, size_m)
    # Corners of many things are lattices, such as those of a grid of markers.
    if not any(checkerboard.detect(picture, target).found.any() for picture in pictures):
        return None
    return Recognised(target, f"a checkerboard of {cols} x {rows} inner corners")


def _whole_lattices(picture: np.ndarray) -> list[FloatArray]:
    """Lattices of a picture, of half its size where it has none: it may be blurred."""
    for scale in (1, 2):
        whole = [
            lattice
            for lattice in find_lattices(reduced(picture, scale))
            if min(lattice.shape[:2]) >= MIN_SIDE
            and np.isfinite(lattice[..., 0]).mean() >= MIN_FILLED
        ]
        if whole:
            break
    return whole


def _circles(pictures: list[np.ndarray], size_m: float) -> Recognised | None:
    for picture in pictures:
        n = circles.count_regular_blobs(picture)
        if not MIN_SIDE**2 <= n <= MOST_BLOBS:
            continue
        for rows in range(MIN_SIDE, n // MIN_SIDE + 1):
            cols = n // rows
            if n % rows or max(rows / cols, cols / rows) > MAX_ASPECT:
                continue
            for asymmetric in (False, True):
                target = CircleGrid(cols, rows, size_m, asymmetric)
                if circles.detect(picture, target).found.all():
                    kind = "an asymmetric" if asymmetric else "a symmetric"
                    sentence = f"{kind} circle grid of {cols} columns and {rows} rows"
                    return Recognised(target, sentence)
    return None
