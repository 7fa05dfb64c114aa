"""The drone's LED in one picture of the night.

A lit LED is a white ellipse in a red halo or, when it is faint, a red spot. The paper's
three rules (supplement, "2D Keypoint Detection") find it, tried one after the other:

1. ellipses around pixels with an HSL lightness above 210, their minor axis longer than
   10 px, major over minor below 1.5, and a quarter or more of the square around them red;
   of several, the one whose square is lightest;
2. the same with a lightness above 150 and a minor axis above 8 px, of any ratio;
3. ellipses around red pixels with a minor axis above 8 px; of several, the one whose square
   is most saturated, but the roundest of those within a factor of 0.9, as light scattered
   on the drone is longish.

The paper's "radii" are read as the two lengths that ``cv2.fitEllipse`` returns, which are
full axes. With half axes the square of 2 r by 2 r would just enclose the white ellipse: its
corners are 21.5 % of it, never a quarter, and the first two rules could find no round LED.
So the square is two major axes wide: all pixels whose centres are at most a major axis to
the left, right, above and below the ellipse's centre. At the picture's border it is what
is left of it, and shares and means are of the pixels that are there. An ellipse with its
centre outside the picture is no candidate. Contours are outer ones with all their
pixels; ``fitEllipse`` needs five.

No pixel counts below 120 in all of blue, green and red, and most of a night's picture is
darker. Rows and then columns with a brighter pixel cut it into small windows; each bright
area lies in one of them, so that the answer is that of the whole picture.

The paper takes the ellipse's centre. Its contour is made of whole pixels and, lower down
the halo, bent by light scattered to one side. The centre reported here is that of a
circle through the edge of the brightest part, where 90 % of the peak is crossed, found to a
fraction of a pixel in many directions; directions in which something bulges are weighted
down. The ellipse's own centre is kept beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.robust import MAD_SIGMA

ColourPicture = NDArray[np.uint8]

RED_RANGES = (((0, 100, 120), (50, 255, 255)), ((130, 100, 120), (180, 255, 255)))
"""Lowest and highest OpenCV hue, saturation and value of red, and of magenta."""

LEAST_BRIGHT = 120
"""Red pixels have this value or more; those of the first two rules are brighter still."""

MIN_RED_SHARE = 0.25
SIMILAR_SATURATION = 0.9
MIN_CONTOUR = 5

PEAK_SHARE, MIN_CORE_PX = 0.9, 80
"""The edge of the core: this share of the peak, or what as many pixels are brighter than."""

CORE_REACH = 0.75
"""How far from the ellipse's centre the core is looked for, in major axes."""

SMOOTHING_PX = 1.3
PEAK_RANK = 4
"""The peak is the brightest pixel but four: not a hot one."""

DIRECTIONS, RADIAL_STEP_PX = 72, 0.25
FIT_STEPS = 20
RIDGE = 1e-9
LEAST_SPREAD_PX, REJECT_SPREADS = 0.05, 2.0


@dataclass(frozen=True)
class _Rule:
    """What an ellipse around light pixels must be like; ``above`` is None for red pixels."""

    number: int
    above: int | None
    min_minor_px: float
    max_ratio: float


RULES = (
    _Rule(1, 210, 10, 1.5),
    _Rule(2, 150, 8, np.inf),
    _Rule(3, None, 8, np.inf),
)


@dataclass(frozen=True)
class Led:
    """Where the LED is in a picture.

    uv          its centre in pixels, centres at integers
    ellipse_uv  the centre of the ellipse that was fitted, the paper's
    axes_px     (major, minor) of that ellipse, full lengths
    rule        1, 2 or 3
    """

    uv: tuple[float, float]
    ellipse_uv: tuple[float, float]
    axes_px: tuple[float, float]
    rule: int


@dataclass(frozen=True)
class _Window:
    """A part of the picture, ``left`` and ``top`` its first column and row."""

    left: int
    top: int
    pixels: ColourPicture


@dataclass(frozen=True)
class _Candidate:
    """An ellipse that keeps its rule, and the mean lightness or saturation of its square."""

    uv: tuple[float, float]
    axes_px: tuple[float, float]
    strength: float

    @property
    def ratio(self) -> float:
        return self.axes_px[0] / self.axes_px[1]


def find_leds(picture: ColourPicture, most: int) -> list[Led]:
    """The LED, and what would be taken for it if it and those before it were not there.

    A light is taken away with all the bright area it is in: what its halo runs into is lost.
    """
    _check(picture)
    if not picture.flags.writeable:
        picture = picture.copy()
    windows = _bright_windows(picture)
    # To copy the whole picture would take longer than to search it.
    before = [window.pixels.copy() for window in windows]
    found: list[Led] = []
    try:
        while len(found) < most:
            led = _find(picture, windows)
            if led is None:
                break
            found.append(led)
            _take_away(led, windows)
    finally:
        for window, pixels in zip(windows, before, strict=True):
            window.pixels[:] = pixels
    return found


def _find(picture: ColourPicture, windows: list[_Window]) -> Led | None:
    for rule in RULES:
        candidates = [found for window in windows for found in _candidates(picture, window, rule)]
        if candidates:
            best = _best(candidates, rule)
            return Led(_core_centre(picture, best), best.uv, best.axes_px, rule.number)
    return None


def bright_pixels(picture: ColourPicture) -> NDArray[np.uint8]:
    """(H, W) 255 where a pixel is bright enough to belong to an LED, 0 elsewhere."""
    blue, green, red = cv2.split(picture)
    brightest = cv2.max(cv2.max(blue, green), red)
    return np.asarray(cv2.threshold(brightest, LEAST_BRIGHT - 1, 255, cv2.THRESH_BINARY)[1])


def _check(picture: ColourPicture) -> None:
    if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8:
        raise InputError(
            f"a picture (H, W, 3) of 8 bits is needed, got {picture.shape} of {picture.dtype}."
        )


def _bright_windows(picture: ColourPicture) -> list[_Window]:
    """Parts that do not overlap; every bright area lies in one of them, whole."""
    height, width, _ = picture.shape
    rows = np.ascontiguousarray(picture).reshape(height, 3 * width)
    windows = []
    for top, bottom in _runs(rows.max(axis=1, initial=0) >= LEAST_BRIGHT):
        strip = rows[top:bottom].max(axis=0).reshape(width, 3).max(axis=1)
        for left, right in _runs(strip >= LEAST_BRIGHT):
            windows.append(_Window(left, top, picture[top:bottom, left:right]))
    return windows


def _runs(is_bright: BoolArray) -> list[tuple[int, int]]:
    """Begin and end of each run of True."""
    edges = np.flatnonzero(np.diff(is_bright, prepend=False, append=False))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _candidates(picture: ColourPicture, window: _Window, rule: _Rule) -> Iterator[_Candidate]:
    if rule.above is None:
        mask = _red(window.pixels)
    else:
        mask = (_lightness(window.pixels) > rule.above).astype(np.uint8)
    outer, every = cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE
    contours, _ = cv2.findContours(mask, outer, every, offset=(window.left, window.top))
    for contour in contours:
        if len(contour) < MIN_CONTOUR:
            continue
        (u, v), axes, _ = cv2.fitEllipse(contour)
        minor, major = sorted(axes)
        if not (minor > rule.min_minor_px and major / minor < rule.max_ratio):
            continue
        if not _is_inside(picture, u, v):
            continue
        square = _square(picture, u, v, major).pixels
        if rule.above is None:
            strength = _saturation(square).mean()
        elif np.count_nonzero(_red(square)) >= MIN_RED_SHARE * square.shape[0] * square.shape[1]:
            strength = _lightness(square).mean()
        else:
            continue
        yield _Candidate((u, v), (major, minor), float(strength))


def _best(candidates: list[_Candidate], rule: _Rule) -> _Candidate:
    """The strongest; of red ones the roundest of those that are nearly as strong.

    Of equals the uppermost, and then the one to the left.
    """
    if rule.above is not None:
        return min(candidates, key=lambda one: (-one.strength, one.uv[::-1]))
    least = SIMILAR_SATURATION * max(one.strength for one in candidates)
    similar = [one for one in candidates if one.strength >= least]
    return min(similar, key=lambda one: (one.ratio, one.uv[::-1]))


def _is_inside(picture: ColourPicture, u: float, v: float) -> bool:
    height, width, _ = picture.shape
    return -0.5 <= u <= width - 0.5 and -0.5 <= v <= height - 0.5


def _square(picture: ColourPicture, u: float, v: float, half_px: float) -> _Window:
    """The pixels of the picture whose centres are at most ``half_px`` from (u, v) each way."""
    left, top = (max(int(np.ceil(at - half_px)), 0) for at in (u, v))
    right, bottom = (int(np.floor(at + half_px)) + 1 for at in (u, v))
    return _Window(left, top, picture[top:bottom, left:right])


def _lightness(pixels: ColourPicture) -> NDArray[np.uint8]:
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2HLS)[..., 1])


def _saturation(pixels: ColourPicture) -> NDArray[np.uint8]:
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2HSV)[..., 1])


def _red(pixels: ColourPicture) -> NDArray[np.uint8]:
    hsv = cv2.cvtColor(pixels, cv2.COLOR_BGR2HSV)
    red, magenta = (cv2.inRange(hsv, *limits) for limits in RED_RANGES)
    return np.asarray(cv2.bitwise_or(red, magenta))


def _take_away(led: Led, windows: list[_Window]) -> None:
    """Make the bright area around an LED black."""
    u, v = led.ellipse_uv
    for window in windows:
        height, width, _ = window.pixels.shape
        columns, rows = np.arange(width) + window.left - u, np.arange(height) + window.top - v
        near = np.hypot(columns, rows[:, None]) <= led.axes_px[0] / 2
        if near.any():
            _, areas = cv2.connectedComponents(bright_pixels(window.pixels), connectivity=8)
            for area in np.unique(areas[near & (areas > 0)]):
                window.pixels[areas == area] = 0


def _core_centre(picture: ColourPicture, found: _Candidate) -> tuple[float, float]:
    """The middle of the brightest part of an ellipse, or the ellipse's if that has no edge.

    Blue, green and red are added: red is the first to saturate in the halo and blue the last,
    so that their sum goes on rising towards the core.
    """
    window = _square(picture, *found.uv, CORE_REACH * found.axes_px[0])
    sums = window.pixels.sum(axis=2, dtype=np.float32)
    light = np.asarray(cv2.GaussianBlur(sums, (0, 0), SMOOTHING_PX))
    ranked = np.sort(light, axis=None)[::-1]
    last = len(ranked) - 1
    peak, enough = ranked[min(PEAK_RANK, last)], ranked[min(MIN_CORE_PX, last)]
    level = float(min(PEAK_SHARE * peak, enough))
    is_core = (light > level).astype(np.uint8)
    n, _, statistics, centroids = cv2.connectedComponentsWithStats(is_core, connectivity=8)
    if n < 2:
        return found.uv
    largest = 1 + int(np.argmax(statistics[1:, cv2.CC_STAT_AREA]))
    directions, radii = _edge(light, level, centroids[largest])
    if len(radii) < DIRECTIONS // 2:
        return found.uv
    shift = _circle_centre(directions, radii)
    # What has no round edge, which no LED is like, may lead anywhere.
    if not np.hypot(*shift) <= np.median(radii):
        return found.uv
    u, v = centroids[largest] + shift + (window.left, window.top)
    return float(u), float(v)


def _edge(
    light: NDArray[np.float32], level: float, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Directions (n,), and how far from ``start`` the light falls below ``level`` in each."""
    directions = np.arange(DIRECTIONS) * (2 * np.pi / DIRECTIONS)
    distance = np.arange(0, max(light.shape), RADIAL_STEP_PX)
    x = (start[0] + np.outer(np.cos(directions), distance)).astype(np.float32)
    y = (start[1] + np.outer(np.sin(directions), distance)).astype(np.float32)
    along = cv2.remap(light, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    below = along < level
    first = below.argmax(axis=1)
    crossed = first > 0
    row, first = np.flatnonzero(crossed), first[crossed]
    inside, outside = along[row, first - 1], along[row, first]
    share = (inside - level) / (inside - outside)
    return directions[crossed], distance[first - 1] + RADIAL_STEP_PX * share


def _circle_centre(directions: FloatArray, radii: FloatArray) -> FloatArray:
    """(2,) centre of the circle through the points at ``radii`` in ``directions``.

    Points off it by more than the others are weighted down (Tukey's weights). A circle, not
    an ellipse: its five numbers would follow a bulge to one side.
    """
    points = np.stack([np.cos(directions), np.sin(directions)], axis=1) * radii[:, None]
    weights, centre = np.ones(len(points)), np.zeros(2)
    for _ in range(FIT_STEPS):
        offset = points - centre
        distance = np.maximum(np.hypot(*offset.T), RIDGE)
        matrix = np.column_stack([offset / distance[:, None], np.ones(len(points))])
        weighted = matrix.T * weights
        step = np.linalg.solve(weighted @ matrix + RIDGE * np.eye(3), weighted @ distance)
        residual = distance - matrix @ step
        centre = centre + step[:2]
        middle = np.partition(np.abs(residual), len(residual) // 2)[len(residual) // 2]
        spread = MAD_SIGMA * middle + LEAST_SPREAD_PX
        weights = np.clip(1 - (residual / (REJECT_SPREADS * spread)) ** 2, 1e-3, None) ** 2
    return centre
