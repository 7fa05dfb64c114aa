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
At a blur of 0.7 px this is within 1 % of the contrast, at 0.4 px within 3 %. A Gaussian is
a product of a function of u and one of v; a disc of defocus is a short sum of such
products, so that both go over the picture row by row and column by column.

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
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics, pixel_rays
from influx_wrap.model.pattern import cell_pattern
from influx_wrap.model.pose import transform
from influx_wrap.model.target import Target
from influx_wrap.synth.motion import between
from influx_wrap.synth.render_kernels import Plane, develop, expose

MARGIN_PX = 16
"""Pixels around the picture that are rendered too, for the blur to draw from."""

_BEYOND_M = 1e6
_GAUSSIAN_REACH = 4.0
_FINE = 16
_DISC_ERROR = 0.004
_SPARSE = 16
"""Of so many rays, along either axis, one is asked where the board is."""
# A smear this short is less than the blur of any lens.
SHARP_PX = 0.5
MOST_EXPOSURES = 64

# The normal distribution in 65536 equally likely steps: noise by one look-up per pixel.
NORMAL = ndtri((np.arange(1 << 16) + 0.5) / (1 << 16))

_Sheet = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]
_Blur = tuple[Plane, Plane, Plane, Plane]
_Placed = tuple[FloatArray, FloatArray]


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
    corner_px = -MARGIN_PX - 0.5
    return RayGrid(image_size, *pixel_rays(intrinsics, (width, height), (corner_px, corner_px)))


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
    *,
    bow_m: ArrayLike = (0.0, 0.0, 0.0),
) -> NDArray[np.uint8]:
    """Picture (H, W) of a board whose pose ``rotation`` (3, 3), ``translation`` (3,) in
    metres takes its points to camera space. ``bow_m`` (3,) are the coefficients of its
    ``bow_basis``. ``rng`` is drawn from only if there is noise."""
    rotation, translation = np.asarray(rotation, dtype=float), np.asarray(translation, dtype=float)
    if not _faces_camera(rotation, translation):
        raise InputError("the board shows its back to the camera; turn it to face the camera.")
    width, height = rays.image_size
    light = np.zeros((height, width), dtype=np.float32)
    reach = options.reach_px
    sheet = _with_integrals(*sheet_cells(target, options))
    blur = _blur(options.blur_px, options.defocus_px, reach)
    placed = _placed(target, rotation, translation, np.asarray(bow_m, dtype=float))
    _expose(rays.a, rays.b, MARGIN_PX - reach, placed, sheet, blur, light)
    return _developed(light, options, rng)


def render_moving(
    rays: RayGrid,
    target: Target,
    rotations: FloatArray,
    translations: FloatArray,
    options: RenderOptions,
    rng: np.random.Generator,
    *,
    bow_m: ArrayLike = (0.0, 0.0, 0.0),
) -> NDArray[np.uint8]:
    """Picture (H, W) of a board that moves from the first to the second of two poses
    (2, 3, 3), (2, 3) while the shutter is open.

    It is the mean of exposures 1.5 pixels apart. A long smear is made of larger pixels, of a
    fifth of its length at most, so that it takes no longer than a short one.
    """
    smear_px = _smear_px(rays, target, rotations, translations)
    if smear_px < SHARP_PX:
        (rotation,), (translation,) = between(rotations, translations, [0.5])
        return render_board(rays, target, rotation, translation, options, rng, bow_m=bow_m)
    block = min(max(int(smear_px / 5), 1), MARGIN_PX)
    n = min(math.ceil(smear_px / (1.5 * block)), MOST_EXPOSURES)
    a, b = (np.ascontiguousarray(grid[::block, ::block]) for grid in (rays.a, rays.b))
    light = np.zeros((a.shape[0] - 1, a.shape[1] - 1), dtype=np.float32)
    sheet, bow_m = _with_integrals(*sheet_cells(target, options)), np.asarray(bow_m, dtype=float)
    for pose in zip(*between(rotations, translations, (np.arange(n) + 0.5) / n), strict=True):
        if _faces_camera(*pose):
            _expose(a, b, 0, _placed(target, *pose, bow_m), sheet, _blur(0.0, 0.0, 0), light)
    light /= n
    if block > 1:
        light = cv2.resize(light, None, fx=block, fy=block, interpolation=cv2.INTER_LINEAR)
    if options.reach_px > 0:
        mean_u, _, mean_v, _ = _blur(options.blur_px, options.defocus_px, options.reach_px)
        pairs = zip(mean_u, mean_v, strict=True)
        parts = [cv2.sepFilter2D(light, -1, along_u, along_v) for along_u, along_v in pairs]
        light = np.sum(parts, axis=0)
    width, height = rays.image_size
    inner = light[MARGIN_PX : MARGIN_PX + height, MARGIN_PX : MARGIN_PX + width]
    return _developed(np.ascontiguousarray(inner), options, rng)


def sheet_cells(
    target: Target, options: RenderOptions
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What is seen in the board's plane: lines in x (X,) and in y (Y,), in metres, and the
    brightness (Y - 1, X - 1), of 255, of the cells between them less the background. They are
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


def _faces_camera(rotation: FloatArray, translation: FloatArray) -> bool:
    return bool(rotation[:, 2] @ translation < 0)


def _smear_px(
    rays: RayGrid, target: Target, rotations: FloatArray, translations: FloatArray
) -> float:
    """How far the board's fastest corner moves in the picture, distortion aside."""
    low, high = target.points.min(axis=0), target.points.max(axis=0)
    corners = np.array([[x, y, 0] for x in (low[0], high[0]) for y in (low[1], high[1])])
    xyz = transform(rotations, translations, corners)
    ab = xyz[..., :2] / np.maximum(xyz[..., 2:], 1e-3)
    row, column = (n // 2 for n in rays.a.shape)
    pixel = rays.a[row, column + 1] - rays.a[row, column]
    return float(np.linalg.norm(ab[1] - ab[0], axis=-1).max() / pixel)


def _placed(
    target: Target, rotation: FloatArray, translation: FloatArray, bow_m: FloatArray
) -> _Placed:
    """What takes rays (a, b, 1) to the board's plane (3, 3), and what bends it (10,)."""
    to_board = np.linalg.inv(np.column_stack([rotation[:, :2], translation]))
    low, high = target.points[:, :2].min(axis=0), target.points[:, :2].max(axis=0)
    camera = -rotation.T @ translation
    return to_board, np.concatenate([bow_m, (low + high) / 2, (high - low) / 2, camera])


def _expose(
    a: FloatArray, b: FloatArray, skip: int, placed: _Placed, sheet: _Sheet, blur: _Blur,
    light: Plane,
) -> None:  # fmt: skip
    """Add to ``light`` (H, W) what the camera sees of the sheet; arguments as of ``expose``."""
    height, width = light.shape
    window = np.array([0, height, 0, width])
    if not placed[1][:3].any():
        rows, cols = _where_sheet_is(a, b, placed[0], sheet)
        reach = skip + blur[0].shape[1]
        window = np.array([rows[0] - reach, rows[1] - skip, cols[0] - reach, cols[1] - skip])
        window = np.clip(window, 0, [height, height, width, width])
    if window[0] < window[1] and window[2] < window[3]:
        expose(a, b, skip, *placed, *sheet, *blur, window, light)


def _where_sheet_is(
    a: FloatArray, b: FloatArray, to_board: FloatArray, sheet: _Sheet
) -> tuple[tuple[int, int], tuple[int, int]]:
    """First and last row, and column, of the rays (H, W) that may meet a flat sheet; the last is
    before the first if none does. Every few rays are asked, and their neighbours believed."""
    some = [np.unique([*range(0, n, _SPARSE), n - 1]) for n in a.shape]
    grid = np.ix_(*some)
    x, y, depth = np.tensordot(to_board, [a[grid], b[grid], np.ones_like(a[grid])], axes=1)
    meets = depth > 0
    met = np.ones(tuple(len(one) - 1 for one in some), dtype=bool)
    for along, lines in ((x, sheet[0]), (y, sheet[1])):
        place = np.divide(along, depth, out=np.full_like(along, np.nan), where=meets)
        corners = [place[i : i + len(met), j : j + met.shape[1]] for i in (0, 1) for j in (0, 1)]
        # Between a ray that meets the plane and one that does not there may be anything.
        is_part = np.isnan(corners).any(axis=0) & ~np.isnan(corners).all(axis=0)
        low, high = np.fmin.reduce(corners), np.fmax.reduce(corners)
        met &= ((high >= lines[1]) & (low <= lines[-2])) | is_part
    ranges = []
    for axis, numbers in ((1, some[0]), (0, some[1])):
        hit = np.flatnonzero(met.any(axis=axis))
        if not len(hit):
            return (0, -1), (0, -1)
        ranges.append(
            (int(numbers[max(hit[0] - 1, 0)]), int(numbers[min(hit[-1] + 2, len(numbers) - 1)]))
        )
    return ranges[0], ranges[1]


def _developed(light: Plane, options: RenderOptions, rng: np.random.Generator) -> NDArray[np.uint8]:
    """The picture (H, W) of light above the background."""
    height, width = light.shape
    corner = max((width - 1) ** 2 + (height - 1) ** 2, 1)
    noisy_shape = light.shape if options.noise > 0 else (0, 0)
    draws = rng.integers(0, len(NORMAL), noisy_shape, dtype=np.uint16)
    grain = (options.noise * NORMAL).astype(np.float32)
    picture = np.empty(light.shape, dtype=np.uint8)
    develop(light, options.background, options.vignetting / corner, grain, draws, picture)
    return picture


def _with_integrals(x_lines: FloatArray, y_lines: FloatArray, value: FloatArray) -> _Sheet:
    """The sheet, with ∫ v dx and ∫ v x dx left of each cell."""
    before, moment_before = (
        np.cumsum(value * weight, axis=1) - value * weight
        for weight in (np.diff(x_lines), np.diff(x_lines**2) / 2)
    )
    return x_lines, y_lines, value, before, moment_before


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


@lru_cache(maxsize=8)
def _blur(sigma_px: float, radius_px: float, reach_px: int) -> _Blur:
    """The blur as a sum of Q products of a function of u and one of v: mean and slope within
    each pixel (Q, 2 r + 1) of those of u, and of those of v.

    A Gaussian is one product. A disc is a sum of its eigenfunctions, of which so many are
    taken that no pixel is off by more than ``_DISC_ERROR`` of the contrast.
    """
    along = _square_and_gaussian(_fine_offsets(reach_px), sigma_px)
    if radius_px == 0:
        return _products(along[:, None] / along.sum(), np.ones(1))
    n = math.ceil(radius_px * _FINE) + 1
    grid = np.arange(-n, n + 1) / _FINE
    disc = np.clip((radius_px - np.hypot(grid, grid[:, None])) * _FINE + 0.5, 0, 1)
    fine = fftconvolve(np.outer(along, along), disc, mode="same")
    # Exactly even, or the eigenfunctions are not.
    fine = fine + fine[::-1]
    fine = fine + fine[:, ::-1]
    fine = (fine + fine.T) / (2 * fine.sum())
    weight, functions = np.linalg.eigh(fine)
    order = np.argsort(-np.abs(weight))
    weight, functions = weight[order], functions[:, order]
    for terms in range(1, len(weight) + 1):
        first = functions[:, :terms]
        rest = fine - first * weight[:terms] @ first.T
        if np.abs(_per_pixel(rest)).sum() < _DISC_ERROR:
            break
    total = float(weight[:terms] @ first.sum(axis=0) ** 2)
    return _products(first, weight[:terms] / total)


def _per_pixel(fine: FloatArray) -> FloatArray:
    """Sums over the pixels of fine samples (n * _FINE, n * _FINE): (n, n)."""
    n = len(fine) // _FINE
    return fine.reshape(n, _FINE, n, _FINE).sum(axis=(1, 3))


def _products(functions: FloatArray, weight: FloatArray) -> _Blur:
    """Mean and slope in pixels of functions (n * _FINE, Q) of u, and of those of v, which
    are the same times ``weight`` (Q,)."""
    samples = functions.T.reshape(len(weight), -1, _FINE)
    mean, slope = _FINE * samples @ _MEAN, _FINE * samples @ _SLOPE
    scaled = mean * weight[:, None], slope * weight[:, None]
    mean_u, slope_u, mean_v, slope_v = (
        np.ascontiguousarray(part, dtype=np.float32) for part in (mean, slope, *scaled)
    )
    return mean_u, slope_u, mean_v, slope_v
