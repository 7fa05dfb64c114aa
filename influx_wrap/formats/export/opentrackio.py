"""OpenTrackIO 1.0.1 (SMPTE RIS OSVP): one JSON sample per frame.

A file has one sample per line (JSON lines), unless its name ends in ``.json``: then it is one JSON
list of them. The lens is named in ``static.lens.model``, the camera in ``static.camera.model``, and
the clip, which has no field of its own, in ``tracker.slate``.

Lengths are in millimetres on the sensor, its middle the origin, x to the right and y down. A
point (x, y) of the undistorted picture, F times (a, b), is distorted to

    x (1 + l1 r^2 + l3 r^4) + 2 q1 x y + q2 (r^2 + 2 x^2),    and y likewise,

(OpenLensIO 1.0.1; even radial coefficients belong to a denominator). So l1 = k1 / F^2,
l3 = k2 / F^4 and q = p / F: the tangential terms are of second degree, one less than those
with k1. OpenTrackIO's own note on OpenCV divides them by F^2, which gives other pixels.
"""

from __future__ import annotations

import json
import math
import uuid
from pathlib import Path

from influx_wrap.formats.export.frames import answered, clip_names, focal_mm, sensor_mm
from influx_wrap.formats.files import write_text
from influx_wrap.formats.pixel_origin import to_corner
from influx_wrap.model.clip import Clip

PROTOCOL = {"name": "OpenTrackIO", "version": [1, 0, 1]}
MODEL = "Brown-Conrady U-D"
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "influx_wrap")


def write_opentrackio(clip: Clip, path: Path) -> None:
    """Write the samples, one a line; ``lens.custom`` is [LFL in mm]."""
    clip = answered(clip)
    lines = [json.dumps(sample, allow_nan=False) for sample in samples(clip)]
    if path.suffix.lower() == ".json":
        write_text(path, "[\n" + ",\n".join(lines) + "\n]\n")
    else:
        write_text(path, "\n".join(lines) + "\n")


def samples(clip: Clip) -> list[dict[str, object]]:
    """One sample per frame of a clip in which all frames have intrinsics."""
    width, height = clip.image_size
    source = uuid.uuid5(_NAMESPACE, clip.name)
    names = clip_names(clip)
    static = {part: {"model": names[part]} if part in names else {} for part in ("camera", "lens")}
    tracker = {"tracker": {"slate": names["clip"]}} if "clip" in names else {}
    rows = zip(
        clip.frames.tolist(),
        clip.lfl_mm.tolist(),
        clip.fd_m.tolist(),
        to_corner(clip.intrinsics).tolist(),
        focal_mm(clip).tolist(),
        sensor_mm(clip).tolist(),
        strict=True,
    )
    result: list[dict[str, object]] = []
    for frame, lfl_mm, fd_m, values, focal, (width_mm, height_mm) in rows:
        _, _, cx, cy, k1, k2, p1, p2 = values
        lens: dict[str, object] = {
            "pinholeFocalLength": focal,
            "projectionOffset": {
                "x": width_mm / width * (cx - width / 2),
                "y": height_mm / height * (cy - height / 2),
            },
            "distortion": [
                {
                    "model": MODEL,
                    "radial": [k1 / focal**2, 0.0, k2 / focal**4],
                    "tangential": [p1 / focal, p2 / focal],
                }
            ],
            "custom": [lfl_mm],
        }
        # The protocol has no infinity, but may leave the distance out.
        if math.isfinite(fd_m):
            lens["focusDistance"] = fd_m
        result.append(
            {
                "protocol": PROTOCOL,
                "sampleId": uuid.uuid5(source, f"{frame} {width}x{height}").urn,
                "sourceId": source.urn,
                "sourceNumber": 0,
                "timing": {"mode": "external", "sequenceNumber": frame},
                "static": {
                    "camera": {
                        "activeSensorPhysicalDimensions": {"width": width_mm, "height": height_mm},
                        "activeSensorResolution": {"width": width, "height": height},
                        **static["camera"],
                    },
                    **({"lens": static["lens"]} if static["lens"] else {}),
                },
                **tracker,
                "lens": lens,
            }
        )
    return result
