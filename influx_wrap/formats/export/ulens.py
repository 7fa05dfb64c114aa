"""Unreal's lens file ``.ulens``: intrinsics by focus and zoom encoder.

The focus encoder reads the focus distance in metres, the zoom encoder the lens focal length
in millimetres. Everything else is a share of the picture's width or height, from its
top-left corner. Unreal interpolates between rows in its own way; at a row it has the
intrinsics themselves. A lens file holds settings, not frames: those of a clip are written
once each. The nodal offset, which nobody measured, is none. Camera and clip are named in the
user's metadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.export.frames import answered, clip_names
from influx_wrap.formats.files import write_json
from influx_wrap.formats.pixel_origin import to_corner
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.clip import Clip

MODEL = "spherical"
"""Unreal's name for k1, k2, k3, p1, p2 as OpenCV has them."""


def write_ulens(clip: Clip, path: Path) -> None:
    """Write the settings with a finite focus distance, by rising distance, then focal length."""
    clip = settings(clip)
    width, height = clip.image_size
    fx, fy, cx, cy, k1, k2, p1, p2 = to_corner(clip.intrinsics).T
    none, one = np.zeros_like(fx), np.ones_like(fx)
    tables = {
        "FocalLengthTable": ("Fx, Fy", (fx / width, fy / height)),
        "ImageCenterTable": ("Cx, Cy", (cx / width, cy / height)),
        "NodalOffsetTable": (
            "Qx, Qy, Qz, Qw, Tx, Ty, Tz",
            (none, none, none, one, none, none, none),
        ),
        "DistortionTable": ("K1, K2, K3, P1, P2", (k1, k2, none, p1, p2)),
    }
    distances = np.unique(clip.fd_m)
    names = clip_names(clip)
    write_json(
        path,
        {
            "metadata": {
                "type": "LensFile",
                "version": "0.0.0",
                "lensInfo": {
                    "serialNumber": "",
                    "modelName": names.get("lens", clip.name),
                    "distortionModel": MODEL,
                },
                "name": clip.name,
                "nodalOffsetCoordinateSystem": "OpenCV",
                "fxFyUnits": "Normalized",
                "cxCyUnits": "Normalized",
                "userMetadata": [
                    {"name": key, "value": names[key]} for key in ("camera", "clip") if key in names
                ],
            },
            "sensorDimensions": {
                "width": 1e-3 * clip.pixel_um[0] * width,
                "height": 1e-3 * clip.pixel_um[1] * height,
                "units": "Millimeters",
            },
            "imageDimensions": {"width": width, "height": height},
            "cameraParameterTables": [
                {
                    "parameterName": name,
                    "header": f"FocusEncoder, ZoomEncoder, {header}",
                    "data": _data((clip.fd_m, clip.lfl_mm, *columns)),
                }
                for name, (header, columns) in tables.items()
            ],
            "encoderTables": [
                {
                    "parameterName": "Focus",
                    "header": "FocusEncoder, FocusCM",
                    "data": _data((distances, 100 * distances)),
                },
                {"parameterName": "Iris", "header": "IrisEncoder, IrisFstop", "data": ""},
            ],
        },
    )


def settings(clip: Clip) -> Clip:
    """The distinct settings of a clip whose focus distance is finite."""
    clip = answered(clip)
    finite = np.isfinite(clip.fd_m)
    if not finite.any():
        raise InputError(
            f"{clip.name} is focused at infinity throughout, which a lens file cannot hold."
        )
    clip = clip.rows(finite)
    _, first = np.unique(np.stack([clip.fd_m, clip.lfl_mm], axis=1), axis=0, return_index=True)
    return clip.rows(first)


def infinity_sentence(clip: Clip) -> str:
    """How many frames are focused at infinity and so left out; empty if none is."""
    count = np.count_nonzero(clip.answered & np.isinf(clip.fd_m))
    if not count:
        return ""
    return f"{count} frames are focused at infinity, which a lens file cannot hold: left out."


def _data(columns: Iterable[FloatArray]) -> str:
    """Rows of numbers, all digits and without exponents, which not every reader knows."""
    rows = np.stack(list(columns), axis=1)
    return ";".join(",".join(np.format_float_positional(v, trim="0") for v in row) for row in rows)
