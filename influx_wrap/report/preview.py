"""A clip's annotation, drawn on one of its frames.

A plate tells the numbers, and by a word, a colour and a shape where they come from. Over the
picture lies a grid of lines that are straight and equally spaced in the picture of an ideal
pinhole camera with the same focal lengths and principal point. They are drawn where the lens
shows them, through the same Brown-Conrady model that was calibrated: a straight edge of the
scene bends as the lines beside it do, if the intrinsics are right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

import cv2
import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.intrinsics import (
    Intrinsics,
    field_of_view_deg,
    fold_radius,
    project,
    unproject,
)

CELLS_ACROSS = 12
"""Cells of the grid over the width of the undistorted picture."""
SAMPLES_ACROSS = 160
"""Points of a line over that width: a chord is off by less than 0.05 px then."""
FURTHEST = 3.0
"""How far the grid may reach out, in half pictures without distortion. Cameras do not come
near; a table gone wrong may."""
EDGE_POINTS = 33
SHIFT = 4
"""Binary digits after the point of the coordinates that OpenCV draws at."""

Colour = tuple[int, int, int]
"""Blue, green, red."""

# Those of the pages when they are dark, so that light text is on a dark plate in any picture.
PLATE: Colour = (0x26, 0x22, 0x1E)
PLATE_INK: Colour = (0xEA, 0xE7, 0xE4)
PLATE_QUIET: Colour = (0xAB, 0xA2, 0x98)
OPACITY, LINE_OPACITY = 0.9, 0.65
EMS_ACROSS = 19.0
LINE_EMS = 1.4
PADDING_EMS = 0.8
LABEL_EMS = 3.6
NOTHING = "–"


class Standing(Enum):
    """Where a frame's intrinsics come from, or why there are none."""

    INTERPOLATED = "interpolated"
    EXTRAPOLATED = "extrapolated in FD"
    LFL_OUTSIDE = "focal length outside the table"
    UNUSABLE = "focused nearer than LFL allows"
    NO_METADATA = "no metadata"


COLOURS: dict[Standing, Colour] = {
    Standing.INTERPOLATED: (0xE9, 0xB4, 0x56),
    Standing.EXTRAPOLATED: (0x57, 0x9D, 0xFF),
    Standing.LFL_OUTSIDE: (0xC0, 0x8F, 0xE5),
    Standing.UNUSABLE: (0xC0, 0x8F, 0xE5),
    Standing.NO_METADATA: PLATE_QUIET,
}
# Corners of each mark within a unit circle, for those who cannot tell the colours apart.
_SHAPES: dict[Standing, FloatArray] = {
    Standing.INTERPOLATED: np.column_stack(
        [f(np.linspace(0, 2 * np.pi, 32, endpoint=False)) for f in (np.cos, np.sin)]
    ),
    Standing.EXTRAPOLATED: np.array([[0, -1], [0.95, 0.75], [-0.95, 0.75]]),
    Standing.LFL_OUTSIDE: 0.85 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]),
    Standing.UNUSABLE: np.array([[0, -1.1], [1.1, 0], [0, 1.1], [-1.1, 0]]),
    Standing.NO_METADATA: 0.85
    * np.array(
        [
            *([-1, -0.6], [-0.6, -1], [0, -0.4], [0.6, -1], [1, -0.6], [0.4, 0]),
            *([1, 0.6], [0.6, 1], [0, 0.4], [-0.6, 1], [-1, 0.6], [-0.4, 0]),
        ]
    ),
}


@dataclass(frozen=True, eq=False)
class FrameNote:
    """What there is to tell of a frame.

    lfl_mm, fd_m  what the lens told, NaN where nothing; an FD may be infinite
    intrinsics    None where there are none
    sigma_px      of fx and fy, NaN where it is not known
    is_filled     what the lens did not tell was taken from its neighbours
    """

    frame: int
    standing: Standing
    lfl_mm: float = math.nan
    fd_m: float = math.nan
    intrinsics: Intrinsics | None = None
    sigma_px: tuple[float, float] = (math.nan, math.nan)
    is_filled: bool = False


def scaled(camera: Intrinsics, image_size: tuple[int, int], to_size: tuple[int, int]) -> Intrinsics:
    """The intrinsics of the same pictures with another number of pixels, each (width, height).

    Pixel (0, 0) is a pixel's centre in both, so it is not the origin that stays in place but
    the corner half a pixel beside it.
    """
    x, y = to_size[0] / image_size[0], to_size[1] / image_size[1]
    return Intrinsics(
        camera.fx * x,
        camera.fy * y,
        (camera.cx + 0.5) * x - 0.5,
        (camera.cy + 0.5) * y - 0.5,
        camera.k1,
        camera.k2,
        camera.p1,
        camera.p2,
    )


def undistortion_grid(camera: Intrinsics, image_size: tuple[int, int]) -> list[FloatArray]:
    """Lines (n, 2) in pixels, upright ones first: where the lens shows what is a grid of squares
    in the undistorted picture, with a corner at the principal point.

    A line ends where the model does, at the fold of the distortion, and a little outside of
    the picture.
    """
    width, _ = image_size
    low, high = _reach(camera, image_size)
    focal = np.array([camera.fx, camera.fy])
    cell, step = width / CELLS_ACROSS / focal, width / SAMPLES_ACROSS / focal
    lines = []
    for axis, along in ((0, 1), (1, 0)):
        places = cell[axis] * np.arange(
            math.ceil(low[axis] / cell[axis]), math.floor(high[axis] / cell[axis]) + 1
        )
        n = math.ceil((high[along] - low[along]) / step[along]) + 1
        points = np.ones((len(places), n, 3))
        points[..., axis] = places[:, None]
        points[..., along] = np.linspace(low[along], high[along], n)
        uv, valid = project(camera, points)
        shown = valid & _is_near(uv, image_size)
        for line, is_shown in zip(uv, shown, strict=True):
            lines += _runs(line, is_shown)
    return lines


def draw_note(picture: NDArray[np.uint8], note: FrameNote, image_size: tuple[int, int]) -> None:
    """Draw grid, principal point and plate on a picture (H, W, 3), blue first.

    The intrinsics are those of pictures of ``image_size`` (width, height), of which this is
    one, perhaps with other pixels.
    """
    size = (picture.shape[1], picture.shape[0])
    em_px = _em_px(size)
    if note.intrinsics is not None:
        camera = scaled(note.intrinsics, image_size, size)
        thickness = max(1, round(em_px / 16))
        colour = COLOURS[note.standing]
        _draw_lines(picture, undistortion_grid(camera, size), colour, thickness)
        _draw_cross(picture, camera, em_px, thickness)
    _draw_plate(picture, note, image_size, em_px)


def _reach(camera: Intrinsics, image_size: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    """Least and greatest normalised coordinates (2,) that the picture shows."""
    size = np.array(image_size)
    sides = np.linspace(0, 1, EDGE_POINTS)
    zero, one = np.zeros(EDGE_POINTS), np.ones(EDGE_POINTS)
    edge = np.vstack(
        [np.column_stack(side) for side in ((sides, zero), (sides, one), (zero, sides))]
        + [np.column_stack((one, sides))]
    )
    border = edge * size - 0.5
    ab, valid = unproject(camera, border)
    plain = np.abs(border - (camera.cx, camera.cy)) / (camera.fx, camera.fy)
    most = FURTHEST * plain.max(axis=0)
    if valid.all():
        # Inside the fold, what is within the border of the picture is within that of the rays.
        low, high = ab.min(axis=0), ab.max(axis=0)
    else:
        fold = fold_radius(camera.k1, camera.k2)
        low, high = np.full(2, -fold), np.full(2, fold)
    return np.maximum(low, -most), np.minimum(high, most)


def _is_near(uv: FloatArray, image_size: tuple[int, int]) -> BoolArray:
    """(...) for uv (..., 2): in the picture or so near that the line to it may cross it."""
    size = np.array(image_size)
    margin = 4 * size[0] / SAMPLES_ACROSS
    with np.errstate(invalid="ignore"):
        inside = (uv > -margin) & (uv < size + margin)
    return np.logical_and.reduce(inside, axis=-1)


def _runs(line: FloatArray, is_shown: BoolArray) -> list[FloatArray]:
    """The parts (m, 2) of a line (n, 2) that are shown (n,), of two points or more."""
    bounds = np.flatnonzero(np.diff(np.concatenate([[False], is_shown, [False]])))
    return [line[begin:end] for begin, end in bounds.reshape(-1, 2).tolist() if end - begin >= 2]


def _draw_lines(
    picture: NDArray[np.uint8], lines: Sequence[FloatArray], colour: Colour, thickness: int
) -> None:
    """Lines with a dark rim, to be seen on bright and on dark, through which the picture shines."""
    fixed, drawn = [_fixed(line) for line in lines], picture.copy()
    for shade, width in ((PLATE, 3 * thickness), (colour, thickness)):
        cv2.polylines(drawn, fixed, False, shade, width, cv2.LINE_AA, SHIFT)
    cv2.addWeighted(drawn, LINE_OPACITY, picture, 1 - LINE_OPACITY, 0, picture)


def _draw_cross(
    picture: NDArray[np.uint8], camera: Intrinsics, em_px: float, thickness: int
) -> None:
    """The principal point, across the lines of the grid that meet there."""
    arms = 0.8 * em_px * np.array([[[-1, -1], [1, 1]], [[-1, 1], [1, -1]]])
    fixed = [_fixed(arm) for arm in arms + np.array([camera.cx, camera.cy])]
    for shade, width in ((PLATE, 4 * thickness), (PLATE_INK, 2 * thickness)):
        cv2.polylines(picture, fixed, False, shade, width, cv2.LINE_AA, SHIFT)


def _fixed(points: FloatArray) -> NDArray[np.int32]:
    return np.round(points * 2**SHIFT).astype(np.int32)


def _em_px(size: tuple[int, int]) -> float:
    """Size of the text: a fiftieth of the height, if the plate then is not over half the width."""
    width, height = size
    return max(4.0, min(height / 50, width / 2 / EMS_ACROSS))


def _draw_plate(
    picture: NDArray[np.uint8], note: FrameNote, image_size: tuple[int, int], em_px: float
) -> None:
    rows = _rows(note, image_size)
    margin = min(round(em_px), *(n // 4 for n in picture.shape[:2]))
    size = (
        round(EMS_ACROSS * em_px),
        round((2 * PADDING_EMS + (1 + len(rows)) * LINE_EMS) * em_px),
    )
    # A picture smaller than the plate shows what it has room for.
    part = picture[margin : margin + size[1], margin : margin + size[0]]
    dark = np.full_like(part, PLATE)
    plate = Image.fromarray(cv2.addWeighted(part, 1 - OPACITY, dark, OPACITY, 0))
    draw = ImageDraw.Draw(plate)
    font, left = _font(max(1, round(em_px))), PADDING_EMS * em_px
    middle = (PADDING_EMS + LINE_EMS / 2) * em_px
    colour = COLOURS[note.standing]
    draw.text((left + 1.5 * em_px, middle), note.standing.value, colour, font, anchor="lm")
    for label, value in rows:
        middle += LINE_EMS * em_px
        draw.text((left, middle), label, PLATE_QUIET, font, anchor="lm")
        draw.text((left + LABEL_EMS * em_px, middle), value, PLATE_INK, font, anchor="lm")
    part[:] = np.asarray(plate)
    mark = _SHAPES[note.standing] * 0.45 * em_px
    mark += (left + 0.5 * em_px, (PADDING_EMS + LINE_EMS / 2) * em_px)
    cv2.fillPoly(part, [_fixed(mark)], colour, cv2.LINE_AA, SHIFT)


def _rows(note: FrameNote, image_size: tuple[int, int]) -> list[tuple[str, str]]:
    untold = "filled from neighbours" if note.is_filled else NOTHING
    lfl = untold if math.isnan(note.lfl_mm) else f"{note.lfl_mm:.2f} mm"
    if math.isnan(note.fd_m):
        fd = untold
    else:
        fd = "infinity" if math.isinf(note.fd_m) else f"{note.fd_m:.3f} m"
    focal, view = [NOTHING, NOTHING], NOTHING
    if note.intrinsics is not None:
        pairs = zip((note.intrinsics.fx, note.intrinsics.fy), note.sigma_px, strict=True)
        focal = [
            f"{value:.1f} px" if math.isnan(sigma) else f"{value:.1f} ± {sigma:.1f} px"
            for value, sigma in pairs
        ]
        view = " × ".join(
            NOTHING if math.isnan(angle) else f"{angle:.1f}°"
            for angle in field_of_view_deg(note.intrinsics, image_size)[:2]
        )
    return [
        ("frame", str(note.frame)),
        ("LFL", lfl),
        ("FD", fd),
        ("fx", focal[0]),
        ("fy", focal[1]),
        ("FOV", view),
    ]


@cache
def _font(size_px: int) -> ImageFont.FreeTypeFont:
    # The font of our figures, and matplotlib brings it along.
    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    return ImageFont.truetype(path, size_px)
