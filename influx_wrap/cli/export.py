"""``influx-calib export``: a clip's intrinsics, or a lens's table, for other programs."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from influx_wrap.cli.options import PATH, catalogue_option, choice_option
from influx_wrap.cli.progress import watch
from influx_wrap.cli.tables import answers
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import CAMERA, load_catalogue
from influx_wrap.formats.export import EXPORTS, LONG, notes, read_clip
from influx_wrap.lut.lens_model import make_lens_model
from influx_wrap.lut.schemes import DEFAULT, SCHEMES
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.table import Table


@click.command("export")
@click.argument("source", metavar="GT.json|LUT.json", type=PATH)
@click.option("--to", type=click.Choice(list(EXPORTS)), required=True, help="The format.")
@click.option("--out", type=PATH, required=True, help="File, or folder of stmap and camchain.")
@click.option("--camera", show_default=f"as the file says, else {CAMERA}",
              help="Camera body, of a file that does not say.")  # fmt: skip
@choice_option("--scheme", SCHEMES, DEFAULT, "Whose answers at a table's settings are written.")
@catalogue_option
def command(
    catalogue: Path | None, source: Path, to: str, out: Path, camera: str | None, scheme: str
) -> None:
    """Write the intrinsics of a clip's frames, or of a table's settings, as other programs
    read them. docs/exports.md says what each format can hold. At a table's settings, smooth says
    what all experiments together say; the other schemes say what was measured there.

    \b
    Example:
      influx-calib export gt.json --to nerfstudio --out transforms.json
      influx-calib export lut.json --to ulens --out canon17.ulens
    """
    known = load_catalogue(catalogue)

    def answers_of(table: Table) -> FloatArray:
        return make_lens_model(table, scheme).query(table.lfl_mm, table.fd_m).intrinsics

    own = known.camera(camera) if camera else None
    clip = read_clip(source, own, known.camera(CAMERA), answers_of)
    if not clip.answered.any():
        raise InputError(f"{source} has no frame with intrinsics: there is nothing to export.")
    errors = Console(stderr=True)
    with watch(f"writing {to}", errors) as progress:
        if to in LONG:
            LONG[to](clip, out, progress)
        else:
            EXPORTS[to](clip, out)
    for sentence in notes(clip, to):
        errors.print(f"[yellow]note:[/] {escape(sentence)}", soft_wrap=True)
    answers().print(
        f"{int(clip.answered.sum())} frames written: {escape(str(out))}", soft_wrap=True
    )
