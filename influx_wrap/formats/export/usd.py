"""USD: a camera with time samples, one time code per frame.

The stage is in centimetres, so that lengths on the sensor, in tenths of a unit, are
millimetres. USD cameras are pinholes in 32-bit floats: the distortion, and the exact
numbers, are in attributes of ours, ``influx:fx`` ... ``influx:p2`` (double, pixel (0, 0) the
top-left pixel's centre), which other programs ignore, as they do the names
``influx:clip``, ``influx:lens`` and ``influx:camera``. The camera stands at the origin.
A frame without intrinsics, or a focus distance of infinity, is blocked: it has no value, and
none is interpolated into it.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from influx_wrap.formats.export.frames import (
    answered,
    clip_names,
    extra,
    focal_mm,
    missing_sentence,
    sensor_mm,
)
from influx_wrap.formats.files import write_text
from influx_wrap.formats.pixel_origin import to_corner
from influx_wrap.model.clip import Clip
from influx_wrap.model.intrinsics import NAMES

METRES_PER_UNIT = 0.01
_MODULES = ("Sdf", "Usd", "UsdGeom")
NOTE = "USD cameras have no lens distortion: k1, k2, p1, p2 are in the attributes influx:k1 ..."


def write_usd(clip: Clip, path: Path) -> None:
    """Write a ``.usda`` text file."""
    Sdf, Usd, UsdGeom = (extra(f"pxr.{name}", "usd-core", path) for name in _MODULES)
    blocked = clip.frames[~clip.answered].tolist()
    note = " ".join(filter(None, (NOTE, missing_sentence(clip))))
    clip = answered(clip)
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, METRES_PER_UNIT)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    numbers = [*clip.frames.tolist(), *blocked]
    stage.SetStartTimeCode(min(numbers))
    stage.SetEndTimeCode(max(numbers))
    camera = UsdGeom.Camera.Define(stage, f"/{prim_name(clip.name)}")
    stage.SetDefaultPrim(camera.GetPrim())
    camera.GetPrim().SetDocumentation(note)

    for key, text in clip_names(clip).items():
        camera.GetPrim().CreateAttribute(
            f"influx:{key}", Sdf.ValueTypeNames.String, True, Sdf.VariabilityUniform
        ).Set(text)
    width, height = clip.image_size
    values = to_corner(clip.intrinsics)
    sensor = sensor_mm(clip)
    # The window's middle, seen from the axis: to the right and up.
    right = sensor[:, 0] * (0.5 - values[:, 2] / width)
    up = sensor[:, 1] * (values[:, 3] / height - 0.5)
    columns = {
        camera.CreateFocalLengthAttr(): focal_mm(clip),
        camera.CreateHorizontalApertureAttr(): sensor[:, 0],
        camera.CreateVerticalApertureAttr(): sensor[:, 1],
        camera.CreateHorizontalApertureOffsetAttr(): right,
        camera.CreateVerticalApertureOffsetAttr(): up,
        camera.CreateFocusDistanceAttr(): clip.fd_m / METRES_PER_UNIT,
    }
    own = {**dict(zip(NAMES, clip.intrinsics.T, strict=True)), "lfl_mm": clip.lfl_mm}
    for name, column in own.items():
        attribute = camera.GetPrim().CreateAttribute(
            f"influx:{name}", Sdf.ValueTypeNames.Double, True
        )
        columns[attribute] = column
    with Sdf.ChangeBlock():
        for attribute, column in columns.items():
            for frame, value in zip(clip.frames.tolist(), column.tolist(), strict=True):
                attribute.Set(value if math.isfinite(value) else Sdf.ValueBlock(), frame)
            for frame in blocked:
                attribute.Set(Sdf.ValueBlock(), frame)
    write_text(path, stage.GetRootLayer().ExportToString())


def prim_name(name: str) -> str:
    """A clip's name as USD allows it: letters, digits and underscores, no digit first."""
    cleaned = re.sub(r"\W", "_", name, flags=re.ASCII) or "camera"
    return f"_{cleaned}" if cleaned[0].isdigit() else cleaned
