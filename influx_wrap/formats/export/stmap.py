"""Nuke's STMaps: pictures whose red and green say where each pixel comes from.

Red is a share of the width from the left, green a share of the height from the bottom, both
at pixel centres, as 32-bit floats (about 1e-4 px of a 4K picture). ``undistort.<frame>.exr``
makes the pinhole picture with the same focal length and principal point out of the lens's;
``distort.<frame>.exr`` makes the lens's picture out of the pinhole one. Where no direction
belongs to a pixel, beyond the fold of the distortion, both are -1: outside the picture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from influx_wrap.compute.progress import Progress, no_progress
from influx_wrap.errors import InputError
from influx_wrap.formats.export.frames import answered, clip_names, extra
from influx_wrap.formats.files import make_folder, writing
from influx_wrap.formats.pixel_origin import CORNER_PX
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.clip import Clip
from influx_wrap.model.intrinsics import Intrinsics, pixel_rays, project

NOWHERE = -1.0
_ATTRIBUTES = {"clip": "reelName", "lens": "lensModel", "camera": "cameraModel"}
"""OpenEXR's standard attributes for the names."""
_BAND_PIXELS = 1 << 18
"""Pixels computed at a time, to bound the memory."""

Map = NDArray[np.float32]


def write_stmap(clip: Clip, path: Path, progress: Progress = no_progress) -> None:
    """Write two EXR files per frame into the folder ``path``.

    Frames in a row with the same intrinsics, as while nobody touches the lens, are computed
    once.
    """
    clip = answered(clip)
    exr = extra("OpenEXR", "OpenEXR", path)
    make_folder(path)
    maps: dict[str, Map] = {}
    names = {_ATTRIBUTES[key]: name for key, name in clip_names(clip).items()}
    for row, frame in enumerate(clip.frames.tolist()):
        if row == 0 or not np.array_equal(clip.intrinsics[row], clip.intrinsics[row - 1]):
            camera = clip.camera(row)
            maps = {
                "undistort": undistort_map(camera, clip.image_size),
                "distort": distort_map(camera, clip.image_size),
            }
        for kind, values in maps.items():
            _write_exr(exr, path / f"{kind}.{frame:06d}.exr", values, names)
        progress(row + 1, len(clip.frames))


def _write_exr(exr: ModuleType, path: Path, values: Map, names: Mapping[str, str]) -> None:
    header = {"compression": exr.ZIP_COMPRESSION, "type": exr.scanlineimage, **names}
    channels = {name: values[..., i].copy() for i, name in enumerate("RG")}
    with writing(path) as file:
        try:
            # OpenEXR opens files itself, by name.
            exr.File(header, channels).write(file.name)
        except RuntimeError:
            raise InputError(f"{path} cannot be written: is there room on the disk?") from None


def undistort_map(camera: Intrinsics, image_size: tuple[int, int]) -> Map:
    """(height, width, 2) where the pixels of the pinhole picture are in the lens's."""
    focal, centre = camera.array[:2], camera.array[2:4]

    def source(top: int, n_rows: int) -> FloatArray:
        columns, rows = np.arange(float(image_size[0])), np.arange(top, top + n_rows, dtype=float)
        ab = (np.stack(np.meshgrid(columns, rows), axis=-1) - centre) / focal
        return project(camera, np.concatenate([ab, np.ones((*ab.shape[:2], 1))], axis=-1))[0]

    return _map(image_size, source)


def distort_map(camera: Intrinsics, image_size: tuple[int, int]) -> Map:
    """(height, width, 2) where the pixels of the lens's picture are in the pinhole one."""
    focal, centre = camera.array[:2], camera.array[2:4]

    def source(top: int, n_rows: int) -> FloatArray:
        ab = pixel_rays(camera, (image_size[0], n_rows), (0, top))
        return np.stack(ab, axis=-1) * focal + centre

    return _map(image_size, source)


def _map(image_size: tuple[int, int], source: Callable[[int, int], FloatArray]) -> Map:
    """The map of a function from (first row, number of rows) to pixels (rows, width, 2)."""
    width, height = image_size
    result = np.empty((height, width, 2), dtype=np.float32)
    step = max(1, _BAND_PIXELS // width)
    for top in range(0, height, step):
        n_rows = min(step, height - top)
        st = (source(top, n_rows) + CORNER_PX) / (width, height)
        st[..., 1] = 1 - st[..., 1]
        st[np.isnan(st)] = NOWHERE
        result[top : top + n_rows] = st
    return result
