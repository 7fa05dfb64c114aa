"""Small clips of a small board, as real files."""

from collections.abc import Iterable
from pathlib import Path

import av
import numpy as np

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.pose import rotation_matrix
from influx_wrap.model.target import AprilGrid
from influx_wrap.synth.board import FRONTAL
from influx_wrap.synth.render import RenderOptions, ray_grid, render_board

GRID = AprilGrid(tag_cols=4, tag_rows=3, tag_size_m=0.05, tag_spacing=0.3)
SIZE = (320, 240)
CAMERA = Intrinsics(320.0, 320.0, 160.0, 120.0, -0.05, 0.0, 0.0, 0.0)


def pose(
    tilt_deg: tuple[float, float, float], at_m: tuple[float, float, float]
) -> tuple[FloatArray, FloatArray]:
    """Rotation (3, 3) and translation (3,) of the board, its middle at ``at_m``."""
    rotation = rotation_matrix(np.radians(tilt_deg)) @ FRONTAL
    middle = (GRID.points.min(axis=0) + GRID.points.max(axis=0)) / 2
    return rotation, np.array(at_m) - rotation @ middle


def picture(seed: int) -> np.ndarray:
    """The board somewhere in the picture; another seed, another place."""
    rng = np.random.default_rng(seed)
    tilt, shift = 15 * rng.uniform(-1, 1, 3), rng.uniform(-0.02, 0.02, 2)
    rotation, translation = pose(tuple(tilt), (*shift, 0.36))
    options = RenderOptions(blur_px=0.5, noise=2)
    return render_board(ray_grid(CAMERA, SIZE), GRID, rotation, translation, options, rng)


def write_clip(
    path: Path, pictures: Iterable[np.ndarray], codec: str = "libx264", **options: str
) -> Path:
    """Encode pictures (H, W) nearly without loss."""
    settings = {"crf": "6", "preset": "ultrafast", "g": "12"} if codec == "libx264" else {}
    with av.open(str(path), "w", options=options) as container:
        stream = container.add_stream(codec, rate=25, options=settings)
        stream.pix_fmt = "yuv420p"
        for i, grey in enumerate(pictures):
            if i == 0:
                stream.height, stream.width = grey.shape
            frame = av.VideoFrame.from_ndarray(grey, "gray").reformat(format="yuv420p")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path
