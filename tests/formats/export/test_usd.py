"""USD cameras, read with usd-core's own frustum."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from influx_wrap.formats.export.usd import prim_name, write_usd
from influx_wrap.model.intrinsics import NAMES, Intrinsics, project
from tests.formats.export.clips import (
    IMAGE_SIZE,
    TOLERANCE_PX,
    expected,
    make_clip,
    worst,
)

pytest.importorskip("pxr")
from pxr import Usd, UsdGeom


def test_usd_reads_pinhole_and_exact_values(tmp_path: Path) -> None:
    clip = make_clip()
    write_usd(clip, tmp_path / "clip.usda")
    stage = Usd.Stage.Open(str(tmp_path / "clip.usda"))
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (4, 12)
    assert UsdGeom.GetStageMetersPerUnit(stage) == 0.01
    prim = stage.GetDefaultPrim()
    camera = UsdGeom.Camera(prim)
    assert "no lens distortion" in prim.GetDocumentation()
    for row in clip.answered.nonzero()[0]:
        frame = int(clip.frames[row])
        fx, fy, cx, cy = clip.intrinsics[row, :4]
        points, uv = expected(clip, frame)
        # The window on the plane one unit before the camera, which looks along -z with y up.
        window = camera.GetCamera(frame).frustum.GetWindow()
        u = (points[:, 0] / points[:, 2] - window.GetMin()[0]) / window.GetSize()[0]
        v = (window.GetMax()[1] + points[:, 1] / points[:, 2]) / window.GetSize()[1]
        found = np.stack([u, v], axis=1) * IMAGE_SIZE - 0.5
        pinhole, _ = project(Intrinsics(fx, fy, cx, cy), points)
        assert worst(found, pinhole) < 2e-3
        values = [prim.GetAttribute(f"influx:{name}").Get(frame) for name in NAMES]
        assert worst(project(Intrinsics(*values), points)[0], uv) < TOLERANCE_PX
        assert prim.GetAttribute("influx:lfl_mm").Get(frame) == clip.lfl_mm[row]
        focal = camera.GetFocalLengthAttr().Get(frame)
        assert focal == pytest.approx(8.25e-3 * fx, rel=1e-6)


def test_frames_without_a_value_are_blocked(tmp_path: Path) -> None:
    write_usd(make_clip(), tmp_path / "clip.usda")
    stage = Usd.Stage.Open(str(tmp_path / "clip.usda"))
    camera = UsdGeom.Camera(stage.GetDefaultPrim())
    assert camera.GetPrim().GetAttribute("influx:fx").Get(7) is None
    assert camera.GetFocalLengthAttr().Get(9) is not None
    assert camera.GetFocusDistanceAttr().Get(4) == pytest.approx(85)
    assert camera.GetFocusDistanceAttr().Get(12) is None


@pytest.mark.parametrize(
    ("name", "prim"), [("A001 C001", "A001_C001"), ("17-120", "_17_120"), ("", "camera")]
)
def test_names_become_prim_names(name: str, prim: str) -> None:
    assert prim_name(name) == prim
