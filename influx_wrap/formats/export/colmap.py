"""COLMAP's ``cameras.txt``: one camera per frame, its id the frame number.

The model is OPENCV, the pixel origin the top-left pixel's outer corner. What clip, lens and camera
are called is in a comment.
"""

from __future__ import annotations

from pathlib import Path

from influx_wrap.formats.export.frames import answered, clip_names_text, missing_sentence
from influx_wrap.formats.files import write_text
from influx_wrap.formats.pixel_origin import to_corner
from influx_wrap.model.clip import Clip


def write_colmap(clip: Clip, path: Path) -> None:
    """Write ``cameras.txt``."""
    missing = missing_sentence(clip)
    clip = answered(clip)
    about = clip_names_text(clip)
    lines = [
        "# CAMERA_ID, MODEL, WIDTH, HEIGHT, PARAMS[] (fx fy cx cy k1 k2 p1 p2)",
        f"# Number of cameras: {len(clip.frames)}; the id is the frame number"
        + (f"; {about}." if about else "."),
    ]
    if missing:
        lines.append(f"# {missing}")
    width, height = clip.image_size
    cameras = to_corner(clip.intrinsics).tolist()
    for frame, values in zip(clip.frames.tolist(), cameras, strict=True):
        lines.append(f"{frame} OPENCV {width} {height} {' '.join(map(repr, values))}")
    write_text(path, "\n".join(lines) + "\n")
