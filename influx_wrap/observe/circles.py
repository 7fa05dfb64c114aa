"""Centres of a circle grid in one picture, freed of what perspective does to them.

OpenCV finds the grid in a reduced picture. Each circle is then weighed on the full one: the
darkness around its place, up to half-way to the neighbours, has a centre of gravity and a total,
which is its area.

The centre of gravity of a circle's picture is not the picture of its centre: the near half is
drawn larger. With the board tilted by 45 degrees at ten circle diameters' distance that is some
hundredths of the diameter, several pixels for large circles. It follows from the map from board
to picture (``board_map``, perspective and distortion) and from the circles' radius, which their
areas tell; it is computed and taken off.
"""

from __future__ import annotations

import cv2
import numpy as np
from scipy.spatial import cKDTree

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.target import CircleGrid
from influx_wrap.observe.board_map import MIN_CORNERS, BoardMap, fit_map, misfits
from influx_wrap.observe.detection import (
    Detection,
    as_8_bit,
    cross,
    full_size,
    grey_values,
    inside_picture,
    nothing_found,
    reduced,
)

REDUCED_WIDTH_PX = 1000
MIN_AREA_PX = 12.0
MIN_SIDE_PX = 20
SAMPLES = 41
"""Across the surroundings of a circle."""
MAX_LAYOUT_ERROR = 0.25
"""How far circles may lie off the plane of their grid, in spacings."""
REGULAR = 0.8
MIN_RADIUS_RATIO = 0.6
"""Least radius of a circle, as a share of the grid's own."""
_STEP = 1e-3


def detect(image: np.ndarray, target: CircleGrid) -> Detection:
    """Find the circles of ``target``, dark on white or white on dark, in a grey picture (H, W)
    of 8 or 16 bit. All of them must be in it.

    A grid that looks the same upside down is numbered from the end that is lower in the picture.
    """
    image = as_8_bit(image)
    nothing = nothing_found(len(target.points))
    scale = max(1, round(max(image.shape) / REDUCED_WIDTH_PX))
    for picture in (image, 255 - image):
        coarse = _find(picture, target, scale)
        if coarse is not None:
            break
    else:
        return nothing
    board = target.points[:, :2] / target.spacing_m
    fit = fit_map(board, coarse)
    centres, radius = _weigh(picture, board, fit, target.asymmetric)
    found = np.isfinite(radius)
    if found.sum() < max(4, len(board) // 2):
        return nothing
    usual = float(np.median(radius[found]))
    with np.errstate(invalid="ignore"):
        found &= np.abs(np.log(radius / usual)) < -np.log(MIN_RADIUS_RATIO)
        found &= inside_picture(centres, image)
    uv = centres.copy()
    for _ in range(2):
        fit = fit_map(board[found], uv[found])
        uv[found] = centres[found] - _bias(fit, board[found], usual)
    if found.sum() >= MIN_CORNERS:
        found &= ~misfits(fit_map(board[found], uv[found]), board, uv, found)
    likeness = np.minimum(radius / usual, usual / radius)
    return Detection(np.where(found[:, None], uv, np.nan), np.where(found, likeness, 0.0))


def count_regular_blobs(image: np.ndarray) -> int:
    """How many dark blobs an 8-bit picture (H, W) has; 0 if they are in no lattice.

    In a lattice the two nearest neighbours are about equally far, even at its corners.
    """
    if min(image.shape) < MIN_SIDE_PX:
        return 0
    centres = np.array([blob.pt for blob in _blobs(image).detect(image)])
    if len(centres) < 4:
        return 0
    near = np.asarray(cKDTree(centres).query(centres, k=3)[0])
    return len(centres) if np.mean(near[:, 2] < 1.35 * near[:, 1]) > REGULAR else 0


def _find(image: np.ndarray, target: CircleGrid, scale: int) -> FloatArray | None:
    """Centres (T, 2) in full-size pixels, in the target's order."""
    small = reduced(image, scale)
    if min(small.shape) < MIN_SIDE_PX:
        return None
    kind = cv2.CALIB_CB_ASYMMETRIC_GRID if target.asymmetric else cv2.CALIB_CB_SYMMETRIC_GRID
    for flags in (kind, kind | cv2.CALIB_CB_CLUSTERING):
        found, centres = cv2.findCirclesGrid(
            small, (target.cols, target.rows), flags=flags, blobDetector=_blobs(small)
        )
        if found:
            return _as_numbered(np.asarray(centres, dtype=float).reshape(-1, 2), target, scale)
    return None


def _blobs(image: np.ndarray) -> cv2.SimpleBlobDetector:
    """OpenCV's detector of dark blobs, for circles of any size that a grid can have."""
    parameters = cv2.SimpleBlobDetector.Params()
    parameters.minArea, parameters.maxArea = MIN_AREA_PX, max(MIN_AREA_PX, image.size / 10)
    parameters.minDistBetweenBlobs = 3.0
    return cv2.SimpleBlobDetector.create(parameters)


def _as_numbered(centres: FloatArray, target: CircleGrid, scale: int) -> FloatArray | None:
    """Centres (T, 2) as the target counts them, whichever end OpenCV began with; None if they
    are no grid that is seen from its front."""
    grid = centres.reshape(target.rows, target.cols, 2)
    turns = [grid, grid[::-1], grid[:, ::-1], grid[::-1, ::-1]]
    if target.rows == target.cols and not target.asymmetric:
        turns += [np.swapaxes(turn, 0, 1) for turn in turns]
    board = target.points[:, :2] / target.spacing_m
    ways = []
    for turn in turns:
        uv = turn.reshape(-1, 2)
        homography, _ = cv2.findHomography(board, uv)
        if homography is None or np.linalg.det(homography) >= 0:
            # Seen from the front, x to y of a board turns against the picture's u to v.
            continue
        flat = cv2.perspectiveTransform(uv[None], np.linalg.inv(homography))[0]
        if np.abs(flat - board).max() < MAX_LAYOUT_ERROR:
            ways.append((float(turn[-1, :, 1].mean() - turn[0, :, 1].mean()), uv))
    if not ways:
        return None
    return full_size(min(ways, key=lambda way: way[0])[1], scale)


def _weigh(
    image: np.ndarray, board: FloatArray, fit: BoardMap, asymmetric: bool
) -> tuple[FloatArray, FloatArray]:
    """Centres of gravity (T, 2) in pixels and radii (T,) in spacings; NaN where no circle is.

    Weighed is what is darker than half-way between the darkest and the brightest grey value
    nearby, each sample by how much of a step across the edge it has gone.
    """
    at = np.linspace(-1.0, 1.0, SAMPLES)
    s, t = (axis.ravel() for axis in np.meshgrid(at, at))
    # Half-way to the neighbours: a square, or between the rows of an asymmetric grid a diamond.
    near = np.abs(s) + np.abs(t) < 1 if asymmetric else np.maximum(np.abs(s), np.abs(t)) < 0.5
    offsets = np.stack([s, t], axis=1)[near]
    uv = fit((board[:, None] + offsets).reshape(-1, 2)).reshape(len(board), -1, 2)
    values = grey_values(image, uv)
    dark, bright = (np.quantile(values, q, axis=1)[:, None] for q in (0.02, 0.95))
    weight = np.clip((bright - values) / np.maximum(bright - dark, 1), 0, 1)
    # What is nearly white is paper and its noise, what is nearly black is ink.
    weight = np.clip((weight - 0.15) / 0.7, 0, 1)
    area_px = weight * _area(fit, board, offsets)
    total = area_px.sum(axis=1)
    blank = (bright - dark)[:, 0] < 16
    total[blank | (total <= 0)] = np.nan
    centres = np.einsum("nm,nmc->nc", area_px, uv) / total[:, None]
    per_spacing = np.abs(cross(*_slopes(fit, board)))
    cell = (at[1] - at[0]) ** 2
    return centres, np.sqrt(total * cell / (np.pi * per_spacing))


def _area(fit: BoardMap, board: FloatArray, offsets: FloatArray) -> FloatArray:
    """(T, m) pixels per square spacing at places around each point."""
    places = (board[:, None] + offsets).reshape(-1, 2)
    return np.abs(cross(*_slopes(fit, places))).reshape(len(board), -1)


def _slopes(fit: BoardMap, places: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n, 2) pixels per spacing to the right and up."""
    right, up = np.array([_STEP, 0.0]), np.array([0.0, _STEP])
    by_x, by_y = (fit(places + step) - fit(places - step) for step in (right, up))
    return by_x / (2 * _STEP), by_y / (2 * _STEP)


def _bias(fit: BoardMap, board: FloatArray, radius: float) -> FloatArray:
    """(n, 2) how far a circle's centre of gravity lies from the picture of its centre."""
    angle = np.arange(12) * (np.pi / 6)
    rings = radius * np.sqrt((np.arange(6) + 0.5) / 6)
    offsets = (rings[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)).reshape(
        -1, 2
    )
    uv = fit((board[:, None] + offsets).reshape(-1, 2)).reshape(len(board), -1, 2)
    area = _area(fit, board, offsets)
    centre = np.einsum("nm,nmc->nc", area, uv) / area.sum(axis=1)[:, None]
    return np.asarray(centre - fit(board))
