"""Nuke's STMaps: pictures whose red and green say where each pixel comes from.

Red is a share of the width from the left, green a share of the height from the bottom, both
at pixel centres, as 32-bit floats (about 1e-4 px of a 4K picture). ``undistort.<frame>.exr``
makes the pinhole picture with the same focal length and principal point out of the lens's;
``distort.<frame>.exr`` makes the lens's picture out of the pinhole one. Where no direction
belongs to a pixel, beyond the fold of the distortion, both are -1: outside the picture.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from influx_wrap.errors import InputError
from influx_wrap.formats.export.frames import CORNER_PX, answered, extra
from influx_wrap.formats.export.stmap_kernels import distorted, undistorted
from influx_wrap.formats.files import make_folder, writing
from influx_wrap.model.clip import Clip
from influx_wrap.model.intrinsics import FloatArray, Intrinsics, fold_radius, unproject

NOWHERE = -1.0
_BAND_PIXELS = 1 << 18
"""Pixels computed at a time, to bound the memory."""

Map = NDArray[np.float32]


def write_stmap(clip: Clip, path: Path, advance: Callable[[], None] = lambda: None) -> None:
    """Write two EXR files per frame into the folder ``path``; ``advance`` is called after each.

    Frames in a row with the same intrinsics, as while nobody touches the lens, are computed
    once.
    """
    clip = answered(clip)
    exr = extra("OpenEXR", "OpenEXR", path)
    make_folder(path)
    maps: dict[str, Map] = {}
    for row, frame in enumerate(clip.frames.tolist()):
        if row == 0 or not np.array_equal(clip.intrinsics[row], clip.intrinsics[row - 1]):
            camera = clip.camera(row)
            maps = {
                "undistort": undistort_map(camera, clip.image_size),
                "distort": distort_map(camera, clip.image_size),
            }
        for kind, values in maps.items():
            _write_exr(exr, path / f"{kind}.{frame:06d}.exr", values)
        advance()


def _write_exr(exr: ModuleType, path: Path, values: Map) -> None:
    header = {"compression": exr.ZIP_COMPRESSION, "type": exr.scanlineimage}
    channels = {name: values[..., i].copy() for i, name in enumerate("RG")}
    with writing(path) as file:
        try:
            # OpenEXR opens files itself, by name.
            exr.File(header, channels).write(file.name)
        except RuntimeError:
            raise InputError(f"{path} cannot be written: is there room on the disk?") from None


def undistort_map(camera: Intrinsics, image_size: tuple[int, int]) -> Map:
    """(height, width, 2) where the pixels of the pinhole picture are in the lens's."""
    fold = fold_radius(camera.k1, camera.k2)
    return _map(camera, image_size, lambda ab: distorted(camera.array, fold, ab))


def distort_map(camera: Intrinsics, image_size: tuple[int, int]) -> Map:
    """(height, width, 2) where the pixels of the lens's picture are in the pinhole one."""
    fold = fold_radius(camera.k1, camera.k2)
    focal, centre = camera.array[:2], camera.array[2:4]

    def source(xy: FloatArray) -> FloatArray:
        ab: FloatArray = undistorted(camera.array, fold, xy)
        open_ = np.isnan(ab[:, 0])
        ab[open_] = unproject(camera, xy[open_] * focal + centre)[0]
        return ab

    return _map(camera, image_size, source)


def _map(
    camera: Intrinsics, image_size: tuple[int, int], source: Callable[[FloatArray], FloatArray]
) -> Map:
    """The map of a function from normalised coordinates (n, 2) to such."""
    width, height = image_size
    focal, centre = camera.array[:2], camera.array[2:4]
    result = np.empty((height, width, 2), dtype=np.float32)
    step = max(1, _BAND_PIXELS // width)
    columns = np.arange(width, dtype=float)
    for top in range(0, height, step):
        rows = np.arange(top, min(top + step, height), dtype=float)
        uv = np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2)
        st = (source((uv - centre) / focal) * focal + centre + CORNER_PX) / (width, height)
        st[:, 1] = 1 - st[:, 1]
        st[np.isnan(st)] = NOWHERE
        result[top : top + step] = st.reshape(-1, width, 2)
    return result
