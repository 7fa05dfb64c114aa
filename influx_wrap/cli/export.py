"""``influx-calib export``: a clip's intrinsics, or a lens's table, for other programs."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from influx_wrap.cli.options import PATH
from influx_wrap.cli.tables import answers
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.export import EXPORTS, LONG, notes, table_as_clip
from influx_wrap.formats.files import read_json
from influx_wrap.formats.groundtruth import read_ground_truth
from influx_wrap.formats.lut import FORMAT, read_table
from influx_wrap.model.clip import Clip
from influx_wrap.model.hardware import Camera


@click.command("export")
@click.argument("source", metavar="GT.json|LUT.json", type=PATH)
@click.option("--to", type=click.Choice(list(EXPORTS)), required=True, help="The format.")
@click.option("--out", type=PATH, required=True, help="File, or folder of stmap and camchain.")
@click.option("--camera", default="arri-alexa-mini", show_default=True,
              help="Camera body of a clip; a table knows its own.")  # fmt: skip
@click.pass_obj
def command(catalogue: Path | None, source: Path, to: str, out: Path, camera: str) -> None:
    """Write the intrinsics of a clip's frames, or of a table's experiments, as other programs
    read them. docs/exports.md says what each format can hold.

    \b
    Example:
      influx-calib export gt.json --to nerfstudio --out transforms.json
      influx-calib export lut.json --to ulens --out canon17.ulens
    """
    clip = _clip(source, load_catalogue(catalogue).camera(camera))
    if not clip.answered.any():
        raise InputError(f"{source} has no frame with intrinsics: there is nothing to export.")
    errors = Console(stderr=True)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task(f"writing {to}", total=int(clip.answered.sum()))
        if to in LONG:
            LONG[to](clip, out, lambda: progress.advance(task))
        else:
            EXPORTS[to](clip, out)
    for sentence in notes(clip, to):
        errors.print(f"[yellow]note:[/] {sentence}", soft_wrap=True)
    answers().print(
        f"{int(clip.answered.sum())} frames written: {escape(str(out))}", soft_wrap=True
    )


def _clip(source: Path, camera: Camera) -> Clip:
    if read_json(source).values.get("format") == FORMAT:
        return table_as_clip(read_table(source))
    truth = read_ground_truth(source)
    width, height = camera.image_size
    pixel_um = 1e3 * camera.sensor_width_mm / width, 1e3 * camera.sensor_height_mm / height
    # Of frames that annotate has filled in, the file does not tell the setting.
    told = np.isfinite(truth.metadata.lfl_mm) & ~np.isnan(truth.metadata.fd_m)
    return Clip(
        source.stem,
        camera.image_size,
        pixel_um,
        truth.metadata.frame,
        truth.metadata.lfl_mm,
        truth.metadata.fd_m,
        np.where(told[:, None], truth.intrinsics, np.nan),
    )
