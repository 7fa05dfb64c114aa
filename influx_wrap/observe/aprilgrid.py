"""Corners of an AprilGrid in one picture, to a few hundredths of a pixel.

Three steps, coarse to fine:

1. Tags are read by OpenCV's marker detector in a reduced picture. Some are missed, and on
   tilted boards some are read from an inner quadrilateral.
2. The tags agree on where the board is: a smooth map from board to picture (a homography
   and a polynomial, for the lens's distortion) is fitted to their corners, and tags that
   contradict it are thrown out.
3. From the trusted corners the map is continued to their neighbours, ring by ring, so that
   it never reaches far. Each predicted corner is a saddle point between two black and two
   white fields: it is refined on the full picture, and trusted if the four fields look
   like that and it did not run away. What does not fit the final map is left out.

Not there yet: boards tilted away at the rim of a wide-angle picture, where a tag's cells
shrink to a few pixels, lose corners or keep ones that are off by pixels.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from scipy.spatial import cKDTree

from influx_wrap.model.intrinsics import BoolArray, FloatArray
from influx_wrap.model.target import AprilGrid
from influx_wrap.observe.detection import AmbiguousPicture, Detection, as_8_bit, nothing_found

BORDER_PX = 4.0
REDUCED_WIDTH_PX = 1750
MIN_TAGS = 2
ENOUGH_SHARE = 0.3
"""So many of the board's tags are enough to know where all of them are."""
REACH_OF_CELL = 0.8
"""Half the refinement window in cells of a tag: the fields around a corner are wider."""
WINDOW_PX = (2, 12)
MIN_CELL_PX = 2.5
"""Narrower cells of a tag run into each other; their corners cannot be told apart."""
MIN_CONTRAST = 0.35
"""Least contrast of a corner's fields, as a share of the board's own contrast."""
RING_TAGS, MAX_RINGS = 1.6, 12
MISFIT_PX, MISFIT_FACTOR = 0.5, 8.0
DAMPING = 1e-4


def detect(image: np.ndarray, grid: AprilGrid) -> Detection:
    """Find the corners of ``grid`` in a grey picture (H, W), 8 or 16 bit."""
    image = as_8_bit(image)
    nothing = nothing_found(len(grid.points))
    tags, corners = _read_tags(image, grid)
    if len(tags) < MIN_TAGS:
        return nothing
    point = _points_of_tags(grid)[tags]
    board = grid.points[:, :2]
    good = _consistent(board[point], corners)
    trusted = point[good].ravel()
    if len(trusted) < 4 * MIN_TAGS:
        return nothing
    uv = np.full((len(board), 2), np.nan)
    uv[trusted] = corners[good].reshape(-1, 2)
    confidence = np.zeros(len(board))
    fit = _fit_map(board[trusted], uv[trusted])
    uv, confidence = _refine(image, grid, fit, np.isin(np.arange(len(board)), trusted))

    reach = RING_TAGS * grid.tag_size_m * (1 + grid.tag_spacing)
    tried = np.zeros(len(board), dtype=int)
    for _ in range(MAX_RINGS):
        found = confidence > 0
        if found.sum() < 4 * MIN_TAGS:
            return nothing
        fit = _fit_map(board[found], uv[found])
        ring = ~found & (tried < 2) & (_distance(board, board[found]) < reach)
        if not ring.any():
            break
        tried[ring] += 1
        ring_uv, ring_confidence = _refine(image, grid, fit, ring)
        uv[ring], confidence[ring] = ring_uv[ring], ring_confidence[ring]
    confidence[_misfits(fit, board, uv, confidence > 0)] = 0.0
    found = confidence > 0
    return Detection(np.where(found[:, None], uv, np.nan), confidence)


def _distance(points: FloatArray, others: FloatArray) -> FloatArray:
    """(n,) distance of points (n, 2) to the nearest of others (m, 2)."""
    return np.asarray(cKDTree(others).query(points)[0])


def _misfits(fit: _Map, board: FloatArray, uv: FloatArray, found: BoolArray) -> BoolArray:
    """(T,) found corners that lie off the smooth map of all of them."""
    off = np.full(len(board), 0.0)
    off[found] = np.linalg.norm(fit(board[found]) - uv[found], axis=1)
    usual = float(np.median(off[found])) if found.any() else 0.0
    return off > max(MISFIT_PX, MISFIT_FACTOR * usual)


def _points_of_tags(grid: AprilGrid) -> np.ndarray:
    """(tags, 4) points of each tag in the order in which OpenCV lists a tag's corners.

    On a Kalibr sheet the first is the bottom-right one, then bottom-left, top-left,
    top-right.
    """
    rows, cols = np.divmod(np.arange(grid.tag_rows * grid.tag_cols), grid.tag_cols)
    width = 2 * grid.tag_cols
    bottom_left = 2 * rows * width + 2 * cols
    offsets = np.array([1, 0, width, width + 1])
    return bottom_left[:, None] + offsets


def _read_tags(image: np.ndarray, grid: AprilGrid) -> tuple[np.ndarray, FloatArray]:
    """Tag ids (n,) and their corners (n, 4, 2), from as small a picture as will do."""
    n_tags = grid.tag_rows * grid.tag_cols
    coarsest = max(1, round(image.shape[1] / REDUCED_WIDTH_PX))
    ids, quads = np.empty(0, dtype=np.int64), np.empty((0, 4, 2))
    for scale in range(coarsest, 0, -1):
        size = (image.shape[1] // scale, image.shape[0] // scale)
        cropped = image[: size[1] * scale, : size[0] * scale]
        reduced = cv2.resize(cropped, size, interpolation=cv2.INTER_AREA) if scale > 1 else image
        corners, found, _ = _marker_detector().detectMarkers(reduced)
        if found is not None and len(found) > len(ids):
            ids = found.ravel().astype(np.int64)
            # Pixel centres of the reduced picture lie between those of the full one.
            quads = np.array(corners, dtype=float).reshape(-1, 4, 2) * scale + (scale - 1) / 2
        if len(ids) >= ENOUGH_SHARE * n_tags:
            break
    known = ids < n_tags
    ids, quads = ids[known], quads[known]
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise AmbiguousPicture(
            f"tag {int(values[np.argmax(counts > 1)])} is in the picture more than once: "
            "two boards, or a stray tag. Cover one of them."
        )
    return ids, quads


def _marker_detector() -> cv2.aruco.ArucoDetector:
    parameters = cv2.aruco.DetectorParameters()
    parameters.markerBorderBits = 2
    # Tags touch the small squares at their corners; only a small window keeps them apart.
    parameters.adaptiveThreshWinSizeMin = 3
    parameters.adaptiveThreshWinSizeMax = 3
    parameters.minMarkerPerimeterRate = 0.01
    parameters.polygonalApproxAccuracyRate = 0.05
    parameters.cornerRefinementMethod = cv2.aruco.CORNER_REFINE_NONE
    dictionary = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_APRILTAG_36h11)
    return cv2.aruco.ArucoDetector(dictionary, parameters)


@dataclass(frozen=True, eq=False)
class _Map:
    """Board (x, y) in metres to pixels: a homography, then a polynomial correction."""

    homography: FloatArray
    centre: FloatArray
    scale: float
    correction: FloatArray

    def __call__(self, board: FloatArray) -> FloatArray:
        base = cv2.perspectiveTransform(board[None], self.homography)[0]
        terms = _monomials((base - self.centre) / self.scale, len(self.correction))
        return np.asarray(base + terms @ self.correction)


def _monomials(p: FloatArray, n: int) -> FloatArray:
    """(len(p), n) products of x and y in rising order."""
    powers = [(i - j, j) for i in range(8) for j in range(i + 1)][:n]
    return np.stack([p[:, 0] ** a * p[:, 1] ** b for a, b in powers], axis=1)


def _fit_map(board: FloatArray, uv: FloatArray) -> _Map:
    """Least-squares map through points (n, 2) and pixels (n, 2)."""
    homography, _ = cv2.findHomography(board, uv, 0)
    base = cv2.perspectiveTransform(board[None], homography)[0]
    centre, scale = base.mean(axis=0), float(np.abs(base - base.mean(axis=0)).max())
    # Third order, fifth with corners enough to hold it.
    n = 10 if len(board) < 100 else 21
    design = _monomials((base - centre) / scale, n)
    # A little damping: with few tags the polynomial must not swing between them.
    damping = DAMPING * len(board) * np.eye(n)
    correction = np.linalg.solve(design.T @ design + damping, design.T @ (uv - base))
    return _Map(np.asarray(homography, dtype=float), centre, scale, correction)


def _consistent(board: FloatArray, quads: FloatArray) -> BoolArray:
    """(n,) the tags (n, 4, 2) that agree with each other on where the board is."""
    side = np.linalg.norm(np.roll(quads, 1, axis=1) - quads, axis=2).mean(axis=1)
    tolerance = 0.12 * float(np.median(side))
    flat_board, flat_uv = board.reshape(-1, 2), quads.reshape(-1, 2)
    _, inlier = cv2.findHomography(flat_board, flat_uv, cv2.RANSAC, 3 * tolerance)
    if inlier is None:
        return np.zeros(len(quads), dtype=bool)
    good = np.logical_and.reduce(inlier.reshape(-1, 4).astype(bool), axis=1)
    for _ in range(5):
        if good.sum() < MIN_TAGS:
            break
        fit = _fit_map(board[good].reshape(-1, 2), quads[good].reshape(-1, 2))
        error = np.linalg.norm(fit(flat_board) - flat_uv, axis=1).reshape(-1, 4).max(axis=1)
        again = error < tolerance
        if np.array_equal(again, good):
            break
        good = again
    return good


def _refine(
    image: np.ndarray, grid: AprilGrid, fit: _Map, wanted: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Corners (T, 2) and their confidence (T,), 0 where there is none; of those ``wanted``."""
    board = grid.points[:, :2]
    cell = grid.tag_size_m / 10
    predicted = fit(board)
    # Steps of one cell along the board's axes, in pixels.
    right = fit(board + np.array([cell, 0.0])) - predicted
    up = fit(board + np.array([0.0, cell])) - predicted
    area = np.abs(right[:, 0] * up[:, 1] - right[:, 1] * up[:, 0])
    narrow = area / np.maximum(np.linalg.norm(right, axis=1), np.linalg.norm(up, axis=1))

    height, width = image.shape
    inside = ((predicted >= BORDER_PX) & (predicted <= [width - 1 - BORDER_PX,
              height - 1 - BORDER_PX])).all(axis=1) & (narrow > MIN_CELL_PX) & wanted  # fmt: skip
    if not inside.any():
        return predicted, np.zeros(len(board))
    uv = predicted.copy()
    usual = np.minimum(narrow, np.median(narrow[inside]))
    halves = np.clip(np.rint(REACH_OF_CELL * usual), *WINDOW_PX).astype(int)
    criteria = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_COUNT, 30, 1e-3)
    for half in np.unique(halves[inside]).tolist():
        same = inside & (halves == half)
        points = predicted[same].astype(np.float32).reshape(-1, 1, 2)
        refined = cv2.cornerSubPix(image, points, (half, half), (-1, -1), criteria)
        uv[same] = refined.reshape(-1, 2)

    confidence = np.zeros(len(board))
    confidence[inside] = _contrast(image, grid, uv, right, up, inside)[inside]
    strayed = np.linalg.norm(uv - predicted, axis=1) > np.maximum(1.5, 0.5 * narrow)
    near_border = ((uv < BORDER_PX) | (uv > [width - 1 - BORDER_PX, height - 1 - BORDER_PX])).any(1)
    bad = (confidence < MIN_CONTRAST) | strayed | near_border
    confidence[bad] = 0.0
    return uv, confidence


def _contrast(
    image: np.ndarray,
    grid: AprilGrid,
    uv: FloatArray,
    right: FloatArray,
    up: FloatArray,
    inside: BoolArray,
) -> FloatArray:
    """(T,) how much brighter the white fields around corners are, relative to the board.

    The weakest white field against the brightest black one: an occluded or blurred corner
    has no contrast by that measure.
    """
    rows, cols = np.divmod(np.arange(len(uv)), 2 * grid.tag_cols)
    # Into the tag the ink is black, and so is the small square opposite.
    inward = np.stack([1 - 2 * (cols % 2), 1 - 2 * (rows % 2)], axis=1)
    fields = []
    for sx, sy in ((1, 1), (-1, -1), (1, -1), (-1, 1)):
        offset = 0.75 * (sx * inward[:, :1] * right + sy * inward[:, 1:] * up)
        at = (uv + offset).astype(np.float32)
        fields.append(cv2.remap(image, at[:, :1], at[:, 1:], cv2.INTER_LINEAR)[:, 0].astype(float))
    black, white = np.maximum(fields[0], fields[1]), np.minimum(fields[2], fields[3])
    reference = np.median(np.maximum(white - black, 0)[inside])
    return np.clip((white - black) / max(float(reference), 1.0), 0.0, 1.0)
