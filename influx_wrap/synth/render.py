"""Pictures of a board whose edges lie exactly where the projection puts them.

A camera's rays are computed once, for the corners of its pixels, through the inverse
of the distortion; a picture is then one pass over them. Each pixel is the mean over
its area of what is printed there, integrated in closed form (``render_kernels``), at
any tilt, distance and distortion. Pixels that no ray reaches (beyond the fold of a
barrel distortion) show the background.

The lens's blur is a continuous function K of the position on the sensor, not a mask
over pixels: a mask lets an edge's profile depend on where between pixels it lies.
Within a pixel K is replaced by its best linear fit, K ≈ mean + slope · offset, which
needs of every pixel its mean brightness and its first moments, and no finer grid.
At a blur of 0.7 px this is within 1 % of the contrast, at 0.4 px within 3 %.

Brightness is linear in light, on the scale 0 to 255 of the picture.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import fftconvolve
from scipy.special import ndtr, ndtri

from influx_wrap.errors import InputError
from influx_wrap.model.intrinsics import FloatArray, Intrinsics, unproject
from influx_wrap.model.pattern import cell_pattern
from influx_wrap.model.target import Target
from influx_wrap.synth.render_kernels import Plane, develop, expose, expose_blurred

MARGIN_PX = 16
"""Pixels around the picture that are rendered too, for the blur to draw from."""

_BEYOND_M = 1e6
_ROWS_AT_ONCE = 8
_GAUSSIAN_REACH = 4.0
_FINE = 16

# The normal distribution in 65536 equally likely steps: noise by one look-up per pixel.
_NORMAL = ndtri((np.arange(1 << 16) + 0.5) / (1 << 16))

_Scene = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class RayGrid:
    """The rays of a camera: ``a``, ``b`` (H + 2 m + 1, W + 2 m + 1) are the normalised
    coordinates of the corners of its pixels and of ``MARGIN_PX`` = m more on each side,
    NaN where there is no ray. ``image_size`` is (W, H)."""

    image_size: tuple[int, int]
    a: FloatArray
    b: FloatArray


@lru_cache(maxsize=2)
def ray_grid(intrinsics: Intrinsics, image_size: tuple[int, int]) -> RayGrid:
    """The rays of a camera with pictures of (width, height) pixels; the last two are kept."""
    width, height = (n + 2 * MARGIN_PX + 1 for n in image_size)
    u = np.arange(width) - MARGIN_PX - 0.5
    a, b = np.empty((height, width)), np.empty((height, width))
    for start in range(0, height, _ROWS_AT_ONCE):
        rows = slice(start, min(start + _ROWS_AT_ONCE, height))
        v = np.arange(rows.start, rows.stop) - MARGIN_PX - 0.5
        rays, _ = unproject(intrinsics, np.stack(np.meshgrid(u, v), axis=-1))
        a[rows], b[rows] = rays[..., 0], rays[..., 1]
    return RayGrid(image_size, a, b)


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How a picture comes out.

    ``black``, ``white`` and ``background`` are brightnesses of 255. ``blur_px`` is the
    standard deviation of a Gaussian, ``defocus_px`` the radius of a disc, both in
    addition to the pixel's own square. ``vignetting`` is the part of the light that is
    lost in the picture's corners, growing with the square of the distance from its
    middle. ``noise`` is a standard deviation, of 255. ``sheet_m`` is the (width, height)
    of the white sheet with the pattern in its middle; None: a margin of 5 % of the
    pattern's longer side.
    """

    blur_px: float = 0.0
    defocus_px: float = 0.0
    noise: float = 0.0
    vignetting: float = 0.0
    black: float = 20.0
    white: float = 235.0
    background: float = 110.0
    sheet_m: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not min(self.blur_px, self.defocus_px, self.noise) >= 0:
            raise InputError("blur_px, defocus_px and noise of a picture must be >= 0.")
        if not 0 <= self.vignetting <= 1:
            raise InputError(f"vignetting must be from 0 to 1, got {self.vignetting:g}.")
        if self.reach_px > MARGIN_PX:
            raise InputError(
                f"blur_px {self.blur_px:g} with defocus_px {self.defocus_px:g} reaches "
                f"{self.reach_px} px; the renderer can do {MARGIN_PX}."
            )

    @property
    def reach_px(self) -> int:
        """How many pixels away the blur draws light from."""
        if self.blur_px == self.defocus_px == 0:
            return 0
        return math.ceil(_GAUSSIAN_REACH * self.blur_px + self.defocus_px + 0.5)


def render_board(
    rays: RayGrid,
    target: Target,
    rotation: ArrayLike,
    translation: ArrayLike,
    options: RenderOptions,
    rng: np.random.Generator,
) -> NDArray[np.uint8]:
    """Picture (H, W) of a board whose pose ``rotation`` (3, 3), ``translation`` (3,) in
    metres takes its points to camera space. ``rng`` is drawn from only if there is noise."""
    rotation, translation = np.asarray(rotation, dtype=float), np.asarray(translation, dtype=float)
    if not rotation[:, 2] @ translation < 0:
        raise InputError("the board shows its back to the camera; turn it to face the camera.")
    to_board = np.linalg.inv(np.column_stack([rotation[:, :2], translation]))
    x_lines, y_lines, value = _sheet(target, options)
    before, moment_before = (
        np.cumsum(value * weight, axis=1) - value * weight
        for weight in (np.diff(x_lines), np.diff(x_lines**2) / 2)
    )
    scene = (to_board, x_lines, y_lines, value, before, moment_before)
    light = _seen(rays, scene, options)

    width, height = rays.image_size
    corner = max((width - 1) ** 2 + (height - 1) ** 2, 1)
    noisy_shape = light.shape if options.noise > 0 else (0, 0)
    draws = rng.integers(0, len(_NORMAL), noisy_shape, dtype=np.uint16)
    grain = (options.noise * _NORMAL).astype(np.float32)
    picture = np.empty(light.shape, dtype=np.uint8)
    develop(light, options.background, options.vignetting / corner, grain, draws, picture)
    return picture


def _seen(rays: RayGrid, scene: _Scene, options: RenderOptions) -> Plane:
    """Light (H, W) above the background that comes through the blur."""
    width, height = rays.image_size
    reach = options.reach_px
    corners = rays.a, rays.b, MARGIN_PX - reach
    if options.defocus_px == 0:
        light = np.empty((height, width), dtype=np.float32)
        expose_blurred(*corners, *scene, *_gaussian_spread(options.blur_px, reach), light)
        return light
    planes = np.empty((3, height + 2 * reach, width + 2 * reach), dtype=np.float32)
    expose(*corners, *scene, planes[0], planes[1], planes[2])
    kernels = _disc_spread(options.blur_px, options.defocus_px, reach)
    light = np.zeros(planes.shape[1:], dtype=np.float32)
    for plane, kernel in zip(planes, kernels, strict=True):
        light += cv2.filter2D(plane, -1, kernel)
    return light[reach:-reach, reach:-reach]


def _sheet(target: Target, options: RenderOptions) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lines in x and in y, and the brightness of the cells between them less the background:
    the pattern, a frame of white paper around it, and a frame of nothing around that."""
    pattern = cell_pattern(target)
    lines = [pattern.x_m, pattern.y_m]
    extent = np.array([np.ptp(line) for line in lines])
    margin = np.full(2, 0.05 * extent.max())
    if options.sheet_m is not None:
        margin = (np.array(options.sheet_m) - extent) / 2
        if not margin.min() > 0:
            raise InputError(
                f"a sheet of {options.sheet_m[0]:g} x {options.sheet_m[1]:g} m is too small for "
                f"a pattern of {extent[0]:g} x {extent[1]:g} m."
            )
    x_lines, y_lines = (
        np.concatenate([[-_BEYOND_M, line[0] - m], line, [line[-1] + m, _BEYOND_M]])
        for line, m in zip(lines, margin, strict=True)
    )
    value = np.where(np.pad(pattern.black, 1), options.black, options.white) - options.background
    return x_lines, y_lines, np.pad(value, 1)


def _fine_offsets(reach_px: int) -> FloatArray:
    """Positions ((2 r + 1) * _FINE,) in pixels that sample a kernel of reach r evenly."""
    n_pixels = 2 * reach_px + 1
    return (np.arange(n_pixels * _FINE) + 0.5) / _FINE - n_pixels / 2


def _square_and_gaussian(offsets: FloatArray, sigma_px: float) -> FloatArray:
    """The pixel's square blurred by a Gaussian, along one axis, at offsets (n,) in pixels."""
    if sigma_px == 0:
        return (np.abs(offsets) < 0.5).astype(float)
    result: FloatArray = ndtr((offsets + 0.5) / sigma_px) - ndtr((offsets - 0.5) / sigma_px)
    return result


# Weights of a kernel's fine samples in a pixel for the mean and slope of its linear fit.
_IN_PIXEL = (np.arange(_FINE) + 0.5) / _FINE - 0.5
_SLOPE = _IN_PIXEL / np.sum(_IN_PIXEL**2)
_MEAN = np.full(_FINE, 1 / _FINE)


def _gaussian_spread(sigma_px: float, reach_px: int) -> tuple[Plane, Plane]:
    """Mean and slope (2 r + 1,) within each pixel of a Gaussian blur along one axis."""
    fine = _square_and_gaussian(_fine_offsets(reach_px), sigma_px).reshape(-1, _FINE)
    fine /= (fine @ _MEAN).sum()
    return (fine @ _MEAN).astype(np.float32), (fine @ _SLOPE).astype(np.float32)


def _disc_spread(sigma_px: float, radius_px: float, reach_px: int) -> tuple[Plane, Plane, Plane]:
    """Mean and slopes in u and v (2 r + 1, 2 r + 1) of a disc with a Gaussian blur."""
    along = _square_and_gaussian(_fine_offsets(reach_px), sigma_px)
    n = math.ceil(radius_px * _FINE) + 1
    grid = np.arange(-n, n + 1) / _FINE
    distance = np.hypot(grid, grid[:, None])
    disc = np.clip((radius_px - distance) * _FINE + 0.5, 0, 1)
    fine = fftconvolve(np.outer(along, along), disc, mode="same")
    blocks = fine.reshape(2 * reach_px + 1, _FINE, -1, _FINE)
    blocks /= np.einsum("vjui,j,i->", blocks, _MEAN, _MEAN)
    weights = (_MEAN, _MEAN), (_MEAN, _SLOPE), (_SLOPE, _MEAN)
    mean, slope_u, slope_v = (
        np.einsum("vjui,j,i->vu", blocks, *pair).astype(np.float32) for pair in weights
    )
    return mean, slope_u, slope_v
