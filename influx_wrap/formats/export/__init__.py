"""A clip's intrinsics, or a lens's table, in the files of other programs.

One module per format. Pixel origins, units and the direction of the distortion are converted
there; ``docs/exports.md`` says what each format can hold. All carry the names of clip, lens and
camera. A picture size other than the calibrated one is the clip's (``model.framing``), so that no
format knows of it. Frames without intrinsics are left
out (USD: blocked), and ``notes`` says how many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from influx_wrap.compute.progress import Progress
from influx_wrap.formats.export.camchain import write_camchain
from influx_wrap.formats.export.camera import check_same_camera, settle_rig
from influx_wrap.formats.export.colmap import write_colmap
from influx_wrap.formats.export.frames import missing_sentence
from influx_wrap.formats.export.nerfstudio import write_nerfstudio
from influx_wrap.formats.export.opencv import write_opencv
from influx_wrap.formats.export.opentrackio import write_opentrackio
from influx_wrap.formats.export.stmap import write_stmap
from influx_wrap.formats.export.ulens import infinity_sentence, write_ulens
from influx_wrap.formats.export.usd import NOTE as USD_NOTE
from influx_wrap.formats.export.usd import write_usd
from influx_wrap.formats.files import read_json
from influx_wrap.formats.groundtruth import read_ground_truth
from influx_wrap.formats.lut import FORMAT, read_table
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.clip import Clip
from influx_wrap.model.hardware import Camera
from influx_wrap.model.rig import FilmedWith
from influx_wrap.model.table import Table

EXPORTS: dict[str, Callable[[Clip, Path], None]] = {
    "opentrackio": write_opentrackio,
    "ulens": write_ulens,
    "colmap": write_colmap,
    "nerfstudio": write_nerfstudio,
    "stmap": write_stmap,
    "usd": write_usd,
    "opencv": write_opencv,
    "camchain": write_camchain,
}
"""Writers by the name of their format."""

LONG: dict[str, Callable[[Clip, Path, Progress], None]] = {
    "stmap": write_stmap,
    "camchain": write_camchain,
}
"""Those that write files for every frame, and say so after each: they can take long."""


def table_as_clip(table: Table, intrinsics: FloatArray | None = None) -> Clip:
    """The experiments of a table as frames, numbered by their rows; with intrinsics (n, 8) other
    than those that were measured, if given."""
    return Clip(
        table.lens,
        table.image_size,
        table.pixel_um,
        np.arange(len(table.lfl_mm)),
        table.lfl_mm,
        table.fd_m,
        table.values if intrinsics is None else intrinsics,
        lens_name=table.lens,
        camera_name=table.camera,
    )


def read_clip(
    source: Path,
    camera: Camera | None,
    assumed: Camera,
    answers: Callable[[Table], FloatArray] | None = None,
    name: str | None = None,
) -> Clip:
    """A clip from its ground-truth JSON; or a table, as if it were one, whose intrinsics (n, 8)
    are what ``answers`` says at its settings.

    Both say what camera they are of, which ``camera`` must not contradict. A clip of which
    nobody says it is taken for one of ``assumed``, if that can be, which ``doubts`` tell. The clip
    is called ``name``, or as the file says, or like the file.
    """
    is_json = source.suffix.lower() != ".csv"
    if is_json and read_json(source, bare_nan=True).values.get("format") == FORMAT:
        table = read_table(source)
        rig = FilmedWith(table.lens, table.camera, table.image_size, table.pixel_um)
        check_same_camera(source, rig, camera)
        clip = table_as_clip(table, None if answers is None else answers(table))
        return clip if name is None else replace(clip, name=name)
    truth = read_ground_truth(source)
    rig = settle_rig(source, truth, camera, assumed)
    # Of frames that annotate has filled in, the file does not tell the setting.
    told = np.isfinite(truth.metadata.lfl_mm) & ~np.isnan(truth.metadata.fd_m)
    return Clip(
        name or rig.clip or source.stem,
        rig.image_size,
        rig.pixel_um or (camera or assumed).pitch_um,
        truth.metadata.frame,
        truth.metadata.lfl_mm,
        truth.metadata.fd_m,
        np.where(told[:, None], truth.intrinsics, np.nan),
        rig.doubts,
        rig.lens,
        rig.camera,
    )


def notes(clip: Clip, to: str) -> list[str]:
    """What an export in the format ``to`` does not hold, a sentence each, for the user."""
    sentences = [*clip.doubts, missing_sentence(clip)]
    if to == "ulens":
        sentences.append(infinity_sentence(clip))
    if to == "usd":
        sentences.append(USD_NOTE)
    if to == "nerfstudio":
        sentences.append("Camera poses are not known: every transform_matrix is the identity.")
    return [sentence for sentence in sentences if sentence]
