"""Corners of a ChArUco board in one picture, to a hundredth of a pixel.

OpenCV's detector finds the markers and reads them. Their corners say where the board is; the
corners between the squares, which are better defined than a marker's own, are then fitted with
all that is printed around them (``printed``). The board may leave the picture.
"""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np

from influx_wrap.formats.charuco import marker_dictionaries
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.target import Charuco
from influx_wrap.observe.detection import (
    AmbiguousPicture,
    Detection,
    as_8_bit,
    full_size,
    nothing_found,
    reduced,
)
from influx_wrap.observe.printed import PrintedBoard, fit_printed, printed_board

REDUCED_WIDTH_PX = 1400
ENOUGH_SHARE = 0.25
"""So many of the board's markers say where all of them are."""
MIN_MARKERS = 3


def detect(image: np.ndarray, target: Charuco) -> Detection:
    """Find the corners of ``target`` in a grey picture (H, W), 8 or 16 bit."""
    image = as_8_bit(image)
    n_markers = len(target.marker_squares)
    scale = max(1, round(max(image.shape) / REDUCED_WIDTH_PX))
    for s in dict.fromkeys((scale, 1)):
        ids, corners = find_markers(reduced(image, s), target.dictionary)
        on_board = ids < n_markers
        if on_board.sum() >= max(MIN_MARKERS, ENOUGH_SHARE * n_markers):
            break
    ids, corners = ids[on_board], full_size(corners[on_board], s)
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise AmbiguousPicture(
            f"marker {int(values[np.argmax(counts > 1)])} is in the picture more than once: "
            "two boards, or a stray marker. Cover one of them."
        )
    if len(ids) < MIN_MARKERS:
        return nothing_found(len(target.points))
    board, places = _board(target)
    return fit_printed(image, board, places[ids].reshape(-1, 2), corners.reshape(-1, 2))


def find_markers(image: np.ndarray, dictionary: str) -> tuple[np.ndarray, FloatArray]:
    """Ids (n,) and corners (n, 4, 2) of the markers in an 8-bit picture (H, W)."""
    corners, ids, _ = _detector(dictionary).detectMarkers(image)
    if ids is None:
        return np.empty(0, dtype=np.int64), np.empty((0, 4, 2))
    return np.asarray(ids, dtype=np.int64).ravel(), np.array(corners, dtype=float).reshape(-1, 4, 2)


@lru_cache(maxsize=64)
def _detector(dictionary: str) -> cv2.aruco.ArucoDetector:
    markers = cv2.aruco.getPredefinedDictionary(marker_dictionaries()[dictionary])
    return cv2.aruco.ArucoDetector(markers, cv2.aruco.DetectorParameters())


@lru_cache(maxsize=8)
def _board(target: Charuco) -> tuple[PrintedBoard, FloatArray]:
    """The board, and the places (n, 4, 2) of its markers' corners in cells, as OpenCV orders
    them: clockwise from the top left."""
    cell_m = target.marker_size_m / (target.code_cells + 2)
    margin_m = (target.square_size_m - target.marker_size_m) / 2
    board = printed_board(
        target,
        cell_m=cell_m,
        # A margin and a marker's border are the same on both sides, the codes are not.
        window_cells=margin_m / cell_m + 1,
        ring_cells=target.square_size_m / cell_m,
    )
    row, col = np.array(target.marker_squares).T
    low = target.square_size_m * np.stack([col - 1, target.rows - 2 - row], axis=1) + margin_m
    around = target.marker_size_m * np.array([[0, 1], [1, 1], [1, 0], [0, 0]])
    return board, (low[:, None] + around) / cell_m
