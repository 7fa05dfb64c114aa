"""Which camera a clip's intrinsics are of: what its file says, and what somebody asks for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.ground_truth import MOST_OFF_CENTRE, GroundTruth
from influx_wrap.model.hardware import Camera
from influx_wrap.model.rig import FilmedWith
from influx_wrap.model.words import size_text

SAME_PITCH = 1e-3
"""Pixel pitches that differ by less, relatively, are one: sensor sizes are rounded."""


def settle_rig(
    source: Path, truth: GroundTruth, camera: Camera | None, assumed: Camera
) -> FilmedWith:
    """What a clip was filmed with: as its file says, else with ``camera``, else ``assumed``."""
    told = truth.filmed_with
    if told is not None:
        check_same_camera(source, told, camera)
        if told.pixel_um is None and camera is None:
            raise InputError(
                f"{source} does not say how large the sensor's pixels are: name the camera it was "
                "filmed with by --camera."
            )
        doubts = tuple(f"{source} was annotated although {doubt}." for doubt in told.doubts)
        name = told.camera if camera is None else camera.name
        return replace(told, camera=name, doubts=doubts)
    chosen = camera or assumed
    _check_principal_point(source, truth, chosen)
    sentence = (
        f"{source} does not say what it was filmed with: {assumed.name} is assumed, "
        f"{size_text(assumed.image_size)} pixels on {assumed.sensor_width_mm:g} x "
        f"{assumed.sensor_height_mm:g} mm. Give --camera."
    )
    doubts = (sentence,) if camera is None else ()
    # A name in an export is one that somebody gave.
    name = None if camera is None else camera.name
    return FilmedWith(None, name, chosen.image_size, chosen.pitch_um, doubts)


def check_same_camera(source: Path, rig: FilmedWith, camera: Camera | None) -> None:
    """Refuse a camera that is not the one that a file is of."""
    if camera is None:
        return
    own, other = f"{source} is of", f"--camera {camera.name}"
    advice = "Leave --camera out."
    if rig.camera not in (None, camera.name):
        raise InputError(f"{own} camera {rig.camera}, not of {other}. {advice}")
    if rig.image_size != camera.image_size:
        raise InputError(
            f"{own} pictures with {size_text(rig.image_size)} pixels, while {other} has "
            f"{size_text(camera.image_size)}. {advice}"
        )
    pitch = camera.pitch_um
    if rig.pixel_um is not None and not np.allclose(rig.pixel_um, pitch, rtol=SAME_PITCH, atol=0):
        raise InputError(
            f"{own} pixels of {rig.pixel_um[0]:g} x {rig.pixel_um[1]:g} um, while {other} has "
            f"{pitch[0]:g} x {pitch[1]:g} um. {advice}"
        )


def _check_principal_point(source: Path, truth: GroundTruth, camera: Camera) -> None:
    """Refuse a camera whose pictures cannot have the principal point of the clip."""
    if truth.share_off_centre(camera.image_size) > MOST_OFF_CENTRE:
        point = truth.principal_point
        raise InputError(
            f"{source} has its principal point at {point[0]:.0f}, {point[1]:.0f} px, far from the "
            f"middle of pictures with the {size_text(camera.image_size)} pixels of {camera.name}: "
            "name the camera it was filmed with by --camera."
        )
