"""ChArUco boards by the names of OpenCV's marker dictionaries."""

from __future__ import annotations

from functools import cache

import cv2

from influx_wrap.errors import InputError
from influx_wrap.model.target import Charuco


@cache
def marker_dictionaries() -> dict[str, int]:
    """OpenCV's number of each dictionary, by its name, such as DICT_5X5_100."""
    names = [name for name in dir(cv2.aruco) if name.startswith("DICT_")]
    return {name: getattr(cv2.aruco, name) for name in names}


def charuco_board(
    cols: int,
    rows: int,
    square_size_m: float,
    marker_size_m: float,
    dictionary: str,
    *,
    legacy: bool = False,
) -> Charuco:
    """A board of ``cols`` x ``rows`` squares; ``dictionary`` as OpenCV names it, with or without
    DICT_, in capitals or not."""
    name = _full_name(dictionary)
    markers = cv2.aruco.getPredefinedDictionary(marker_dictionaries()[name])
    side = int(markers.markerSize)
    n_markers = min(len(markers.bytesList), cols * rows // 2)
    codes = tuple(_code(markers, marker, side) for marker in range(n_markers))
    return Charuco(cols, rows, square_size_m, marker_size_m, name, side, codes, legacy)


def _full_name(dictionary: str) -> str:
    wanted = dictionary.upper().removeprefix("DICT_")
    for name in marker_dictionaries():
        if name.upper().removeprefix("DICT_") == wanted:
            return name
    known = ", ".join(marker_dictionaries())
    raise InputError(f"there is no marker dictionary {dictionary!r}; OpenCV has {known}.")


def _code(markers: cv2.aruco.Dictionary, marker: int, side: int) -> int:
    """The bits of a marker, row by row, the first in the highest; 1 is white."""
    picture = markers.generateImageMarker(marker, side + 2)
    bits = (picture[1:-1, 1:-1] > 0).ravel().tolist()
    return sum(1 << place for place, bit in enumerate(reversed(bits)) if bit)
