"""Pictures of the drone's LED at night (paper, supplement, "2D Keypoint Detection").

Light is linear, 1 where the sensor clips, and its three channels are blue, green and red. The
LED is red, but so bright that what its light leaves in the other channels clips them too: in
the middle it is white, around that red. Both come of one profile that is round about the
exact projection, (1 + (r / a)^2)^-b, faded out at a few times the halo's radius. Beside it
the payload it shines on glows faintly, an ellipse on one side. The sky is dark, brighter
below; street lamps, a red light on a mast and an aeroplane may be there too. The lens's
vignetting takes from a light what it takes at the light's place, so that it stays round.

Noise is that of photons and of the sensor, per channel, before clipping; what comes out is
encoded as BT.709 video. A frame without a light is a dark frame made once, and grain that
every row draws from a long strip at a random place, anew in every frame; the surroundings of
a light have grain of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.synth.flight import LitFrames
from influx_wrap.synth.motion import FPS, SHUTTER
from influx_wrap.synth.night_kernels import add_glows, develop_dark
from influx_wrap.synth.render import MOST_EXPOSURES, SHARP_PX

LED_BGR = (0.06, 0.10, 1.0)
LAMPS_BGR = ((0.55, 0.85, 1.0), (1.0, 1.0, 1.0), (0.35, 0.72, 1.0))

# The lightness of the paper's first rule, 210, needs this of the darkest channel; its red
# pixels need that of the brightest.
CORE_LEVEL, HALO_LEVEL = 165, 120

_SKY_BGR = np.array([1.25, 0.95, 0.8])
_FADE = 3.0
_DIM_PEAK = 0.9
# So that a glow is as bright over a pixel as in its centre.
_NARROWEST_PX = 1.5
# A light whose darkest channel is more of its brightest than this has no halo of a colour,
# from whose size its fall-off would follow.
_PALE, _PALE_EXPONENT = 0.2, 1.5
_SCATTER_EXPONENT, _SCATTER_REACH = 3.0, 3.0
_GRAIN_LENGTH = 1 << 22
_GRAIN_STEPS = 32
_BLINK_S, _BLINK_EVERY_S = 0.1, 1.1
_CROSSING_S = 30.0


@dataclass(frozen=True, slots=True)
class NightOptions:
    """How the night comes out.

    core_px      diameter of the LED's white core; 0: it is red and no more
    halo_px      diameter of its red halo
    scatter      light of the glow beside it, as a share of what clips
    scatter_deg  on which side: 0 is right of the LED, 90 below
    scatter_far  how far from the LED, in diameters of the halo; below about 0.7 the two run
                 together
    lights       whether there are other lights
    noise        standard deviation of a dark pixel, of 255
    vignetting   part of the light that is lost in the picture's corners
    sky_top      brightness of the sky at the picture's top, of 255, and
    sky_bottom   at its bottom
    """

    core_px: float = 24.0
    halo_px: float = 90.0
    scatter: float = 0.3
    scatter_deg: float = 80.0
    scatter_far: float = 0.75
    lights: bool = True
    noise: float = 2.0
    vignetting: float = 0.0
    sky_top: float = 7.0
    sky_bottom: float = 20.0

    def __post_init__(self) -> None:
        if not 0 <= self.core_px < math.inf or not 1 <= self.halo_px < math.inf:
            raise InputError("the LED's core must be at least 0 px across, its halo at least 1.")
        if self.halo_px < 1.3 * self.core_px:
            raise InputError(
                f"a halo of {self.halo_px:g} px is too small around a core of {self.core_px:g} px; "
                f"it needs {1.3 * self.core_px:g} px."
            )
        if not (0 <= self.scatter <= 1 and 0 <= self.vignetting <= 1):
            raise InputError("scatter and vignetting are shares from 0 to 1.")
        if not (math.isfinite(self.scatter_deg) and 0 <= self.scatter_far <= 3):
            raise InputError("scatter must be on some side of the LED, at most 3 halos away.")
        if not (0 <= self.noise <= 25 and 0 <= self.sky_top <= 100 and 0 <= self.sky_bottom <= 100):
            raise InputError("a night's noise must be from 0 to 25 and its sky from 0 to 100.")


@dataclass(frozen=True)
class Light:
    """A light of the picture at (u, v), with a white core and a halo in pixels across."""

    u: float
    v: float
    core_px: float
    halo_px: float
    bgr: tuple[float, float, float]


@dataclass(frozen=True)
class Aeroplane:
    """A red beacon that blinks as it crosses the picture from ``start`` (u, v) with a speed
    (u, v) in pixels per second."""

    start: tuple[float, float]
    speed: tuple[float, float]
    from_s: float
    halo_px: float


@dataclass(frozen=True)
class OtherLights:
    """What shines beside the LED: lights that are on all the time, and one that moves."""

    steady: tuple[Light, ...] = ()
    aeroplane: Aeroplane | None = None


def other_lights(
    lit: LitFrames, options: NightOptions, image_size: tuple[int, int], rng: np.random.Generator
) -> OtherLights:
    """Lights well away from where the LED is lit, as a crew would choose its field."""
    size, halo = np.array(image_size, dtype=float), 0.5 * options.halo_px
    taken = lit.uv
    steady = []
    for bgr in (*LAMPS_BGR, LED_BGR):
        # Lamps are low in the picture, the mast's red light wherever there is room.
        top = 0.1 if bgr is LED_BGR else 0.6
        places = rng.uniform([0.03, top], [0.97, 0.97], (200, 2)) * size
        place = places[np.argmax(_distance(places, taken).min(axis=1, initial=np.inf))]
        taken = np.vstack([taken, place])
        steady.append(Light(float(place[0]), float(place[1]), 0.35 * halo, halo, bgr))
    return OtherLights(tuple(steady), _aeroplane(lit, image_size, 0.15 * options.halo_px, rng))


def _aeroplane(
    lit: LitFrames, image_size: tuple[int, int], halo_px: float, rng: np.random.Generator
) -> Aeroplane:
    """On that of several courses on which it is never near the LED when that is lit."""
    width, height = image_size
    last_s = float(lit.frame.max(initial=FPS)) / FPS
    courses = []
    for _ in range(30):
        start = (0.0, float(rng.uniform(0.05, 0.4) * height))
        speed = (width / _CROSSING_S, float(rng.uniform(-0.1, 0.1) * height) / _CROSSING_S)
        course = Aeroplane(start, speed, float(rng.uniform(-0.3, 0.7) * last_s), halo_px)
        near = np.linalg.norm(_course(course, lit.frame / FPS) - lit.uv, axis=1).min(initial=1e9)
        courses.append((near, course))
    return max(courses, key=lambda pair: pair[0])[1]


def _distance(points: FloatArray, others: FloatArray) -> FloatArray:
    """(N, M) between points (N, 2) and others (M, 2)."""
    result: FloatArray = np.linalg.norm(points[:, None] - others, axis=2)
    return result


def _course(aeroplane: Aeroplane, time_s: ArrayLike) -> FloatArray:
    """(N, 2) where the aeroplane is in the picture at times (N,)."""
    since = np.asarray(time_s, dtype=float)[:, None] - aeroplane.from_s
    result: FloatArray = np.array(aeroplane.start) + since * np.array(aeroplane.speed)
    return result


def night_light(
    options: NightOptions,
    image_size: tuple[int, int],
    glows: FloatArray,
    u0: int,
    v0: int,
    shape: tuple[int, int],
) -> FloatArray:
    """Linear light (h, w, 3), blue first, of the sky and of ``glows`` (n, 12) in a part of the
    picture of ``shape`` (h, w) whose first pixel is (u0, v0)."""
    height, width = shape
    v, u = np.arange(v0, v0 + height), np.arange(u0, u0 + width)
    part = v[:, None, None] / max(image_size[1] - 1, 1)
    top, bottom = (to_light(level) for level in (options.sky_top, options.sky_bottom))
    light = (top + (bottom - top) * part) * _SKY_BGR
    light = light * _vignette(options, image_size, u, v[:, None])[:, :, None]
    add_glows(glows, u0, v0, light)
    return light


def led_glows(
    options: NightOptions,
    image_size: tuple[int, int],
    uv_ends: FloatArray,
    share: float,
) -> FloatArray:
    """The LED and its scatter (n, 12) on the way from the first to the second of (2, 2) pixels,
    lit for a share of the exposure."""
    smear_px = float(np.linalg.norm(uv_ends[1] - uv_ends[0]))
    n = 1 if smear_px < SHARP_PX else min(math.ceil(smear_px), MOST_EXPOSURES)
    parts = (np.arange(n) + 0.5)[:, None] / n
    path = uv_ends[0] + parts * (uv_ends[1] - uv_ends[0])
    glows = []
    for u, v in path:
        strength = share / n * float(_vignette(options, image_size, u, v))
        glows.append(_round_glow(u, v, options.core_px, options.halo_px, LED_BGR, strength))
        if options.scatter > 0:
            glows.append(_scatter_glow(u, v, options, strength))
    return np.array(glows)


def render_night(
    options: NightOptions,
    image_size: tuple[int, int],
    others: OtherLights,
    frame: int,
    led: FloatArray,
    rng: np.random.Generator,
) -> NDArray[np.uint8]:
    """Picture (H, W, 3), blue first, of a frame with the glows (n, 12) of a lit LED, or (0, 12).

    All randomness is from ``rng``, which should be one of the frame's own.
    """
    width, height = image_size
    dark, sigma = _dark_frame(options, image_size, others.steady)
    start = rng.integers(0, _GRAIN_LENGTH, height)
    picture = np.empty((height, width, 3), dtype=np.uint8)
    develop_dark(dark, sigma, _grain(3 * width), start, picture.reshape(height, -1))
    moving = [led, _aeroplane_glows(options, image_size, others, frame)]
    groups = [group for group in moving if len(group)]
    if groups:
        steady = _steady_glows(options, image_size, others.steady)
        everything = np.concatenate([*groups, steady])
        for group in groups:
            u0, v0, u1, v1 = _bounds(group, image_size)
            if u0 < u1 and v0 < v1:
                light = night_light(options, image_size, everything, u0, v0, (v1 - v0, u1 - u0))
                picture[v0:v1, u0:u1] = develop_night(light, options, rng)
    return picture


def develop_night(
    light: FloatArray, options: NightOptions, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Linear light, with the sensor's noise, as a picture of the same shape."""
    if options.noise > 0:
        light = light + _noise(light, options) * rng.standard_normal(light.shape)
    return (to_level(np.clip(light, 0, 1)) + 0.5).astype(np.uint8)


def to_level(light: ArrayLike) -> FloatArray:
    """Level of 255 of linear light from 0 to 1: BT.709's transfer."""
    light = np.asarray(light, dtype=float)
    # 0.018 in the power keeps it from what is not used.
    curve = 1.099 * np.maximum(light, 0.018) ** 0.45 - 0.099
    result: FloatArray = 255 * np.where(light < 0.018, 4.5 * light, curve)
    return result


def to_light(level: float) -> float:
    """Linear light of a level of 255."""
    part = level / 255
    return part / 4.5 if part < 0.081 else ((part + 0.099) / 1.099) ** (1 / 0.45)


def _noise(light: FloatArray, options: NightOptions) -> FloatArray:
    """Standard deviation of linear light: in the dark sky half of the variance is the
    sensor's own, the other half is the photons' and grows with the light."""
    dark = options.noise / 255 / 4.5
    sky = to_light(max((options.sky_top + options.sky_bottom) / 2, 1.0))
    result: FloatArray = dark * np.sqrt(0.5 + 0.5 * np.maximum(light, 0) / sky)
    return result


def _vignette(
    options: NightOptions, image_size: tuple[int, int], u: ArrayLike, v: ArrayLike
) -> FloatArray:
    """Share of the light that arrives at pixels."""
    width, height = image_size
    corner = max((width - 1) ** 2 + (height - 1) ** 2, 1)
    du, dv = 2 * np.asarray(u) - width + 1, 2 * np.asarray(v) - height + 1
    result: FloatArray = 1 - options.vignetting * (du * du + dv * dv) / corner
    return result


def _round_glow(
    u: float,
    v: float,
    core_px: float,
    halo_px: float,
    bgr: tuple[float, float, float],
    strength: float,
) -> list[float]:
    """A glow (12,) whose white core and halo have these diameters when ``strength`` is 1."""
    core, halo = core_px / 2, halo_px / 2
    end = _FADE * halo
    to_halo = to_light(HALO_LEVEL) / (1 - (halo / end) ** 2) ** 2
    if core > 0:
        half = max(core / 2, _NARROWEST_PX)
        to_core = to_light(CORE_LEVEL) / min(bgr) / (1 - (core / end) ** 2) ** 2
        rise = math.log((1 + (halo / half) ** 2) / (1 + (core / half) ** 2))
        exponent = math.log(to_core / to_halo) / rise if min(bgr) < _PALE else _PALE_EXPONENT
        peak = to_core * (1 + (core / half) ** 2) ** exponent
    else:
        half, peak = halo / 2, _DIM_PEAK
        exponent = math.log(peak / to_halo) / math.log(1 + (halo / half) ** 2)
    scale, colour = 1 / half**2, [strength * peak * part for part in bgr]
    return [u, v, scale, 0.0, scale, exponent, (end / half) ** 2, *colour, end, end]


def _scatter_glow(u: float, v: float, options: NightOptions, strength: float) -> list[float]:
    """An ellipse (12,) beside the LED, its short axis towards it."""
    angle = math.radians(options.scatter_deg)
    away = np.array([math.cos(angle), math.sin(angle)])
    along = np.array([-away[1], away[0]])
    short, long = 0.12 * options.halo_px, 0.3 * options.halo_px
    form = np.outer(away, away) / short**2 + np.outer(along, along) / long**2
    centre = np.array([u, v]) + options.scatter_far * options.halo_px * away
    reach = _SCATTER_REACH * np.sqrt(np.diag(np.linalg.inv(form)))
    colour = [strength * options.scatter * part for part in LED_BGR]
    return [
        *centre, form[0, 0], form[0, 1], form[1, 1], _SCATTER_EXPONENT, _SCATTER_REACH**2,
        *colour, *reach,
    ]  # fmt: skip


def _steady_glows(
    options: NightOptions, image_size: tuple[int, int], lights: tuple[Light, ...]
) -> FloatArray:
    """(n, 12)."""
    glows = [
        _round_glow(
            light.u, light.v, light.core_px, light.halo_px, light.bgr,
            float(_vignette(options, image_size, light.u, light.v)),
        )
        for light in lights
    ]  # fmt: skip
    return np.array(glows).reshape(-1, 12)


def _aeroplane_glows(
    options: NightOptions, image_size: tuple[int, int], others: OtherLights, frame: int
) -> FloatArray:
    """(1, 12), or (0, 12) between two blinks and outside the picture."""
    time_s = (frame + SHUTTER / 2) / FPS
    if others.aeroplane is None or time_s % _BLINK_EVERY_S > _BLINK_S:
        return np.empty((0, 12))
    ((u, v),) = _course(others.aeroplane, [time_s])
    width, height = image_size
    if not (0 <= u < width and 0 <= v < height):
        return np.empty((0, 12))
    strength = float(_vignette(options, image_size, u, v))
    return np.array([_round_glow(u, v, 0.0, others.aeroplane.halo_px, LED_BGR, strength)])


def _bounds(glows: FloatArray, image_size: tuple[int, int]) -> tuple[int, int, int, int]:
    """First u, first v, and those after the last, of the pixels that glows reach."""
    low = np.floor((glows[:, :2] - glows[:, 10:]).min(axis=0)).astype(int)
    high = np.ceil((glows[:, :2] + glows[:, 10:]).max(axis=0)).astype(int) + 1
    u0, v0 = np.maximum(low, 0).tolist()
    u1, v1 = np.minimum(high, image_size).tolist()
    return u0, v0, u1, v1


@lru_cache(maxsize=2)
def _dark_frame(
    options: NightOptions, image_size: tuple[int, int], lights: tuple[Light, ...]
) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Levels (H, 3 W) in 1/256 and their noise in 1/8 of a frame with what is always there."""
    width, height = image_size
    level = np.empty((height, 3 * width), dtype=np.uint16)
    sigma = np.empty((height, 3 * width), dtype=np.uint8)
    glows = _steady_glows(options, image_size, lights)
    for v0 in range(0, height, 64):
        rows = min(64, height - v0)
        light = night_light(options, image_size, glows, 0, v0, (rows, width)).reshape(rows, -1)
        clipped = np.minimum(light, 1)
        here = to_level(clipped)
        slope = np.where(clipped < 0.018, 4.5, 0.49455 * np.maximum(clipped, 0.018) ** -0.55)
        deviation = 255 * slope * _noise(light, options)
        # Clipped by more than the noise could undo.
        deviation[light > 1 + 4 * _noise(light, options)] = 0
        level[v0 : v0 + rows] = np.round(256 * here)
        sigma[v0 : v0 + rows] = np.minimum(np.round(8 * deviation), 255)
    return level, sigma


@lru_cache(maxsize=2)
def _grain(row_length: int) -> NDArray[np.int8]:
    """A strip of normal noise, in 1/32, from any of the first ``_GRAIN_LENGTH`` of which a row
    of pixels can be taken."""
    normal = np.random.default_rng(0).standard_normal(_GRAIN_LENGTH + row_length, np.float32)
    return np.clip(np.round(_GRAIN_STEPS * normal), -127, 127).astype(np.int8)
